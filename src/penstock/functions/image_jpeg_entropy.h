// Huffman decoding of baseline JPEG, in the place of libjpeg's own: the same
// coefficients, by tables that give a symbol and its value at once.
#pragma once

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

// clang-format off
#include <cstdio>     // which the next one needs
#include <jpeglib.h>
// clang-format on

namespace penstock::functions {

// Of one image. Anything unusual in the data makes it give up; the caller then
// reads the image again with libjpeg's decoding, which knows what to do.
class JpegEntropy final {
 public:
  // Never returns: leaves libjpeg as its error_exit does.
  using GiveUp = void (*)(j_common_ptr);

  // Takes over, if `info` is about to read a scan that can be decoded here: one
  // scan for all, sequential, of 8 bits.
  // REQUIRES: after jpeg_start_decompress(); all of the file is in the source's
  // buffer; client_data is the JpegClient that this is a part of.
  bool Install(j_decompress_ptr info, GiveUp give_up);
  // Of the image before.
  void Reset() { has_given_up_ = false; }
  bool has_given_up() const { return has_given_up_; }
  // The marker that ends the scan. REQUIRES: Install() was true.
  int marker_after() const { return marker_after_; }

 private:
  struct Table;

  // What a block of an MCU needs.
  struct Block {
    const Table* dc;
    Table* ac;
    int component;
    bool needs_dc;
    bool needs_ac;
  };

  static Table* FindTable(const JHUFF_TBL& from, bool is_dc, int slot);
  static boolean DecodeMcu(j_decompress_ptr info, JBLOCKROW* blocks);
  // Whether the MCU is as it should be.
  bool Decode(JBLOCKROW* blocks);
  // Takes stuffed bytes and restart markers out; notes where intervals begin.
  // False if no marker follows: libjpeg then waits for more before it decodes
  // what is there.
  bool Unstuff(const uint8_t* from, size_t size, bool has_restarts);
  bool StartInterval();

  GiveUp give_up_ = nullptr;
  bool has_given_up_ = false;
  std::unique_ptr<uint8_t[]> bytes_;
  std::vector<size_t> begins_;  // of intervals, and the end
  size_t interval_ = 0;         // the next one
  int marker_after_ = 0;
  int64_t mcus_in_interval_ = 0;
  int64_t mcus_left_ = 0;
  std::vector<Block> blocks_;
  // The reader's state: the next bits, from the highest on.
  uint64_t window_ = 0;
  int bits_ = 0;  // of them, those that count
  const uint8_t* next_ = nullptr;
  const uint8_t* end_ = nullptr;  // of the interval
  int32_t last_dc_[MAX_COMPS_IN_SCAN] = {};
};

// What client_data of a libjpeg that reads points to.
struct JpegClient {
  jmp_buf jump;
  JpegEntropy entropy;
};

}  // namespace penstock::functions

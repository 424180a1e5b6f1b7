#include "penstock/io/tfrecord_reader.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "penstock/io/crc32c.h"
#include "penstock/io/record_window.h"

namespace penstock::io {
namespace {

constexpr size_t kHeaderBytes = 12;
constexpr size_t kFooterBytes = 4;

enum class Fault { kNone, kLengthCrc, kTooLong, kDataCrc };

template <typename Number>
Number Load(const char* bytes) {
  static_assert(std::endian::native == std::endian::little);
  Number number;
  std::memcpy(&number, bytes, sizeof(number));
  return number;
}

class TfRecordReader final : public RecordReader {
 public:
  TfRecordReader(std::unique_ptr<ByteStream> stream, std::string path,
                 const RecordReaderOptions& options)
      : byte_name_(options.compression == Compression::kNone ? "byte "
                                                             : "decoded byte "),
        max_record_bytes_(std::min(options.max_record_bytes, size_t{1} << 62)),
        window_(std::move(stream), std::move(path), options.start) {}

  ReadState Next(size_t max_records, std::function<void()> wake,
                 RecordBatch& batch) override {
    batch.Clear();
    max_records = std::max<size_t>(1, max_records);
    for (;;) {
      if (window_.position().is_end) return ReadState::kEnd;
      size_t needed = kHeaderBytes;
      if (Scan(max_records, batch, needed)) return ReadState::kReady;
      if (window_.num_bytes() >= needed) {
        window_.GrowFront(needed);
        continue;
      }
      const std::optional<int64_t> num_left = window_.num_bytes_to_end();
      if (num_left > 0 && *num_left < static_cast<int64_t>(needed)) {
        return window_.Fail(Truncated(needed, *num_left), batch);
      }
      bool has_ended = false;
      if (auto state = window_.FetchFor(batch, wake, has_ended)) return *state;
      if (!has_ended) continue;
      const auto num_found = static_cast<int64_t>(window_.num_bytes());
      if (num_found > 0) {
        return window_.Fail(Truncated(needed, num_found), batch);
      }
      window_.Finish();
    }
  }

  RecordPosition position() const override { return window_.position(); }

 private:
  // Takes whole records out of the window's front. Returns whether there were
  // any, or an error; if not, `needed` says how long the front has to be.
  bool Scan(size_t max_records, RecordBatch& batch, size_t& needed) {
    std::vector<std::string_view>& records = batch.records;
    records.reserve(std::min(max_records, records_hint_));
    const std::string_view front = window_.front();
    const char* p = front.data();
    size_t num_left = front.size();
    Fault fault = Fault::kNone;
    uint64_t length = 0;
    uint32_t want = 0;
    uint32_t found = 0;
    while (records.size() < max_records && num_left >= kHeaderBytes) {
      length = Load<uint64_t>(p);
      want = Load<uint32_t>(p + 8);
      found = MaskedCrc32c({p, 8});
      if (found != want) {
        fault = Fault::kLengthCrc;
        break;
      }
      if (length > max_record_bytes_) {
        fault = Fault::kTooLong;
        break;
      }
      const size_t whole = kHeaderBytes + length + kFooterBytes;
      if (num_left < whole) {
        needed = whole;
        break;
      }
      want = Load<uint32_t>(p + kHeaderBytes + length);
      found = MaskedCrc32c({p + kHeaderBytes, length});
      if (found != want) {
        fault = Fault::kDataCrc;
        break;
      }
      records.emplace_back(p + kHeaderBytes, length);
      p += whole;
      num_left -= whole;
    }
    if (!records.empty()) {
      records_hint_ = records.size();
      batch.blocks.push_back(window_.front_block());
      window_.Consume(front.size() - num_left,
                      static_cast<int64_t>(records.size()));
    }
    switch (fault) {
      case Fault::kNone:
        break;
      case Fault::kLengthCrc:
        window_.Fail(Corrupt("length", 0, want, found), batch);
        break;
      case Fault::kTooLong:
        window_.Fail(TooLong(length), batch);
        break;
      case Fault::kDataCrc:
        batch.error = Corrupt("data", kHeaderBytes, want, found);
        window_.Consume(kHeaderBytes + length + kFooterBytes, 1);
        break;
    }
    return !records.empty() || fault != Fault::kNone;
  }

  std::string Where() const {
    return absl::StrCat("record ", window_.position().ordinal, " at ",
                        byte_name_, window_.position().byte_offset, " of ",
                        window_.path());
  }

  absl::Status Corrupt(const char* part, size_t part_offset, uint32_t want,
                       uint32_t found) const {
    return absl::DataLossError(absl::StrFormat(
        "corrupt TFRecord: expected masked crc32c 0x%08x for the %s at %s%d; "
        "found 0x%08x: %s",
        want, part, byte_name_,
        window_.position().byte_offset + static_cast<int64_t>(part_offset),
        found, Where()));
  }

  absl::Status TooLong(uint64_t length) const {
    return absl::ResourceExhaustedError(
        absl::StrCat("expected a TFRecord of at most ", max_record_bytes_,
                     " bytes; found one of ", length, ": ", Where()));
  }

  absl::Status Truncated(size_t needed, int64_t num_left) const {
    return absl::DataLossError(absl::StrCat(
        "truncated TFRecord: expected at least ", needed,
        " bytes to the end of the file; found ", num_left, ": ", Where()));
  }

  const char* const byte_name_;
  const size_t max_record_bytes_;
  RecordWindow window_;
  size_t records_hint_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RecordReader>> OpenTfRecordReader(
    FileSystem& files, std::string_view path,
    const RecordReaderOptions& options) {
  return OpenReader<TfRecordReader>(files, path, options);
}

}  // namespace penstock::io

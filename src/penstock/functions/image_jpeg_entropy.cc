#include "penstock/functions/image_jpeg_entropy.h"

#include <algorithm>
#include <cstring>

// clang-format off
#define JPEG_INTERNALS  // for its structs
#include <jpegint.h>
// clang-format on

namespace penstock::functions {
namespace {

// Shifts by a register take three instructions of the oldest processors, one of
// those of the last ten years.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(_GLIBCXX_TSAN)
#define PENSTOCK_SHIFTS __attribute__((target_clones("default", "bmi2")))
#else
#define PENSTOCK_SHIFTS
#endif

constexpr int kTableBits = 11;
constexpr int kSkipBits = 13;
// No MCU takes more: 10 blocks of 64 symbols of 31 bits.
constexpr size_t kPadding = 4096;
// A run that means the end of the block: no two others add up to it. One more
// than 128, as IsInBlock() needs it.
constexpr uint8_t kEndOfBlock = 129;
// A way to go that means a code of more than kSkipBits: with the end of a block
// no way is as long.
constexpr int kLongerCode = 256;
// A file that adds up more than this is left to libjpeg.
constexpr int32_t kMaxDc = 1 << 20;

// The value that `size` bits stand for.
inline int32_t Extend(uint32_t bits, int size) {
  const auto value = static_cast<int32_t>(bits);
  return value < (1 << (size - 1)) ? value - (1 << size) + 1 : value;
}

// Of several codes that lead to `k`, at the block's end or behind: whether all
// of them are the block's. True of 64, and of the end after 1 to 63
// coefficients. It may be false of a single one.
inline bool IsInBlock(int k) {
  return k < kLongerCode && ((k - 1) & 127) < DCTSIZE2;
}

inline uint64_t LoadBigEndian(const uint8_t* at) {
  uint64_t bytes;
  std::memcpy(&bytes, at, sizeof(bytes));
  return __builtin_bswap64(bytes);
}

}  // namespace

struct JpegEntropy::Table {
  // What the next kTableBits bits begin with.
  struct Entry {
    int16_t value;  // the coefficient; the symbol if bits is 0
    uint8_t run;    // zeros before it; the code's length if bits is 0
    uint8_t bits;   // of code and value; 0 if they are too many
  };
  struct Symbol {
    int symbol;
    int bits;  // 0: no such code
  };
  // A code and its value: their bits, and how many coefficients they go on.
  struct Step {
    uint8_t bits;     // 0: it is a longer code
    uint8_t advance;  // kEndOfBlock: to the end
  };

  JHUFF_TBL from;
  bool is_made = false;
  Entry entries[1 << kTableBits];
  int32_t largest[17];  // code of that length; -1 if there is none
  int32_t offset[17];   // from a code to its place in from.huffval
  // Of coefficients but the first, by the next kSkipBits bits: the first code
  // alone, and all that can be seen, up to a block's end. A skip has their bits
  // in its low 6 bits, and in the rest how many coefficients they go on.
  bool has_skips = false;
  Step steps[1 << kSkipBits];
  uint16_t skips[1 << kSkipBits];

  void Make(const JHUFF_TBL& given, bool is_dc);
  // Of those that are needed: it takes longer than all else.
  void MakeSkips();
  // Of codes that are longer than kTableBits.
  Symbol Find(uint64_t window) const;
  // A code and its value that no entry has.
  struct Found {
    int symbol;
    int32_t value;
    int bits;  // of both; 0: there is no such code
  };
  // `size_mask`: of a symbol, what says how many bits its value has.
  Found FindLong(const Entry& entry, uint64_t window, int size_mask) const;
};

void JpegEntropy::Table::Make(const JHUFF_TBL& given, bool is_dc) {
  from = given;
  std::fill(std::begin(entries), std::end(entries), Entry{0, 0, 0});
  int32_t code = 0;
  int place = 0;
  for (int length = 1; length <= 16; ++length, code <<= 1) {
    offset[length] = place - code;
    const int count = from.bits[length];
    for (int i = 0; i < count; ++i, ++code, ++place) {
      if (length > kTableBits) continue;
      const int symbol = from.huffval[place];
      const int size = is_dc ? symbol : symbol & 15;
      const int run = is_dc ? 0 : symbol >> 4;
      const int rest = kTableBits - length;
      for (int32_t suffix = 0; suffix < 1 << rest; ++suffix) {
        Entry& entry = entries[(code << rest) + suffix];
        entry = {static_cast<int16_t>(symbol), static_cast<uint8_t>(length), 0};
        if (size == 0) {
          const bool ends = !is_dc && run != 15;
          entry = {0, ends ? kEndOfBlock : static_cast<uint8_t>(run),
                   static_cast<uint8_t>(length)};
        } else if (size <= rest) {
          const int32_t value = Extend(suffix >> (rest - size), size);
          entry = {static_cast<int16_t>(value), static_cast<uint8_t>(run),
                   static_cast<uint8_t>(length + size)};
        }
      }
    }
    largest[length] = count > 0 ? code - 1 : -1;
  }
  has_skips = false;
  is_made = true;
}

void JpegEntropy::Table::MakeSkips() {
  int lengths[1 << kSkipBits] = {};  // of the first codes, without values
  std::fill(std::begin(steps), std::end(steps), Step{0, 0});
  int32_t code = 0;
  int place = 0;
  for (int length = 1; length <= kSkipBits; ++length, code <<= 1) {
    for (int i = 0; i < from.bits[length]; ++i, ++code, ++place) {
      const int symbol = from.huffval[place];
      const int size = symbol & 15;
      const int run = symbol >> 4;
      const int advance = size == 0 && run != 15 ? kEndOfBlock : run + 1;
      const int rest = kSkipBits - length;
      const Step step = {static_cast<uint8_t>(length + size),
                         static_cast<uint8_t>(advance)};
      std::fill_n(steps + (code << rest), 1 << rest, step);
      std::fill_n(lengths + (code << rest), 1 << rest, length);
    }
  }
  for (int i = 0; i < 1 << kSkipBits; ++i) {
    int bits = steps[i].bits;
    int advance = steps[i].advance;
    while (bits > 0 && bits < kSkipBits && advance < DCTSIZE2) {
      const int rest = (i << bits) & ((1 << kSkipBits) - 1);
      if (lengths[rest] == 0 || lengths[rest] > kSkipBits - bits) break;
      const int more = steps[rest].advance;
      // Beyond a block without its end: IsInBlock() could not tell.
      if (more != kEndOfBlock && advance + more > DCTSIZE2) break;
      bits += steps[rest].bits;
      advance += more;
    }
    if (bits == 0) advance = kLongerCode;
    skips[i] = static_cast<uint16_t>(advance << 6 | bits);
  }
  has_skips = true;
}

JpegEntropy::Table::Symbol JpegEntropy::Table::Find(uint64_t window) const {
  for (int length = kTableBits + 1; length <= 16; ++length) {
    const auto code = static_cast<int32_t>(window >> (64 - length));
    if (code <= largest[length]) {
      return {from.huffval[(code + offset[length]) & 255], length};
    }
  }
  return {0, 0};
}

JpegEntropy::Table::Found JpegEntropy::Table::FindLong(const Entry& entry,
                                                       uint64_t window,
                                                       int size_mask) const {
  Symbol symbol = {entry.value, entry.run};
  if (symbol.bits == 0) symbol = Find(window);
  const int size = symbol.symbol & size_mask;
  if (symbol.bits == 0 || size > 15) return {0, 0, 0};
  if (size == 0) return {symbol.symbol, 0, symbol.bits};
  const auto value =
      static_cast<uint32_t>(window << symbol.bits >> (64 - size));
  return {symbol.symbol, Extend(value, size), symbol.bits + size};
}

JpegEntropy::Table* JpegEntropy::FindTable(const JHUFF_TBL& from, bool is_dc,
                                           int slot) {
  // Files of one origin have one set of tables.
  thread_local const std::unique_ptr<Table[]> tables(
      new Table[2 * NUM_HUFF_TBLS]);
  Table& table = tables[slot + (is_dc ? NUM_HUFF_TBLS : 0)];
  if (!table.is_made ||
      std::memcmp(table.from.bits, from.bits, sizeof(from.bits)) != 0 ||
      std::memcmp(table.from.huffval, from.huffval, sizeof(from.huffval)) !=
          0) {
    table.Make(from, is_dc);
  }
  return &table;
}

bool JpegEntropy::Unstuff(const uint8_t* from, size_t size, bool has_restarts) {
  bytes_.reset(new uint8_t[size + kPadding]);  // NOLINT: not to be cleared
  uint8_t* to = bytes_.get();
  begins_ = {0};
  const uint8_t* const end = from + size;
  int restart = 0;
  bool has_end = false;
  while (from < end) {
    const auto* mark =
        static_cast<const uint8_t*>(std::memchr(from, 0xff, end - from));
    const size_t run = (mark != nullptr ? mark : end) - from;
    std::memcpy(to, from, run);
    to += run;
    if (mark == nullptr) break;
    from = std::find_if(mark, end, [](uint8_t byte) { return byte != 0xff; });
    if (from == end) break;
    const int marker = *from++;
    if (marker == 0) {
      *to++ = 0xff;
    } else if (has_restarts && marker == JPEG_RST0 + restart) {
      restart = (restart + 1) % 8;
      begins_.push_back(to - bytes_.get());
    } else {
      has_end = true;
      marker_after_ = marker;
      break;
    }
  }
  begins_.push_back(to - bytes_.get());
  std::memset(to, 0, kPadding);
  return has_end;
}

bool JpegEntropy::StartInterval() {
  if (interval_ + 1 >= begins_.size()) return false;
  next_ = bytes_.get() + begins_[interval_];
  end_ = bytes_.get() + begins_[interval_ + 1];
  ++interval_;
  window_ = 0;
  bits_ = 0;
  mcus_left_ = mcus_in_interval_;
  std::fill(std::begin(last_dc_), std::end(last_dc_), 0);
  return true;
}

bool JpegEntropy::Install(j_decompress_ptr info, GiveUp give_up) {
  if (info->progressive_mode || info->arith_code || info->data_precision != 8 ||
      jpeg_has_multiple_scans(info) || info->src->bytes_in_buffer == 0) {
    return false;
  }
  blocks_.clear();
  for (int i = 0; i < info->blocks_in_MCU; ++i) {
    const int component = info->MCU_membership[i];
    const jpeg_component_info& own = *info->cur_comp_info[component];
    const JHUFF_TBL* dc = info->dc_huff_tbl_ptrs[own.dc_tbl_no];
    const JHUFF_TBL* ac = info->ac_huff_tbl_ptrs[own.ac_tbl_no];
    if (dc == nullptr || ac == nullptr) return false;
    const bool is_needed = own.component_needed == TRUE;
    blocks_.push_back({FindTable(*dc, true, own.dc_tbl_no),
                       FindTable(*ac, false, own.ac_tbl_no), component,
                       is_needed, is_needed && own.DCT_scaled_size > 1});
  }
  give_up_ = give_up;
  has_given_up_ = false;
  mcus_in_interval_ = info->restart_interval;
  if (!Unstuff(info->src->next_input_byte, info->src->bytes_in_buffer,
               mcus_in_interval_ > 0)) {
    return false;
  }
  interval_ = 0;
  StartInterval();
  info->entropy->decode_mcu = DecodeMcu;
  return true;
}

boolean JpegEntropy::DecodeMcu(j_decompress_ptr info, JBLOCKROW* blocks) {
  JpegEntropy& self = static_cast<JpegClient*>(info->client_data)->entropy;
  if (!self.Decode(blocks)) {
    self.has_given_up_ = true;
    self.give_up_(reinterpret_cast<j_common_ptr>(info));
  }
  return TRUE;
}

PENSTOCK_SHIFTS bool JpegEntropy::Decode(JBLOCKROW* blocks) {
  if (mcus_in_interval_ > 0) {
    if (mcus_left_ == 0 && !StartInterval()) return false;
    --mcus_left_;
  }
  uint64_t window = window_;
  int bits = bits_;
  const uint8_t* next = next_;
  auto use = [&](int count) {
    window <<= count;
    bits -= count;
  };
  // At least 56 bits: a code and its value have 31 at most. To ask first
  // whether that is needed costs more.
  auto refill = [&] {
    window |= LoadBigEndian(next) >> bits;
    next += (63 - bits) >> 3;
    bits |= 56;
  };

  for (size_t b = 0; b < blocks_.size(); ++b) {
    const Block& own = blocks_[b];
    JCOEF* block = blocks != nullptr ? *blocks[b] : nullptr;
    refill();
    const Table::Entry dc = own.dc->entries[window >> (64 - kTableBits)];
    int32_t difference = dc.value;
    if (dc.bits > 0) {
      use(dc.bits);
    } else {
      const Table::Found found = own.dc->FindLong(dc, window, 255);
      if (found.bits == 0) return false;
      use(found.bits);
      difference = found.value;
    }
    int32_t& last = last_dc_[own.component];
    last += difference;
    if (last > kMaxDc || last < -kMaxDc) return false;
    if (block != nullptr && own.needs_dc) block[0] = static_cast<JCOEF>(last);
    if (!own.needs_ac) block = nullptr;

    const Table::Entry* const entries = own.ac->entries;
    int k = 1;
    if (block == nullptr) {
      if (!own.ac->has_skips) own.ac->MakeSkips();
      const uint16_t* const skips = own.ac->skips;
      // False at the block's end, and where no skip is known.
      auto step = [&] {
        const uint64_t at = window >> (64 - kSkipBits);
        const uint32_t skip = skips[at];
        const int after = k + static_cast<int>(skip >> 6);
        if (after < DCTSIZE2 || IsInBlock(after)) {
          use(static_cast<int>(skip & 63));
          k = after;
        } else if (own.ac->steps[at].bits > 0) {
          // What follows the last coefficient is another block's.
          use(own.ac->steps[at].bits);
          k += own.ac->steps[at].advance;
        } else {
          k += kLongerCode;
        }
        return k < DCTSIZE2;
      };
      while (true) {
        do {
          refill();  // for two: 28 bits at most each
        } while (step() && step());
        if (k < kLongerCode) break;
        k -= kLongerCode;
        refill();
        const Table::Symbol symbol = own.ac->Find(window);
        if (symbol.bits == 0) return false;
        use(symbol.bits + (symbol.symbol & 15));
        const bool ends = symbol.symbol < 0xf0 && (symbol.symbol & 15) == 0;
        k += ends ? kEndOfBlock : (symbol.symbol >> 4) + 1;
        if (k >= DCTSIZE2) break;
      }
      if (k > DCTSIZE2 && k < kEndOfBlock) return false;
    }
    while (k < DCTSIZE2) {
      refill();
      Table::Entry entry = entries[window >> (64 - kTableBits)];
      if (entry.bits > 0) {
        use(entry.bits);
      } else {
        const Table::Found found = own.ac->FindLong(entry, window, 15);
        if (found.bits == 0) return false;
        use(found.bits);
        entry.value = static_cast<int16_t>(found.value);
        entry.run = static_cast<uint8_t>(found.symbol >> 4);
        const bool ends = (found.symbol & 15) == 0 && entry.run != 15;
        if (ends) entry.run = kEndOfBlock;
      }
      k += entry.run;
      if (k >= DCTSIZE2) {
        if (entry.run < kEndOfBlock) return false;
        break;
      }
      if (block != nullptr) block[jpeg_natural_order[k]] = entry.value;
      ++k;
    }
  }
  window_ = window;
  bits_ = bits;
  next_ = next;
  return (next - end_) * 8 <= bits;
}

}  // namespace penstock::functions

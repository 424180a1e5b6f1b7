#include "penstock/io/text_line_reader.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/io/record_window.h"

namespace penstock::io {
namespace {

std::string_view WithoutReturn(std::string_view line) {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

// Finds where a record ends, in bytes that come in pieces.
class LineEnd final {
 public:
  explicit LineEnd(const TextLineFormat& format)
      : field_delim_(format.field_delim) {}

  // The "\n" that ends the record which `bytes` go on with; npos if there is
  // none, and more bytes of it may follow. Found, the next record begins.
  size_t Find(std::string_view bytes) {
    if (!field_delim_.has_value()) return bytes.find('\n');
    if (place_ == Place::kFieldStart) {
      // Without a quote it is a line like any other.
      const size_t end = bytes.find('\n');
      if (end != std::string_view::npos &&
          std::memchr(bytes.data(), '"', end) == nullptr) {
        return end;
      }
    }
    for (size_t i = 0; i < bytes.size(); ++i) {
      const char c = bytes[i];
      if (place_ == Place::kQuoted) {
        i = bytes.find('"', i);
        if (i == std::string_view::npos) return i;
        place_ = Place::kQuoteInQuoted;
      } else if (c == '\n') {
        Begin();
        return i;
      } else if (c == *field_delim_) {
        place_ = Place::kFieldStart;
      } else if (c == '"' && place_ != Place::kPlain) {
        // At a field's start it opens; after a quote inside, it is one of two.
        place_ = Place::kQuoted;
      } else {
        place_ = Place::kPlain;
      }
    }
    return std::string_view::npos;
  }

  // The next bytes are those of a new record.
  void Begin() { place_ = Place::kFieldStart; }

 private:
  enum class Place : uint8_t { kFieldStart, kPlain, kQuoted, kQuoteInQuoted };

  const std::optional<char> field_delim_;
  Place place_ = Place::kFieldStart;
};

class TextLineReader final : public RecordReader {
 public:
  TextLineReader(std::unique_ptr<ByteStream> stream, std::string path,
                 const RecordReaderOptions& options,
                 const TextLineFormat& format)
      : max_record_bytes_(options.max_record_bytes),
        line_end_(format),
        window_(std::move(stream), std::move(path), options.start) {}

  ReadState Next(size_t max_records, std::function<void()> wake,
                 RecordBatch& batch) override {
    batch.Clear();
    max_records = std::max<size_t>(1, max_records);
    if (!is_inside_ && Scan(max_records, batch)) return ReadState::kReady;
    // From here on no fetched byte ends a record.
    is_inside_ = true;
    for (;;) {
      if (window_.position().is_end) return ReadState::kEnd;
      if (window_.num_bytes() > max_record_bytes_) return TooLong(batch);
      const size_t num_before = window_.num_bytes();
      bool has_ended = false;
      if (auto state = window_.FetchFor(batch, wake, has_ended)) return *state;
      if (has_ended) {
        if (num_before == 0) {
          window_.Finish();
          return ReadState::kEnd;
        }
        is_inside_ = false;
        TakeFirst(num_before, num_before, batch);
        return ReadState::kReady;
      }
      const size_t newline = line_end_.Find(window_.last());
      if (newline == std::string_view::npos) continue;
      if (num_before + newline > max_record_bytes_) return TooLong(batch);
      is_inside_ = false;
      if (num_before > 0) {
        TakeFirst(num_before + newline, num_before + newline + 1, batch);
        return ReadState::kReady;
      }
      Scan(max_records, batch);
      return ReadState::kReady;
    }
  }

  RecordPosition position() const override { return window_.position(); }

 private:
  // Takes the lines that end in the window's front. Returns whether there were
  // any, or an error.
  bool Scan(size_t max_records, RecordBatch& batch) {
    std::vector<std::string_view>& records = batch.records;
    records.reserve(std::min(max_records, records_hint_));
    const std::string_view front = window_.front();
    const char* p = front.data();
    size_t num_left = front.size();
    bool is_too_long = false;
    line_end_.Begin();
    while (records.size() < max_records && num_left > 0) {
      const size_t length = line_end_.Find({p, num_left});
      if (length == std::string_view::npos) break;
      if (length > max_record_bytes_) {
        is_too_long = true;
        break;
      }
      records.push_back(WithoutReturn({p, length}));
      p += length + 1;
      num_left -= length + 1;
    }
    if (!records.empty()) {
      records_hint_ = records.size();
      batch.blocks.push_back(window_.front_block());
      window_.Consume(front.size() - num_left,
                      static_cast<int64_t>(records.size()));
    }
    if (is_too_long) TooLong(batch);
    return is_too_long || !records.empty();
  }

  // Takes one line of `length` bytes that crosses an edge, with its newline.
  void TakeFirst(size_t length, size_t length_with_newline,
                 RecordBatch& batch) {
    window_.GrowFront(length_with_newline);
    batch.records.push_back(WithoutReturn(window_.front().substr(0, length)));
    batch.blocks.push_back(window_.front_block());
    window_.Consume(length_with_newline, 1);
  }

  ReadState TooLong(RecordBatch& batch) {
    const RecordPosition& position = window_.position();
    return window_.Fail(
        absl::ResourceExhaustedError(absl::StrCat(
            "expected a line of at most ", max_record_bytes_,
            " bytes; found a longer one: line ", position.ordinal, " at byte ",
            position.byte_offset, " of ", window_.path())),
        batch);
  }

  const size_t max_record_bytes_;
  LineEnd line_end_;
  // All fetched bytes are of one record, and line_end_ has seen them.
  bool is_inside_ = false;
  RecordWindow window_;
  size_t records_hint_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RecordReader>> OpenTextLineReader(
    FileSystem& files, std::string_view path,
    const RecordReaderOptions& options, const TextLineFormat& format) {
  return OpenReader<TextLineReader>(files, path, options, format);
}

}  // namespace penstock::io

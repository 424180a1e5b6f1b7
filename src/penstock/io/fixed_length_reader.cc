#include "penstock/io/fixed_length_reader.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/io/record_window.h"

namespace penstock::io {
namespace {

absl::Status ValidateSize(const FixedLengthFormat& format, int64_t size,
                          std::string_view path) {
  const auto header = static_cast<int64_t>(format.header_bytes);
  const auto footer = static_cast<int64_t>(format.footer_bytes);
  const auto record = static_cast<int64_t>(format.record_bytes);
  const int64_t body = size - header - footer;
  if (body >= 0 && body % record == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "expected a header of ", header, " bytes, records of ", record,
      " bytes and a footer of ", footer, " bytes; found a file of ", size,
      " bytes, which these do not fill: ", std::string(path)));
}

class FixedLengthReader final : public RecordReader {
 public:
  // `end`: ordinal of the first record that is not of its piece.
  FixedLengthReader(std::unique_ptr<ByteStream> stream, std::string path,
                    const FixedLengthFormat& format, RecordPosition start,
                    int64_t end)
      : format_(format),
        end_(end),
        window_(std::move(stream), std::move(path), start) {}

  ReadState Next(size_t max_records, std::function<void()> wake,
                 RecordBatch& batch) override {
    batch.Clear();
    max_records = std::max<size_t>(1, max_records);
    for (;;) {
      if (window_.position().is_end) return ReadState::kEnd;
      if (window_.position().ordinal >= end_) {
        window_.Finish();
        continue;
      }
      if (window_.num_bytes() >= format_.record_bytes + format_.footer_bytes) {
        window_.GrowFront(format_.record_bytes);
        Take(max_records, batch);
        return ReadState::kReady;
      }
      bool has_ended = false;
      if (auto state = window_.FetchFor(batch, wake, has_ended)) return *state;
      if (!has_ended) continue;
      absl::Status error =
          ValidateSize(format_,
                       window_.position().byte_offset +
                           static_cast<int64_t>(window_.num_bytes()),
                       window_.path());
      if (!error.ok()) return window_.Fail(std::move(error), batch);
      window_.Finish();
    }
  }

  RecordPosition position() const override { return window_.position(); }

 private:
  // Takes the records in the window's front, of which there is at least one.
  // Any byte may belong to the footer until `footer_bytes` follow it.
  void Take(size_t max_records, RecordBatch& batch) {
    const std::string_view front = window_.front();
    const size_t num_body =
        std::min(front.size(), window_.num_bytes() - format_.footer_bytes);
    const size_t num_records =
        std::min({max_records, num_body / format_.record_bytes,
                  static_cast<size_t>(end_ - window_.position().ordinal)});
    batch.records.reserve(num_records);
    for (size_t i = 0; i < num_records; ++i) {
      batch.records.push_back(
          front.substr(i * format_.record_bytes, format_.record_bytes));
    }
    batch.blocks.push_back(window_.front_block());
    window_.Consume(num_records * format_.record_bytes,
                    static_cast<int64_t>(num_records));
  }

  const FixedLengthFormat format_;
  const int64_t end_;
  RecordWindow window_;
};

// The first record of a piece, without overflow.
int64_t FirstOf(int64_t piece, int64_t pieces, int64_t records) {
  return static_cast<int64_t>(static_cast<__int128>(records) * piece / pieces);
}

}  // namespace

absl::StatusOr<int64_t> CountFixedLength(const FixedLengthFormat& format,
                                         int64_t size, std::string_view path) {
  PENSTOCK_RETURN_IF_ERROR(ValidateSize(format, size, path));
  const auto around =
      static_cast<int64_t>(format.header_bytes + format.footer_bytes);
  return (size - around) / static_cast<int64_t>(format.record_bytes);
}

absl::StatusOr<std::unique_ptr<RecordReader>> OpenFixedLengthReader(
    FileSystem& files, std::string_view path, const FixedLengthFormat& format,
    const RecordReaderOptions& options) {
  if (format.record_bytes < 1) {
    return absl::InvalidArgumentError("record_bytes must be at least 1; got 0");
  }
  if (format.record_bytes > options.max_record_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("record_bytes must be at most ", options.max_record_bytes,
                     "; got ", format.record_bytes));
  }
  // The header is no record: the start of the file is the place after it.
  RecordReaderOptions adjusted = options;
  const auto header = static_cast<int64_t>(format.header_bytes);
  adjusted.start.byte_offset = std::max(options.start.byte_offset, header);
  int64_t end = std::numeric_limits<int64_t>::max();
  if (options.compression == Compression::kNone && !options.start.is_end) {
    PENSTOCK_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                              files.Open(path));
    PENSTOCK_ASSIGN_OR_RETURN(const int64_t records,
                              CountFixedLength(format, file->size(), path));
    if (format.pieces > 1) {
      const int64_t first = FirstOf(format.piece, format.pieces, records);
      end = FirstOf(format.piece + 1, format.pieces, records);
      RecordPosition& start = adjusted.start;
      start.ordinal = std::max(start.ordinal, first);
      start.byte_offset =
          header + start.ordinal * static_cast<int64_t>(format.record_bytes);
    }
  }
  PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> stream,
                            OpenRecordStream(files, path, adjusted));
  return std::make_unique<FixedLengthReader>(
      std::move(stream), std::string(path), format, adjusted.start, end);
}

}  // namespace penstock::io

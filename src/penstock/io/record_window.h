// The stretch of a byte stream in which a reader looks for records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/base/status.h"
#include "penstock/io/block.h"
#include "penstock/io/byte_stream.h"
#include "penstock/io/file_system.h"
#include "penstock/io/record_reader.h"

namespace penstock::io {

// Fetched bytes not yet consumed: a contiguous `front()`, and behind it the
// blocks that follow. A reader takes records out of the front as views; when
// the front ends inside a record, it fetches until the record is whole and
// joins it. Memory thus grows with the bytes that came, not with those that a
// corrupt length announces, and only joined bytes are copied.
//
// Also keeps the reader's position and whether it has finished. One caller at a
// time.
class RecordWindow final {
 public:
  // A null `stream` stands for a reader opened at its end.
  RecordWindow(std::unique_ptr<ByteStream> stream, std::string path,
               RecordPosition start);

  std::string_view front() const { return front_.bytes; }
  // The front's memory, for a batch that has views into it.
  const Block& front_block() const { return front_; }
  // The last bytes fetched: the front itself if nothing lies behind it.
  std::string_view last() const {
    return behind_.empty() ? front_.bytes : behind_.back().bytes;
  }
  // All fetched bytes not yet consumed.
  size_t num_bytes() const { return front_.bytes.size() + num_behind_; }

  // Gets one more block. kReady: there are more bytes than before. kEnd: there
  // are none to come; `error` says if that is because they cannot be had.
  ReadState Fetch(const std::function<void()>& wake, absl::Status& error);

  // Fetch() in a reader's Next(): what that is to return, or nothing if it is
  // to go on, with more bytes or, if `has_ended`, for the last time.
  std::optional<ReadState> FetchFor(RecordBatch& batch,
                                    const std::function<void()>& wake,
                                    bool& has_ended);

  // Makes the front at least `num_bytes` long, if need be by joining it with
  // bytes from behind in memory of exactly that size.
  //
  // REQUIRES: this->num_bytes() >= num_bytes
  void GrowFront(size_t num_bytes);

  // Consumes the first `num_bytes` of the front, which held `num_records`.
  void Consume(size_t num_bytes, int64_t num_records);

  // Consumes the first `num_bytes` of the front as one record of `batch`.
  void TakeRecord(size_t num_bytes, RecordBatch& batch);

  // No more records: drops everything.
  void Finish();
  // The same, with `error` as the last thing returned.
  ReadState Fail(absl::Status error, RecordBatch& batch);

  const std::string& path() const { return path_; }
  const RecordPosition& position() const { return position_; }
  // Bytes from the position to the end of the file, if known.
  std::optional<int64_t> num_bytes_to_end() const;

 private:
  void Advance();

  const std::string path_;
  std::unique_ptr<ByteStream> stream_;
  RecordPosition position_;
  Block front_;
  std::deque<Block> behind_;
  size_t num_behind_ = 0;
};

// The stream for a window that starts at `options.start`; null if that is the
// end.
absl::StatusOr<std::unique_ptr<ByteStream>> OpenRecordStream(
    FileSystem& files, std::string_view path,
    const RecordReaderOptions& options);

// A Reader(stream, path, options, more...) of the file at `path`.
template <typename Reader, typename... More>
absl::StatusOr<std::unique_ptr<RecordReader>> OpenReader(
    FileSystem& files, std::string_view path,
    const RecordReaderOptions& options, const More&... more) {
  PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> stream,
                            OpenRecordStream(files, path, options));
  return std::make_unique<Reader>(std::move(stream), std::string(path), options,
                                  more...);
}

}  // namespace penstock::io

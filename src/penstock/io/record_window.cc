#include "penstock/io/record_window.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace penstock::io {

RecordWindow::RecordWindow(std::unique_ptr<ByteStream> stream, std::string path,
                           RecordPosition start)
    : path_(std::move(path)), stream_(std::move(stream)), position_(start) {}

ReadState RecordWindow::Fetch(const std::function<void()>& wake,
                              absl::Status& error) {
  if (stream_ == nullptr) return ReadState::kEnd;
  absl::StatusOr<std::optional<Block>> block = stream_->Next(wake);
  if (!block.ok()) {
    error = std::move(block).status();
    return ReadState::kEnd;
  }
  if (!block->has_value()) return ReadState::kWait;
  if ((*block)->bytes.empty()) return ReadState::kEnd;
  num_behind_ += (*block)->bytes.size();
  behind_.push_back(**std::move(block));
  Advance();
  return ReadState::kReady;
}

void RecordWindow::GrowFront(size_t num_bytes) {
  if (front_.bytes.size() >= num_bytes) return;
  std::shared_ptr<char> memory(new char[num_bytes],
                               std::default_delete<char[]>());
  std::memcpy(memory.get(), front_.bytes.data(), front_.bytes.size());
  size_t size = front_.bytes.size();
  while (size < num_bytes) {
    Block& next = behind_.front();
    const size_t n = std::min(next.bytes.size(), num_bytes - size);
    std::memcpy(memory.get() + size, next.bytes.data(), n);
    size += n;
    num_behind_ -= n;
    next.bytes.remove_prefix(n);
    if (next.bytes.empty()) behind_.pop_front();
  }
  const char* bytes = memory.get();
  front_ = {.owner = std::move(memory), .bytes = {bytes, num_bytes}};
}

void RecordWindow::Consume(size_t num_bytes, int64_t num_records) {
  front_.bytes.remove_prefix(num_bytes);
  position_.byte_offset += static_cast<int64_t>(num_bytes);
  position_.ordinal += num_records;
  Advance();
}

void RecordWindow::Advance() {
  if (!front_.bytes.empty() || behind_.empty()) return;
  front_ = std::move(behind_.front());
  behind_.pop_front();
  num_behind_ -= front_.bytes.size();
}

void RecordWindow::Finish() {
  position_.is_end = true;
  stream_ = nullptr;
  front_ = {};
  behind_.clear();
  num_behind_ = 0;
}

std::optional<ReadState> RecordWindow::FetchFor(
    RecordBatch& batch, const std::function<void()>& wake, bool& has_ended) {
  absl::Status error;
  const ReadState state = Fetch(wake, error);
  if (state == ReadState::kWait) return state;
  if (!error.ok()) return Fail(std::move(error), batch);
  has_ended = state == ReadState::kEnd;
  return std::nullopt;
}

void RecordWindow::TakeRecord(size_t num_bytes, RecordBatch& batch) {
  batch.records.push_back(front().substr(0, num_bytes));
  batch.blocks.push_back(front_block());
  Consume(num_bytes, 1);
}

ReadState RecordWindow::Fail(absl::Status error, RecordBatch& batch) {
  batch.error = std::move(error);
  ++position_.ordinal;
  Finish();
  return ReadState::kReady;
}

std::optional<int64_t> RecordWindow::num_bytes_to_end() const {
  if (stream_ == nullptr) return std::nullopt;
  const std::optional<int64_t> size = stream_->decoded_size();
  if (!size.has_value()) return std::nullopt;
  return *size - position_.byte_offset;
}

absl::StatusOr<std::unique_ptr<ByteStream>> OpenRecordStream(
    FileSystem& files, std::string_view path,
    const RecordReaderOptions& options) {
  if (options.start.is_end) return nullptr;
  return OpenByteStream(files, path, options.compression,
                        options.start.byte_offset, options.stream);
}

}  // namespace penstock::io

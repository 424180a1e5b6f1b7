#include "penstock/engine/source_testing.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::engine_testing {

class FakeRun final : public engine::RowSource {
 public:
  FakeRun(FakeSource source, std::shared_ptr<FakeSources::Counts> counts)
      : source_(std::move(source)), counts_(std::move(counts)) {
    ++counts_->opened;
    ++counts_->open;
  }
  ~FakeRun() override { --counts_->open; }

  absl::StatusOr<engine::Pull> Next(const engine::Request& request) override {
    if (source_.is_hesitant && !std::exchange(has_hesitated_, true)) {
      request.waker->Wake();
      return engine::Pull::Blocked();
    }
    has_hesitated_ = false;
    if (!source_.chunks.empty()) return NextChunk();
    if (next_ >= source_.stuck_at) return engine::Pull::Blocked();
    const int64_t rows = std::min(
        {request.max_rows, source_.rows - next_, source_.stuck_at - next_});
    if (rows <= 0) return engine::Pull::End();
    std::vector<int64_t> values(rows);
    std::iota(values.begin(), values.end(), next_);
    Chunk chunk;
    chunk.rows = rows;
    chunk.columns = {MakeColumn<int64_t>(values)};
    for (int64_t i = 0; i < rows; ++i) {
      if (source_.errors.contains(next_ + i)) {
        chunk.errors.push_back({i, absl::DataLossError(absl::StrCat(
                                       "row ", next_ + i, " is broken"))});
      }
    }
    next_ += rows;
    counts_->rows += rows;
    return engine::Pull::Rows(std::move(chunk));
  }

 private:
  absl::StatusOr<engine::Pull> NextChunk() {
    if (next_ == static_cast<int64_t>(source_.chunks.size())) {
      return engine::Pull::End();
    }
    counts_->rows += source_.chunks[next_].rows;
    return engine::Pull::Rows(source_.chunks[next_++]);
  }

  const FakeSource source_;
  const std::shared_ptr<FakeSources::Counts> counts_;
  int64_t next_ = 0;
  bool has_hesitated_ = false;
};

void FakeSources::Set(const std::string& capture, FakeSource source) {
  MutexLock lock(&mutex_);
  sources_[capture] = std::move(source);
}

void FakeSources::SetArray(const std::string& id, Buffer bytes) {
  MutexLock lock(&mutex_);
  arrays_[id] = std::move(bytes);
}

absl::StatusOr<std::unique_ptr<engine::RowSource>> FakeSources::Open(
    const std::string& capture, const Chunk&) {
  MutexLock lock(&mutex_);
  const auto found = sources_.find(capture);
  if (found == sources_.end()) return absl::NotFoundError(capture);
  return std::make_unique<FakeRun>(found->second, counts_);
}

absl::StatusOr<Buffer> FakeSources::Capture(const std::string& id) {
  MutexLock lock(&mutex_);
  const auto found = arrays_.find(id);
  if (found == arrays_.end()) return absl::NotFoundError(id);
  return found->second;
}

}  // namespace penstock::engine_testing

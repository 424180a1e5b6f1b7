#include "penstock/engine/ops/cache.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/data/builder.h"
#include "penstock/data/compact.h"

namespace penstock::engine {
namespace {

// Rows, or bytes, that the chunks of a cache have at least (but the last).
constexpr int64_t kSettledRows = 1024;
constexpr int64_t kSettledBytes = 1 << 16;

// Chunks that are made again before others get their turn.
constexpr int kMaxRefilledChunks = 64;

class CacheStream final : public Stream {
 public:
  CacheStream(const Scope& scope, const OpInfo& info,
              std::optional<int64_t> finite_rows, OperatorPtr input)
      : Stream(StatsOf(scope, info)),
        scope_(scope),
        info_(info),
        finite_rows_(finite_rows),
        key_(info.instance, scope.binding),
        input_(std::move(input)) {}

  ~CacheStream() override {
    if (filling_ == nullptr || filling_->rows == 0) return;
    if (scope_.run->environment.warn) {
      scope_.run->environment.warn(absl::StrCat(
          info_.name, ": ", filling_->rows,
          " rows of an unfinished pass are discarded; the next pass begins "
          "anew (put take() before cache(), not after it)"));
    }
  }

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    if (cached_ == nullptr && stream_ == nullptr) {
      cached_ = scope_.run->environment.caches->Find(key_);
      if (cached_ == nullptr) {
        PENSTOCK_ASSIGN_OR_RETURN(stream_, input_->Start(scope_));
        filling_ = std::make_shared<CachedRows>();
        filling_->reservation =
            std::make_unique<Reservation>(scope_.run->environment.memory);
        // Restored without the rows: they are made again from the beginning.
        refill_until_ = std::exchange(given_, 0);
      }
    }
    if (cached_ != nullptr) return Replay(request);
    for (int chunks = 0; given_ < refill_until_; ++chunks) {
      if (chunks == kMaxRefilledChunks) return Yield(request);
      PENSTOCK_ASSIGN_OR_RETURN(
          Pull pull, PassAndKeep({refill_until_ - given_, request.waker}));
      if (!pull.has_rows()) return pull;
    }
    return PassAndKeep(request);
  }

  void DoSave(WireWriter& writer) const override {
    writer.Varint(std::max(given_, refill_until_));
  }
  absl::Status DoRestore(WireReader& reader) override {
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t given, reader.Varint());
    given_ = static_cast<int64_t>(given);
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<Pull> Replay(const Request& request) {
    if (given_ >= cached_->rows) return Pull::End();
    const auto next = std::upper_bound(cached_->first_row.begin(),
                                       cached_->first_row.end(), given_);
    const auto index =
        static_cast<size_t>(next - cached_->first_row.begin()) - 1;
    const Chunk& chunk = cached_->chunks[index];
    const int64_t begin = given_ - cached_->first_row[index];
    const int64_t rows = std::min(request.max_rows, chunk.rows - begin);
    Chunk out = Slice(chunk, begin, rows);
    // Keyed by this pass, not by the one that was kept.
    out.lineage = SourceLineage(scope_, given_, rows);
    given_ += rows;
    stats()->cache_hits.fetch_add(rows, std::memory_order_relaxed);
    return Pull::Rows(std::move(out));
  }

  absl::StatusOr<Pull> PassAndKeep(const Request& request) {
    PENSTOCK_ASSIGN_OR_RETURN(Pull pull, stream_->Next(request));
    if (pull.is_end()) PENSTOCK_RETURN_IF_ERROR(Publish());
    if (!pull.has_rows()) return pull;
    if (!pull.chunk.errors.empty()) {
      filling_ = nullptr;
      fresh_ = ChunkBuilder();
    }
    if (filling_ != nullptr) PENSTOCK_RETURN_IF_ERROR(Keep(pull.chunk));
    pull.chunk.lineage = SourceLineage(scope_, given_, pull.chunk.rows);
    given_ += pull.chunk.rows;
    return pull;
  }

  absl::Status Keep(const Chunk& chunk) {
    if (!fresh_.Fits(chunk)) PENSTOCK_RETURN_IF_ERROR(Settle());
    const int64_t bytes = chunk.NumBytes();
    PENSTOCK_RETURN_IF_ERROR(info_.Located(
        filling_->reservation->Resize(filling_->reservation->bytes() + bytes)));
    fresh_.Append(chunk, 0, chunk.rows);
    fresh_bytes_ += bytes;
    stats()->cache_misses.fetch_add(chunk.rows, std::memory_order_relaxed);
    stats()->cache_bytes.fetch_add(bytes, std::memory_order_relaxed);
    filling_->rows += chunk.rows;
    if (finite_rows_ == filling_->rows) return Publish();
    const bool is_large =
        fresh_.rows() >= kSettledRows || fresh_bytes_ >= kSettledBytes;
    return is_large ? Settle() : absl::OkStatus();
  }

  // Makes one chunk of the rows that came last: a chunk per row, where rows are
  // asked for one by one, would take several times their memory.
  absl::Status Settle() {
    if (fresh_.rows() == 0) return absl::OkStatus();
    filling_->first_row.push_back(filling_->rows - fresh_.rows());
    fresh_bytes_ = 0;
    PENSTOCK_ASSIGN_OR_RETURN(Chunk copy, Compact(fresh_.Build()));
    filling_->chunks.push_back(std::move(copy));
    return absl::OkStatus();
  }

  absl::Status Publish() {
    if (filling_ == nullptr) return absl::OkStatus();
    PENSTOCK_RETURN_IF_ERROR(Settle());
    scope_.run->environment.caches->Publish(key_, filling_);
    filling_ = nullptr;
    return absl::OkStatus();
  }

  const Scope scope_;
  const OpInfo& info_;
  const std::optional<int64_t> finite_rows_;
  const CacheStore::Key key_;
  const OperatorPtr input_;
  std::unique_ptr<Stream> stream_;  // of a pass that fills the cache
  // Null once published, or if an element was an error.
  std::shared_ptr<CachedRows> filling_;
  ChunkBuilder fresh_;  // rows of filling_ that are in no chunk of it yet
  int64_t fresh_bytes_ = 0;
  std::shared_ptr<const CachedRows> cached_;  // of a pass that replays it
  int64_t given_ = 0;
  int64_t refill_until_ = 0;
};

}  // namespace

OperatorOr MakeCache(std::optional<int64_t> finite_rows, OperatorPtr input,
                     OpContext& context) {
  const OpInfo& info = *context.info;
  return MakeOperator(
      [finite_rows, &info, input](const Scope& scope) -> StreamOr {
        return std::make_unique<CacheStream>(scope, info, finite_rows, input);
      });
}

}  // namespace penstock::engine

#include "penstock/engine/ops/shard.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"

namespace penstock::engine {
namespace {

class ShardStream final : public Stream {
 public:
  ShardStream(NodeStats* stats, std::unique_ptr<Stream> input,
              int64_t num_shards, int64_t index)
      : Stream(stats),
        input_(std::move(input)),
        num_shards_(num_shards),
        until_next_(index) {}

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    for (int tries = 0; tries < 64; ++tries) {
      const int64_t wanted = std::min(
          kMaxChunkRows, std::min(until_next_, kMaxChunkRows) + 1 +
                             (std::min(request.max_rows, kMaxChunkRows) - 1) *
                                 std::min(num_shards_, kMaxChunkRows));
      PENSTOCK_ASSIGN_OR_RETURN(Pull pull,
                                input_->Next({wanted, request.waker}));
      if (!pull.has_rows()) return pull;
      std::vector<int32_t> rows;
      int64_t row = until_next_;
      while (row < pull.chunk.rows) {
        rows.push_back(static_cast<int32_t>(row));
        constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
        row = num_shards_ > kNever - row ? kNever : row + num_shards_;
      }
      until_next_ = row - pull.chunk.rows;
      if (!rows.empty()) return Pull::Rows(Gather(pull.chunk, rows));
    }
    return Yield(request);
  }

  int64_t DoSkip(int64_t rows) override {
    int64_t input_rows;  // up to and with the last row that is left out
    if (__builtin_mul_overflow(rows - 1, num_shards_, &input_rows) ||
        __builtin_add_overflow(input_rows, until_next_, &input_rows) ||
        __builtin_add_overflow(input_rows, 1, &input_rows)) {
      return 0;
    }
    input_->SkipRows(input_rows);
    until_next_ = num_shards_ - 1;
    return rows;
  }

  void DoSave(WireWriter& writer) const override {
    writer.Varint(until_next_);
    input_->Save(writer);
  }

  absl::Status DoRestore(WireReader& reader) override {
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t until_next, reader.Varint());
    until_next_ = static_cast<int64_t>(until_next);
    return input_->Restore(reader);
  }

 private:
  const std::unique_ptr<Stream> input_;
  const int64_t num_shards_;
  int64_t until_next_;  // input rows before the next one of this shard
};

}  // namespace

std::unique_ptr<Stream> EveryNth(NodeStats* stats,
                                 std::unique_ptr<Stream> input, int64_t n,
                                 int64_t first) {
  return std::make_unique<ShardStream>(stats, std::move(input), n, first);
}

OperatorOr MakeShard(const plan::Shard& spec, OperatorPtr input,
                     OpContext& context) {
  const OpInfo& info = *context.info;
  if (spec.is_by_worker()) {
    return MakeOperator([&info, input](const Scope& scope) -> StreamOr {
      // Who runs it as such a part has every n-th of its rows (ops/part.h).
      if (scope.run->part_ops.source == info.id) return input->Start(scope);
      return info.Located(absl::FailedPreconditionError(
          "shard(SHARD_HINT) is for workers of a service: distribute() with "
          "visitation=\"static\" and sharding=\"hint\"; got it elsewhere"));
    });
  }
  return MakeOperator([spec, &info, input](const Scope& scope) -> StreamOr {
    PENSTOCK_ASSIGN_OR_RETURN(
        const int64_t num_shards,
        IntegerOf(spec.num_shards(), scope, "shard.num_shards", 1));
    PENSTOCK_ASSIGN_OR_RETURN(const int64_t index,
                              IntegerOf(spec.index(), scope, "shard.index", 0));
    if (index >= num_shards) {
      return info.Located(absl::InvalidArgumentError(
          absl::StrCat("shard.index must be below num_shards = ", num_shards,
                       "; got ", index)));
    }
    PENSTOCK_ASSIGN_OR_RETURN(auto stream, input->Start(scope));
    return std::make_unique<ShardStream>(StatsOf(scope, info),
                                         std::move(stream), num_shards, index);
  });
}

}  // namespace penstock::engine

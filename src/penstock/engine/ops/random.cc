#include "penstock/engine/ops/random.h"

#include "penstock/base/hash.h"
#include "penstock/base/status.h"

namespace penstock::engine {
namespace {

class RandomStream final : public Stream {
 public:
  RandomStream(const Scope& scope, const OpInfo& info, uint64_t key)
      : Stream(StatsOf(scope, info)), scope_(scope), key_(key) {}

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    const int64_t rows = request.max_rows;
    Chunk chunk;
    chunk.rows = rows;
    Buffer values = Buffer::Allocate(rows * sizeof(int64_t));
    for (int64_t i = 0; i < rows; ++i) {
      // Non-negative, as users index with them.
      values.MutableAs<int64_t>()[i] =
          static_cast<int64_t>(Combine(key_, next_ + i) >> 1);
    }
    chunk.columns.push_back(
        Column::Dense(DType::kInt64, {}, rows, std::move(values)));
    chunk.lineage = SourceLineage(scope_, static_cast<int64_t>(next_), rows);
    next_ += rows;
    return Pull::Rows(std::move(chunk));
  }

  int64_t DoSkip(int64_t rows) override {
    next_ += static_cast<uint64_t>(rows);
    return rows;
  }

  void DoSave(WireWriter& writer) const override { writer.Varint(next_); }

  absl::Status DoRestore(WireReader& reader) override {
    PENSTOCK_ASSIGN_OR_RETURN(next_, reader.Varint());
    return absl::OkStatus();
  }

 private:
  const Scope scope_;
  const uint64_t key_;
  uint64_t next_ = 0;
};

}  // namespace

OperatorOr MakeRandom(const plan::Random& spec, OpContext& context) {
  const OpInfo& info = *context.info;
  const bool with_epoch = spec.rerandomize_each_iteration();
  return MakeOperator([&info, with_epoch](const Scope& scope) -> StreamOr {
    uint64_t key = scope.run->RandomKey(info, with_epoch);
    key = Combine(key, with_epoch ? scope.iteration : scope.binding);
    return std::make_unique<RandomStream>(scope, info, key);
  });
}

}  // namespace penstock::engine

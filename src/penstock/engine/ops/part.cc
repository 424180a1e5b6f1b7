#include "penstock/engine/ops/part.h"

#include <algorithm>

#include "penstock/base/status.h"
#include "penstock/engine/ops/shard.h"

namespace penstock::engine {
namespace {

class PartStream final : public Stream {
 public:
  PartStream(NodeStats* stats, std::unique_ptr<Stream> input,
             const RunPart& part)
      : Stream(stats, Counts::kTime),
        input_(std::move(input)),
        left_(part.end - part.begin) {
    input_->SkipRows(part.begin);
  }

  bool IsOver() const override { return left_ <= 0; }

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    const int64_t rows = std::min(request.max_rows, left_);
    if (rows <= 0) return Pull::End();
    PENSTOCK_ASSIGN_OR_RETURN(
        Pull pull, input_->Next({rows, request.waker, request.group}));
    left_ -= pull.chunk.rows;
    return pull;
  }

  int64_t DoSkip(int64_t rows) override {
    const int64_t skipped = std::min(rows, left_);
    input_->SkipRows(skipped);
    left_ -= skipped;
    return skipped;
  }

  void DoSave(WireWriter& writer) const override {
    writer.Varint(static_cast<uint64_t>(left_));
    input_->Save(writer);
  }

  absl::Status DoRestore(WireReader& reader) override {
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t left, reader.Varint());
    left_ = static_cast<int64_t>(left);
    return input_->Restore(reader);
  }

 private:
  const std::unique_ptr<Stream> input_;
  int64_t left_;
};

}  // namespace

OperatorPtr MakePart(OperatorPtr op, const OpInfo& info) {
  return MakeOperator([op = std::move(op), &info](const Scope& scope) {
    StreamOr stream = op->Start(scope);
    if (scope.run->part_ops.source != info.id || !stream.ok()) return stream;
    const RunPart& part = *scope.run->options.part;
    if (part.is_received) return stream;  // its receiver sees to it
    if (part.stride > 1) {
      return StreamOr(EveryNth(StatsOf(scope, info), *std::move(stream),
                               part.stride, part.begin));
    }
    return StreamOr(std::make_unique<PartStream>(StatsOf(scope, info),
                                                 *std::move(stream), part));
  });
}

}  // namespace penstock::engine

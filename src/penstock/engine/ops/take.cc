#include "penstock/engine/ops/take.h"

#include <algorithm>
#include <limits>

#include "penstock/base/status.h"

namespace penstock::engine {
namespace {

constexpr int64_t kAll = std::numeric_limits<int64_t>::max();

class TakeStream final : public Stream {
 public:
  TakeStream(NodeStats* stats, std::unique_ptr<Stream> input, int64_t count)
      : Stream(stats), input_(std::move(input)), left_(count) {}

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    const int64_t rows = std::min(request.max_rows, left_);
    if (rows == 0) return Pull::End();
    PENSTOCK_ASSIGN_OR_RETURN(Pull pull, input_->Next({rows, request.waker}));
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
    writer.Varint(left_);
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

class PassStream final : public Stream {
 public:
  PassStream(NodeStats* stats, std::unique_ptr<Stream> input)
      : Stream(stats), input_(std::move(input)) {}

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    return input_->Next(request);
  }
  int64_t DoSkip(int64_t rows) override {
    input_->SkipRows(rows);
    return rows;
  }
  void DoSave(WireWriter& writer) const override { input_->Save(writer); }
  absl::Status DoRestore(WireReader& reader) override {
    return input_->Restore(reader);
  }

 private:
  const std::unique_ptr<Stream> input_;
};

}  // namespace

OperatorOr MakeTake(const plan::Take& spec, OperatorPtr input,
                    OpContext& context) {
  const OpInfo& info = *context.info;
  return MakeOperator([spec, &info, input](const Scope& scope) -> StreamOr {
    int64_t count = kAll;
    if (spec.has_count()) {
      PENSTOCK_ASSIGN_OR_RETURN(
          count, IntegerOf(spec.count(), scope, "take.count", -1));
      if (count < 0) count = kAll;
    }
    PENSTOCK_ASSIGN_OR_RETURN(auto stream, input->Start(scope));
    return std::make_unique<TakeStream>(StatsOf(scope, info), std::move(stream),
                                        count);
  });
}

OperatorOr MakeSkip(const plan::Skip& spec, OperatorPtr input,
                    OpContext& context) {
  const OpInfo& info = *context.info;
  return MakeOperator([spec, &info, input](const Scope& scope) -> StreamOr {
    int64_t count = -1;
    if (spec.has_count()) {
      PENSTOCK_ASSIGN_OR_RETURN(
          count, IntegerOf(spec.count(), scope, "skip.count", -1));
    }
    PENSTOCK_ASSIGN_OR_RETURN(auto stream, input->Start(scope));
    if (count < 0) {  // everything
      return std::make_unique<TakeStream>(StatsOf(scope, info),
                                          std::move(stream), 0);
    }
    stream->SkipRows(count);
    return std::make_unique<PassStream>(StatsOf(scope, info),
                                        std::move(stream));
  });
}

}  // namespace penstock::engine

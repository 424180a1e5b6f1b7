#include "penstock/engine/ops/received.h"

#include "penstock/base/status.h"
#include "penstock/engine/receiver.h"

namespace penstock::engine {
namespace {

// Looks at what comes from elsewhere before anybody relies on it.
class ReceivedStream final : public Stream {
 public:
  ReceivedStream(const Scope& scope, const OpInfo& info,
                 std::unique_ptr<Stream> input)
      : Stream(StatsOf(scope, info)),
        info_(info),
        needs_lineage_(scope.run->options.needs_lineage),
        lineage_(scope.lineage),
        input_(std::move(input)) {}

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    PENSTOCK_ASSIGN_OR_RETURN(Pull pull, input_->Next(request));
    if (!pull.has_rows()) return pull;
    const Chunk& chunk = pull.chunk;
    PENSTOCK_RETURN_IF_ERROR(info_.Located(CheckColumns(chunk, info_.leaves)));
    if (needs_lineage_ &&
        chunk.lineage.size() != chunk.rows * sizeof(uint64_t)) {
      return info_.Located(absl::DataLossError(
          "rows must come with a lineage, since something after them is "
          "random; got none"));
    }
    if (lineage_ != 0) SaltLineage(pull.chunk, lineage_);
    return pull;
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
  const OpInfo& info_;
  const bool needs_lineage_;
  const uint64_t lineage_;
  const std::unique_ptr<Stream> input_;
};

}  // namespace

OperatorOr MakeReceived(const plan::Received& spec, OpContext& context) {
  const OpInfo& info = *context.info;
  return MakeOperator([spec, &info](const Scope& scope) -> StreamOr {
    Receiver* receiver = scope.run->environment.receiver.get();
    if (receiver == nullptr) {
      return absl::FailedPreconditionError(
          "the rows of this plan come from other engines; got none to receive "
          "them from\n  Run the plan that distribute() was called on.");
    }
    PENSTOCK_ASSIGN_OR_RETURN(auto stream, receiver->Start(spec, scope, info));
    return std::make_unique<ReceivedStream>(scope, info, std::move(stream));
  });
}

}  // namespace penstock::engine

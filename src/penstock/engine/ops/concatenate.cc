#include "penstock/engine/ops/concatenate.h"

#include "penstock/base/hash.h"
#include "penstock/base/status.h"

namespace penstock::engine {
namespace {

class ConcatenateStream final : public Stream {
 public:
  ConcatenateStream(const Scope& scope, const OpInfo& info,
                    std::vector<OperatorPtr> inputs)
      : Stream(StatsOf(scope, info)),
        scope_(scope),
        key_(info.key),
        inputs_(std::move(inputs)) {}

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    while (index_ < inputs_.size()) {
      if (stream_ == nullptr) {
        PENSTOCK_ASSIGN_OR_RETURN(stream_, inputs_[index_]->Start(scope_));
      }
      PENSTOCK_ASSIGN_OR_RETURN(Pull pull, stream_->Next(request));
      if (!pull.is_end()) {
        if (index_ > 0) SaltLineage(pull.chunk, Combine(key_, index_));
        return pull;
      }
      stream_.reset();
      ++index_;
    }
    return Pull::End();
  }

  void DoSave(WireWriter& writer) const override {
    writer.Varint(index_);
    writer.Bool(stream_ != nullptr);
    if (stream_ != nullptr) stream_->Save(writer);
  }

  absl::Status DoRestore(WireReader& reader) override {
    PENSTOCK_ASSIGN_OR_RETURN(index_, reader.Varint());
    PENSTOCK_ASSIGN_OR_RETURN(const bool is_open, reader.Bool());
    if (!is_open) return absl::OkStatus();
    if (index_ >= inputs_.size()) {
      return absl::DataLossError("a saved position names no input");
    }
    PENSTOCK_ASSIGN_OR_RETURN(stream_, inputs_[index_]->Start(scope_));
    return stream_->Restore(reader);
  }

 private:
  const Scope scope_;
  const uint64_t key_;
  const std::vector<OperatorPtr> inputs_;
  size_t index_ = 0;
  std::unique_ptr<Stream> stream_;  // of inputs_[index_], once begun
};

}  // namespace

OperatorOr MakeConcatenate(std::vector<OperatorPtr> inputs,
                           OpContext& context) {
  const OpInfo& info = *context.info;
  return MakeOperator([inputs, &info](const Scope& scope) -> StreamOr {
    return std::make_unique<ConcatenateStream>(scope, info, inputs);
  });
}

}  // namespace penstock::engine

#include "penstock/engine/ops/repeat.h"

#include <algorithm>
#include <optional>

#include "penstock/base/hash.h"
#include "penstock/base/status.h"

namespace penstock::engine {
namespace {

// Passes without a row before others get their turn.
constexpr int kMaxPasses = 1024;

class RepeatStream final : public Stream {
 public:
  // Passes [first, count).
  RepeatStream(const Scope& scope, const OpInfo& info, OperatorPtr input,
               uint64_t first, std::optional<uint64_t> count)
      : Stream(StatsOf(scope, info)),
        scope_(scope),
        key_(info.key),
        input_(std::move(input)),
        count_(count),
        pass_(first) {}

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    for (int passes = 0; !count_.has_value() || pass_ < *count_; ++passes) {
      if (passes == kMaxPasses) return Yield(request);
      if (stream_ == nullptr) PENSTOCK_RETURN_IF_ERROR(Open());
      PENSTOCK_ASSIGN_OR_RETURN(Pull pull, stream_->Next(request));
      if (pull.has_rows()) {
        pass_had_rows_ = true;
        // With the node's key: passes of nested repeats are different ones.
        if (pass_ > 0) SaltLineage(pull.chunk, Combine(key_, pass_));
      }
      if (!pull.is_end()) return pull;
      stream_.reset();
      ++pass_;
      if (!pass_had_rows_ && !count_.has_value()) {
        count_ = pass_;  // an empty input repeated for ever is empty
        break;
      }
      pass_had_rows_ = false;
    }
    return Pull::End();
  }

  void DoSave(WireWriter& writer) const override {
    writer.Varint(pass_);
    writer.Bool(pass_had_rows_);
    writer.Bool(count_ == pass_);
    writer.Bool(stream_ != nullptr);
    if (stream_ != nullptr) stream_->Save(writer);
  }

  absl::Status DoRestore(WireReader& reader) override {
    PENSTOCK_ASSIGN_OR_RETURN(pass_, reader.Varint());
    PENSTOCK_ASSIGN_OR_RETURN(pass_had_rows_, reader.Bool());
    PENSTOCK_ASSIGN_OR_RETURN(const bool has_ended, reader.Bool());
    if (has_ended) count_ = pass_;
    PENSTOCK_ASSIGN_OR_RETURN(const bool is_open, reader.Bool());
    if (!is_open) return absl::OkStatus();
    PENSTOCK_RETURN_IF_ERROR(Open());
    return stream_->Restore(reader);
  }

 private:
  absl::Status Open() {
    Scope scope = scope_;
    if (pass_ > 0) {
      scope.iteration = Combine(Combine(scope.iteration, key_), pass_);
    }
    PENSTOCK_ASSIGN_OR_RETURN(stream_, input_->Start(scope));
    return absl::OkStatus();
  }

  const Scope scope_;
  const uint64_t key_;
  const OperatorPtr input_;
  std::optional<uint64_t> count_;
  uint64_t pass_;
  bool pass_had_rows_ = false;
  std::unique_ptr<Stream> stream_;  // of this pass, once begun
};

}  // namespace

OperatorOr MakeRepeat(const plan::Repeat& spec, OperatorPtr input,
                      OpContext& context) {
  const OpInfo& info = *context.info;
  return MakeOperator([spec, &info, input](const Scope& scope) -> StreamOr {
    std::optional<uint64_t> count;
    if (spec.has_count()) {
      PENSTOCK_ASSIGN_OR_RETURN(
          const int64_t given,
          IntegerOf(spec.count(), scope, "repeat.count", -1));
      if (given >= 0) count = given;
    }
    uint64_t first = 0;
    if (scope.run->part_ops.repeat == info.id) {
      first = scope.run->options.part->pass;
      count = std::min(count.value_or(first + 1), first + 1);
    }
    return std::make_unique<RepeatStream>(scope, info, input, first, count);
  });
}

}  // namespace penstock::engine

#include "penstock/engine/ops/ignore_errors.h"

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"

namespace penstock::engine {
namespace {

class IgnoreErrorsStream final : public Stream {
 public:
  IgnoreErrorsStream(const Scope& scope, const OpInfo& info,
                     std::unique_ptr<Stream> input, bool log_warning)
      : Stream(StatsOf(scope, info)),
        scope_(scope),
        info_(info),
        input_(std::move(input)),
        log_warning_(log_warning) {}

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    for (int tries = 0; tries < 64; ++tries) {
      PENSTOCK_ASSIGN_OR_RETURN(Pull pull, input_->Next(request));
      if (!pull.has_rows() || pull.chunk.errors.empty()) return pull;
      std::vector<int32_t> rows;
      size_t next_error = 0;
      for (int64_t row = 0; row < pull.chunk.rows; ++row) {
        if (next_error < pull.chunk.errors.size() &&
            pull.chunk.errors[next_error].row == row) {
          Log(pull.chunk.errors[next_error].status);
          ++next_error;
        } else {
          rows.push_back(static_cast<int32_t>(row));
        }
      }
      if (!rows.empty()) return Pull::Rows(Gather(pull.chunk, rows));
    }
    return Yield(request);
  }

  void DoSave(WireWriter& writer) const override { input_->Save(writer); }
  absl::Status DoRestore(WireReader& reader) override {
    return input_->Restore(reader);
  }

 private:
  void Log(const absl::Status& status) const {
    if (!log_warning_ || !scope_.run->environment.warn) return;
    scope_.run->environment.warn(absl::StrCat(
        info_.name, " leaves out an element: ", std::string(status.message())));
  }

  const Scope scope_;
  const OpInfo& info_;
  const std::unique_ptr<Stream> input_;
  const bool log_warning_;
};

}  // namespace

OperatorOr MakeIgnoreErrors(const plan::IgnoreErrors& spec, OperatorPtr input,
                            OpContext& context) {
  const OpInfo& info = *context.info;
  const bool log_warning = spec.log_warning();
  return MakeOperator(
      [log_warning, &info, input](const Scope& scope) -> StreamOr {
        PENSTOCK_ASSIGN_OR_RETURN(auto stream, input->Start(scope));
        return std::make_unique<IgnoreErrorsStream>(
            scope, info, std::move(stream), log_warning);
      });
}

}  // namespace penstock::engine

#include "penstock/engine/ops/keys.h"

#include <memory>
#include <type_traits>
#include <utility>

#include "penstock/base/status.h"
#include "penstock/engine/evaluate.h"
#include "penstock/engine/ops/python_map.h"

namespace penstock::engine {
namespace {

// The keys of a native function.
class KeysStream final : public Stream {
 public:
  KeysStream(const Scope& scope, const OpInfo& info,
             std::unique_ptr<Stream> input,
             std::shared_ptr<const Evaluator> key)
      : Stream(StatsOf(scope, info), Counts::kTime),
        scope_(scope),
        input_(std::move(input)),
        key_(std::move(key)) {}

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    PENSTOCK_ASSIGN_OR_RETURN(Pull pull, input_->Next(request));
    if (!pull.has_rows()) return pull;
    PENSTOCK_ASSIGN_OR_RETURN(Chunk keys, key_->Apply(pull.chunk, scope_));
    std::vector<int64_t> integers;
    ToIntegers(keys.columns[0], integers);
    pull.chunk.columns.push_back(
        MakeColumn<int64_t>(absl::MakeConstSpan(integers)));
    pull.chunk.errors = std::move(keys.errors);
    return pull;
  }

  void DoSave(WireWriter& writer) const override { input_->Save(writer); }
  absl::Status DoRestore(WireReader& reader) override {
    return input_->Restore(reader);
  }

 private:
  const Scope scope_;
  const std::unique_ptr<Stream> input_;
  const std::shared_ptr<const Evaluator> key_;
};

}  // namespace

void ToIntegers(const Column& column, std::vector<int64_t>& integers) {
  integers.assign(column.rows(), 0);
  if (column.rank() != 0) return;
  VisitDType(column.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T>) {
      for (int64_t row = 0; row < column.rows(); ++row) {
        integers[row] = static_cast<int64_t>(*column.Row<T>(row));
      }
    }
  });
}

OperatorOr MakeKeys(const plan::Function& key, const plan::Function* size,
                    OperatorPtr input, OpContext& context) {
  const OpInfo& info = *context.info;
  PythonMapOptions options;
  options.keeps_input = true;
  options.deterministic = true;
  if (key.has_python()) {
    PENSTOCK_ASSIGN_OR_RETURN(
        input, MakePythonMap(key, options, std::move(input), context));
  } else {
    PENSTOCK_ASSIGN_OR_RETURN(
        std::shared_ptr<const Evaluator> evaluator,
        Evaluator::Make(key, context.input_leaves[0], context));
    input =
        MakeOperator([input, evaluator, &info](const Scope& scope) -> StreamOr {
          PENSTOCK_ASSIGN_OR_RETURN(auto stream, input->Start(scope));
          return std::make_unique<KeysStream>(scope, info, std::move(stream),
                                              evaluator);
        });
  }
  if (size == nullptr) return input;
  options.first_argument = context.input_leaves[0].size();
  return MakePythonMap(*size, options, std::move(input), context);
}

}  // namespace penstock::engine

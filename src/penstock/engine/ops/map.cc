#include "penstock/engine/ops/map.h"

#include <algorithm>

#include "penstock/base/status.h"
#include "penstock/engine/evaluate.h"
#include "penstock/engine/ops/dataset_map.h"
#include "penstock/engine/ops/given_runs.h"
#include "penstock/engine/ops/parallel_map.h"
#include "penstock/engine/ops/python_map.h"

namespace penstock::engine {
namespace {

class MapStream final : public Stream {
 public:
  MapStream(const Scope& scope, const OpInfo& info,
            std::unique_ptr<Stream> input,
            std::shared_ptr<const Evaluator> function)
      : Stream(StatsOf(scope, info)),
        scope_(scope),
        input_(std::move(input)),
        function_(std::move(function)) {}

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    while (!runs_.empty() && runs_.front().keep == 0) {
      input_->SkipRows(runs_.front().drop);
      runs_.PopFront();
    }
    PENSTOCK_ASSIGN_OR_RETURN(
        Pull pull, input_->Next({runs_.Limit(std::min(request.max_rows,
                                                      function_->max_rows())),
                                 request.waker}));
    if (!pull.has_rows()) return pull;
    runs_.Read(pull.chunk.rows);
    PENSTOCK_ASSIGN_OR_RETURN(pull.chunk, function_->Apply(pull.chunk, scope_));
    return pull;
  }

  // As a parallel map does: states fit any parallelism.
  void DoSave(WireWriter& writer) const override {
    runs_.Save(writer);
    input_->Save(writer);
  }

  absl::Status DoRestore(WireReader& reader) override {
    PENSTOCK_RETURN_IF_ERROR(runs_.Restore(reader));
    return input_->Restore(reader);
  }

 private:
  const Scope scope_;
  const std::unique_ptr<Stream> input_;
  const std::shared_ptr<const Evaluator> function_;
  GivenRuns runs_;  // of a restored state
};

}  // namespace

OperatorOr MakeMap(const plan::Map& spec, OperatorPtr input,
                   OpContext& context) {
  const OpInfo& info = *context.info;
  if (spec.function().has_python()) {
    PythonMapOptions options;
    if (spec.has_parallelism()) options.parallelism = spec.parallelism();
    if (spec.has_deterministic()) options.deterministic = spec.deterministic();
    return MakePythonMap(spec.function(), options, std::move(input), context);
  }
  if (spec.function().has_dataset()) {
    return MakeDatasetMap(spec, std::move(input), context);
  }
  PENSTOCK_ASSIGN_OR_RETURN(
      std::shared_ptr<const Evaluator> function,
      Evaluator::Make(spec.function(), context.input_leaves[0], context));
  const int64_t parallelism = spec.has_parallelism() ? spec.parallelism() : 1;
  const std::optional<bool> deterministic =
      spec.has_deterministic() ? std::optional(spec.deterministic())
                               : std::nullopt;
  return MakeOperator([=, &info](const Scope& scope) -> StreamOr {
    PENSTOCK_ASSIGN_OR_RETURN(auto stream, input->Start(scope));
    if (parallelism > 1 && !scope.run->options.is_row_exact) {
      ParallelMapOptions options;
      options.parallelism = parallelism;
      options.max_rows = function->max_rows();
      options.keep_order =
          deterministic.value_or(scope.run->options.is_deterministic);
      return MakeParallelMapStream(scope, info, std::move(stream),
                                   StartOnExecutor(scope, info, function),
                                   options);
    }
    return std::make_unique<MapStream>(scope, info, std::move(stream),
                                       function);
  });
}

}  // namespace penstock::engine

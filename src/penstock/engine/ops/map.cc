#include "penstock/engine/ops/map.h"

#include "penstock/base/status.h"
#include "penstock/engine/evaluate.h"
#include "penstock/engine/ops/dataset_map.h"
#include "penstock/engine/ops/parallel_map.h"
#include "penstock/engine/ops/partly_native_map.h"
#include "penstock/engine/ops/python_map.h"
#include "penstock/plan/infer.h"

namespace penstock::engine {

OperatorOr MakeMap(const plan::Map& spec, OperatorPtr input,
                   OpContext& context) {
  const OpInfo& info = *context.info;
  if (spec.function().has_python() && !plan::IsPython(spec.function())) {
    return MakePartlyNativeMap(spec, std::move(input), context);
  }
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
  const std::optional<int64_t> parallelism =
      spec.has_parallelism() ? std::optional(spec.parallelism()) : std::nullopt;
  const std::optional<bool> deterministic =
      spec.has_deterministic() ? std::optional(spec.deterministic())
                               : std::nullopt;
  return MakeOperator([=, &info](const Scope& scope) -> StreamOr {
    PENSTOCK_ASSIGN_OR_RETURN(auto stream, input->Start(scope));
    const Run& run = *scope.run;
    ParallelMapOptions options;
    options.parallelism =
        parallelism.value_or(run.environment.executor->num_threads());
    options.keep_order = deterministic.value_or(run.options.is_deterministic);
    options.max_rows = function->max_rows();
    options.is_exact = run.options.is_row_exact;
    return MakeParallelMapStream(scope, info, std::move(stream), function,
                                 options);
  });
}

}  // namespace penstock::engine

#include "penstock/engine/ops/python_map.h"

#include <atomic>
#include <memory>
#include <utility>

#include "penstock/base/status.h"
#include "penstock/engine/ops/parallel_map.h"
#include "penstock/engine/ops/python_call.h"
#include "penstock/plan/convert.h"

namespace penstock::engine {

OperatorOr MakePythonMap(const plan::Function& function,
                         const PythonMapOptions& options, OperatorPtr input,
                         OpContext& context) {
  const OpInfo& info = *context.info;
  PythonCallOptions call;
  call.first_argument = options.first_argument;
  call.keeps_input = options.keeps_input;
  PENSTOCK_ASSIGN_OR_RETURN(const ElementSpec result,
                            plan::FromProto(function.output()));
  call.result = result.Flatten();
  // Shares of a plan are short: most of one would be spent with learning.
  auto learnt = std::make_shared<std::atomic<int64_t>>(1);
  call.at_once = options.parallelism.value_or(0);
  return MakeOperator([=, &info](const Scope& scope) -> StreamOr {
    PENSTOCK_ASSIGN_OR_RETURN(StartRows start,
                              StartInProcesses(function, call, scope, info));
    PENSTOCK_ASSIGN_OR_RETURN(auto stream, input->Start(scope));
    ParallelMapOptions map;
    map.parallelism = options.parallelism.value_or(
        scope.run->environment.functions->parallelism());
    map.keep_order =
        options.deterministic.value_or(scope.run->options.is_deterministic);
    map.is_in_processes = true;
    map.is_exact = scope.run->options.is_row_exact;
    if (options.keeps_input) map.counts = Stream::Counts::kTime;
    if (scope.run->options.part.has_value()) map.learnt_rows = learnt;
    return MakeParallelMapStream(scope, info, std::move(stream),
                                 std::move(start), map);
  });
}

}  // namespace penstock::engine

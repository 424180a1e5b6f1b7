#include "penstock/plan/validate.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "penstock/base/status.h"
#include "penstock/plan/builder.h"
#include "penstock/plan/cardinality.h"
#include "penstock/plan/convert.h"
#include "penstock/plan/expect.h"
#include "penstock/plan/infer.h"
#include "penstock/plan/print.h"

namespace penstock::plan {
namespace {

absl::Status CheckNumberOfNodes(const Plan& plan) {
  if (plan.nodes().empty()) {
    return absl::InvalidArgumentError(
        "a plan must have at least one node; got none");
  }
  if (plan.nodes_size() <= kMaxNodes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("a plan must have at most ",
                                                 kMaxNodes, " nodes; got ",
                                                 plan.nodes_size()));
}

// What a plan's nodes make, filled in node by node.
struct Facts {
  std::vector<penstock::TensorSpec> bound;
  std::vector<penstock::ElementSpec> specs;
  std::vector<Cardinality> cardinalities;
};

absl::Status CheckCarried(const Node& node, const penstock::ElementSpec& spec,
                          const Cardinality& cardinality) {
  PENSTOCK_ASSIGN_OR_RETURN(penstock::ElementSpec carried,
                            FromProto(node.output()));
  if (!(carried == spec)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the node must say that its elements are ",
                     spec.ToString(), "; got ", carried.ToString()));
  }
  if (!(node.cardinality() == cardinality)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the node must say that its cardinality is ", ToString(cardinality),
        "; got ", ToString(node.cardinality())));
  }
  if (NeedsInstance(node) && !node.has_instance()) {
    return absl::InvalidArgumentError(
        "the node must have an instance id; got none");
  }
  return absl::OkStatus();
}

absl::Status CheckNode(const Plan& plan, int number, int depth, Facts& facts) {
  const Node& node = plan.nodes(number);
  std::vector<penstock::ElementSpec> inputs;
  std::vector<Cardinality> cardinalities;
  for (uint32_t input : node.inputs()) {
    if (input >= static_cast<uint32_t>(number)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "inputs must be nodes before number ", number, "; got ", input));
    }
    inputs.push_back(facts.specs[input]);
    cardinalities.push_back(facts.cardinalities[input]);
  }
  PENSTOCK_ASSIGN_OR_RETURN(
      penstock::ElementSpec spec,
      InferOutput(node,
                  {.inputs = inputs, .bound = facts.bound, .depth = depth}));
  Cardinality cardinality =
      InferCardinality(node, cardinalities, inputs, facts.bound);
  PENSTOCK_RETURN_IF_ERROR(CheckCarried(node, spec, cardinality));
  facts.specs.push_back(std::move(spec));
  facts.cardinalities.push_back(std::move(cardinality));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<penstock::ElementSpec> InferPlan(const Plan& plan, int depth) {
  if (depth > kMaxFunctionDepth) {
    return absl::InvalidArgumentError(
        absl::StrCat("functions that make datasets must be nested at most ",
                     kMaxFunctionDepth, " deep; got more"));
  }
  PENSTOCK_RETURN_IF_ERROR(CheckNumberOfNodes(plan));
  Facts facts;
  for (const TensorSpec& bound : plan.bound()) {
    PENSTOCK_ASSIGN_OR_RETURN(facts.bound.emplace_back(), FromProto(bound));
  }
  for (int i = 0; i < plan.nodes_size(); ++i) {
    absl::Status status = CheckNode(plan, i, depth, facts);
    if (!status.ok()) return Located(status, plan, i);
  }
  return std::move(facts.specs.back());
}

absl::Status CheckLimits(const Plan& plan) {
  PENSTOCK_RETURN_IF_ERROR(CheckNumberOfNodes(plan));
  const size_t bytes = plan.ByteSizeLong();
  if (bytes <= static_cast<size_t>(kMaxPlanBytes)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("a plan must take at most %.1f MiB; got %.1f MiB",
                      static_cast<double>(kMaxPlanBytes) / (1 << 20),
                      static_cast<double>(bytes) / (1 << 20)));
}

absl::Status Validate(const Plan& plan) {
  PENSTOCK_RETURN_IF_ERROR(CheckLimits(plan));
  return InferPlan(plan, 0).status();
}

absl::Status ValidateOptions(const Options& options) {
  const Options::Python& python = options.python();
  if (python.has_processes()) {
    PENSTOCK_RETURN_IF_ERROR(
        AtLeast("python.processes", python.processes(), 1));
  }
  if (python.has_memory_bytes()) {
    PENSTOCK_RETURN_IF_ERROR(
        AtLeast("python.memory", python.memory_bytes(), 1));
  }
  if (python.has_deadline_seconds() && !(python.deadline_seconds() > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("python.deadline must be over 0 seconds; got ",
                     python.deadline_seconds()));
  }
  if (options.has_run_ahead()) {
    PENSTOCK_RETURN_IF_ERROR(AtLeast("run_ahead", options.run_ahead(), 0));
  }
  if (options.has_memory_budget_bytes()) {
    PENSTOCK_RETURN_IF_ERROR(
        AtLeast("memory_budget", options.memory_budget_bytes(), 1));
  }
  if (options.has_max_element_bytes()) {
    PENSTOCK_RETURN_IF_ERROR(
        AtLeast("max_element_bytes", options.max_element_bytes(), 1));
  }
  if (options.has_kept_directory() && options.kept_directory().empty()) {
    return absl::InvalidArgumentError(
        "kept_directory must name a directory; got an empty name");
  }
  return absl::OkStatus();
}

}  // namespace penstock::plan

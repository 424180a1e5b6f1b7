#include "penstock/plan/builder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/plan/cardinality.h"
#include "penstock/plan/convert.h"
#include "penstock/plan/distribute.h"
#include "penstock/plan/infer.h"
#include "penstock/plan/print.h"
#include "penstock/plan/resolve.h"
#include "penstock/plan/validate.h"

namespace penstock::plan {
namespace {

using Specs = std::vector<penstock::TensorSpec>;

template <typename Messages>
absl::StatusOr<Specs> SpecsOf(const Messages& messages) {
  Specs specs;
  for (const TensorSpec& message : messages) {
    PENSTOCK_ASSIGN_OR_RETURN(specs.emplace_back(), FromProto(message));
  }
  return specs;
}

// Keeps the longer of the two in `all`: lists of bound values only grow.
absl::Status Extend(Specs& all, Specs more) {
  const Specs& shorter = all.size() < more.size() ? all : more;
  for (size_t i = 0; i < shorter.size(); ++i) {
    if (all[i] == more[i]) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("datasets of one function must agree on bound value ", i,
                     ", ", all[i].ToString(), "; got ", more[i].ToString()));
  }
  if (more.size() > all.size()) all = std::move(more);
  return absl::OkStatus();
}

// Adds the nodes of `more` behind those of `plan`.
void Merge(Plan& plan, Plan more) {
  const uint32_t offset = plan.nodes_size();
  for (Node& node : *more.mutable_nodes()) {
    for (uint32_t& input : *node.mutable_inputs()) input += offset;
    *plan.add_nodes() = std::move(node);
  }
}

absl::Status CheckInput(const Plan& input) {
  if (input.nodes().empty()) {
    return absl::InvalidArgumentError(
        "an input must be a dataset; got a plan without nodes");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Plan> Append(std::vector<Plan> inputs, Node node,
                            const std::vector<TensorSpec>& bound,
                            const BuildContext& context) {
  if (node.has_received() && inputs.size() == 1) {
    PENSTOCK_RETURN_IF_ERROR(CheckInput(inputs[0]));
    if (!bound.empty() || inputs[0].bound_size() > 0) {
      return absl::InvalidArgumentError(
          "distribute must be called outside of functions; got it inside one");
    }
    node.set_instance(context.random());
    return Distribute(inputs[0], std::move(node));
  }
  Plan plan;
  Specs known;
  std::vector<uint32_t> roots;
  for (Plan& input : inputs) {
    PENSTOCK_RETURN_IF_ERROR(CheckInput(input));
    PENSTOCK_ASSIGN_OR_RETURN(Specs of_input, SpecsOf(input.bound()));
    PENSTOCK_RETURN_IF_ERROR(Extend(known, std::move(of_input)));
    if (plan.nodes().empty()) {
      plan = std::move(input);
    } else {
      Merge(plan, std::move(input));
    }
    roots.push_back(plan.nodes_size() - 1);
  }
  PENSTOCK_ASSIGN_OR_RETURN(Specs here, SpecsOf(bound));
  PENSTOCK_RETURN_IF_ERROR(Extend(known, std::move(here)));
  plan.clear_bound();
  for (const penstock::TensorSpec& spec : known) {
    *plan.add_bound() = ToProto(spec);
  }

  std::vector<penstock::ElementSpec> specs;
  std::vector<Cardinality> cardinalities;
  for (uint32_t root : roots) {
    PENSTOCK_ASSIGN_OR_RETURN(specs.emplace_back(),
                              FromProto(plan.nodes(root).output()));
    cardinalities.push_back(plan.nodes(root).cardinality());
  }
  *node.mutable_inputs() = {roots.begin(), roots.end()};
  node.clear_instance();
  node.clear_output();
  node.clear_cardinality();
  node.clear_key();
  node.clear_name();
  Resolve(node, specs, context);

  const int number = plan.nodes_size();
  Node& added = *plan.add_nodes() = std::move(node);
  absl::StatusOr<penstock::ElementSpec> output =
      InferOutput(added, {.inputs = specs, .bound = known});
  if (!output.ok()) return Located(output.status(), plan, number);
  *added.mutable_output() = ToProto(*output);
  *added.mutable_cardinality() =
      InferCardinality(added, cardinalities, specs, known);
  if (NeedsInstance(added)) added.set_instance(context.random());

  absl::Status status = CheckLimits(plan);
  if (!status.ok()) return Located(status, plan, number);
  return plan;
}

}  // namespace penstock::plan

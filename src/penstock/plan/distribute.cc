#include "penstock/plan/distribute.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/message.h"
#include "penstock/base/status.h"
#include "penstock/data/composite.h"
#include "penstock/plan/cardinality.h"
#include "penstock/plan/convert.h"
#include "penstock/plan/divide_by_worker.h"
#include "penstock/plan/infer.h"
#include "penstock/plan/print.h"
#include "penstock/plan/validate.h"

namespace penstock::plan {
namespace {

constexpr uint32_t kMaxReaders = 1 << 16;

absl::Status Refused(const Plan& plan, int node, absl::string_view message,
                     absl::string_view advice) {
  return Located(
      absl::InvalidArgumentError(absl::StrCat(message, "\n  ", advice)), plan,
      node);
}

// Why workers cannot run a Python function; empty: they can.
std::string WhyNot(const Distribution& distribution,
                   const std::string& function) {
  for (const Distribution::PythonFunction& each : distribution.functions()) {
    if (each.function() != function) continue;
    return each.document().empty() ? each.refusal() : "";
  }
  return "Write it with Penstock's functions, or move it behind distribute().";
}

// `plan` is what workers run.
absl::Status CheckFunctions(const Distribution& distribution,
                            const Plan& plan) {
  for (int i = 0; i < plan.nodes_size(); ++i) {
    for (const Function* function : FunctionsOf(plan.nodes(i))) {
      if (function->has_python()) {
        const std::string advice =
            WhyNot(distribution, function->python().capture());
        if (!advice.empty()) {
          return Refused(
              plan, i,
              absl::StrCat("workers run native functions, and those of code ",
                           "that they accept; got ", NodeName(plan, i),
                           ", whose function runs as Python: ",
                           function->python().reason()),
              advice);
        }
      }
      if (function->has_dataset()) {
        PENSTOCK_RETURN_IF_ERROR(
            CheckFunctions(distribution, function->dataset()));
      }
    }
  }
  return absl::OkStatus();
}

// Coordinated reads, and sharing between jobs.
absl::Status CheckGroup(const Distribution& distribution) {
  const bool is_coordinated = distribution.consumers() > 0;
  const bool is_shared = !distribution.share().empty();
  if (distribution.share_policy() != Distribution::BY_VISITATION &&
      !is_shared) {
    return absl::InvalidArgumentError(
        "share_policy must be left out without share");
  }
  if (distribution.pads_rounds() && !is_coordinated) {
    return absl::InvalidArgumentError(
        "partial_round must be left out without num_consumers");
  }
  if (!is_coordinated && !is_shared) return absl::OkStatus();
  if (is_coordinated && is_shared) {
    return absl::InvalidArgumentError(
        "share and num_consumers must not be given together: consumers of one "
        "job have what is computed once anyhow");
  }
  const char* const what = is_coordinated ? "num_consumers" : "share";
  if (distribution.readers() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_readers must be left out with ", what, "; got ",
                     distribution.readers()));
  }
  if (distribution.visitation() == Distribution::STATIC ||
      distribution.visitation() == Distribution::EACH_WORKER) {
    return absl::InvalidArgumentError(absl::StrCat(
        "visitation must be \"exactly_once\" or \"at_most_once\" with ", what,
        ", since all have the same elements; got another"));
  }
  if (distribution.share_policy() == Distribution::SKIP &&
      distribution.visitation() != Distribution::AT_MOST_ONCE) {
    return absl::InvalidArgumentError(
        "share_policy must be \"wait\" with visitation=\"exactly_once\"; got "
        "\"skip\", which loses elements");
  }
  if (!is_coordinated) return absl::OkStatus();
  if (distribution.visitation() != Distribution::EXACTLY_ONCE) {
    return absl::InvalidArgumentError(
        "visitation must be \"exactly_once\" with num_consumers: who misses an "
        "element would be in another round than the others; got another");
  }
  if (distribution.consumers() > kMaxReaders) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_consumers must be in [1, ", kMaxReaders, "]; got ",
                     distribution.consumers()));
  }
  if (distribution.consumer() >= distribution.consumers()) {
    return absl::InvalidArgumentError(
        absl::StrCat("consumer must be in [0, ", distribution.consumers(),
                     "), one of num_consumers; got ", distribution.consumer()));
  }
  if (distribution.job().empty()) {
    return absl::InvalidArgumentError(
        "job must be given with num_consumers: it is how they find each other");
  }
  if (distribution.on_existing() == Distribution::FRESH) {
    return absl::InvalidArgumentError(
        "on_existing must be \"error\" or \"attach\" with num_consumers; got "
        "\"fresh\"\n  Give the job another name for all of them to begin "
        "anew.");
  }
  return absl::OkStatus();
}

absl::Status CheckSettings(const Distribution& distribution) {
  const std::string& address = distribution.address();
  const size_t colon = address.rfind(':');
  const bool has_port =
      colon != std::string::npos && colon > 0 && colon + 1 < address.size() &&
      !absl::StrContains(address, '/') &&
      std::all_of(address.begin() + static_cast<int64_t>(colon) + 1,
                  address.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!has_port) {
    return absl::InvalidArgumentError(
        absl::StrCat("service must be the address of a dispatcher, as "
                     "\"penstock://localhost:5050\" or \"localhost:5050\"; got "
                     "\"",
                     address, "\""));
  }
  if (!Distribution::Visitation_IsValid(distribution.visitation())) {
    return absl::InvalidArgumentError("visitation must be a known one");
  }
  const bool is_static = distribution.visitation() == Distribution::STATIC;
  const bool has_sharding =
      distribution.sharding() != Distribution::SHARDING_UNSPECIFIED;
  if (!Distribution::Sharding_IsValid(distribution.sharding()) ||
      is_static != has_sharding) {
    return absl::InvalidArgumentError(absl::StrCat(
        "sharding must be given with visitation=\"static\", and with that "
        "alone, as \"file\", \"data\", \"file_or_data\" or \"hint\"; got ",
        has_sharding ? "it with another visitation" : "none"));
  }
  if (distribution.visitation() == Distribution::EACH_WORKER &&
      distribution.is_ordered()) {
    return absl::InvalidArgumentError(
        "order must be left out with visitation=\"each_worker\": workers come "
        "and go, and each has its own; got \"deterministic\"");
  }
  if (distribution.readers() < 1 || distribution.readers() > kMaxReaders) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_readers must be in [1, ", kMaxReaders, "]; got ",
                     distribution.readers()));
  }
  if (distribution.reader() >= distribution.readers()) {
    return absl::InvalidArgumentError(
        absl::StrCat("reader must be in [0, ", distribution.readers(),
                     "), one of num_readers; got ", distribution.reader()));
  }
  PENSTOCK_RETURN_IF_ERROR(CheckGroup(distribution));
  const std::string& compression = distribution.compression();
  if (!compression.empty() && compression != "none" && compression != "lz4" &&
      compression != "zstd") {
    return absl::InvalidArgumentError(
        absl::StrCat("compression must be \"none\", \"lz4\" or \"zstd\", or "
                     "left out; got \"",
                     compression, "\""));
  }
  return absl::OkStatus();
}

int LevelsOf(const Plan& plan) {
  int levels = 0;
  for (const Distribution* inner : DistributionsIn(plan)) {
    levels = std::max(levels, 1 + LevelsOf(inner->plan()));
  }
  return levels;
}

// Why workers, who may have to read it again, cannot read another job as it was
// asked for; nothing: they can.
std::string WhyNotAgain(const Distribution& inner) {
  switch (inner.visitation()) {
    case Distribution::AT_MOST_ONCE:
      return "visitation=\"at_most_once\", with which some may be lost";
    case Distribution::EACH_WORKER:
      return "visitation=\"each_worker\", with which there are as many passes "
             "as workers";
    default:
      break;
  }
  if (inner.readers() > 1) return "num_readers, of which each has a part";
  if (inner.consumers() > 0) return "num_consumers, of which each has a part";
  if (!inner.share().empty()) return "share, for which others may be waited";
  return "";
}

// Nodes of `plan` that read other jobs: `plan` is what workers run.
absl::Status CheckInner(const Plan& plan) {
  for (int i = 0; i < plan.nodes_size(); ++i) {
    Plan alone;
    *alone.add_nodes() = plan.nodes(i);
    for (const Distribution* inner : DistributionsIn(alone)) {
      const std::string why = WhyNotAgain(*inner);
      if (why.empty()) continue;
      return Refused(
          plan, i,
          absl::StrCat("workers read another job so that its elements are the "
                       "same whenever they are read; got ",
                       NodeName(plan, i), " with ", why),
          "Leave that out of the distribute() that comes first, or move all "
          "that follows behind the last one.");
    }
    const int levels = 1 + LevelsOf(alone);
    if (levels <= kMaxLevels) continue;
    return Refused(
        plan, i,
        absl::StrCat("a pipeline must be distributed at most ", kMaxLevels,
                     " times, one inside the other; "
                     "got ",
                     levels),
        "Have fewer workers' jobs do more each.");
  }
  return absl::OkStatus();
}

// Its output is what the division's first node is said to give.
absl::StatusOr<Division> DivisionOf(const Distribution& distribution) {
  PENSTOCK_RETURN_IF_ERROR(CheckSettings(distribution));
  PENSTOCK_RETURN_IF_ERROR(CheckInner(distribution.plan()));
  PENSTOCK_ASSIGN_OR_RETURN(
      Division division,
      DivideFor(distribution.plan(), distribution.visitation(),
                distribution.sharding(), distribution.consumers() > 0));
  PENSTOCK_RETURN_IF_ERROR(CheckFunctions(distribution, division.remote));
  return division;
}

// What rows are here: those of `division`, or pairs with a mark.
absl::StatusOr<ElementSpec> RowsOf(const Distribution& distribution,
                                   const Division& division) {
  const ElementSpec& spec = division.local.nodes(0).received().spec();
  if (!distribution.pads_rounds()) return spec;
  PENSTOCK_ASSIGN_OR_RETURN(const penstock::ElementSpec element,
                            FromProto(spec));
  if (HasComposite(element)) {
    return absl::InvalidArgumentError(
        "partial_round=\"pad\" needs elements of plain tensors; got ragged or "
        "sparse ones, or datasets\n  Use partial_round=\"drop\".");
  }
  ElementSpec pair;
  *pair.mutable_tuple()->add_items() = spec;
  TensorSpec& mark = *pair.mutable_tuple()->add_items()->mutable_tensor();
  mark.set_dtype(BOOL);
  mark.mutable_shape();
  return pair;
}

// Members of a group that may miss rows need a pipeline that goes on.
absl::Status CheckRows(const Distribution& distribution,
                       const Division& division) {
  const Cardinality& rows =
      division.remote.nodes(division.remote.nodes_size() - 1).cardinality();
  if (distribution.share().empty() ||
      distribution.visitation() != Distribution::AT_MOST_ONCE ||
      !rows.has_finite()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "a pipeline that is shared at most once must not end, since who is slow "
      "or comes late misses elements; got one of ",
      rows.finite(),
      " elements\n  Put repeat() before distribute(), or use "
      "visitation=\"exactly_once\": then all have all of them."));
}

// What rows of several readers, or some that are lost or come from several
// workers, amount to is not known.
void SetRows(const Division& division, Received& received) {
  const Distribution& distribution = received.distribution();
  const Cardinality& rows =
      division.remote.nodes(division.remote.nodes_size() - 1).cardinality();
  received.set_infinite(rows.has_infinite());
  const bool is_exact =
      distribution.visitation() == Distribution::EXACTLY_ONCE ||
      distribution.sharding() == Distribution::DATA;
  if (rows.has_finite() && distribution.readers() == 1 && is_exact &&
      distribution.consumers() == 0) {
    received.set_rows(rows.finite());
  }
}

void AddCaptures(const google::protobuf::Message& message,
                 std::set<std::string>& ids);

// What its workers are given: of Python functions, their documents.
void AddCaptures(const Distribution& distribution, std::set<std::string>& ids) {
  if (!distribution.registered().empty()) return;  // the service has it
  std::set<std::string> inner;
  AddCaptures(
      static_cast<const google::protobuf::Message&>(distribution.plan()),
      inner);
  for (const Distribution::PythonFunction& each : distribution.functions()) {
    inner.erase(each.function());
    if (!each.document().empty()) inner.insert(each.document());
  }
  if (distribution.has_code()) inner.insert(distribution.code().archive());
  ids.merge(inner);
}

void AddCaptures(const google::protobuf::Message& message,
                 std::set<std::string>& ids) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& look = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  look.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (field->message_type() == Distribution::descriptor()) {
        const auto& inner =
            static_cast<const Distribution&>(look.GetMessage(message, field));
        AddCaptures(inner, ids);
        continue;
      }
      if (!field->is_repeated()) {
        AddCaptures(look.GetMessage(message, field), ids);
        continue;
      }
      for (int i = 0; i < look.FieldSize(message, field); ++i) {
        AddCaptures(look.GetRepeatedMessage(message, field, i), ids);
      }
    } else if (field->name() == "capture") {
      ids.insert(look.GetString(message, field));
    }
  }
}

}  // namespace

std::vector<const Distribution*> DistributionsIn(const Plan& plan) {
  std::vector<const Distribution*> found;
  for (const Node& node : plan.nodes()) {
    if (node.received().has_distribution()) {
      found.push_back(&node.received().distribution());
    }
    for (const Function* function : FunctionsOf(node)) {
      if (!function->has_dataset()) continue;
      for (const Distribution* inner : DistributionsIn(function->dataset())) {
        found.push_back(inner);
      }
    }
  }
  return found;
}

void DropCredentials(Plan& plan) {
  for (const Distribution* found : DistributionsIn(plan)) {
    auto* inner = const_cast<Distribution*>(found);  // of `plan`
    inner->clear_ca_file();
    inner->clear_cert_file();
    inner->clear_key_file();
    inner->clear_token_file();
    DropCredentials(*inner->mutable_plan());
  }
}

void ForInstances(Plan& plan, const std::function<uint64_t(uint64_t)>& change) {
  for (Node& node : *plan.mutable_nodes()) {
    if (node.has_instance()) node.set_instance(change(node.instance()));
    const Function* function = DatasetFunctionOf(node);
    if (function == nullptr || !function->has_dataset()) continue;
    ForInstances(*const_cast<Function*>(function)->mutable_dataset(), change);
  }
}

absl::StatusOr<Plan> Distribute(const Plan& input, Node node) {
  Distribution& distribution = *node.mutable_received()->mutable_distribution();
  *distribution.mutable_plan() = input;
  // The same wherever the plan is built, so that equal pipelines are equal
  // plans; here, nodes keep those that they have.
  std::vector<uint64_t> instances;
  ForInstances(*distribution.mutable_plan(), [&](uint64_t instance) {
    instances.push_back(instance);
    return instances.size();
  });
  // As errors have it: the node that follows the input's.
  const std::string name = absl::StrCat("distribute_", input.nodes_size());
  node.set_name(name);
  Plan here;
  *here.add_nodes() = node;
  if (const absl::Status status = CheckSettings(distribution); !status.ok()) {
    return Located(status, here, 0);
  }
  PENSTOCK_ASSIGN_OR_RETURN(Division division, DivisionOf(distribution));
  ForInstances(division.local,
               [&](uint64_t number) { return instances[number - 1]; });
  if (division.needs_order()) {
    const auto moved =
        std::find_if(division.moved.begin(), division.moved.end(),
                     [](const auto& each) { return each.needs_order; });
    if (distribution.readers() > 1 || distribution.consumers() > 0) {
      return Located(
          absl::InvalidArgumentError(absl::StrCat(
              "several readers must share rows that do not depend on others; "
              "got ",
              moved->name, ", which ", moved->why,
              "\n  Move it behind distribute(), where each reader has its own, "
              "or use one reader.")),
          here, 0);
    }
    distribution.set_is_ordered(true);
  }
  if (const absl::Status status = CheckRows(distribution, division);
      !status.ok()) {
    return Located(status, here, 0);
  }
  absl::StatusOr<ElementSpec> rows = RowsOf(distribution, division);
  if (!rows.ok()) return Located(rows.status(), here, 0);
  *node.mutable_received()->mutable_spec() = *std::move(rows);
  SetRows(division, *node.mutable_received());

  // What follows knows now how many rows there are.
  Plan plan;
  for (int i = 0; i < division.local.nodes_size(); ++i) {
    Node& added = *plan.add_nodes() = division.local.nodes(i);
    if (i == 0) {
      const uint64_t key = added.key();
      const bool has_key = added.has_key();
      added = node;
      added.clear_inputs();
      if (has_key) added.set_key(key);
    }
    std::vector<penstock::ElementSpec> specs;
    std::vector<Cardinality> cardinalities;
    for (const uint32_t from : added.inputs()) {
      PENSTOCK_ASSIGN_OR_RETURN(
          specs.emplace_back(),
          FromProto(plan.nodes(static_cast<int>(from)).output()));
      cardinalities.push_back(plan.nodes(static_cast<int>(from)).cardinality());
    }
    PENSTOCK_ASSIGN_OR_RETURN(
        const penstock::ElementSpec output,
        InferOutput(added, {.inputs = specs, .bound = {}}));
    *added.mutable_output() = ToProto(output);
    *added.mutable_cardinality() =
        InferCardinality(added, cardinalities, specs, {});
  }
  PENSTOCK_RETURN_IF_ERROR(CheckLimits(plan));
  return plan;
}

absl::StatusOr<ElementSpec> CheckDistribution(
    const Distribution& distribution) {
  // Its levels first: each is looked at for every one around it.
  PENSTOCK_RETURN_IF_ERROR(CheckInner(distribution.plan()));
  PENSTOCK_RETURN_IF_ERROR(Validate(distribution.plan()));
  PENSTOCK_ASSIGN_OR_RETURN(const Division division, DivisionOf(distribution));
  return RowsOf(distribution, division);
}

std::vector<std::string> CapturesOf(const Plan& plan) {
  std::set<std::string> ids;
  AddCaptures(plan, ids);
  return {ids.begin(), ids.end()};
}

}  // namespace penstock::plan

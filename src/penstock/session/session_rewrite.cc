// The calls about rewritten plans, and which plan an iterator runs.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/plan/rewrite/forecast.h"
#include "penstock/plan/rewrite/rewrite.h"
#include "penstock/plan/rewrite/rewriting.h"
#include "penstock/plan/validate.h"
#include "penstock/session/session.h"
#include "penstock/tuner/report.h"

namespace penstock::session {
namespace {

void Fill(const plan::Remark& from, plan::RewriteRemark& to) {
  to.set_pass(from.pass);
  for (const plan::NodeRef& node : from.nodes) {
    plan::RewriteRemark::Node* out = to.add_nodes();
    out->set_name(node.name);
    *out->mutable_made_at() = node.made_at;
  }
  to.set_why(from.why);
}

plan::RewriteOptions OptionsOf(const Rewrite& call,
                               const plan::SnapshotLog& trace) {
  plan::RewriteOptions options;
  if (call.has_only()) {
    options.only.emplace(call.only().names().begin(),
                         call.only().names().end());
  }
  options.may_hide_errors = call.may_hide_errors();
  for (const auto& [name, rows] : call.earlier().measured()) {
    options.measured[name] = {rows.rows(), rows.row_bytes()};
  }
  if (trace.snapshots.empty()) return options;
  // Whole numbers, which are the same after any way of writing them down.
  for (const auto& [name, rows] : plan::MeasuredOf(trace.snapshots.back())) {
    options.measured[name] = {std::round(rows.rows),
                              std::round(rows.row_bytes)};
  }
  return options;
}

plan::Planned PlannedOf(const plan::Plan& plan,
                        const engine::Pipeline& pipeline) {
  plan::Planned planned;
  planned.plan = &plan;
  planned.fingerprint = pipeline.fingerprint();
  planned.root = static_cast<uint32_t>(pipeline.root_info().id);
  for (const engine::OpInfo& info : pipeline.ops()) {
    plan::Snapshot::Node& node = planned.nodes.emplace_back(info.described);
    node.set_why_not_kept(pipeline.WhyNotKept(info.id));
  }
  return planned;
}

bool AsksForRewrites(const plan::Options& defaults, const plan::Plan& plan) {
  bool asks = defaults.rewrite();
  for (const plan::Node& node : plan.nodes()) {
    if (node.has_with_options() &&
        node.with_options().options().has_rewrite()) {
      asks = node.with_options().options().rewrite();
    }
  }
  return asks;
}

bool SavesMemory(const plan::Rewriting& rewriting) {
  for (const plan::Pass& pass : plan::AllPasses()) {
    if (!pass.saves_memory) continue;
    for (const std::string& name : rewriting.passes()) {
      if (name == pass.name) return true;
    }
  }
  return false;
}

}  // namespace

absl::StatusOr<Response> Session::DoRewrite(const Rewrite& call) {
  PENSTOCK_ASSIGN_OR_RETURN(const plan::Plan plan, ParsePlan(call.plan()));
  Response response;
  RewriteReply& reply = *response.mutable_rewrite();
  if (call.has_again()) {
    PENSTOCK_RETURN_IF_ERROR(plan::Validate(plan));
    PENSTOCK_RETURN_IF_ERROR(plan::Apply(plan, call.again()).status());
    *reply.mutable_rewriting() = call.again();
    return response;
  }
  plan::SnapshotLog trace;
  if (!call.path().empty()) {
    PENSTOCK_ASSIGN_OR_RETURN(trace, ReadTrace(call.path()));
  }
  const plan::RewriteOptions options = OptionsOf(call, trace);
  PENSTOCK_ASSIGN_OR_RETURN(const plan::Rewritten rewritten,
                            plan::Rewrite(plan, options));
  for (const plan::Remark& remark : rewritten.applied) {
    Fill(remark, *reply.add_applied());
  }
  for (const plan::Remark& remark : rewritten.declined) {
    Fill(remark, *reply.add_declined());
  }
  if (rewritten.applied.empty()) return response;
  *reply.mutable_rewriting() = plan::ToRewriting(plan, options, rewritten);
  reply.set_saves_memory(SavesMemory(reply.rewriting()));
  if (trace.snapshots.empty()) return response;
  PENSTOCK_ASSIGN_OR_RETURN(
      auto pipeline,
      engine::Pipeline::Build(rewritten.plan, plan::Options(), &service_));
  const std::vector<plan::Snapshot> forecast =
      plan::Forecast(trace.snapshots, PlannedOf(rewritten.plan, *pipeline));
  absl::StatusOr<plan::Report> expected =
      tuner::MakeReport(forecast, call.budget());
  if (expected.ok()) *reply.mutable_expected() = *std::move(expected);
  return response;
}

Response Session::DoListPasses() {
  Response response;
  PassList& list = *response.mutable_list_passes();
  for (const plan::Pass& pass : plan::AllPasses()) {
    PassList::Pass* out = list.add_passes();
    out->set_name(pass.name);
    out->set_description(pass.description);
  }
  return response;
}

absl::StatusOr<Session::ToRun> Session::FindPlanToRun(
    const MakeIterator& call) {
  ToRun found;
  PENSTOCK_ASSIGN_OR_RETURN(found.plan, ParsePlan(call.plan()));
  PENSTOCK_RETURN_IF_ERROR(plan::Validate(found.plan));
  found.knobs = call.knobs();
  if (call.has_rewriting()) {
    absl::StatusOr<plan::Plan> rewritten =
        plan::Apply(found.plan, call.rewriting());
    if (rewritten.ok()) {
      found.plan = *std::move(rewritten);
      return found;
    }
    found.knobs.Clear();  // of nodes that are not there
    // A state of what it should have become is refused, with more to say.
    if (!call.has_state()) {
      service_.Log(30, absl::StrCat("a tuned pipeline runs as it was written: ",
                                    std::string(rewritten.status().message()),
                                    "; tune it again"));
    }
    return found;
  }
  // A state goes on as it was begun, and knobs are of the plan as it is.
  if (call.has_state() || !found.knobs.nodes().empty() ||
      !AsksForRewrites(call.defaults(), found.plan)) {
    return found;
  }
  PENSTOCK_ASSIGN_OR_RETURN(plan::Rewritten rewritten,
                            plan::Rewrite(found.plan));
  if (rewritten.applied.empty()) return found;
  found.rewriting = plan::ToRewriting(found.plan, {}, rewritten);
  found.plan = std::move(rewritten.plan);
  return found;
}

}  // namespace penstock::session

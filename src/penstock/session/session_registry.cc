// Pipelines that are left with a service, and had back from it.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/status.h"
#include "penstock/plan/distribute.h"
#include "penstock/plan/divide.h"
#include "penstock/plan/validate.h"
#include "penstock/service/client/registry.h"
#include "penstock/session/random_word.h"
#include "penstock/session/session.h"

namespace penstock::session {

absl::StatusOr<Response> Session::DoRegister(const Register& call) {
  PENSTOCK_ASSIGN_OR_RETURN(const plan::Plan plan, ParsePlan(call.plan()));
  PENSTOCK_RETURN_IF_ERROR(plan::Validate(plan));
  // What workers cannot run is refused here, with the line that it comes from.
  plan::Node node;
  *node.mutable_received()->mutable_distribution() = call.service();
  node.mutable_received()->mutable_distribution()->set_readers(1);
  PENSTOCK_ASSIGN_OR_RETURN(const plan::Plan distributed,
                            plan::Distribute(plan, std::move(node)));
  PENSTOCK_ASSIGN_OR_RETURN(
      const service::PlanBundle bundle,
      service::BundleOf(distributed.nodes(0).received().distribution(),
                        call.defaults(), call.working_directory(), &service_));
  Response response;
  PENSTOCK_ASSIGN_OR_RETURN(
      *response.mutable_register_plan()->mutable_id(),
      service::RegisterPlan(call.service(), bundle, call.name()));
  return response;
}

absl::StatusOr<Response> Session::DoGetRegistered(const GetRegistered& call) {
  PENSTOCK_ASSIGN_OR_RETURN(
      const service::RegisteredPlan found,
      service::FetchRegistered(call.service(), call.id()));
  PENSTOCK_ASSIGN_OR_RETURN(plan::Plan plan, ParsePlan(found.bundle.plan()));
  PENSTOCK_RETURN_IF_ERROR(plan::Validate(plan));
  PENSTOCK_ASSIGN_OR_RETURN(const plan::Division division, plan::Divide(plan));
  // Here it is one of its own.
  plan::ForInstances(plan, [](uint64_t) { return RandomWord(); });
  Response response;
  GetRegisteredReply* reply = response.mutable_get_registered();
  reply->set_id(found.id);
  plan.SerializeToString(reply->mutable_plan());
  std::vector<std::string> needed = plan::CapturesOf(division.local);
  if (division.stitch) {
    for (std::string& id : plan::CapturesOf(division.stitch->after)) {
      needed.push_back(std::move(id));
    }
  }
  for (const auto& capture : found.bundle.captures()) {
    if (std::ranges::find(needed, capture.id()) == needed.end()) continue;
    GetRegisteredReply::Capture* out = reply->add_captures();
    out->set_id(capture.id());
    out->set_bytes(capture.bytes());
  }
  return response;
}

absl::StatusOr<Response> Session::DoUnregister(const Unregister& call) {
  PENSTOCK_RETURN_IF_ERROR(service::UnregisterPlan(call.service(), call.id()));
  Response response;
  response.set_done(true);
  return response;
}

}  // namespace penstock::session

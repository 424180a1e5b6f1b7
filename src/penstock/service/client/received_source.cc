#include "penstock/service/client/received_source.h"

#include <utility>

#include "penstock/base/hash.h"
#include "penstock/base/status.h"
#include "penstock/plan/divide_by_worker.h"
#include "penstock/service/client/registry.h"
#include "penstock/service/protocol/canonical.h"

namespace penstock::service {

absl::StatusOr<ReceivedSource> ReceivedSource::Make(
    const plan::Distribution& distribution, const Settings& settings) {
  PENSTOCK_ASSIGN_OR_RETURN(
      plan::Division division,
      plan::DivideFor(distribution.plan(), distribution.visitation(),
                      distribution.sharding(), distribution.consumers() > 0));
  ServiceLink::Pipeline pipeline;
  pipeline.registered = distribution.registered();
  if (pipeline.registered.empty()) {
    PENSTOCK_ASSIGN_OR_RETURN(PlanBundle bundle,
                              BundleOf(distribution, settings.defaults,
                                       settings.directory, settings.captures));
    bundle.set_in_rounds(distribution.consumers() > 0);
    if (division.by_worker) {
      bundle.set_visitation(distribution.visitation());
      bundle.set_sharding(distribution.sharding());
    }
    if (settings.needs_lineage && !division.needs_lineage) {
      bundle.set_gives_lineage(true);
      division.needs_lineage = true;
    }
    pipeline.bundle = bundle.SerializeAsString();
  }
  ReceivedSource source;
  source.division = std::make_shared<plan::Division>(std::move(division));
  PENSTOCK_ASSIGN_OR_RETURN(
      source.link,
      ServiceLink::Make(distribution.address(), settings.credentials,
                        std::move(pipeline), settings.frames));
  return source;
}

service::Visitation ToService(plan::Distribution::Visitation visitation) {
  switch (visitation) {
    case plan::Distribution::AT_MOST_ONCE:
      return AT_MOST_ONCE;
    case plan::Distribution::EACH_WORKER:
      return EACH_WORKER;
    case plan::Distribution::STATIC:
      return STATIC;
    default:
      return EXACTLY_ONCE;
  }
}

uint64_t HashOf(const plan::Distribution& distribution) {
  return HashBytes(CanonicalBytes(distribution));
}

}  // namespace penstock::service

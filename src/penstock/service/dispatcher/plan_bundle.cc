#include "penstock/service/dispatcher/plan_bundle.h"

#include <openssl/evp.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/dispatcher.pb.h"
#include "penstock/plan.pb.h"
#include "penstock/plan/distribute.h"
#include "penstock/plan/divide_by_worker.h"
#include "penstock/plan/fingerprint.h"
#include "penstock/plan/validate.h"

namespace penstock::service {
namespace {

constexpr size_t kIdBytes = 16;

absl::StatusOr<plan::Plan> ParsePlan(const std::string& bytes,
                                     PlanBundle& bundle) {
  plan::Plan plan;
  if (!bundle.ParseFromString(bytes) || !plan.ParseFromString(bundle.plan())) {
    return absl::InvalidArgumentError(
        "expected a pipeline (PlanBundle); got bytes that are none");
  }
  if (bundle.has_defaults()) {
    PENSTOCK_RETURN_IF_ERROR(plan::ValidateOptions(bundle.defaults()));
  }
  return plan;
}

// Where it reads other jobs, which the fingerprint does not say.
void AddInner(const plan::Plan& plan, std::string& named) {
  for (const plan::Distribution* inner : plan::DistributionsIn(plan)) {
    absl::StrAppend(&named, "\n", inner->address(), " ", inner->registered());
    AddInner(inner->plan(), named);
  }
}

}  // namespace

std::string PlanIdOf(const std::string& bytes) {
  // What it computes and how, wherever it was written down.
  std::string named = bytes;
  PlanBundle bundle;
  plan::Plan plan;
  if (bundle.ParseFromString(bytes) && plan.ParseFromString(bundle.plan())) {
    bundle.set_plan(plan::Fingerprint(plan));
    // Of one process; the fingerprint says which is which.
    for (PlanBundle::Capture& function : *bundle.mutable_functions()) {
      function.clear_id();
    }
    named = bundle.SerializeAsString();
    AddInner(plan, named);
  }
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_Digest(named.data(), named.size(), digest, &size, EVP_sha256(), nullptr);
  return absl::BytesToHexString(
      std::string(reinterpret_cast<const char*>(digest), kIdBytes));
}

absl::Status ValidatePlanBundle(const std::string& bytes) {
  PlanBundle bundle;
  PENSTOCK_ASSIGN_OR_RETURN(const plan::Plan plan, ParsePlan(bytes, bundle));
  return plan::Validate(plan);
}

absl::Status ValidateShares(const std::string& bytes, Visitation visitation) {
  PlanBundle bundle;
  PENSTOCK_ASSIGN_OR_RETURN(const plan::Plan plan, ParsePlan(bytes, bundle));
  using plan::Distribution;
  Distribution::Visitation divided = Distribution::EXACTLY_ONCE;
  if (visitation == EACH_WORKER) divided = Distribution::EACH_WORKER;
  if (visitation == STATIC) divided = Distribution::STATIC;
  if (bundle.visitation() != divided) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected a pipeline that is divided for ", Visitation_Name(visitation),
        "; got one for ", Distribution::Visitation_Name(bundle.visitation())));
  }
  return plan::DivideFor(plan, divided, bundle.sharding(), bundle.in_rounds())
      .status();
}

}  // namespace penstock::service

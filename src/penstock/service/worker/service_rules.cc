#include "penstock/service/worker/service_rules.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "penstock/plan/distribute.h"

namespace penstock::service {
namespace {

// One name for this machine.
std::string Canonical(std::string address) {
  address = absl::StrCat(absl::StripPrefix(address, "penstock://"));
  for (const char* here : {"127.0.0.1:", "[::1]:"}) {
    if (absl::StartsWith(address, here)) {
      return absl::StrCat("localhost:", absl::StripPrefix(address, here));
    }
  }
  return address;
}

}  // namespace

ServiceRules::ServiceRules(const std::string& own,
                           std::vector<std::string> allowed,
                           rpc::Credentials credentials)
    : allowed_(std::move(allowed)), credentials_(std::move(credentials)) {
  allowed_.insert(allowed_.begin(), own);
  for (std::string& each : allowed_) each = Canonical(std::move(each));
  credentials_.role = "consumer";
}

absl::Status ServiceRules::Check(const plan::Plan& plan) const {
  for (const plan::Distribution* inner : plan::DistributionsIn(plan)) {
    if (std::ranges::find(allowed_, Canonical(inner->address())) !=
        allowed_.end()) {
      continue;
    }
    return absl::PermissionDeniedError(absl::StrCat(
        "this worker reads other jobs from the services at ",
        absl::StrJoin(allowed_, ", "),
        " alone; got a pipeline that reads job '", inner->job(), "' at ",
        inner->address(), "\n  Start workers with --allow-services ",
        inner->address(),
        ", or give distribute() the address that they know the service by."));
  }
  return absl::OkStatus();
}

}  // namespace penstock::service

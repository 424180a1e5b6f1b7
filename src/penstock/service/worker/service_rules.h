// Which services a worker reads other jobs from, if a plan asks for it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "penstock/plan.pb.h"
#include "penstock/service/rpc/channel.h"

namespace penstock::service {

// Plans come from trainers: without a rule, they could have a worker call any
// address that it can reach. Constant.
class ServiceRules final {
 public:
  // Allows none.
  ServiceRules() = default;
  // The worker's own service, and those at `allowed` (host:port), all called
  // with the worker's own credentials.
  ServiceRules(const std::string& own, std::vector<std::string> allowed,
               rpc::Credentials credentials);

  // Of what whoever runs the plan reads. PermissionDenied says which address
  // was asked for, and by which flag it would be allowed.
  absl::Status Check(const plan::Plan& plan) const;
  const rpc::Credentials& credentials() const { return credentials_; }

 private:
  std::vector<std::string> allowed_;
  rpc::Credentials credentials_;
};

}  // namespace penstock::service

// Documents that the dispatcher hands out in parts.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "penstock/dispatcher.grpc.pb.h"
#include "penstock/service/rpc/channel.h"

namespace penstock::service {

// A plan or a manifest as it was written. Waits for the dispatcher, half
// a minute at most. DataLoss past 1 GiB.
absl::StatusOr<std::string> FetchPlan(Dispatcher::StubInterface& dispatcher,
                                      const rpc::Credentials& credentials,
                                      const std::string& plan);
absl::StatusOr<std::string> FetchManifest(Dispatcher::StubInterface& dispatcher,
                                          const rpc::Credentials& credentials,
                                          uint64_t manifest);

}  // namespace penstock::service

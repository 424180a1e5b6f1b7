// Pipelines that stay with a service, for readers that have no code for them.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/dispatcher.grpc.pb.h"
#include "penstock/dispatcher.pb.h"
#include "penstock/engine/row_source.h"
#include "penstock/plan.pb.h"
#include "penstock/service/rpc/channel.h"

namespace penstock::service {

// How a distribution's service is called.
rpc::Credentials CredentialsOf(const plan::Distribution& distribution);

// All that workers need to run a distribution's plan. `directory`: where
// relative names start from, left out if there can be none. `sources` has what
// it names of this process: arrays, functions and their code.
absl::StatusOr<PlanBundle> BundleOf(const plan::Distribution& distribution,
                                    const plan::Options& defaults,
                                    const std::string& directory,
                                    engine::RowSources* sources);

// Hands a serialized PlanBundle over, and gives its id. `keep`: it stays,
// whether or not a job uses it; `name`: what it may be called besides.
absl::StatusOr<std::string> SendPlan(Dispatcher::Stub& dispatcher,
                                     grpc::ClientContext& context,
                                     const std::string& bytes, bool keep,
                                     const std::string& name);

// The calls below take up to some seconds, and say why nobody answers.

// Gives the id. AlreadyExists: the name is another plan's.
absl::StatusOr<std::string> RegisterPlan(const plan::Distribution& service,
                                         const PlanBundle& bundle,
                                         const std::string& name);

struct RegisteredPlan {
  std::string id;
  PlanBundle bundle;
};
// `called`: its id, or a name. NotFound.
absl::StatusOr<RegisteredPlan> FetchRegistered(
    const plan::Distribution& service, const std::string& called);

absl::Status UnregisterPlan(const plan::Distribution& service,
                            const std::string& called);

}  // namespace penstock::service

// How a pipeline is run by each worker as a whole: visitation EACH_WORKER and
// STATIC.
#pragma once

#include "absl/status/statusor.h"
#include "penstock/plan.pb.h"
#include "penstock/plan/divide.h"

namespace penstock::plan {

// A division whose `remote` is the plan and whose `local` is what it gives:
// nothing is moved, cut or put together. With STATIC, every worker has every
// n-th row of
//
//   FILE          the names of files that are read: NotFound, located, if that
//                 is not what the plan begins with
//   DATA          the plan
//   FILE_OR_DATA  the first if that can be, else the second
//   HINT          what the shard() reads that says so
//
// InvalidArgument, located, for what workers cannot run; FailedPrecondition for
// a shard() that says so under another policy. REQUIRES: the plan is valid, and
// no sub-plan.
absl::StatusOr<Division> DivideByWorker(const Plan& plan,
                                        Distribution::Visitation visitation,
                                        Distribution::Sharding sharding);

// The same, or Divide(), as the visitation needs it.
absl::StatusOr<Division> DivideFor(const Plan& plan,
                                   Distribution::Visitation visitation,
                                   Distribution::Sharding sharding,
                                   bool in_rounds = false);

}  // namespace penstock::plan

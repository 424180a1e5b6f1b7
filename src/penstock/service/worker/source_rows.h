// The rows that an epoch's shares are made of, read while it is surveyed.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "penstock/data/chunk.h"
#include "penstock/engine/pipeline.h"
#include "penstock/engine/run.h"
#include "penstock/plan.pb.h"
#include "penstock/service/worker/plan_store.h"

namespace penstock::service {

// `rows`: the division's source and all before it, as a plan that can be added
// to.
plan::Plan SourceOf(const plan::Division& division);

// Runs such a plan, with what came with `plan`, and hands on all that it gives;
// in which order does not matter. Waits for storage. Fails as the plan's rows
// do, or as `take` does.
absl::Status ForRows(
    const plan::Plan& rows, const ReadyPlan& plan,
    const engine::Environment& environment, engine::Instances& instances,
    const std::function<absl::Status(const Chunk& chunk)>& take);

}  // namespace penstock::service

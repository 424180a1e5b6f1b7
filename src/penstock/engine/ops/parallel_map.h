// A map as a parallel region: chunks of its input are tasks on the executor,
// and a bounded window puts their results back in order.
#pragma once

#include <memory>

#include "penstock/engine/evaluate.h"
#include "penstock/engine/operator.h"

namespace penstock::engine {

// At most 2 x parallelism chunks are under way or wait for their turn. Rows per
// task grow until a task is worth its hand-off. If not `keep_order`, results
// are given as they come; a saved position then repeats no row and loses none,
// but the order after a restore may differ.
std::unique_ptr<Stream> MakeParallelMapStream(
    const Scope& scope, const OpInfo& info, std::unique_ptr<Stream> input,
    std::shared_ptr<const Evaluator> function, int64_t parallelism,
    bool keep_order);

}  // namespace penstock::engine

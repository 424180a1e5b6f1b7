// What the user left open and the plan must not: decided once, when the node is
// made, and written into it.
#pragma once

#include "absl/types/span.h"
#include "penstock/data/spec.h"
#include "penstock/plan.pb.h"
#include "penstock/plan/builder.h"

namespace penstock::plan {

// Fills in, where unset:
//   range, counter, enumerate   start 0, step 1, dtype int64
//   fixed-length records        no header, no footer
//   interleave                  cycle_length: 8, on any machine;
//                               block_length: 1
//   padded_batch                shapes: those of the components, so that
//                               unknown dimensions grow to the batch's largest;
//                               padding: zeros and empty strings, and one given
//                               value stands for all components; the same for
//                               what else pads
//   bucket_by_sequence_length   batch_sizes: what max_tokens has room for
// What cannot be filled in is left for the operator's rules (infer.h) to
// refuse.
void Resolve(Node& node, absl::Span<const penstock::ElementSpec> inputs,
             const BuildContext& context);

}  // namespace penstock::plan

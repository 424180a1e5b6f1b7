// x + y of strings.
#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/functions/function.h"

namespace penstock::functions {

// Broadcasts two arguments of strings and joins the items at each place.
absl::StatusOr<Column> ConcatStrings(absl::Span<const Arg> args,
                                     EvalContext& context);

}  // namespace penstock::functions

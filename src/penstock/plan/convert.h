// Between the plan's messages and the types that the engine computes with.
#pragma once

#include "absl/status/statusor.h"
#include "penstock/data/spec.h"
#include "penstock/functions/program.h"
#include "penstock/plan.pb.h"

namespace penstock::plan {

// Inside penstock::plan the short names are the messages; the types of data/
// are written with their full names.
absl::StatusOr<penstock::TensorSpec> FromProto(const TensorSpec& spec);
absl::StatusOr<penstock::ElementSpec> FromProto(const ElementSpec& spec);
absl::StatusOr<penstock::PartialShape> FromProto(const PartialShape& shape);
// A dense column of one row.
absl::StatusOr<penstock::Column> FromProto(const Tensor& tensor);

TensorSpec ToProto(const penstock::TensorSpec& spec);
ElementSpec ToProto(const penstock::ElementSpec& spec);

// A function made ready to run; an error names the step and its user's line.
absl::StatusOr<functions::Program> MakeProgram(
    const Function& function, absl::Span<const penstock::TensorSpec> arguments,
    absl::Span<const penstock::TensorSpec> bound);

}  // namespace penstock::plan

// Between the plan's messages and the types that the engine computes with.
//
// Messages may come from anywhere: what FromProto() returns is safe to compute
// with, and what is not is an InvalidArgument error.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/data/column.h"
#include "penstock/data/spec.h"
#include "penstock/functions/program.h"
#include "penstock/plan.pb.h"

namespace penstock::plan {

// How deep structures nest, at most. With kMaxFunctionDepth (infer.h) it keeps
// every plan within the 100 levels that protobuf reads and writes, as bytes and
// as JSON.
inline constexpr int kMaxSpecDepth = 16;

// No component's known dimensions promise more: a guard against overflow. What
// an element may take in memory is decided where it runs.
inline constexpr int64_t kMaxStaticBytes = int64_t{1} << 47;

// Inside penstock::plan the short names are the messages; the types of data/
// are written with their full names.
absl::StatusOr<penstock::TensorSpec> FromProto(const TensorSpec& spec);
absl::StatusOr<penstock::ElementSpec> FromProto(const ElementSpec& spec);
absl::StatusOr<penstock::PartialShape> FromProto(const PartialShape& shape);
// A dense column of one row.
absl::StatusOr<penstock::Column> FromProto(const Tensor& tensor);

PartialShape ToProto(const penstock::PartialShape& shape);
TensorSpec ToProto(const penstock::TensorSpec& spec);
ElementSpec ToProto(const penstock::ElementSpec& spec);

// Whether ranks, sizes and nesting are within the limits: what FromProto()
// holds messages to, for specs that were computed.
absl::Status CheckSpec(const penstock::ElementSpec& spec);

// Finds a captured constant: a dense column of one row.
using CaptureColumn =
    std::function<absl::StatusOr<penstock::Column>(const std::string& id)>;

// A function made ready to run; an error names the step and its user's line.
// Without `captures`, one with captured constants is only fit to infer from.
absl::StatusOr<functions::Program> MakeProgram(
    const Function& function, absl::Span<const penstock::TensorSpec> arguments,
    absl::Span<const penstock::TensorSpec> bound,
    const CaptureColumn& captures = nullptr);

// Whether one of its own steps is random (those of its dataset aside): the
// node that runs it then needs an instance.
bool IsRandom(const Function& function);

}  // namespace penstock::plan

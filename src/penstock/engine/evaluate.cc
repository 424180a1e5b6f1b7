#include "penstock/engine/evaluate.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "penstock/base/hash.h"
#include "penstock/base/status.h"
#include "penstock/data/builder.h"
#include "penstock/data/encode.h"
#include "penstock/plan/convert.h"

namespace penstock::engine {

absl::StatusOr<std::shared_ptr<const Evaluator>> Evaluator::Make(
    const plan::Function& function, absl::Span<const TensorSpec> arguments,
    const OpContext& context) {
  plan::CaptureColumn captures;
  if (context.sources != nullptr) {
    captures = [&](const std::string& id) -> absl::StatusOr<Column> {
      PENSTOCK_ASSIGN_OR_RETURN(const Buffer bytes,
                                context.sources->Capture(id));
      PENSTOCK_ASSIGN_OR_RETURN(Chunk chunk, Decode(bytes));
      if (chunk.columns.size() != 1) {
        return absl::DataLossError("a captured constant must be one column");
      }
      return std::move(chunk.columns[0]);
    };
  }
  PENSTOCK_ASSIGN_OR_RETURN(
      functions::Program program,
      plan::MakeProgram(function, arguments, context.bound, captures));
  return std::shared_ptr<const Evaluator>(
      new Evaluator(std::move(program), context.info, function.name()));
}

absl::StatusOr<Chunk> Evaluator::Apply(const Chunk& input, const Scope& scope,
                                       absl::Span<const Buffer> places) const {
  if (input.rows > max_rows()) return ApplyOneByOne(input, scope);
  std::vector<RowError> errors;
  functions::EvalContext context;
  context.rows = input.rows;
  context.random_key = Combine(
      scope.run->RandomKey(*info_, /*with_epoch=*/true), scope.iteration);
  context.lineage =
      input.has_lineage() ? input.lineage.As<uint64_t>() : nullptr;
  context.known_errors = &input.errors;
  context.errors = &errors;
  if (places.size() == program_.output_specs().size()) context.places = places;
  absl::Span<const Column> bound;
  if (scope.bound != nullptr) bound = *scope.bound;

  absl::StatusOr<std::vector<Column>> columns =
      program_.Run(input.columns, bound, context);
  if (!columns.ok()) return info_->Located(columns.status());

  Chunk out;
  out.rows = input.rows;
  out.columns = *std::move(columns);
  out.lineage = input.lineage;
  for (RowError& error : errors) error.status = info_->Located(error.status);
  out.errors.resize(input.errors.size() + errors.size());
  std::merge(
      input.errors.begin(), input.errors.end(), errors.begin(), errors.end(),
      out.errors.begin(),
      [](const RowError& a, const RowError& b) { return a.row < b.row; });
  return out;
}

absl::StatusOr<Chunk> Evaluator::ApplyOneByOne(const Chunk& input,
                                               const Scope& scope) const {
  ChunkBuilder all;
  for (int64_t row = 0; row < input.rows; ++row) {
    PENSTOCK_ASSIGN_OR_RETURN(Chunk one, Apply(Slice(input, row, 1), scope));
    if (!all.Fits(one)) {
      // Some value of its columns' kind stands in its place.
      Chunk error = all.Build();
      all.Append(error, 0, error.rows);
      Buffer lineage = std::move(one.lineage);
      one = Slice(error, 0, 1);
      one.lineage = std::move(lineage);
      one.errors = {{0, info_->Located(absl::InvalidArgumentError(
                            "values of rows that are computed together must "
                            "have one rank; got different ones"))}};
    }
    all.Append(one, 0, 1);
  }
  return all.Build();
}

}  // namespace penstock::engine

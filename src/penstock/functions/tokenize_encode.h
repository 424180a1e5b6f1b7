// A tokenizer's model, run over columns of texts.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/functions/function.h"
#include "penstock/functions/rows.h"
#include "penstock/functions/string_items.h"

namespace penstock::functions {

using Numbers = GrowingItems<int32_t>;

// What the call has prepared, a Model, has Encode(std::string_view, Numbers&).
template <typename Model>
auto EncoderOf(const EvalContext& context) {
  const auto* model = static_cast<const Model*>(context.prepared);
  return [model](int64_t, StringRef text, Numbers& to) {
    model->Encode(text.view(), to);
  };
}

// The numbers of a text; of a vector of texts, ragged.
template <typename Model>
absl::StatusOr<Column> EncodeTexts(absl::Span<const Arg> args, const Attrs&,
                                   const TensorSpec&, EvalContext& context) {
  return SplitScalars<int32_t>(args[0], ResultRows(args, context), {}, context,
                               EncoderOf<Model>(context));
}

template <typename Model>
absl::StatusOr<std::vector<Column>> EncodeVectors(absl::Span<const Arg> args,
                                                  const Attrs&,
                                                  absl::Span<const TensorSpec>,
                                                  EvalContext& context) {
  return SplitVectors<int32_t>(args[0], ResultRows(args, context), {}, context,
                               EncoderOf<Model>(context));
}

}  // namespace penstock::functions

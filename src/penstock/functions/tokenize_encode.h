// A tokenizer's model, run over columns of texts.
#pragma once

#include <cstdint>
#include <string_view>
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

// A tokenizer's two functions: of a text, and of a vector of texts.
template <typename Model>
std::vector<Function> TokenizerFunctions(
    std::string_view of_text, std::string_view of_texts,
    const std::vector<Param>& params, decltype(Function::infer) infer,
    decltype(Function::infer_parts) infer_ragged,
    decltype(Function::prepare) prepare) {
  return {{.name = of_text,
           .params = params,
           .doc = "The numbers of a text's pieces.",
           .example = "",
           .infer = infer,
           .eval = EncodeTexts<Model>,
           .prepare = prepare,
           .is_internal = true},
          {.name = of_texts,
           .params = params,
           .doc = "The numbers of texts' pieces.",
           .example = "",
           .infer = nullptr,
           .eval = nullptr,
           .infer_parts = infer_ragged,
           .eval_parts = EncodeVectors<Model>,
           .prepare = prepare,
           .is_internal = true}};
}

}  // namespace penstock::functions

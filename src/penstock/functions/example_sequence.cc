#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/example_columns.h"
#include "penstock/functions/example_lists.h"
#include "penstock/functions/example_spec.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/promote.h"
#include "penstock/functions/rows.h"

namespace penstock::functions {
namespace {

struct SequencePlan final : Prepared {
  SequencePlan(FeatureGroup own_context, FeatureGroup own_lists)
      : context(std::move(own_context)), lists(std::move(own_lists)) {}

  FeatureGroup context;
  FeatureGroup lists;
};

absl::StatusOr<SequencePlan> PlanFrom(absl::Span<const ArgSpec> args,
                                      const Attrs& attrs, bool needs_values) {
  PENSTOCK_ASSIGN_OR_RETURN(
      FeatureGroup context,
      GroupFromAttrs(attrs, "context_", args, needs_values));
  PENSTOCK_ASSIGN_OR_RETURN(FeatureGroup lists,
                            GroupFromAttrs(attrs, "list_", args, needs_values));
  for (const FeatureSpec& feature : lists.features) {
    PENSTOCK_RETURN_IF_ERROR(CheckListFeature(feature));
  }
  return SequencePlan(std::move(context), std::move(lists));
}

absl::StatusOr<std::vector<TensorSpec>> InferSequence(
    absl::Span<const ArgSpec> args, const Attrs& attrs) {
  PENSTOCK_ASSIGN_OR_RETURN(const bool is_batch,
                            BoolAttr(attrs, "is_batch", false));
  const std::string_view function =
      is_batch ? "parse_sequence_example" : "parse_single_sequence_example";
  PENSTOCK_RETURN_IF_ERROR(CheckSerialized(function, args[0], is_batch));
  PENSTOCK_ASSIGN_OR_RETURN(const SequencePlan plan,
                            PlanFrom(args, attrs, /*needs_values=*/false));
  const std::optional<int64_t> batch =
      is_batch ? args[0].spec.shape.dims()[0] : std::nullopt;
  std::vector<TensorSpec> specs;
  for (const FeatureSpec& feature : plan.context.features) {
    AppendSpecs(feature, is_batch, batch, specs);
  }
  for (const FeatureSpec& feature : plan.lists.features) {
    AppendListSpecs(feature, is_batch, batch, specs);
  }
  if (specs.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(Text(function), " needs at least one feature; got none"));
  }
  return specs;
}

absl::StatusOr<PreparedPtr> PrepareSequence(absl::Span<const ArgSpec> args,
                                            const Attrs& attrs) {
  PENSTOCK_ASSIGN_OR_RETURN(SequencePlan plan,
                            PlanFrom(args, attrs, /*needs_values=*/true));
  return std::make_shared<SequencePlan>(std::move(plan));
}

bool IndexSequence(Wire wire, FeatureFinder& context, FeatureFinder& lists) {
  context.Clear();
  lists.Clear();
  while (!wire.is_done()) {
    const uint8_t tag = *wire.at;
    if (tag != DelimitedTag(1) && tag != DelimitedTag(2)) {
      if (!SkipField(wire)) return false;
      continue;
    }
    ++wire.at;
    Wire entries;
    if (!ReadDelimited(wire, entries)) return false;
    FeatureFinder& finder = tag == DelimitedTag(1) ? context : lists;
    if (!finder.Add(entries)) return false;
  }
  return true;
}

// The writers of one evaluation.
struct Writers {
  std::vector<FeatureWriter> context;
  std::vector<ListWriter> lists;
};

absl::Status ParseOne(std::string_view bytes, FeatureFinder& context,
                      FeatureFinder& lists, Writers& writers) {
  if (!IndexSequence(Wire::Of(bytes), context, lists)) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a serialized SequenceExample; found ",
                     bytes.size(), " bytes that are none"));
  }
  for (FeatureWriter& writer : writers.context) {
    PENSTOCK_RETURN_IF_ERROR(writer.Add(context));
  }
  for (ListWriter& writer : writers.lists) {
    PENSTOCK_RETURN_IF_ERROR(writer.Add(lists));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Column>> EvalSequence(
    absl::Span<const Arg> args, const Attrs& attrs,
    absl::Span<const TensorSpec> results, EvalContext& context) {
  const auto& plan = *static_cast<const SequencePlan*>(context.prepared);
  PENSTOCK_ASSIGN_OR_RETURN(const bool is_batch,
                            BoolAttr(attrs, "is_batch", false));
  const Column& serialized = *args[0].column;
  const ExampleRows rows = RowsOfExamples(args[0], is_batch, context);
  Writers writers;
  writers.context.reserve(plan.context.features.size());
  for (const FeatureSpec& feature : plan.context.features) {
    writers.context.emplace_back(feature, plan.context.keys, rows);
  }
  writers.lists.reserve(plan.lists.features.size());
  for (const FeatureSpec& feature : plan.lists.features) {
    writers.lists.emplace_back(feature, plan.lists.keys, rows);
  }
  FeatureFinder context_finder(plan.context.keys);
  FeatureFinder list_finder(plan.lists.keys);
  for (int64_t row = 0; row < rows.rows(); ++row) {
    const auto* items = serialized.Row<StringRef>(row);
    const int64_t begin = rows.begins[row];
    const int64_t end = rows.begins[row + 1];
    for (int64_t i = begin; i < end; ++i) {
      absl::Status status = ParseOne(items[i - begin].view(), context_finder,
                                     list_finder, writers);
      if (status.ok()) continue;
      if (is_batch) {
        status = absl::InvalidArgumentError(absl::StrCat(
            "SequenceExample ", i - begin, " of a batch: ", status.message()));
      }
      ReportRow(context, row, std::move(status));
      for (FeatureWriter& writer : writers.context) writer.FailRow(begin, end);
      for (ListWriter& writer : writers.lists) writer.FailRow(begin, end);
      break;
    }
  }
  std::vector<Column> columns;
  columns.reserve(results.size());
  for (FeatureWriter& writer : writers.context) {
    std::move(writer).Finish(serialized.pins(), columns);
  }
  for (ListWriter& writer : writers.lists) {
    std::move(writer).Finish(serialized.pins(), columns);
  }
  return columns;
}

}  // namespace

std::vector<Function> SequenceExampleFunctions() {
  return {
      {.name = "io.parse_sequence_example",
       .params = {{"values", ParamKind::kTensors, "",
                   "Serialized SequenceExamples, and defaults of features."},
                  {"context_keys", ParamKind::kTexts, "()", "Each key once."},
                  {"context_features", ParamKind::kTexts, "()",
                   "What is wanted of the context: see example_spec.h."},
                  {"list_keys", ParamKind::kTexts, "()", "Each key once."},
                  {"list_features", ParamKind::kTexts, "()",
                   "What is wanted of the feature lists."},
                  {"is_batch", ParamKind::kBool, "False",
                   "Whether there is a vector of them in a row."}},
       .doc = "Features of SequenceExamples.",
       .example = "",
       .infer = nullptr,
       .eval = nullptr,
       .infer_parts = InferSequence,
       .eval_parts = EvalSequence,
       .prepare = PrepareSequence,
       .is_internal = true},
  };
}

}  // namespace penstock::functions

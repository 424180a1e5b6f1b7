#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/example_columns.h"
#include "penstock/functions/example_spec.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/promote.h"
#include "penstock/functions/rows.h"

namespace penstock::functions {
namespace {

struct ParsePlan final : Prepared {
  explicit ParsePlan(FeatureGroup own) : group(std::move(own)) {}

  FeatureGroup group;
};

std::string_view UserName(bool is_batch) {
  return is_batch ? "parse_example" : "parse_single_example";
}

absl::StatusOr<std::vector<TensorSpec>> InferParse(
    absl::Span<const ArgSpec> args, const Attrs& attrs) {
  PENSTOCK_ASSIGN_OR_RETURN(const bool is_batch,
                            BoolAttr(attrs, "is_batch", false));
  PENSTOCK_RETURN_IF_ERROR(
      CheckSerialized(UserName(is_batch), args[0], is_batch));
  PENSTOCK_ASSIGN_OR_RETURN(
      const FeatureGroup group,
      GroupFromAttrs(attrs, "", args, /*needs_values=*/false));
  if (group.features.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        Text(UserName(is_batch)), " needs at least one feature; got none"));
  }
  std::vector<TensorSpec> specs;
  for (const FeatureSpec& feature : group.features) {
    AppendSpecs(feature, is_batch,
                is_batch ? args[0].spec.shape.dims()[0] : std::nullopt, specs);
  }
  return specs;
}

absl::StatusOr<PreparedPtr> PrepareParse(absl::Span<const ArgSpec> args,
                                         const Attrs& attrs) {
  PENSTOCK_ASSIGN_OR_RETURN(
      FeatureGroup group,
      GroupFromAttrs(attrs, "", args, /*needs_values=*/true));
  return std::make_shared<ParsePlan>(std::move(group));
}

bool IndexExample(Wire wire, FeatureFinder& finder) {
  finder.Clear();
  while (!wire.is_done()) {
    if (*wire.at != DelimitedTag(1)) {
      if (!SkipField(wire)) return false;
      continue;
    }
    ++wire.at;
    Wire features;
    if (!ReadDelimited(wire, features) || !finder.Add(features)) return false;
  }
  return true;
}

absl::Status ParseOne(std::string_view bytes, FeatureFinder& finder,
                      std::vector<FeatureWriter>& writers) {
  if (!IndexExample(Wire::Of(bytes), finder)) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a serialized Example; found ", bytes.size(),
                     " bytes that are none"));
  }
  for (FeatureWriter& writer : writers) {
    PENSTOCK_RETURN_IF_ERROR(writer.Add(finder));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Column>> EvalParse(
    absl::Span<const Arg> args, const Attrs& attrs,
    absl::Span<const TensorSpec> results, EvalContext& context) {
  const auto& group = static_cast<const ParsePlan*>(context.prepared)->group;
  PENSTOCK_ASSIGN_OR_RETURN(const bool is_batch,
                            BoolAttr(attrs, "is_batch", false));
  const Column& serialized = *args[0].column;
  const ExampleRows rows = RowsOfExamples(args[0], is_batch, context);
  std::vector<FeatureWriter> writers;
  writers.reserve(group.features.size());
  for (const FeatureSpec& feature : group.features) {
    writers.emplace_back(feature, group.keys, rows);
  }
  FeatureFinder finder(group.keys);
  for (int64_t row = 0; row < rows.rows(); ++row) {
    const auto* items = serialized.Row<StringRef>(row);
    const int64_t count = rows.begins[row + 1] - rows.begins[row];
    for (int64_t i = 0; i < count; ++i) {
      absl::Status status = ParseOne(items[i].view(), finder, writers);
      if (status.ok()) continue;
      if (is_batch) {
        status = absl::InvalidArgumentError(
            absl::StrCat("Example ", i, " of a batch: ", status.message()));
      }
      ReportRow(context, row, std::move(status));
      for (FeatureWriter& writer : writers) {
        writer.FailRow(rows.begins[row], rows.begins[row + 1]);
      }
      break;
    }
  }
  std::vector<Column> columns;
  columns.reserve(results.size());
  for (FeatureWriter& writer : writers) {
    std::move(writer).Finish(serialized.pins(), columns);
  }
  return columns;
}

}  // namespace

std::vector<Function> ExampleFunctions() {
  return {
      {.name = "io.parse_example",
       .params = {{"values", ParamKind::kTensors, "",
                   "Serialized Examples, and the defaults of features."},
                  {"keys", ParamKind::kTexts, "", "Every key, once."},
                  {"features", ParamKind::kTexts, "",
                   "What is wanted: see example_spec.h."},
                  {"is_batch", ParamKind::kBool, "False",
                   "Whether there is a vector of Examples in a row."}},
       .doc = "Features of Examples.",
       .example = "",
       .infer = nullptr,
       .eval = nullptr,
       .infer_parts = InferParse,
       .eval_parts = EvalParse,
       .prepare = PrepareParse,
       .is_internal = true},
  };
}

}  // namespace penstock::functions

#include "penstock/engine/ops/grouping.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/data/composite.h"
#include "penstock/data/nested.h"
#include "penstock/engine/ops/grouping_stream.h"
#include "penstock/engine/ops/interleave.h"
#include "penstock/engine/ops/keys.h"
#include "penstock/engine/ops/padding.h"

namespace penstock::engine {
namespace {

// Boundaries are in no spec: they may say anything.
absl::Status CheckBatchBytes(const Chunk& rows, size_t column,
                             const PartialShape& shape) {
  constexpr double kMaxBytes = 1LL << 31;
  double bytes = static_cast<double>(rows.rows) *
                 static_cast<double>(ItemSize(rows.columns[column].dtype()));
  for (const std::optional<int64_t> dim : shape.dims()) {
    bytes *= static_cast<double>(dim.value_or(1));
  }
  if (bytes <= kMaxBytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("a padded batch must take at most 2 GiB; got ", rows.rows,
                   " elements padded to ", shape.ToString()));
}

// How group_by_window knows a window's size.
absl::StatusOr<decltype(GroupingConfig::size)> SizeOf(
    const plan::GroupByWindow& spec, OpContext& context) {
  const OpInfo& info = *context.info;
  if (spec.has_window_size()) {
    return [spec](int64_t, const Scope& scope) {
      return IntegerOf(spec.window_size(), scope, "window_size", 1);
    };
  }
  const TensorSpec key = TensorSpec::Scalar(DType::kInt64);
  PENSTOCK_ASSIGN_OR_RETURN(
      std::shared_ptr<const Evaluator> function,
      Evaluator::Make(spec.window_size_function(), {key}, context));
  return [function, &info](int64_t key,
                           const Scope& scope) -> absl::StatusOr<int64_t> {
    Chunk call;
    call.rows = 1;
    call.columns = {MakeColumn<int64_t>({key})};
    PENSTOCK_ASSIGN_OR_RETURN(const Chunk result, function->Apply(call, scope));
    if (!result.errors.empty()) return result.errors[0].status;
    std::vector<int64_t> size;
    ToIntegers(result.columns[0], size);
    absl::StatusOr<int64_t> checked = CheckedSize(size[0]);
    return checked.ok() ? checked : info.Located(checked.status());
  };
}

}  // namespace

OperatorOr MakeGroupByWindow(const plan::GroupByWindow& spec, OperatorPtr input,
                             OpContext& context) {
  auto config = std::make_shared<GroupingConfig>();
  config->has_sizes = spec.window_size_function().has_python();
  if (config->has_sizes || spec.key().has_python()) {
    PENSTOCK_ASSIGN_OR_RETURN(
        input,
        MakeKeys(spec.key(),
                 config->has_sizes ? &spec.window_size_function() : nullptr,
                 std::move(input), context));
  } else {
    PENSTOCK_ASSIGN_OR_RETURN(
        config->key,
        Evaluator::Make(spec.key(), context.input_leaves[0], context));
  }
  config->key_name = absl::StrCat("key_func ", spec.key().name());
  if (!config->has_sizes) {
    PENSTOCK_ASSIGN_OR_RETURN(config->size, SizeOf(spec, context));
  }
  config->group_of = [](int64_t key) { return key; };
  config->assemble = [](int64_t key, const Chunk& rows,
                        absl::Span<const int64_t>,
                        NodeStats&) -> absl::StatusOr<Chunk> {
    Chunk dataset = rows;
    dataset.lineage = Buffer();
    Chunk window;
    window.rows = 1;
    window.columns = {MakeColumn<int64_t>({key}), EncodeNested({dataset})};
    return window;
  };
  config->leaves = {TensorSpec::Scalar(DType::kInt64),
                    TensorSpec::Scalar(DType::kString)};
  std::vector<TensorSpec> leaves = config->leaves;
  OperatorPtr windows = MakeGrouping(std::move(config), std::move(input),
                                     *context.info, Stream::Counts::kTime);
  return MakeFlatMapOver(std::move(windows), std::move(leaves), spec.reduce(),
                         context);
}

OperatorOr MakeBucketBySequenceLength(const plan::BucketBySequenceLength& spec,
                                      OperatorPtr input, OpContext& context) {
  auto config = std::make_shared<GroupingConfig>();
  if (spec.length().has_python()) {
    PENSTOCK_ASSIGN_OR_RETURN(
        input, MakeKeys(spec.length(), nullptr, std::move(input), context));
  } else {
    PENSTOCK_ASSIGN_OR_RETURN(
        config->key,
        Evaluator::Make(spec.length(), context.input_leaves[0], context));
  }
  config->key_name = absl::StrCat("element_length_func ", spec.length().name());
  const std::vector<int64_t> boundaries(spec.boundaries().begin(),
                                        spec.boundaries().end());
  const std::vector<int64_t> sizes(spec.batch_sizes().begin(),
                                   spec.batch_sizes().end());
  PENSTOCK_ASSIGN_OR_RETURN(
      Padding padding,
      MakePadding(spec.shapes(), spec.padding(), context.input_leaves[0]));
  // With the dimensions that elements are known to have: those are not padded
  // to a boundary.
  for (size_t c = 0; c < padding.shapes.size(); ++c) {
    padding.shapes[c] = context.info->leaves[c].shape.DropFirst();
  }
  if (spec.has_max_tokens()) config->max_tokens = spec.max_tokens();
  config->too_long = spec.too_long();
  config->budgeted = static_cast<int64_t>(boundaries.size());
  config->group_of = [boundaries](int64_t length) {
    return std::upper_bound(boundaries.begin(), boundaries.end(), length) -
           boundaries.begin();
  };
  config->size = [sizes](int64_t bucket, const Scope&) {
    return absl::StatusOr<int64_t>(sizes[bucket]);
  };
  const bool has_padding = !spec.no_padding();
  const std::vector<Part> parts = PartsOf(context.input_specs[0]);
  const bool is_to_boundary = spec.pad_to_boundary();
  config->assemble = [=](int64_t bucket, const Chunk& rows,
                         absl::Span<const int64_t> lengths,
                         NodeStats& stats) -> absl::StatusOr<Chunk> {
    const bool is_last = bucket == static_cast<int64_t>(boundaries.size());
    if (is_to_boundary && has_padding && is_last) {
      return absl::InvalidArgumentError(absl::StrCat(
          "with pad_to_bucket_boundary, elements must be shorter than the last "
          "boundary",
          boundaries.empty() ? "" : absl::StrCat(", ", boundaries.back()),
          "; got a longer one\n  Add a boundary, or filter() long elements."));
    }
    if (!has_padding) return StackRows(parts, rows);
    if (!is_to_boundary) return PadRows(rows, padding, lengths, stats);
    Padding to_boundary = padding;
    for (size_t c = 0; c < rows.columns.size(); ++c) {
      PartialShape& shape = to_boundary.shapes[c];
      if (shape.has_rank()) {
        PartialShape::Dims dims = shape.dims();
        for (std::optional<int64_t>& dim : dims) {
          if (!dim.has_value()) dim = boundaries[bucket] - 1;
        }
        shape = PartialShape(std::move(dims));
      }
      PENSTOCK_RETURN_IF_ERROR(CheckBatchBytes(rows, c, shape));
    }
    return PadRows(rows, to_boundary, lengths, stats);
  };
  config->drop_remainder = spec.drop_remainder();
  config->leaves = context.info->leaves;
  for (const TensorSpec& leaf : config->leaves) {
    if (!leaf.shape.has_rank()) config->max_given = 1;
  }
  return MakeGrouping(std::move(config), std::move(input), *context.info,
                      Stream::Counts::kAll);
}

}  // namespace penstock::engine

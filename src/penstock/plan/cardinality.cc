#include "penstock/plan/cardinality.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/data/composite.h"
#include "penstock/plan/expect.h"

namespace penstock::plan {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

bool IsZero(const Cardinality& n) { return n.has_finite() && n.finite() == 0; }

// An integer parameter, or nothing if it is bound.
std::optional<int64_t> Constant(const Value& value) {
  if (!value.has_constant()) return std::nullopt;
  absl::StatusOr<Number> number = NumberOf(value.constant());
  return number.ok() ? std::optional<int64_t>(number->integer) : std::nullopt;
}

// n times k; 0 wins over everything, unknown over infinite.
Cardinality Times(const Cardinality& n, const Cardinality& k) {
  if (IsZero(n) || IsZero(k)) return Finite(0);
  if (n.has_unknown() || k.has_unknown()) return Unknown();
  if (n.has_infinite() || k.has_infinite()) return Infinite();
  int64_t product;
  if (__builtin_mul_overflow(n.finite(), k.finite(), &product)) {
    return Unknown();
  }
  return Finite(product);
}

Cardinality Plus(const Cardinality& a, const Cardinality& b) {
  if (a.has_infinite() || b.has_infinite()) return Infinite();
  if (a.has_unknown() || b.has_unknown()) return Unknown();
  int64_t sum;
  if (__builtin_add_overflow(a.finite(), b.finite(), &sum)) return Unknown();
  return Finite(sum);
}

// What passes where nobody knows how much does.
Cardinality AtMost(const Cardinality& n) {
  return IsZero(n) ? Finite(0) : Unknown();
}

Cardinality Shortest(absl::Span<const Cardinality> inputs) {
  Cardinality shortest = Infinite();
  for (const Cardinality& n : inputs) {
    if (IsZero(n)) return n;
    if (shortest.has_unknown() || n.has_infinite()) continue;
    if (n.has_unknown() || shortest.has_infinite() ||
        n.finite() < shortest.finite()) {
      shortest = n;
    }
  }
  return shortest;
}

Cardinality Batches(const Cardinality& n, std::optional<int64_t> size,
                    bool drop_remainder) {
  if (!n.has_finite()) return n;
  if (!size.has_value()) return AtMost(n);
  const int64_t full = n.finite() / *size;
  return Finite(full + (!drop_remainder && n.finite() % *size > 0 ? 1 : 0));
}

Cardinality Repeated(const Cardinality& n, const Repeat& op) {
  if (!op.has_count()) return IsZero(n) ? n : Infinite();
  const std::optional<int64_t> count = Constant(op.count());
  return Times(n, count.has_value() ? Finite(*count) : Unknown());
}

Cardinality Taken(const Cardinality& n, const Take& op) {
  if (!op.has_count() || IsZero(n)) return n;
  const std::optional<int64_t> count = Constant(op.count());
  if (count == 0) return Finite(0);
  if (!count.has_value() || n.has_unknown()) return Unknown();
  return Finite(n.has_infinite() ? *count : std::min(*count, n.finite()));
}

Cardinality Skipped(const Cardinality& n, const Skip& op) {
  if (!op.has_count()) return Finite(0);
  if (!n.has_finite() || IsZero(n)) return n;
  const std::optional<int64_t> count = Constant(op.count());
  if (!count.has_value()) return Unknown();
  return Finite(std::max<int64_t>(n.finite() - *count, 0));
}

Cardinality Sharded(const Cardinality& n, const Shard& op) {
  if (!n.has_finite() || IsZero(n)) return n;
  if (op.is_by_worker()) return Unknown();
  const std::optional<int64_t> shards = Constant(op.num_shards());
  const std::optional<int64_t> index = Constant(op.index());
  if (!shards.has_value() || !index.has_value()) return Unknown();
  return Finite(n.finite() / *shards + (*index < n.finite() % *shards ? 1 : 0));
}

Cardinality Windows(const Cardinality& n, const Window& op) {
  if (!n.has_finite() || IsZero(n)) return n;
  const std::optional<int64_t> size = Constant(op.size());
  const std::optional<int64_t> shift = Constant(op.shift());
  const std::optional<int64_t> stride = Constant(op.stride());
  if (!size.has_value() || !shift.has_value() || !stride.has_value()) {
    return Unknown();
  }
  // Starts that have an element; or those that have all of a window's.
  __int128 starts = n.finite();
  if (op.drop_remainder()) {
    starts -= static_cast<__int128>(*size - 1) * *stride;
  }
  if (starts <= 0) return Finite(0);
  return Finite(static_cast<int64_t>((starts - 1) / *shift + 1));
}

Cardinality Sampled(absl::Span<const Cardinality> inputs,
                    const SampleFromDatasets& op) {
  Cardinality sum = Finite(0);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool counts =
        op.weights_size() == 0 || op.weights(static_cast<int>(i)) > 0;
    if (!counts) continue;
    // Nobody knows before which draw one of them ends.
    if (op.stop_on_empty() && !inputs[i].has_infinite()) return Unknown();
    sum = Plus(sum, inputs[i]);
  }
  return sum;
}

std::optional<int64_t> FirstDimension(
    absl::Span<const penstock::TensorSpec> leaves) {
  absl::StatusOr<std::optional<int64_t>> first =
      CommonFirstDimension("", leaves);
  return first.ok() ? *first : std::nullopt;
}

Cardinality RowsOf(const Cardinality& n, const penstock::ElementSpec& spec) {
  // Of a ragged or sparse value, no column tells.
  if (HasComposite(spec)) return Times(n, Unknown());
  const std::optional<int64_t> first = FirstDimension(spec.Flatten());
  return Times(n, first.has_value() ? Finite(*first) : Unknown());
}

Cardinality Rebatched(const Cardinality& n, const penstock::ElementSpec& spec,
                      const Rebatch& op) {
  if (n.has_infinite()) return n;
  const int64_t size = op.sizes(0);
  for (int64_t other : op.sizes()) {
    if (other != size) return Unknown();
  }
  return Batches(RowsOf(n, spec), size, op.drop_remainder());
}

Cardinality Sliced(const Values& op,
                   absl::Span<const penstock::TensorSpec> bound) {
  if (!op.slices()) return Finite(1);
  std::vector<penstock::TensorSpec> leaves;
  for (const Value& value : op.values()) {
    absl::StatusOr<penstock::TensorSpec> leaf = SpecOf("", value, bound);
    if (!leaf.ok()) return Unknown();
    leaves.push_back(*std::move(leaf));
  }
  const std::optional<int64_t> first = FirstDimension(leaves);
  return first.has_value() ? Finite(*first) : Unknown();
}

// One dataset per element, each as long as the function's is known to be
// whatever it is started with.
Cardinality Flattened(const Cardinality& n, const Function& function) {
  const Plan& dataset = function.dataset();
  if (dataset.nodes().empty()) return AtMost(n);
  return Times(n, dataset.nodes(dataset.nodes_size() - 1).cardinality());
}

}  // namespace

Cardinality Finite(int64_t count) {
  Cardinality result;
  result.set_finite(count);
  return result;
}

Cardinality Infinite() {
  Cardinality result;
  result.set_infinite(true);
  return result;
}

Cardinality Unknown() {
  Cardinality result;
  result.set_unknown(true);
  return result;
}

bool operator==(const Cardinality& a, const Cardinality& b) {
  return a.kind_case() == b.kind_case() && a.finite() == b.finite();
}

std::string ToString(const Cardinality& cardinality) {
  if (cardinality.has_finite()) return absl::StrCat(cardinality.finite());
  return cardinality.has_infinite() ? "infinite" : "?";
}

absl::StatusOr<Cardinality> CountRange(const Range& range) {
  if (!range.start().has_constant() || !range.stop().has_constant() ||
      !range.step().has_constant()) {
    return Unknown();
  }
  PENSTOCK_ASSIGN_OR_RETURN(Number start, NumberOf(range.start().constant()));
  PENSTOCK_ASSIGN_OR_RETURN(Number stop, NumberOf(range.stop().constant()));
  PENSTOCK_ASSIGN_OR_RETURN(Number step, NumberOf(range.step().constant()));
  if (start.is_integer && stop.is_integer && step.is_integer) {
    const __int128 stride = step.integer;
    const __int128 distance =
        static_cast<__int128>(stop.integer) - start.integer;
    if (distance == 0 || (distance > 0) != (stride > 0)) return Finite(0);
    const __int128 count = (distance + stride + (stride > 0 ? -1 : 1)) / stride;
    if (count <= kMax) return Finite(static_cast<int64_t>(count));
  } else {
    const double count = std::ceil((stop.number - start.number) / step.number);
    if (count <= 0) return Finite(0);
    if (count < static_cast<double>(kMax)) {
      return Finite(static_cast<int64_t>(count));
    }
  }
  return absl::InvalidArgumentError(
      "a range must have less than 2^63 elements; got more");
}

Cardinality InferCardinality(const Node& node,
                             absl::Span<const Cardinality> inputs,
                             absl::Span<const penstock::ElementSpec> specs,
                             absl::Span<const penstock::TensorSpec> bound) {
  switch (node.op_case()) {
    case Node::kRange:
      return CountRange(node.range()).value_or(Unknown());
    case Node::kCounter:
    case Node::kRandom:
      return Infinite();
    case Node::kRows:
      return Finite(node.rows().rows());
    case Node::kValues:
      return Sliced(node.values(), bound);
    case Node::kGenerator:
    case Node::kListFiles:
    case Node::kReadFiles:
    case Node::kNestedRows:
    case Node::OP_NOT_SET:
      return Unknown();
    case Node::kReceived:
      if (node.received().has_rows()) return Finite(node.received().rows());
      return node.received().infinite() ? Infinite() : Unknown();
    case Node::kZip:
      return Shortest(inputs);
    case Node::kConcatenate:
      return Plus(inputs[0], inputs[1]);
    case Node::kFlatMap:
      return Flattened(inputs[0], node.flat_map().function());
    case Node::kInterleave:
      return Flattened(inputs[0], node.interleave().function());
    case Node::kBatch:
      return Batches(inputs[0], Constant(node.batch().size()),
                     node.batch().drop_remainder());
    case Node::kPaddedBatch:
      return Batches(inputs[0], Constant(node.padded_batch().size()),
                     node.padded_batch().drop_remainder());
    case Node::kRaggedBatch:
      return Batches(inputs[0], Constant(node.ragged_batch().size()),
                     node.ragged_batch().drop_remainder());
    case Node::kSparseBatch:
      return Batches(inputs[0], Constant(node.sparse_batch().size()), false);
    case Node::kUnbatch:
      return RowsOf(inputs[0], specs[0]);
    case Node::kRebatch:
      return Rebatched(inputs[0], specs[0], node.rebatch());
    case Node::kRepeat:
      return Repeated(inputs[0], node.repeat());
    case Node::kTake:
      return Taken(inputs[0], node.take());
    case Node::kSkip:
      return Skipped(inputs[0], node.skip());
    case Node::kShard:
      return Sharded(inputs[0], node.shard());
    case Node::kWindow:
      return Windows(inputs[0], node.window());
    case Node::kSampleFromDatasets:
      return Sampled(inputs, node.sample_from_datasets());
    case Node::kChooseFromDatasets:
      return IsZero(inputs[0]) ? inputs[0] : Unknown();
    case Node::kAssertCardinality:
      return node.assert_cardinality().expected();
    case Node::kReduce:
      return Finite(1);
    case Node::kFilter:
    case Node::kTakeWhile:
    case Node::kIgnoreErrors:
    case Node::kUnique:
    case Node::kPack:
    case Node::kGroupByWindow:
    case Node::kBucketBySequenceLength:
    case Node::kBatchByTokens:
      return AtMost(inputs[0]);
    case Node::kMap:
    case Node::kShuffle:
    case Node::kEnumerate:
    case Node::kPrefetch:
    case Node::kCache:
    case Node::kScan:
    case Node::kWithOptions:
      return inputs[0];
  }
  return Unknown();
}

}  // namespace penstock::plan

// What is known of elements before they exist: dtypes, shapes, structure.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "penstock/data/chunk.h"
#include "penstock/data/dtype.h"
#include "penstock/data/shape.h"

namespace penstock {

// A shape of which the rank, or some dimensions, may be unknown.
class PartialShape final {
 public:
  using Dims = absl::InlinedVector<std::optional<int64_t>, 4>;

  PartialShape() = default;  // a scalar
  explicit PartialShape(Dims dims) : dims_(std::move(dims)) {}
  explicit PartialShape(absl::Span<const int64_t> dims)
      : dims_(dims.begin(), dims.end()) {}
  static PartialShape UnknownRank();

  bool has_rank() const { return has_rank_; }
  int rank() const { return static_cast<int>(dims_.size()); }
  const Dims& dims() const { return dims_; }  // REQUIRES: has_rank()
  bool is_fully_known() const;
  Shape ToShape() const;  // REQUIRES: is_fully_known()

  // Whether a value of `shape` may stand where this is promised.
  bool Accepts(absl::Span<const int64_t> shape) const;
  // Whether every value of `other` is one of this.
  bool Accepts(const PartialShape& other) const;

  // This with `dim` in front: what batch makes. Unknown rank stays so.
  PartialShape Prepend(std::optional<int64_t> dim) const;
  // This without its first dimension. REQUIRES: rank unknown or at least 1.
  PartialShape DropFirst() const;

  std::string ToString() const;  // "(None, 3)", "()", "unknown rank"
  friend bool operator==(const PartialShape&, const PartialShape&) = default;

 private:
  bool has_rank_ = true;
  Dims dims_;
};

// The least that covers both: what two branches have in common.
PartialShape Relax(const PartialShape& a, const PartialShape& b);

struct TensorSpec {
  DType dtype = DType::kInt64;
  PartialShape shape;

  static TensorSpec Scalar(DType dtype);

  std::string ToString() const;  // "int64(None, 3)"
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

// An element's structure, with a TensorSpec at each leaf. Columns are the
// leaves from left to right.
struct ElementSpec {
  enum class Kind : uint8_t { kTensor, kTuple, kDict, kNamed, kNone, kDataset };

  Kind kind = Kind::kTuple;
  TensorSpec tensor;  // kTensor
  // kTuple, kDict, kNamed. kDataset: the element of the dataset, whose leaves
  // are none of this element's: a dataset is one leaf, a scalar string that
  // holds its rows as an encoded chunk.
  std::vector<ElementSpec> children;
  // kDict: the keys, sorted (so that dicts differing in order alone have the
  // same columns); kNamed: the fields in order.
  std::vector<std::string> keys;
  // kNamed: which class Python puts it back into (a name it chose).
  // kDict: the user's order of keys, as positions in `keys`, for showing only.
  std::string type_name;
  std::vector<int> order;

  static ElementSpec Tensor(TensorSpec spec);
  static ElementSpec Tuple(std::vector<ElementSpec> children);
  static ElementSpec Dataset(ElementSpec element);

  // Whether there is a dataset in it.
  bool has_dataset() const;

  // The leaves from left to right.
  std::vector<TensorSpec> Flatten() const;
  // The same structure with other leaves. REQUIRES: as many as Flatten() has.
  ElementSpec WithLeaves(absl::Span<const TensorSpec> leaves) const;
  std::string ToString() const;
};

// The class names of structures that are one value each, not several: their
// tensors are batched, split and kept together.
//   Ragged(values, row_splits)              values: a tensor, or Ragged again
//   Sparse(indices, values, dense_shape)
inline constexpr char kRaggedType[] = "penstock.Ragged";
inline constexpr char kSparseType[] = "penstock.Sparse";
bool IsRagged(const ElementSpec& spec);
bool IsSparse(const ElementSpec& spec);
inline bool IsComposite(const ElementSpec& spec) {
  return IsRagged(spec) || IsSparse(spec);
}

// Whether the structures match, leaves' specs aside (`order` never counts).
bool SameStructure(const ElementSpec& a, const ElementSpec& b);
// Same structure and dtypes, and each shape equal.
bool operator==(const ElementSpec& a, const ElementSpec& b);

// Whether the columns of `chunk` keep the promise of `leaves`; error rows are
// not looked at. An error says which component, what was promised, what came.
absl::Status CheckColumns(const Chunk& chunk,
                          absl::Span<const TensorSpec> leaves);

// Columns of `rows` zero rows' worth of values that fit `leaves`, unknown
// dimensions being 0: the meaningless values of error rows.
std::vector<Column> PlaceholderColumns(absl::Span<const TensorSpec> leaves,
                                       int64_t rows);

}  // namespace penstock

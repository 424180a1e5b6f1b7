// A native function: its signature, its documentation, what it promises of its
// result and how it computes one. The list of them is the one truth: Python's
// wrappers and their docstrings are made from it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/data/chunk.h"
#include "penstock/data/column.h"
#include "penstock/data/spec.h"

namespace penstock::functions {

// The user's None.
struct None {
  friend bool operator==(None, None) = default;
};

// What is fixed when a function is recorded: an axis, a dtype, a flag.
using Attr = std::variant<None, bool, int64_t, double, std::string, DType,
                          std::vector<int64_t>, std::vector<double>,
                          std::vector<std::string>>;
using Attrs = std::map<std::string, Attr>;

// An argument as known before any row exists.
struct ArgSpec {
  TensorSpec spec;
  // A Python scalar: in arithmetic it takes the dtype of what it meets, as
  // numpy 2 has it (its spec says bool, int64, float64 or complex128).
  bool is_weak = false;
  // The value, where it is already known: a dense column of one row.
  const Column* constant = nullptr;
};

// An argument as rows. `is_uniform`: one row that stands for all rows, as
// constants and bound values are.
struct Arg {
  const Column* column;
  bool is_uniform = false;
  bool is_weak = false;
  // No later step needs it: a buffer that has no other holder may be the
  // result's.
  bool is_last_use = false;
};

// What a call makes of its attributes and constants once, before any row: a
// compiled pattern, a vocabulary's table. Immutable, shared by threads.
class Prepared {
 public:
  virtual ~Prepared() = default;
};
using PreparedPtr = std::shared_ptr<const Prepared>;

// One evaluation over a run of rows.
struct EvalContext {
  int64_t rows = 0;
  // What the function's prepare() gave; null if it has none.
  const Prepared* prepared = nullptr;
  // For random functions: (seed, epoch, node and call, hashed) and a word per
  // row; value of a row depends on these alone. Null if no lineage was asked
  // for (then nothing random runs).
  uint64_t random_key = 0;
  const uint64_t* lineage = nullptr;
  // Rows that are errors already: computing them is allowed, reporting them is
  // not. By ascending row; may be null.
  const std::vector<RowError>* known_errors = nullptr;
  // Where a function puts the error of a single row, in any order; the row's
  // result is then meaningless. At most one per row is kept by the caller.
  std::vector<RowError>* errors = nullptr;
  // Of a program: writable memory for each output, or none at all. Of a call:
  // that for its result.
  absl::Span<const Buffer> places = {};

  // For a call's whole result, asked for once: its place if that has this size.
  Buffer AllocateResult(size_t bytes) const {
    if (bytes > 0 && places.size() == 1 && places[0].size() == bytes) {
      return places[0];
    }
    return Buffer::Allocate(bytes);
  }
};

enum class ParamKind : uint8_t {
  // A value: symbolic, array or scalar; a list with symbolic values in it is
  // their stack().
  kTensor,
  kTensors,  // a list of values, at least one
  kInt,
  kInts,  // a tuple of ints, or one int
  kBool,
  kFloat,
  kText,
  kDType,
  kAxis,    // None, an int, or a tuple of ints
  kFloats,  // a tuple of floats
  kTexts,   // a tuple of strings
};

struct Param {
  std::string_view name;
  ParamKind kind;
  // As Python writes it ("None", "False", "1.0", "()"; a dtype by its name);
  // empty if it must be given. A tensor left out becomes a constant of its
  // default, a Python scalar being weak; one whose default is None is left out
  // of the call's arguments, together with those after it.
  std::string_view default_value;
  std::string_view doc;
};

struct Function {
  std::string_view name;
  std::vector<Param> params;
  // One line; after an end of line, more of it as one paragraph. Then an
  // example as a doctest that shows the result.
  std::string_view doc;
  std::string_view example;
  bool is_random = false;

  // The result's spec, or InvalidArgument: expected first, found last.
  absl::StatusOr<TensorSpec> (*infer)(absl::Span<const ArgSpec> args,
                                      const Attrs& attrs);
  // The result: context.rows rows, or one row if every argument is uniform and
  // the function is not random. `result` is what infer() promised. Errors of
  // single rows go to context.errors; a returned error ends the iterator.
  absl::StatusOr<Column> (*eval)(absl::Span<const Arg> args, const Attrs& attrs,
                                 const TensorSpec& result,
                                 EvalContext& context);

  // Of a function with several results, in the place of infer() and eval().
  // Their number, at least one, follows from arguments and attributes.
  absl::StatusOr<std::vector<TensorSpec>> (*infer_parts)(
      absl::Span<const ArgSpec> args, const Attrs& attrs) = nullptr;
  absl::StatusOr<std::vector<Column>> (*eval_parts)(
      absl::Span<const Arg> args, const Attrs& attrs,
      absl::Span<const TensorSpec> results, EvalContext& context) = nullptr;

  // Called once for a call that will run, after infer(): large constants are
  // here now, which infer() may have seen as specs alone.
  absl::StatusOr<PreparedPtr> (*prepare)(absl::Span<const ArgSpec> args,
                                         const Attrs& attrs) = nullptr;
  // Not for users as it is: a wrapper written by hand calls it, and
  // `penstock functions --python` leaves it out.
  bool is_internal = false;
};

// Every native function, by name.
absl::Span<const Function> AllFunctions();
// Null if there is none of that name.
const Function* FindFunction(std::string_view name);

}  // namespace penstock::functions

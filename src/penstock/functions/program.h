// A recorded function made ready to run over columns.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/data/chunk.h"
#include "penstock/data/spec.h"
#include "penstock/functions/function.h"

namespace penstock::functions {

struct ArgumentStep {
  uint32_t index;  // component of the input
};
struct BoundStep {
  uint32_t index;  // value bound when the enclosing sub-plan started
};
struct ConstantStep {
  Column value;  // dense, one row
  bool is_weak = false;
};
// A constant that is not here: enough to infer, not to run.
struct AbsentStep {
  TensorSpec spec;
};
struct CallStep {
  std::string function;
  std::vector<uint32_t> args;  // earlier steps
  Attrs attrs;
};
// One of several results of a call; the call's own value is its first.
struct PartStep {
  uint32_t call;  // an earlier step
  uint32_t index;
};
// Step i defines value i.
using Step = std::variant<ArgumentStep, BoundStep, ConstantStep, AbsentStep,
                          CallStep, PartStep>;

// Payload key on a Status: it says where it went wrong, and nobody need add it.
inline constexpr char kLocated[] = "penstock/located";

// Immutable after Make(), and then safe to share between threads.
class Program final {
 public:
  // Infers every step's spec. InvalidArgument names the step that is wrong
  // (`error_step`, if not null, receives its number, so that the caller can add
  // the user's line).
  static absl::StatusOr<Program> Make(std::vector<Step> steps,
                                      std::vector<uint32_t> outputs,
                                      absl::Span<const TensorSpec> arguments,
                                      absl::Span<const TensorSpec> bound,
                                      int* error_step = nullptr);

  // Of a program whose steps come from several places: what an error of a step
  // has below its message, by step; empty for those that need nothing. Such
  // errors carry the payload kLocated. To be called before it is shared.
  void SetLines(std::vector<std::string> lines) { lines_ = std::move(lines); }

  // Of each output; a weak scalar that is returned gets numpy's default dtype.
  const std::vector<TensorSpec>& output_specs() const { return output_specs_; }
  // Whether any step is random: then rows need a lineage.
  bool is_random() const { return is_random_; }
  // Whether the rank of some value is not known before there are rows: rows
  // whose ranks differ fit in no column, so they are to be run one by one.
  bool has_unknown_rank() const { return has_unknown_rank_; }
  // Whether nothing is absent: else Run() refuses.
  bool is_complete() const { return is_complete_; }

  // Evaluates over `rows` rows of `arguments`; `bound` columns have one row
  // each. Gives one column of context.rows rows per output. Row errors are
  // added to context.errors, sorted, one per row.
  absl::StatusOr<std::vector<Column>> Run(absl::Span<const Column> arguments,
                                          absl::Span<const Column> bound,
                                          EvalContext& context) const;

 private:
  // What is known of a step's value.
  struct Value {
    TensorSpec spec;
    const Function* function = nullptr;  // null unless it is computed
    std::vector<TensorSpec> parts;       // of a call with several results
    PreparedPtr prepared;
    bool is_weak = false;
    bool is_uniform = false;  // one row stands for all
    bool is_output = false;
    size_t place = 0;             // the first output that it is
    std::vector<uint32_t> frees;  // values that no later step needs
  };

  absl::Status InferStep(uint32_t index, absl::Span<const TensorSpec> arguments,
                         absl::Span<const TensorSpec> bound);
  void NoteRank(uint32_t index);
  absl::Status InferCall(uint32_t index);
  absl::Status InferPart(uint32_t index);
  // Replaces a call of constants by its value.
  absl::Status Fold(uint32_t index);
  void PlanFrees();
  // Adds the step's line to errors.
  absl::Status Locate(uint32_t index, const absl::Status& status) const;
  absl::StatusOr<const Column*> InputOf(uint32_t index,
                                        absl::Span<const Column> arguments,
                                        absl::Span<const Column> bound,
                                        int64_t rows) const;

  std::vector<Step> steps_;
  std::vector<Value> values_;       // by step
  std::vector<std::string> lines_;  // by step, or none
  size_t num_computed_ = 0;         // columns
  std::vector<uint32_t> outputs_;
  std::vector<TensorSpec> output_specs_;
  bool is_random_ = false;
  bool has_unknown_rank_ = false;
  bool is_complete_ = true;
};

}  // namespace penstock::functions

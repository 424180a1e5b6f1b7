// A recorded function applied to chunks.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/engine/operator.h"
#include "penstock/functions/program.h"
#include "penstock/plan.pb.h"

namespace penstock::engine {

// A function of a node, ready to run. Immutable: shared by all streams.
class Evaluator final {
 public:
  // `arguments` are the flat specs that the function is called with.
  static absl::StatusOr<std::shared_ptr<const Evaluator>> Make(
      const plan::Function& function, absl::Span<const TensorSpec> arguments,
      const OpContext& context);

  const functions::Program& program() const { return program_; }
  // Rows to be given to Apply() at once, at most: then all that come out fit in
  // one chunk. Of more, those of another rank than the first are errors.
  int64_t max_rows() const {
    return program_.has_unknown_rank() ? 1 : kMaxChunkRows;
  }

  // The function's outputs for `input`'s rows; row errors of `input` stay, and
  // new ones join them with the node's name and line.
  // Outputs whose sizes are those of `places` are put there, others anywhere.
  absl::StatusOr<Chunk> Apply(const Chunk& input, const Scope& scope,
                              absl::Span<const Buffer> places = {}) const;

 private:
  absl::StatusOr<Chunk> ApplyOneByOne(const Chunk& input,
                                      const Scope& scope) const;

  Evaluator(functions::Program program, const OpInfo* info, std::string name)
      : program_(std::move(program)), info_(info), name_(std::move(name)) {}

  const functions::Program program_;
  const OpInfo* const info_;
  const std::string name_;
};

}  // namespace penstock::engine

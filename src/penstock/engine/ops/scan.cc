#include "penstock/engine/ops/scan.h"

#include <algorithm>
#include <cstring>

#include "penstock/base/status.h"
#include "penstock/data/builder.h"
#include "penstock/data/encode.h"
#include "penstock/engine/evaluate.h"
#include "penstock/engine/ops/python_scan.h"
#include "penstock/engine/ops/rows.h"
#include "penstock/plan/infer.h"

namespace penstock::engine {
namespace {

constexpr int64_t kRowsPerCall = 1024;

std::string EncodeRow(const Chunk& row) {
  std::string bytes(EncodedSize(row), '\0');
  Encode(row, reinterpret_cast<std::byte*>(bytes.data()));
  return bytes;
}

absl::StatusOr<Chunk> DecodeRow(std::string_view bytes) {
  Buffer buffer = Buffer::Allocate(bytes.size());
  std::memcpy(buffer.MutableAs<char>(), bytes.data(), bytes.size());
  return Decode(buffer);
}

// The state and the step that both operators share.
class Fold final {
 public:
  Fold(Chunk state, std::shared_ptr<const Evaluator> function)
      : state_(std::move(state)), function_(std::move(function)) {
    state_.lineage = Buffer();
  }

  // Applies the function to (state, row) and keeps the new state, unless the
  // row is or becomes an error. Gives what the function returned after it.
  absl::StatusOr<Chunk> Step(const Chunk& chunk, int64_t row,
                             const Scope& scope) {
    Chunk call = Slice(chunk, row, 1);
    if (!call.errors.empty()) return call;
    call.columns.insert(call.columns.begin(), state_.columns.begin(),
                        state_.columns.end());
    PENSTOCK_ASSIGN_OR_RETURN(Chunk result, function_->Apply(call, scope));
    if (!result.errors.empty()) return result;
    const auto outputs = result.columns.begin() +
                         static_cast<std::ptrdiff_t>(state_.columns.size());
    state_.columns.assign(result.columns.begin(), outputs);
    result.columns.erase(result.columns.begin(), outputs);
    return result;
  }

  const Chunk& state() const { return state_; }

  void Save(WireWriter& writer) const { writer.Bytes(EncodeRow(state_)); }
  absl::Status Restore(WireReader& reader) {
    PENSTOCK_ASSIGN_OR_RETURN(const std::string_view bytes, reader.Bytes());
    PENSTOCK_ASSIGN_OR_RETURN(Chunk state, DecodeRow(bytes));
    if (state.rows != 1 || state.columns.size() != state_.columns.size()) {
      return absl::DataLossError("a saved state has another structure");
    }
    state_ = std::move(state);
    return absl::OkStatus();
  }

 private:
  Chunk state_;  // one row
  std::shared_ptr<const Evaluator> function_;
};

class ScanStream final : public Stream {
 public:
  ScanStream(const Scope& scope, const OpInfo& info,
             std::unique_ptr<Stream> input, Fold fold)
      : Stream(StatsOf(scope, info)),
        scope_(scope),
        info_(info),
        input_(std::move(input)),
        fold_(std::move(fold)) {}

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    PENSTOCK_ASSIGN_OR_RETURN(
        const Pull::Kind kind,
        input_.Fill({std::min(request.max_rows, kRowsPerCall), request.waker}));
    if (kind == Pull::Kind::kBlocked) return Pull::Blocked();
    if (kind == Pull::Kind::kEnd) return Pull::End();
    ChunkBuilder out;
    const int64_t rows = std::min(request.max_rows, input_.rows_held());
    while (out.rows() < rows) {
      const Fold before = fold_;
      PENSTOCK_ASSIGN_OR_RETURN(
          Chunk result, fold_.Step(input_.chunk(), input_.begin(), scope_));
      if (!result.errors.empty()) {
        Chunk error = ErrorChunk(result.errors[0].status,
                                 PlaceholderColumns(info_.leaves, 1));
        error.lineage = result.lineage;
        result = std::move(error);
      }
      if (!out.Fits(result)) {
        fold_ = before;
        break;
      }
      out.Append(result, 0, 1);
      input_.Consume(1);
    }
    return Pull::Rows(out.Build());
  }

  void DoSave(WireWriter& writer) const override {
    fold_.Save(writer);
    input_.Save(writer);
  }
  absl::Status DoRestore(WireReader& reader) override {
    PENSTOCK_RETURN_IF_ERROR(fold_.Restore(reader));
    return input_.Restore(reader);
  }

 private:
  const Scope scope_;
  const OpInfo& info_;
  Input input_;
  Fold fold_;
};

class ReduceStream final : public Stream {
 public:
  ReduceStream(const Scope& scope, const OpInfo& info,
               std::unique_ptr<Stream> input, Fold fold)
      : Stream(StatsOf(scope, info)),
        scope_(scope),
        info_(info),
        input_(std::move(input)),
        fold_(std::move(fold)) {}

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    if (is_done_) return Pull::End();
    for (int tries = 0; tries < 16; ++tries) {
      PENSTOCK_ASSIGN_OR_RETURN(Pull pull,
                                input_->Next({kRowsPerCall, request.waker}));
      if (pull.is_blocked()) return pull;
      if (pull.is_end()) {
        is_done_ = true;
        Chunk result = fold_.state();
        result.lineage = SourceLineage(scope_, 0, 1);
        return Pull::Rows(std::move(result));
      }
      for (int64_t row = 0; row < pull.chunk.rows; ++row) {
        PENSTOCK_ASSIGN_OR_RETURN(const Chunk result,
                                  fold_.Step(pull.chunk, row, scope_));
        if (result.errors.empty()) continue;
        is_done_ = true;
        Chunk error = ErrorChunk(result.errors[0].status,
                                 PlaceholderColumns(info_.leaves, 1));
        error.lineage = SourceLineage(scope_, 0, 1);
        return Pull::Rows(std::move(error));
      }
    }
    return Yield(request);
  }

  void DoSave(WireWriter& writer) const override {
    writer.Bool(is_done_);
    fold_.Save(writer);
    input_->Save(writer);
  }
  absl::Status DoRestore(WireReader& reader) override {
    PENSTOCK_ASSIGN_OR_RETURN(is_done_, reader.Bool());
    PENSTOCK_RETURN_IF_ERROR(fold_.Restore(reader));
    return input_->Restore(reader);
  }

 private:
  const Scope scope_;
  const OpInfo& info_;
  const std::unique_ptr<Stream> input_;
  Fold fold_;
  bool is_done_ = false;
};

template <typename SomeStream, typename Spec>
OperatorOr MakeFold(const Spec& spec, OperatorPtr input, OpContext& context) {
  const OpInfo& info = *context.info;
  const plan::Rows& initial = spec.initial_state();
  // The function is called with (state, element), flat.
  const std::vector<TensorSpec>& leaves = context.input_leaves[0];
  std::vector<ElementSpec> components;
  for (const TensorSpec& leaf : leaves) {
    components.push_back(ElementSpec::Tensor(leaf));
  }
  const ElementSpec element = ElementSpec::Tuple(std::move(components));
  PENSTOCK_ASSIGN_OR_RETURN(
      const ElementSpec state_spec,
      plan::InferState(spec, {.inputs = absl::MakeConstSpan(&element, 1),
                              .bound = context.bound}));
  std::vector<TensorSpec> arguments = state_spec.Flatten();
  arguments.insert(arguments.end(), leaves.begin(), leaves.end());
  PENSTOCK_ASSIGN_OR_RETURN(
      std::shared_ptr<const Evaluator> evaluator,
      Evaluator::Make(spec.function(), arguments, context));
  return MakeOperator(
      [initial, evaluator, input, &info](const Scope& scope) -> StreamOr {
        PENSTOCK_ASSIGN_OR_RETURN(Chunk state, LoadRows(initial, *scope.run));
        if (state.rows != 1) {
          return absl::InvalidArgumentError("an initial state must be one row");
        }
        PENSTOCK_ASSIGN_OR_RETURN(auto stream, input->Start(scope));
        return std::make_unique<SomeStream>(scope, info, std::move(stream),
                                            Fold(std::move(state), evaluator));
      });
}

}  // namespace

OperatorOr MakeScan(const plan::Scan& spec, OperatorPtr input,
                    OpContext& context) {
  if (spec.function().has_python()) {
    return MakePythonScan(spec, std::move(input), context);
  }
  return MakeFold<ScanStream>(spec, std::move(input), context);
}

OperatorOr MakeReduce(const plan::Reduce& spec, OperatorPtr input,
                      OpContext& context) {
  if (spec.function().has_python()) {
    return MakePythonReduce(spec, std::move(input), context);
  }
  return MakeFold<ReduceStream>(spec, std::move(input), context);
}

}  // namespace penstock::engine

#include "penstock/engine/ops/python_scan.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/data/encode.h"
#include "penstock/engine/ops/doorbell.h"
#include "penstock/engine/ops/python_call.h"
#include "penstock/engine/ops/rows.h"
#include "penstock/plan/infer.h"

namespace penstock::engine {
namespace {

// Calls of a reduce before others get their turn.
constexpr int kMaxCalls = 64;

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

// `text` in the first of `rows` strings.
Column FirstOf(const std::string& text, int64_t rows) {
  auto kept = std::make_shared<const std::string>(text);
  Buffer refs = Buffer::Allocate(rows * sizeof(StringRef));
  auto* ref = refs.MutableAs<StringRef>();
  std::fill_n(ref, rows, StringRef{kept->data(), 0});
  ref->size = kept->size();
  return Column::Dense(DType::kString, {}, rows, std::move(refs), {kept});
}

// A state as an encoded chunk of one row, and what fits in its place.
class FoldState final {
 public:
  FoldState(std::string bytes, std::vector<TensorSpec> leaves)
      : bytes_(std::move(bytes)), leaves_(std::move(leaves)) {}

  const std::string& bytes() const { return bytes_; }

  absl::StatusOr<Chunk> Row() const { return DecodeRow(bytes_); }

  absl::Status Set(std::string_view bytes) {
    absl::StatusOr<Chunk> row = DecodeRow(bytes);
    if (!row.ok() || row->rows != 1 || !CheckColumns(*row, leaves_).ok()) {
      return absl::DataLossError("a saved state has another structure");
    }
    bytes_ = bytes;
    return absl::OkStatus();
  }

 private:
  std::string bytes_;
  std::vector<TensorSpec> leaves_;
};

// The calls of one fold. Rows come out with what the function gave besides the
// state.
class FoldCalls final {
 public:
  FoldCalls(const Scope& scope, std::unique_ptr<Stream> input, FoldState state,
            StartRows start)
      : is_exact_(scope.run->options.is_row_exact),
        input_(std::move(input)),
        start_(std::move(start)),
        doorbell_(std::make_shared<Doorbell>()),
        state_(std::move(state)) {}

  absl::StatusOr<Pull> Next(const Request& request) {
    doorbell_->Set(request.waker);
    if (held_.rows_left() == 0) {
      if (pending_.task == nullptr) Begin(request);
      if (pending_.task != nullptr) {
        if (!pending_.task->is_done()) return Pull::Blocked();
        PENSTOCK_RETURN_IF_ERROR(Finish());
        // The next may run while these rows are given away.
        if (!is_exact_) Begin(request);
      } else {
        PENSTOCK_RETURN_IF_ERROR(failure_);
        return has_ended_ ? Pull::End() : Pull::Blocked();
      }
    }
    const int64_t rows = std::min(request.max_rows, held_.rows_left());
    Chunk chunk = Slice(held_.chunk, held_.given, rows);
    held_.given += rows;
    return Pull::Rows(std::move(chunk));
  }

  // After the last row. REQUIRES: Next() gave the end.
  absl::StatusOr<Chunk> LastState() const { return state_.Row(); }

  void Save(WireWriter& writer) const {
    const bool is_held = held_.rows_left() > 0;
    writer.Varint(is_held ? held_.given : 0);
    if (!is_held && pending_.task == nullptr) {
      writer.Varint(rows_read_);
      writer.Bytes(state_.bytes());
      return input_->Save(writer);
    }
    const Piece& piece = is_held ? held_ : pending_;
    writer.Varint(piece.first);
    writer.Bytes(piece.state);
    writer.Raw(piece.position);
  }

  // Says how many rows are to be left out: those that were given.
  absl::StatusOr<int64_t> Restore(WireReader& reader) {
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t given, reader.Varint());
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t rows, reader.Varint());
    rows_read_ = static_cast<int64_t>(rows);
    PENSTOCK_ASSIGN_OR_RETURN(const std::string_view state, reader.Bytes());
    PENSTOCK_RETURN_IF_ERROR(state_.Set(state));
    PENSTOCK_RETURN_IF_ERROR(input_->Restore(reader));
    return static_cast<int64_t>(given);
  }

 private:
  // A chunk: on its way, or with rows to be given.
  struct Piece {
    std::string state;     // before it
    std::string position;  // of the input before it
    int64_t first = 0;     // of the input's rows
    std::shared_ptr<PendingRows> task;
    Chunk chunk;
    int64_t given = 0;

    int64_t rows_left() const { return chunk.rows - given; }
  };

  void Begin(const Request& request) {
    if (has_ended_ || !failure_.ok()) return;
    WireWriter position;
    input_->Save(position);
    absl::StatusOr<Pull> pull = input_->Next(
        {is_exact_ ? request.max_rows : rows_per_call_, request.waker});
    if (!pull.ok()) {
      failure_ = pull.status();  // after the rows before it
      return;
    }
    has_ended_ = pull->is_end();
    if (!pull->has_rows()) return;
    Chunk rows = std::move(pull->chunk);
    rows.columns.push_back(FirstOf(state_.bytes(), rows.rows));
    pending_.state = state_.bytes();
    pending_.position = position.Take();
    pending_.first = rows_read_;
    rows_read_ += rows.rows;
    pending_.task = start_(std::move(rows), pending_.first, {},
                           [doorbell = doorbell_] { doorbell->Ring(); });
  }

  absl::Status Finish() {
    Learn(pending_.task->nanos());
    PENSTOCK_ASSIGN_OR_RETURN(pending_.chunk, pending_.task->Take());
    pending_.task = nullptr;
    Chunk& chunk = pending_.chunk;
    const Column states = std::move(chunk.columns.back());
    chunk.columns.pop_back();
    const StringRef* last = states.Row<StringRef>(chunk.rows - 1);
    if (!state_.Set(last->view()).ok()) {
      return absl::InternalError("a Python process gave no state");
    }
    held_ = std::exchange(pending_, Piece());
    return absl::OkStatus();
  }

  // As in a parallel map: a call should be worth its hand-off.
  void Learn(int64_t nanos) {
    if (nanos < 300'000 && rows_per_call_ < kMaxChunkRows) rows_per_call_ *= 2;
    if (nanos > 3'000'000 && rows_per_call_ > 1) rows_per_call_ /= 2;
  }

  bool is_exact_;
  std::unique_ptr<Stream> input_;
  StartRows start_;
  std::shared_ptr<Doorbell> doorbell_;
  FoldState state_;  // after all calls that are done
  Piece pending_;
  Piece held_;
  bool has_ended_ = false;
  absl::Status failure_;  // of the input
  int64_t rows_per_call_ = 1;
  int64_t rows_read_ = 0;  // of the input
};

class PythonScanStream final : public Stream {
 public:
  PythonScanStream(const Scope& scope, const OpInfo& info, FoldCalls calls)
      : Stream(StatsOf(scope, info)), calls_(std::move(calls)) {}

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    return calls_.Next(request);
  }
  void DoSave(WireWriter& writer) const override { calls_.Save(writer); }
  absl::Status DoRestore(WireReader& reader) override {
    PENSTOCK_ASSIGN_OR_RETURN(const int64_t given, calls_.Restore(reader));
    SkipRows(given);
    return absl::OkStatus();
  }

 private:
  FoldCalls calls_;
};

class PythonReduceStream final : public Stream {
 public:
  PythonReduceStream(const Scope& scope, const OpInfo& info, FoldCalls calls)
      : Stream(StatsOf(scope, info)),
        scope_(scope),
        info_(info),
        calls_(std::move(calls)) {}

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    if (is_done_) return Pull::End();
    for (int i = 0; i < kMaxCalls; ++i) {
      PENSTOCK_ASSIGN_OR_RETURN(Pull pull,
                                calls_.Next({kMaxChunkRows, request.waker}));
      if (pull.is_blocked()) return pull;
      if (pull.is_end()) {
        PENSTOCK_ASSIGN_OR_RETURN(Chunk state, calls_.LastState());
        return Last(std::move(state));
      }
      if (!pull.chunk.errors.empty()) {
        return Last(ErrorChunk(pull.chunk.errors[0].status,
                               PlaceholderColumns(info_.leaves, 1)));
      }
    }
    return Yield(request);
  }

  void DoSave(WireWriter& writer) const override {
    writer.Bool(is_done_);
    calls_.Save(writer);
  }
  absl::Status DoRestore(WireReader& reader) override {
    PENSTOCK_ASSIGN_OR_RETURN(is_done_, reader.Bool());
    // All rows of a call are taken at once.
    return calls_.Restore(reader).status();
  }

 private:
  Pull Last(Chunk result) {
    is_done_ = true;
    result.lineage = SourceLineage(scope_, 0, 1);
    return Pull::Rows(std::move(result));
  }

  const Scope scope_;
  const OpInfo& info_;
  FoldCalls calls_;
  bool is_done_ = false;
};

template <typename SomeStream, typename Spec>
OperatorOr MakePythonFold(const Spec& spec, std::vector<TensorSpec> result,
                          OperatorPtr input, OpContext& context) {
  const OpInfo& info = *context.info;
  PENSTOCK_ASSIGN_OR_RETURN(
      const ElementSpec state_spec,
      plan::InferState(spec,
                       {.inputs = absl::MakeConstSpan(context.input_specs),
                        .bound = context.bound}));
  // What comes back: the outputs, and the state in the last row's place.
  PythonCallOptions call;
  call.result = std::move(result);
  call.result.push_back(TensorSpec::Scalar(DType::kString));
  return MakeOperator([=, leaves = state_spec.Flatten(),
                       &info](const Scope& scope) -> StreamOr {
    PENSTOCK_ASSIGN_OR_RETURN(Chunk state,
                              LoadRows(spec.initial_state(), *scope.run));
    if (state.rows != 1) {
      return absl::InvalidArgumentError("an initial state must be one row");
    }
    PENSTOCK_ASSIGN_OR_RETURN(
        StartRows start, StartInProcesses(spec.function(), call, scope, info));
    PENSTOCK_ASSIGN_OR_RETURN(auto stream, input->Start(scope));
    return std::make_unique<SomeStream>(
        scope, info,
        FoldCalls(scope, std::move(stream), FoldState(EncodeRow(state), leaves),
                  std::move(start)));
  });
}

}  // namespace

OperatorOr MakePythonScan(const plan::Scan& spec, OperatorPtr input,
                          OpContext& context) {
  return MakePythonFold<PythonScanStream>(spec, context.info->leaves,
                                          std::move(input), context);
}

OperatorOr MakePythonReduce(const plan::Reduce& spec, OperatorPtr input,
                            OpContext& context) {
  return MakePythonFold<PythonReduceStream>(spec, {}, std::move(input),
                                            context);
}

}  // namespace penstock::engine

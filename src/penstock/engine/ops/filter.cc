#include "penstock/engine/ops/filter.h"

#include <algorithm>

#include "penstock/base/clock.h"
#include "penstock/base/status.h"
#include "penstock/data/builder.h"
#include "penstock/engine/evaluate.h"
#include "penstock/engine/ops/python_map.h"

namespace penstock::engine {
namespace {

// The rows of `chunk` with the predicate's errors, and its verdicts.
struct Judged {
  Chunk chunk;
  Column verdicts;  // bool scalars; of error rows, anything

  bool Holds(int64_t row) const { return *verdicts.Row<bool>(row); }
};

using Judge = std::function<absl::StatusOr<Judged>(Chunk)>;

Judge JudgeBy(std::shared_ptr<const Evaluator> predicate, const Scope& scope) {
  return [=](Chunk chunk) -> absl::StatusOr<Judged> {
    PENSTOCK_ASSIGN_OR_RETURN(Chunk verdicts, predicate->Apply(chunk, scope));
    chunk.errors = std::move(verdicts.errors);
    return Judged{std::move(chunk), std::move(verdicts.columns[0])};
  };
}

// Rows whose last component is the verdict.
absl::StatusOr<Judged> ReadVerdicts(Chunk chunk) {
  Column verdicts = std::move(chunk.columns.back());
  chunk.columns.pop_back();
  return Judged{std::move(chunk), std::move(verdicts)};
}

// Where few rows are kept, those of several pulls are given together: who
// computes with them pays for each chunk. All that was asked for is enough, of
// many rows half of that, and so are these.
constexpr int64_t kManyRows = 32;
constexpr int64_t kEnoughBytes = kMaxChunkBytes / 4;
constexpr int64_t kPatienceNanos = 200'000;

// Rows of one rank can be put together, wherever they come from.
bool HaveRanks(absl::Span<const TensorSpec> leaves) {
  return std::ranges::all_of(
      leaves, [](const TensorSpec& leaf) { return leaf.shape.has_rank(); });
}

class FilterStream final : public Stream {
 public:
  FilterStream(const Scope& scope, const OpInfo& info,
               std::unique_ptr<Stream> input, Judge judge)
      : Stream(StatsOf(scope, info)),
        input_(std::move(input)),
        judge_(std::move(judge)),
        gathers_(HaveRanks(info.leaves)) {}

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    PENSTOCK_RETURN_IF_ERROR(failure_);
    int64_t bytes = 0;
    uint64_t since = 0;  // when the first row was kept
    const auto is_late = [&] {
      return static_cast<double>(Ticks() - since) * NanosPerTick() >
             kPatienceNanos;
    };
    for (int tries = 0; tries < 64; ++tries) {
      const int64_t held = kept_.rows();
      // Rows that are all kept may be computed where their batch is made.
      absl::StatusOr<Pull> pull =
          input_->Next({request.max_rows - held, request.waker,
                        held == 0 ? request.group : Group()});
      if (!pull.ok() || !pull->has_rows()) {
        if (held == 0) return pull;
        failure_ = pull.status();
        break;
      }
      absl::StatusOr<Judged> judged = judge_(std::move(pull->chunk));
      if (!judged.ok()) {
        failure_ = judged.status();
        break;
      }
      Select(*judged);
      if (rows_.empty()) {
        if (held > 0 && is_late()) break;
        continue;
      }
      const bool are_all =
          static_cast<int64_t>(rows_.size()) == judged->chunk.rows;
      Chunk chunk =
          are_all ? std::move(judged->chunk) : Gather(judged->chunk, rows_);
      if (held == 0 && (are_all || !gathers_)) {
        return Pull::Rows(std::move(chunk));
      }
      if (held == 0) since = Ticks();
      bytes += chunk.NumBytes();
      const int64_t rows = held + chunk.rows;
      const bool is_enough =
          rows >= request.max_rows ||
          (rows >= kManyRows && 2 * rows >= request.max_rows) ||
          bytes >= kEnoughBytes || (held > 0 && is_late());
      if (is_enough && held == 0) return Pull::Rows(std::move(chunk));
      kept_.Append(chunk, 0, chunk.rows);
      if (is_enough) break;
    }
    if (kept_.rows() > 0) return Pull::Rows(kept_.Build());
    PENSTOCK_RETURN_IF_ERROR(failure_);
    return Yield(request);
  }

  void DoSave(WireWriter& writer) const override { input_->Save(writer); }
  absl::Status DoRestore(WireReader& reader) override {
    return input_->Restore(reader);
  }

 private:
  // Puts the rows to keep into rows_: those that hold, and errors.
  void Select(const Judged& judged) {
    rows_.resize(judged.chunk.rows);
    int32_t* out = rows_.data();
    if (judged.verdicts.is_dense() && judged.chunk.errors.empty()) {
      const auto* holds = judged.verdicts.Row<uint8_t>(0);
      for (int64_t row = 0; row < judged.chunk.rows; ++row) {
        *out = static_cast<int32_t>(row);
        out += holds[row];
      }
    } else {
      for (int64_t row = 0; row < judged.chunk.rows; ++row) {
        if (ErrorAt(judged.chunk, row) != nullptr || judged.Holds(row)) {
          *out++ = static_cast<int32_t>(row);
        }
      }
    }
    rows_.resize(out - rows_.data());
  }

  const std::unique_ptr<Stream> input_;
  const Judge judge_;
  const bool gathers_;
  ChunkBuilder kept_;          // empty between calls
  absl::Status failure_;       // after rows that have been given
  std::vector<int32_t> rows_;  // kept from call to call for its memory
};

class TakeWhileStream final : public Stream {
 public:
  TakeWhileStream(const Scope& scope, const OpInfo& info,
                  std::unique_ptr<Stream> input, Judge judge)
      : Stream(StatsOf(scope, info)),
        input_(std::move(input)),
        judge_(std::move(judge)) {}

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    if (has_ended_) return Pull::End();
    PENSTOCK_ASSIGN_OR_RETURN(Pull pull, input_->Next(request));
    if (!pull.has_rows()) return pull;
    PENSTOCK_ASSIGN_OR_RETURN(Judged judged, judge_(std::move(pull.chunk)));
    int64_t rows = 0;
    while (rows < judged.chunk.rows &&
           (ErrorAt(judged.chunk, rows) != nullptr || judged.Holds(rows))) {
      ++rows;
    }
    has_ended_ = rows < judged.chunk.rows;
    if (rows == 0) return Pull::End();
    return Pull::Rows(Slice(judged.chunk, 0, rows));
  }

  void DoSave(WireWriter& writer) const override {
    writer.Bool(has_ended_);
    input_->Save(writer);
  }
  absl::Status DoRestore(WireReader& reader) override {
    PENSTOCK_ASSIGN_OR_RETURN(has_ended_, reader.Bool());
    return input_->Restore(reader);
  }

 private:
  const std::unique_ptr<Stream> input_;
  const Judge judge_;
  bool has_ended_ = false;
};

template <typename SomeStream>
OperatorOr MakeWithPredicate(const plan::Function& function, OperatorPtr input,
                             OpContext& context) {
  const OpInfo& info = *context.info;
  std::shared_ptr<const Evaluator> predicate;
  if (function.has_python()) {
    PythonMapOptions options;
    options.keeps_input = true;
    options.deterministic = true;
    PENSTOCK_ASSIGN_OR_RETURN(
        input, MakePythonMap(function, options, std::move(input), context));
  } else {
    PENSTOCK_ASSIGN_OR_RETURN(
        predicate, Evaluator::Make(function, context.input_leaves[0], context));
  }
  return MakeOperator([predicate, &info,
                       input](const Scope& scope) -> StreamOr {
    PENSTOCK_ASSIGN_OR_RETURN(auto stream, input->Start(scope));
    return std::make_unique<SomeStream>(
        scope, info, std::move(stream),
        predicate != nullptr ? JudgeBy(predicate, scope) : Judge(ReadVerdicts));
  });
}

}  // namespace

OperatorOr MakeFilter(const plan::Filter& spec, OperatorPtr input,
                      OpContext& context) {
  return MakeWithPredicate<FilterStream>(spec.predicate(), std::move(input),
                                         context);
}

OperatorOr MakeTakeWhile(const plan::TakeWhile& spec, OperatorPtr input,
                         OpContext& context) {
  return MakeWithPredicate<TakeWhileStream>(spec.predicate(), std::move(input),
                                            context);
}

}  // namespace penstock::engine

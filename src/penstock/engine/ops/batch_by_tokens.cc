#include "penstock/engine/ops/batch_by_tokens.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/data/builder.h"
#include "penstock/data/row_buffer.h"
#include "penstock/engine/evaluate.h"
#include "penstock/engine/ops/keys.h"
#include "penstock/engine/ops/padding.h"
#include "penstock/engine/ops/token_budget.h"

namespace penstock::engine {
namespace {

// Chunks of the input before others get their turn.
constexpr int kMaxChunks = 64;

struct TokensConfig {
  // Null: an element's length is its last component.
  std::shared_ptr<const Evaluator> length;
  std::string length_name;  // in messages
  int64_t max_tokens = 1;
  int64_t max_rows = 1;
  std::optional<int64_t> window;
  plan::TooLong too_long = plan::TOO_LONG_IS_ERROR;
  bool drop_remainder = false;
  Padding padding;
  int64_t max_given = kMaxChunkRows;
};

// Rows of a window that make a batch, ascending.
using Batch = std::vector<int32_t>;

// Sorts rows by length and cuts them into batches; `is_cut`: the window is not
// full, and what is left over at its end is not wanted.
std::vector<Batch> CutWindow(absl::Span<const int64_t> lengths,
                             const TokensConfig& config, bool is_cut) {
  std::vector<int32_t> order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return lengths[a] < lengths[b];
  });
  std::vector<Batch> batches;
  TokenBudget budget(config.max_tokens, config.max_rows);
  for (int32_t row : order) {
    if (batches.empty() || !budget.Fits(lengths[row])) {
      batches.emplace_back();
      budget.Clear();
    }
    budget.Add(lengths[row]);
    batches.back().push_back(row);
  }
  if (is_cut && !batches.empty() && !budget.IsFull()) batches.pop_back();
  for (Batch& batch : batches) std::sort(batch.begin(), batch.end());
  std::sort(batches.begin(), batches.end());
  return batches;
}

class TokensStream final : public Stream {
 public:
  TokensStream(const Scope& scope, const OpInfo& info,
               std::shared_ptr<const TokensConfig> config,
               std::unique_ptr<Stream> input)
      : Stream(StatsOf(scope, info)),
        scope_(scope),
        info_(info),
        config_(std::move(config)),
        input_(std::move(input)),
        budget_(config_->max_tokens, config_->max_rows),
        reservation_(scope.run->environment.memory) {}

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    const int64_t max_rows = std::min(request.max_rows, config_->max_given);
    for (int chunks = 0; chunks < kMaxChunks; ++chunks) {
      GiveWindow(max_rows);
      if (out_.rows() > 0) return Pull::Rows(out_.Build());
      const bool is_fresh = input_.rows_held() == 0;
      const int64_t wanted =
          scope_.run->options.is_row_exact ? 1 : kMaxChunkRows;
      PENSTOCK_ASSIGN_OR_RETURN(const Pull::Kind kind,
                                input_.Fill({wanted, request.waker}));
      if (kind == Pull::Kind::kBlocked) return Pull::Blocked();
      if (kind == Pull::Kind::kEnd) {
        if (num_open() == 0) return Pull::End();
        CloseAtEnd();
      } else {
        if (is_fresh) PENSTOCK_RETURN_IF_ERROR(ReadLengths());
        Gather(max_rows);
      }
      PENSTOCK_RETURN_IF_ERROR(info_.Located(
          reservation_.Resize(open_.num_bytes() + closed_bytes_)));
    }
    if (out_.rows() > 0) return Pull::Rows(out_.Build());
    return Yield(request);
  }

  void DoSave(WireWriter& writer) const override {
    writer.Varint(errors_given_ + errors_to_drop_);
    writer.Varint(batches_given_);
    if (is_after_position()) {
      writer.Raw(position_);
    } else {
      input_.Save(writer);
    }
  }

  absl::Status DoRestore(WireReader& reader) override {
    PENSTOCK_ASSIGN_OR_RETURN(errors_to_drop_, reader.Varint());
    PENSTOCK_ASSIGN_OR_RETURN(batches_given_, reader.Varint());
    return input_.Restore(reader);
  }

 private:
  int64_t num_open() const {
    return static_cast<int64_t>(open_lengths_.size());
  }

  // Whether the position to resume from is behind the input's.
  bool is_after_position() const {
    return num_open() > 0 || errors_given_ > 0 || !batches_.empty();
  }

  // Tells the elements of the chunk at hand from their lengths.
  absl::Status ReadLengths() {
    rows_ = input_.chunk();
    if (config_->length != nullptr) {
      PENSTOCK_ASSIGN_OR_RETURN(keys_, config_->length->Apply(rows_, scope_));
    } else {
      keys_ = rows_;
      keys_.columns = {std::move(rows_.columns.back())};
      rows_.columns.pop_back();
    }
    ToIntegers(keys_.columns[0], lengths_);
    return absl::OkStatus();
  }

  // Takes held rows until max_rows rows are out or a window is closed.
  void Gather(int64_t max_rows) {
    const int64_t end = input_.begin() + input_.rows_held();
    // Rows [begin, row) are open, and lie in the chunk only.
    int64_t begin = input_.begin();
    int64_t row = begin;
    while (row < end && out_.rows() < max_rows && batches_.empty()) {
      const int64_t length = lengths_[row];
      const absl::Status problem = Problem(row);
      const bool is_dropped = length > config_->max_tokens &&
                              config_->too_long == plan::TOO_LONG_IS_DROPPED;
      if (!problem.ok() || is_dropped) {
        Keep(begin, row);
        if (!problem.ok()) Fail(problem, row);
        begin = ++row;
      } else if (config_->window.has_value()) {
        ++row;
        if (num_open() + row - begin < *config_->window) continue;
        Keep(begin, row);
        begin = row;
        CloseWindow(/*is_cut=*/false);
      } else {
        if (budget_.Fits(length)) {
          budget_.Add(length);
          ++row;
          if (!budget_.IsFull()) continue;
        }
        EmitOpen(begin, row);
        begin = row;
      }
    }
    Keep(begin, row);
    input_.Consume(row - input_.begin());
  }

  // Why an element is in no batch, or OK.
  absl::Status Problem(int64_t row) const {
    if (!keys_.errors.empty()) {
      if (const absl::Status* error = ErrorAt(keys_, row)) {
        if (ErrorAt(input_.chunk(), row) != nullptr) return *error;
        return absl::Status(
            error->code(), absl::StrCat(error->message(), "\n  in length_func ",
                                        config_->length_name));
      }
    }
    const int64_t length = lengths_[row];
    if (length >= 0 && length <= config_->max_tokens) return absl::OkStatus();
    return info_.Located(
        CheckLength(length, config_->max_tokens, config_->too_long));
  }

  void Fail(const absl::Status& status, int64_t row) {
    // With nothing open, the position after it is as good as any.
    if (num_open() > 0) {
      ++errors_given_;
      if (errors_to_drop_ > 0) {
        --errors_to_drop_;
        return;
      }
    }
    Chunk error = ErrorChunk(status, PlaceholderColumns(info_.leaves, 1));
    if (keys_.has_lineage()) error.lineage = Slice(keys_, row, 1).lineage;
    out_.Append(error, 0, 1);
  }

  // Copies rows [begin, end) of the chunk at hand, which are open.
  void Keep(int64_t begin, int64_t end) {
    if (begin == end) return;
    if (num_open() == 0) {
      input_.Consume(begin - input_.begin());
      WireWriter position;
      input_.Save(position);
      position_ = position.Take();
    }
    std::vector<int32_t> rows(end - begin);
    std::iota(rows.begin(), rows.end(), static_cast<int32_t>(begin));
    open_.Append(rows_, rows);
    open_lengths_.insert(open_lengths_.end(), lengths_.begin() + begin,
                         lengths_.begin() + end);
  }

  // A batch of what is open, rows [begin, end) of the chunk at hand included.
  void EmitOpen(int64_t begin, int64_t end) {
    if (num_open() == 0) {
      Emit(Slice(rows_, begin, end - begin),
           absl::MakeConstSpan(lengths_).subspan(begin, end - begin));
    } else {
      Keep(begin, end);
      const bool is_uniform = open_.is_uniform();
      const Chunk rows = open_.Take();
      if (is_uniform) {
        Emit(rows, open_lengths_);
      } else {
        EmitUnequalRanks(rows);
      }
      Reopen();
    }
    budget_.Clear();
  }

  void Emit(const Chunk& rows, absl::Span<const int64_t> lengths) {
    absl::StatusOr<Chunk> batch =
        PadRows(rows, config_->padding, lengths, *stats());
    if (!batch.ok()) {
      batch = ErrorChunk(info_.Located(batch.status()),
                         PlaceholderColumns(info_.leaves, 1));
    }
    batch->lineage = GroupLineage(rows, rows.rows);
    out_.Append(*batch, 0, 1);
  }

  void EmitUnequalRanks(const Chunk& rows) {
    Chunk error = ErrorChunk(
        info_.Located(absl::InvalidArgumentError(absl::StrCat(
            "elements of a ", config_->window.has_value() ? "window" : "batch",
            " must have one rank; got different ones"))),
        PlaceholderColumns(info_.leaves, 1));
    error.lineage = GroupLineage(rows, rows.rows);
    out_.Append(error, 0, 1);
  }

  void Reopen() {
    open_lengths_.clear();
    errors_given_ = 0;
  }

  // Cuts what is open into batches, to be given one by one.
  void CloseWindow(bool is_cut) {
    const bool is_uniform = open_.is_uniform();
    closed_bytes_ = open_.num_bytes();
    closed_ = open_.Take();
    closed_lengths_ = std::exchange(open_lengths_, {});
    if (is_uniform) {
      batches_ = CutWindow(closed_lengths_, *config_, is_cut);
    } else {
      EmitUnequalRanks(closed_);
    }
    if (batches_given_ >= batches_.size()) ForgetWindow();
  }

  void ForgetWindow() {
    closed_ = Chunk();
    closed_bytes_ = 0;
    closed_lengths_.clear();
    batches_.clear();
    batches_given_ = 0;
    errors_given_ = 0;
  }

  // Gives batches of the closed window, until max_rows rows are out.
  void GiveWindow(int64_t max_rows) {
    while (!batches_.empty() && out_.rows() < max_rows) {
      ChunkBuilder rows;
      const int source = rows.AddSource(closed_);
      std::vector<int64_t> lengths;
      for (int32_t row : batches_[batches_given_]) {
        rows.Append(source, row, 1);
        lengths.push_back(closed_lengths_[row]);
      }
      Emit(rows.Build(), lengths);
      if (++batches_given_ == batches_.size()) ForgetWindow();
    }
  }

  void CloseAtEnd() {
    if (config_->window.has_value()) {
      return CloseWindow(config_->drop_remainder);
    }
    if (!config_->drop_remainder) return EmitOpen(0, 0);
    open_.Take();
    Reopen();
    budget_.Clear();
  }

  const Scope scope_;
  const OpInfo& info_;
  const std::shared_ptr<const TokensConfig> config_;
  Input input_;
  Chunk rows_;  // those of input_.chunk(), without their lengths
  Chunk keys_;
  std::vector<int64_t> lengths_;
  ChunkBuilder out_;  // empty between calls

  // The batch or the window that is open.
  TokenBudget budget_;  // without a window
  RowBuffer open_;
  std::vector<int64_t> open_lengths_;
  std::string position_;         // of the input before its first row
  uint64_t errors_given_ = 0;    // since then
  uint64_t errors_to_drop_ = 0;  // after a restore: given before the save

  // The window that is closed and not all given.
  Chunk closed_;
  int64_t closed_bytes_ = 0;
  std::vector<int64_t> closed_lengths_;
  std::vector<Batch> batches_;
  uint64_t batches_given_ = 0;  // after a restore: of the one that opens first

  Reservation reservation_;
};

}  // namespace

OperatorOr MakeBatchByTokens(const plan::BatchByTokens& spec, OperatorPtr input,
                             OpContext& context) {
  auto config = std::make_shared<TokensConfig>();
  if (spec.length().has_python()) {
    PENSTOCK_ASSIGN_OR_RETURN(
        input, MakeKeys(spec.length(), nullptr, std::move(input), context));
  } else {
    PENSTOCK_ASSIGN_OR_RETURN(
        config->length,
        Evaluator::Make(spec.length(), context.input_leaves[0], context));
  }
  config->length_name = spec.length().name();
  config->max_tokens = spec.max_tokens();
  config->max_rows = spec.has_max_rows() ? spec.max_rows() : spec.max_tokens();
  if (spec.has_window()) config->window = spec.window();
  config->too_long = spec.too_long();
  config->drop_remainder = spec.drop_remainder();
  PENSTOCK_ASSIGN_OR_RETURN(
      config->padding,
      MakePadding(spec.shapes(), spec.padding(), context.input_leaves[0]));
  for (const TensorSpec& leaf : context.info->leaves) {
    if (!leaf.shape.has_rank()) config->max_given = 1;
  }
  return MakeOperator(
      [config = std::shared_ptr<const TokensConfig>(std::move(config)), input,
       &info = *context.info](const Scope& scope) -> StreamOr {
        PENSTOCK_ASSIGN_OR_RETURN(auto stream, input->Start(scope));
        return std::make_unique<TokensStream>(scope, info, config,
                                              std::move(stream));
      });
}

}  // namespace penstock::engine

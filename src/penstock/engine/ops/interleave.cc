#include "penstock/engine/ops/interleave.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <optional>

#include "penstock/base/status.h"
#include "penstock/data/builder.h"
#include "penstock/engine/evaluate.h"
#include "penstock/engine/ops/prefetch.h"
#include "penstock/engine/ops/subplan.h"

namespace penstock::engine {
namespace {

// Rows read at once from the input, and from an open dataset.
constexpr int64_t kOuterRows = 256;
constexpr int64_t kInnerRows = 1024;
// Datasets that begin to read before there is a place for them, as a multiple
// of the places. Small files are opened and read while others are given.
constexpr size_t kWaitingFactor = 2;
// Those of more chunks have time enough: a disk should not seek for others.
constexpr uint64_t kFewChunks = 8;
// Turns of the cycle before others get theirs.
constexpr int kMaxTurns = 1 << 16;

struct InterleaveConfig {
  OperatorPtr outer;
  std::shared_ptr<const Evaluator> function;  // element -> bound values
  OperatorPtr inner;
  size_t cycle_length = 1;
  int64_t block_length = 1;
  int64_t parallelism = 1;
  std::optional<bool> deterministic;
};

// A place in the cycle.
struct Slot {
  Input input;
  int source = -1;  // of its held chunk in the builder, once known there
  // The outer input's position before the element it was made from.
  std::string outer_position;
  // After a restore, until that element was read again: from where, and the
  // state that the dataset made from it begins with.
  std::unique_ptr<Input> rereading;
  std::string saved;

  bool is_open() const { return input.is_open() || rereading != nullptr; }
};

class InterleaveStream final : public Stream {
 public:
  InterleaveStream(const Scope& scope, const OpInfo& info,
                   std::shared_ptr<const InterleaveConfig> config,
                   std::unique_ptr<Stream> outer)
      : Stream(StatsOf(scope, info)),
        scope_(scope),
        info_(info),
        config_(std::move(config)),
        keep_order_(config_->deterministic.value_or(
            scope.run->options.is_deterministic)),
        outer_(std::move(outer)),
        slots_(config_->cycle_length) {}

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    PENSTOCK_ASSIGN_OR_RETURN(const bool is_restored, Reopen(request));
    if (!is_restored) return Pull::Blocked();
    for (Slot& slot : slots_) slot.source = -1;

    size_t waiting = 0;  // places in a row that have to wait
    for (int turn = 0; turn < kMaxTurns; ++turn) {
      if (out_.rows() == request.max_rows) break;
      PENSTOCK_ASSIGN_OR_RETURN(const Turn result, TakeTurn(request));
      switch (result) {
        case Turn::kRows:
          waiting = 0;
          continue;
        case Turn::kNothing:
          continue;
        case Turn::kFlush:
          return Flush();
        case Turn::kEnd:
          if (out_.rows() > 0) return Flush();
          return Pull::End();
        case Turn::kError:
          return Pull::Rows(*std::exchange(error_, {}));
        case Turn::kWait:
          // In any order: whoever has something may come first.
          if (!keep_order_ && ++waiting < slots_.size()) {
            Advance();
            continue;
          }
          if (out_.rows() > 0) return Flush();
          return Pull::Blocked();
      }
    }
    if (out_.rows() > 0) return Flush();
    return Yield(request);
  }

  void DoSave(WireWriter& writer) const override {
    // Those that have no place yet are opened again.
    if (waiting_.empty()) {
      outer_.Save(writer);
    } else {
      writer.Raw(waiting_.front().outer_position);
    }
    writer.Bool(has_ended_ && waiting_.empty());
    writer.Varint(place_);
    writer.Varint(in_block_);
    for (const Slot& slot : slots_) {
      writer.Bool(slot.is_open());
      if (!slot.is_open()) continue;
      writer.Bytes(slot.outer_position);
      if (slot.rereading != nullptr) {
        writer.Bytes(slot.saved);
      } else {
        WireWriter state;
        slot.input.Save(state);
        writer.Bytes(state.bytes());
      }
    }
  }

  absl::Status DoRestore(WireReader& reader) override {
    PENSTOCK_RETURN_IF_ERROR(outer_.Restore(reader));
    PENSTOCK_ASSIGN_OR_RETURN(has_ended_, reader.Bool());
    PENSTOCK_ASSIGN_OR_RETURN(place_, reader.Varint());
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t in_block, reader.Varint());
    in_block_ = static_cast<int64_t>(in_block);
    if (place_ >= slots_.size()) {
      return absl::DataLossError("a saved position names no place");
    }
    for (Slot& slot : slots_) {
      PENSTOCK_ASSIGN_OR_RETURN(const bool is_open, reader.Bool());
      if (!is_open) continue;
      PENSTOCK_ASSIGN_OR_RETURN(slot.outer_position, reader.Bytes());
      PENSTOCK_ASSIGN_OR_RETURN(slot.saved, reader.Bytes());
      PENSTOCK_ASSIGN_OR_RETURN(auto outer, config_->outer->Start(scope_));
      slot.rereading = std::make_unique<Input>(std::move(outer));
      WireReader position(slot.outer_position);
      PENSTOCK_RETURN_IF_ERROR(slot.rereading->Restore(position));
      ++num_open_;
      ++num_rereading_;
    }
    return absl::OkStatus();
  }

 private:
  // What one look at the place whose turn it is came to.
  enum class Turn { kRows, kNothing, kWait, kFlush, kError, kEnd };

  absl::StatusOr<Turn> TakeTurn(const Request& request) {
    Slot& slot = slots_[place_];
    if (!slot.is_open()) {
      PENSTOCK_ASSIGN_OR_RETURN(const Turn opened, Open(slot, request));
      if (opened != Turn::kRows) return opened;
    }
    PENSTOCK_ASSIGN_OR_RETURN(
        const Pull::Kind kind,
        slot.input.Fill({InnerRows(request), request.waker}));
    if (kind == Pull::Kind::kBlocked) {
      PENSTOCK_RETURN_IF_ERROR(StartOthers(request));
      return Turn::kWait;
    }
    if (kind == Pull::Kind::kEnd) {
      ++num_ended_;
      slot = Slot();
      --num_open_;
      Advance();
      return Turn::kNothing;
    }
    if (slot.source < 0) {
      ++num_chunks_;
      if (!out_.Fits(slot.input.chunk())) return Turn::kFlush;
      slot.source = out_.AddSource(slot.input.chunk());
    }
    const int64_t rows =
        std::min({slot.input.rows_held(), config_->block_length - in_block_,
                  request.max_rows - out_.rows()});
    out_.Append(slot.source, slot.input.begin(), rows);
    slot.input.Consume(rows);
    if (slot.input.rows_held() == 0) slot.source = -1;
    in_block_ += rows;
    if (in_block_ == config_->block_length) Advance();
    // One dataset at a time: its chunk is the result, without a copy.
    return slots_.size() == 1 ? Turn::kFlush : Turn::kRows;
  }

  // Opens the next element's dataset at `slot`: kRows if it did.
  absl::StatusOr<Turn> Open(Slot& slot, const Request& request) {
    if (!waiting_.empty()) {
      Place(slot);
      return Turn::kRows;
    }
    PENSTOCK_ASSIGN_OR_RETURN(const Pull::Kind kind, NextElement(request));
    if (kind == Pull::Kind::kBlocked) return Turn::kWait;
    if (kind == Pull::Kind::kEnd) {
      if (num_open_ == 0) return Turn::kEnd;
      Advance();
      return Turn::kNothing;
    }
    const absl::Status opened = OpenAt(slot);
    if (opened.ok()) {
      ++num_open_;
      return Turn::kRows;
    }
    if (out_.rows() > 0) return Turn::kFlush;
    error_ = ErrorChunk(opened, PlaceholderColumns(info_.leaves, 1));
    error_->lineage = Slice(values_, outer_.begin(), 1).lineage;
    outer_.Consume(1);
    return Turn::kError;
  }

  // Sees to it that the next element, and what the function made of it, is
  // there.
  absl::StatusOr<Pull::Kind> NextElement(const Request& request) {
    if (has_ended_) return Pull::Kind::kEnd;
    if (outer_.rows_held() > 0) return Pull::Kind::kRows;
    const bool is_exact = scope_.run->options.is_row_exact;
    PENSTOCK_ASSIGN_OR_RETURN(
        const Pull::Kind kind,
        outer_.Fill({is_exact ? 1 : kOuterRows, request.waker}));
    if (kind == Pull::Kind::kEnd) has_ended_ = true;
    if (kind != Pull::Kind::kRows) return kind;
    PENSTOCK_ASSIGN_OR_RETURN(values_,
                              config_->function->Apply(outer_.chunk(), scope_));
    return kind;
  }

  // Gives the dataset that has waited longest its place.
  void Place(Slot& slot) {
    slot = std::move(waiting_.front());
    waiting_.pop_front();
    ++num_open_;
  }

  // Uses the next element up, unless something is wrong with it.
  absl::Status OpenAt(Slot& slot) {
    const int64_t row = outer_.begin();
    if (const absl::Status* error = ErrorAt(values_, row)) return *error;
    WireWriter position;
    outer_.Save(position);
    PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<Stream> inner,
                              StartInner(values_, row));
    outer_.Consume(1);
    slot.outer_position = position.Take();
    slot.input = Input(Ahead(std::move(inner)));
    return absl::OkStatus();
  }

  StreamOr StartInner(const Chunk& values, int64_t row) const {
    return StartSubplan(*config_->inner, values, row, scope_, info_);
  }

  std::unique_ptr<Stream> Ahead(std::unique_ptr<Stream> inner) const {
    const int64_t parallelism =
        KnobOr(scope_.run->knobs[info_.id].parallelism, config_->parallelism);
    if (parallelism <= 1 || scope_.run->options.is_row_exact) return inner;
    stats()->parallelism.store(slots_.size(), std::memory_order_relaxed);
    return MakeAheadStream(scope_, stats(), std::move(inner));
  }

  // Lets the other places' datasets begin to read while this one waits. Those
  // that are empty get theirs now: which ones, in the order of their turns,
  // does not depend on what the others still have.
  absl::Status StartOthers(const Request& request) {
    if (scope_.run->options.is_row_exact) return absl::OkStatus();
    for (size_t i = 1; i < slots_.size(); ++i) {
      Slot& slot = slots_[(place_ + i) % slots_.size()];
      if (slot.is_open()) continue;
      if (waiting_.empty()) {
        PENSTOCK_ASSIGN_OR_RETURN(const bool has_next, OpenWaiting(request));
        if (!has_next) break;
      }
      Place(slot);
    }
    const bool are_small = num_chunks_ <= kFewChunks * num_ended_;
    while (are_small && waiting_.size() < kWaitingFactor * slots_.size()) {
      PENSTOCK_ASSIGN_OR_RETURN(const bool has_next, OpenWaiting(request));
      if (!has_next) break;
    }
    for (Slot& slot : slots_) {
      if (&slot == &slots_[place_]) continue;
      PENSTOCK_RETURN_IF_ERROR(BeginToRead(slot, request));
    }
    for (Slot& slot : waiting_) {
      PENSTOCK_RETURN_IF_ERROR(BeginToRead(slot, request));
    }
    return absl::OkStatus();
  }

  // False: there is none now, or something is wrong with it, which is said when
  // its turn has come.
  absl::StatusOr<bool> OpenWaiting(const Request& request) {
    PENSTOCK_ASSIGN_OR_RETURN(const Pull::Kind kind, NextElement(request));
    if (kind != Pull::Kind::kRows) return false;
    Slot slot;
    if (!OpenAt(slot).ok()) return false;
    waiting_.push_back(std::move(slot));
    return true;
  }

  absl::Status BeginToRead(Slot& slot, const Request& request) {
    if (!slot.input.is_open() || slot.input.rows_held() > 0) {
      return absl::OkStatus();
    }
    return slot.input.Fill({InnerRows(request), request.waker}).status();
  }

  // After a restore: reads the open datasets' elements again. False: not yet.
  absl::StatusOr<bool> Reopen(const Request& request) {
    if (num_rereading_ == 0) return true;
    for (Slot& slot : slots_) {
      if (slot.rereading == nullptr) continue;
      PENSTOCK_ASSIGN_OR_RETURN(const Pull::Kind kind,
                                slot.rereading->Fill({1, request.waker}));
      if (kind == Pull::Kind::kBlocked) return false;
      if (kind == Pull::Kind::kEnd) {
        return info_.Located(absl::DataLossError(
            "an element of the saved state is no longer there: the source "
            "changed since"));
      }
      PENSTOCK_ASSIGN_OR_RETURN(
          const Chunk values,
          config_->function->Apply(slot.rereading->Take(1), scope_));
      if (!values.errors.empty()) return values.errors[0].status;
      PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<Stream> inner,
                                StartInner(values, 0));
      slot.input = Input(Ahead(std::move(inner)));
      WireReader saved(slot.saved);
      PENSTOCK_RETURN_IF_ERROR(slot.input.Restore(saved));
      slot.rereading.reset();
      slot.saved.clear();
      --num_rereading_;
    }
    return true;
  }

  int64_t InnerRows(const Request& request) const {
    const int64_t needed =
        std::min(request.max_rows, config_->block_length - in_block_);
    if (scope_.run->options.is_row_exact || slots_.size() == 1) return needed;
    return std::max(needed, kInnerRows);
  }

  Pull Flush() { return Pull::Rows(out_.Build()); }

  void Advance() {
    place_ = (place_ + 1) % slots_.size();
    in_block_ = 0;
  }

  const Scope scope_;
  const OpInfo& info_;
  const std::shared_ptr<const InterleaveConfig> config_;
  const bool keep_order_;

  Input outer_;
  bool has_ended_ = false;  // the outer input
  Chunk values_;            // of the function, for outer_.chunk()
  std::vector<Slot> slots_;
  std::deque<Slot> waiting_;  // begun, for places that become empty
  size_t num_open_ = 0;
  size_t num_rereading_ = 0;
  uint64_t num_chunks_ = 0;     // of all datasets so far
  uint64_t num_ended_ = 0;      // datasets
  uint64_t place_ = 0;          // whose turn it is
  int64_t in_block_ = 0;        // rows of its turn so far
  ChunkBuilder out_;            // empty between calls
  std::optional<Chunk> error_;  // of one call, on its way out
};

OperatorOr Make(InterleaveConfig config, const plan::Function& function,
                absl::Span<const TensorSpec> leaves, OpContext& context) {
  const OpInfo& info = *context.info;
  PENSTOCK_ASSIGN_OR_RETURN(config.function,
                            Evaluator::Make(function, leaves, context));
  PENSTOCK_ASSIGN_OR_RETURN(config.inner,
                            context.build_subplan(function.dataset()));
  auto shared = std::make_shared<const InterleaveConfig>(std::move(config));
  return MakeOperator([shared, &info](const Scope& scope) -> StreamOr {
    PENSTOCK_ASSIGN_OR_RETURN(auto outer, shared->outer->Start(scope));
    return std::make_unique<InterleaveStream>(scope, info, shared,
                                              std::move(outer));
  });
}

}  // namespace

OperatorOr MakeInterleave(const plan::Interleave& spec, OperatorPtr input,
                          OpContext& context) {
  InterleaveConfig config;
  config.outer = std::move(input);
  config.cycle_length = static_cast<size_t>(spec.cycle_length());
  config.block_length = spec.block_length();
  if (spec.has_parallelism()) config.parallelism = spec.parallelism();
  if (spec.has_deterministic()) config.deterministic = spec.deterministic();
  return Make(std::move(config), spec.function(), context.input_leaves[0],
              context);
}

OperatorOr MakeFlatMapOver(OperatorPtr outer, std::vector<TensorSpec> leaves,
                           const plan::Function& function, OpContext& context) {
  InterleaveConfig config;
  config.outer = std::move(outer);
  config.block_length = std::numeric_limits<int64_t>::max();
  return Make(std::move(config), function, leaves, context);
}

OperatorOr MakeFlatMap(const plan::FlatMap& spec, OperatorPtr input,
                       OpContext& context) {
  return MakeFlatMapOver(std::move(input), context.input_leaves[0],
                         spec.function(), context);
}

}  // namespace penstock::engine

#include "penstock/engine/ops/choose.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/hash.h"
#include "penstock/base/status.h"
#include "penstock/data/builder.h"

namespace penstock::engine {
namespace {

// Rows read at once from an input.
constexpr int64_t kInputRows = 1024;
// Choices before others get their turn.
constexpr int kMaxTurns = 1 << 16;

struct Slot {
  Input input;
  bool has_ended = false;
  int source = -1;  // of its held chunk in the builder, once known there
};

class ChooseStream final : public Stream {
 public:
  // Draws by `weights` and `key`, unless there are `choices`.
  ChooseStream(const Scope& scope, const OpInfo& info, bool stop_on_empty,
               std::vector<double> weights, uint64_t key,
               std::unique_ptr<Stream> choices,
               std::vector<std::unique_ptr<Stream>> inputs)
      : Stream(StatsOf(scope, info)),
        is_row_exact_(scope.run->options.is_row_exact),
        info_(info),
        stop_on_empty_(stop_on_empty),
        weights_(std::move(weights)),
        key_(key) {
    if (choices != nullptr) choices_ = Input(std::move(choices));
    for (std::unique_ptr<Stream>& input : inputs) {
      slots_.emplace_back().input = Input(std::move(input));
    }
    AddWeights();
  }

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    for (Slot& slot : slots_) slot.source = -1;
    for (int turn = 0; turn < kMaxTurns && out_.rows() < request.max_rows;
         ++turn) {
      PENSTOCK_ASSIGN_OR_RETURN(const Turn result, TakeTurn(request));
      if (result == Turn::kGoOn) continue;
      if (out_.rows() > 0) break;
      if (result == Turn::kEnd) return Pull::End();
      if (result == Turn::kWait) return Pull::Blocked();
      if (result == Turn::kError) return Pull::Rows(TakeError());
    }
    if (out_.rows() > 0) return Pull::Rows(out_.Build());
    return Yield(request);
  }

  void DoSave(WireWriter& writer) const override {
    writer.Bool(has_ended_);
    writer.Varint(draws_);
    if (choices_.is_open()) SaveApart(choices_, writer);
    for (const Slot& slot : slots_) {
      writer.Bool(slot.has_ended);
      SaveApart(slot.input, writer);
    }
  }

  absl::Status DoRestore(WireReader& reader) override {
    PENSTOCK_ASSIGN_OR_RETURN(has_ended_, reader.Bool());
    PENSTOCK_ASSIGN_OR_RETURN(draws_, reader.Varint());
    if (choices_.is_open()) {
      PENSTOCK_RETURN_IF_ERROR(RestoreApart(choices_, reader));
    }
    for (Slot& slot : slots_) {
      PENSTOCK_ASSIGN_OR_RETURN(slot.has_ended, reader.Bool());
      PENSTOCK_RETURN_IF_ERROR(RestoreApart(slot.input, reader));
    }
    AddWeights();
    return absl::OkStatus();
  }

 private:
  // What one choice came to: a row or nothing, no more now, an error that goes
  // alone, or a row that does not go with those before.
  enum class Turn { kGoOn, kWait, kEnd, kError, kFlush };

  static void SaveApart(const Input& input, WireWriter& writer) {
    WireWriter position;
    input.Save(position);
    writer.Bytes(position.bytes());
  }

  static absl::Status RestoreApart(Input& input, WireReader& reader) {
    PENSTOCK_ASSIGN_OR_RETURN(const std::string_view position, reader.Bytes());
    WireReader position_reader(position);
    return input.Restore(position_reader);
  }

  absl::StatusOr<Turn> TakeTurn(const Request& request) {
    if (has_ended_ || std::all_of(slots_.begin(), slots_.end(),
                                  [](const Slot& s) { return s.has_ended; })) {
      return Turn::kEnd;
    }
    size_t index = 0;
    if (choices_.is_open()) {
      PENSTOCK_ASSIGN_OR_RETURN(
          const Pull::Kind kind,
          choices_.Fill({is_row_exact_ ? 1 : kInputRows, request.waker}));
      if (kind == Pull::Kind::kBlocked) return Turn::kWait;
      if (kind == Pull::Kind::kEnd) {
        has_ended_ = true;
        return Turn::kEnd;
      }
      const absl::StatusOr<size_t> chosen = Chosen();
      if (!chosen.ok()) {
        error_ = chosen.status();
        return Turn::kError;
      }
      index = *chosen;
    } else {
      if (total_ <= 0) return Turn::kEnd;
      index = Drawn();
    }
    return TakeFrom(index, request);
  }

  absl::StatusOr<Turn> TakeFrom(size_t index, const Request& request) {
    Slot& slot = slots_[index];
    if (slot.has_ended) {  // named again: nothing is there
      NextChoice();
      return Turn::kGoOn;
    }
    PENSTOCK_ASSIGN_OR_RETURN(
        const Pull::Kind kind,
        slot.input.Fill({is_row_exact_ ? 1 : kInputRows, request.waker}));
    if (kind == Pull::Kind::kBlocked) return Turn::kWait;
    if (kind == Pull::Kind::kEnd) {
      slot.has_ended = true;
      has_ended_ = stop_on_empty_;
      AddWeights();
      NextChoice();
      return Turn::kGoOn;
    }
    if (slot.source < 0) {
      if (!out_.Fits(slot.input.chunk())) return Turn::kFlush;
      Chunk chunk = slot.input.chunk();
      // The same dataset may be there twice.
      SaltLineage(chunk, index + 1);
      slot.source = out_.AddSource(chunk);
    }
    out_.Append(slot.source, slot.input.begin(), 1);
    slot.input.Consume(1);
    if (slot.input.rows_held() == 0) slot.source = -1;
    NextChoice();
    return Turn::kGoOn;
  }

  void NextChoice() {
    ++draws_;
    if (choices_.is_open()) choices_.Consume(1);
  }

  absl::StatusOr<size_t> Chosen() const {
    const int64_t row = choices_.begin();
    if (const absl::Status* error = ErrorAt(choices_.chunk(), row)) {
      return *error;
    }
    const int64_t index = *choices_.chunk().columns[0].Row<int64_t>(row);
    if (index >= 0 && index < static_cast<int64_t>(slots_.size())) {
      return static_cast<size_t>(index);
    }
    return info_.Located(absl::InvalidArgumentError(
        absl::StrCat("a choice must be from 0 to ", slots_.size() - 1,
                     ", one "
                     "of the datasets; got ",
                     index)));
  }

  Chunk TakeError() {
    Chunk error = ErrorChunk(std::exchange(error_, absl::OkStatus()),
                             PlaceholderColumns(info_.leaves, 1));
    error.lineage = Slice(choices_.chunk(), choices_.begin(), 1).lineage;
    NextChoice();
    return error;
  }

  // Draws among those that have not ended: as if others were drawn in vain.
  size_t Drawn() const {
    const double at =
        static_cast<double>(Combine(key_, draws_) >> 11) * 0x1p-53 * total_;
    const auto found = std::upper_bound(sums_.begin(), sums_.end(), at);
    return found == sums_.end() ? last_
                                : static_cast<size_t>(found - sums_.begin());
  }

  void AddWeights() {
    total_ = 0;
    sums_.clear();
    for (size_t i = 0; i < weights_.size(); ++i) {
      if (!slots_[i].has_ended && weights_[i] > 0) {
        total_ += weights_[i];
        last_ = i;
      }
      sums_.push_back(total_);
    }
  }

  const bool is_row_exact_;
  const OpInfo& info_;
  const bool stop_on_empty_;
  const std::vector<double> weights_;  // of sample
  const uint64_t key_;
  Input choices_;  // of choose
  std::vector<Slot> slots_;
  uint64_t draws_ = 0;
  bool has_ended_ = false;
  std::vector<double> sums_;  // of the weights that count, up to each
  double total_ = 0;
  size_t last_ = 0;     // that counts
  ChunkBuilder out_;    // empty between calls
  absl::Status error_;  // of one call, on its way out
};

absl::StatusOr<std::vector<std::unique_ptr<Stream>>> StartAll(
    absl::Span<const OperatorPtr> inputs, const Scope& scope) {
  std::vector<std::unique_ptr<Stream>> streams;
  for (const OperatorPtr& input : inputs) {
    PENSTOCK_ASSIGN_OR_RETURN(streams.emplace_back(), input->Start(scope));
  }
  return streams;
}

}  // namespace

OperatorOr MakeSample(const plan::SampleFromDatasets& spec,
                      std::vector<OperatorPtr> inputs, OpContext& context) {
  const OpInfo& info = *context.info;
  std::vector<double> weights(spec.weights().begin(), spec.weights().end());
  if (weights.empty()) weights.assign(inputs.size(), 1.0);
  return MakeOperator([=, &info](const Scope& scope) -> StreamOr {
    const bool is_new = spec.rerandomize_each_iteration();
    const uint64_t key = Combine(scope.run->RandomKey(info, is_new),
                                 is_new ? scope.iteration : scope.binding);
    PENSTOCK_ASSIGN_OR_RETURN(auto streams, StartAll(inputs, scope));
    return std::make_unique<ChooseStream>(scope, info, spec.stop_on_empty(),
                                          weights, key, nullptr,
                                          std::move(streams));
  });
}

OperatorOr MakeChoose(const plan::ChooseFromDatasets& spec,
                      std::vector<OperatorPtr> inputs, OpContext& context) {
  const OpInfo& info = *context.info;
  return MakeOperator([=, &info](const Scope& scope) -> StreamOr {
    PENSTOCK_ASSIGN_OR_RETURN(auto streams, StartAll(inputs, scope));
    std::unique_ptr<Stream> choices = std::move(streams.front());
    streams.erase(streams.begin());
    return std::make_unique<ChooseStream>(
        scope, info, spec.stop_on_empty(), std::vector<double>(), 0,
        std::move(choices), std::move(streams));
  });
}

}  // namespace penstock::engine

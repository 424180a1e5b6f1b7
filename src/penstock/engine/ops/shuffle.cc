#include "penstock/engine/ops/shuffle.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "penstock/base/clock.h"
#include "penstock/base/hash.h"
#include "penstock/base/status.h"
#include "penstock/data/row_store.h"

namespace penstock::engine {
namespace {

constexpr int64_t kWholeInput = std::numeric_limits<int64_t>::max();
// Rows given between two recordings of the window, at least.
constexpr int64_t kMinRowsBetween = 16384;

// A place of the input to read from again.
struct Mark {
  int64_t ordinal;  // of the next row there
  std::string position;
};

// Rows that may go together: where ranks differ, each goes alone.
int64_t MaxGiven(absl::Span<const TensorSpec> leaves) {
  for (const TensorSpec& leaf : leaves) {
    if (!leaf.shape.has_rank()) return 1;
  }
  return kMaxChunkRows;
}

class ShuffleStream final : public Stream {
 public:
  ShuffleStream(const Scope& scope, const OpInfo& info, uint64_t key,
                int64_t window, std::unique_ptr<Stream> input)
      : Stream(StatsOf(scope, info)),
        scope_(scope),
        info_(info),
        key_(key),
        window_(window),
        max_given_(MaxGiven(info.leaves)),
        input_(std::move(input)),
        store_(info.leaves, scope.run->options.needs_lineage),
        reservation_(scope.run->environment.memory) {}

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    if (recording_.empty() && IsReceiving()) Beginning();
    if (!is_full_) {
      PENSTOCK_ASSIGN_OR_RETURN(
          const bool is_ready, is_rereading_ ? Reread(request) : Fill(request));
      if (!is_ready) return Pull::Blocked();
    }
    if (!has_ended_ && input_.rows_held() == 0) {
      MarkIfDue();
      PENSTOCK_ASSIGN_OR_RETURN(
          const Pull::Kind kind,
          input_.Fill(
              {std::min(request.max_rows, InputRows()), request.waker}));
      if (kind == Pull::Kind::kBlocked) return Pull::Blocked();
      has_ended_ = kind == Pull::Kind::kEnd;
    }
    if (IsRecordingDue()) Record();
    return has_ended_ ? Drain(request) : Draw(request);
  }

  // The last recording, and rows given since.
  void DoSave(WireWriter& writer) const override {
    writer.Varint(static_cast<uint64_t>(given_ - recorded_at_));
    writer.Bytes(recording_);
    // Rows of other engines come again only from a place that a state names.
    if (recording_.empty() && IsReceiving()) writer.Bytes(Beginning());
  }

  absl::Status DoRestore(WireReader& reader) override {
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t rows, reader.Varint());
    PENSTOCK_ASSIGN_OR_RETURN(const std::string_view bytes, reader.Bytes());
    SkipRows(static_cast<int64_t>(rows));
    if (bytes.empty()) {  // before the first recording
      if (!IsReceiving()) return absl::OkStatus();
      PENSTOCK_ASSIGN_OR_RETURN(const std::string_view beginning,
                                reader.Bytes());
      WireReader position(beginning);
      return input_.Restore(position);
    }
    recording_ = bytes;
    WireReader recording(recording_);
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t given, recording.Varint());
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t read, recording.Varint());
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t mark, recording.Varint());
    PENSTOCK_ASSIGN_OR_RETURN(const std::string_view position,
                              recording.Bytes());
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t size, recording.Varint());
    if (size > recording_.size() || mark > read) {
      return absl::DataLossError("a saved shuffle window is malformed");
    }
    given_ = recorded_at_ = static_cast<int64_t>(given);
    int64_t ordinal = 0;
    for (uint64_t i = 0; i < size; ++i) {
      PENSTOCK_ASSIGN_OR_RETURN(const int64_t delta, recording.Signed());
      ordinal += delta;
      ordinals_.push_back(ordinal);
      places_[ordinal] = static_cast<int64_t>(i);
    }
    marks_.push_back({static_cast<int64_t>(mark), std::string(position)});
    read_ = static_cast<int64_t>(mark);
    reread_until_ = static_cast<int64_t>(read);
    is_rereading_ = true;
    store_.Resize(static_cast<int64_t>(size));
    WireReader position_reader(marks_.back().position);
    return input_.Restore(position_reader);
  }

 private:
  int64_t InputRows() const {
    return scope_.run->options.is_row_exact ? 1 : kMaxChunkRows;
  }

  // Reads until the window is full or the input ends. False: not yet.
  absl::StatusOr<bool> Fill(const Request& request) {
    if (marks_.empty()) AddMark();
    while (store_.size() < window_) {
      const int64_t wanted = std::min(window_ - store_.size(), kMaxChunkRows);
      PENSTOCK_ASSIGN_OR_RETURN(const Pull::Kind kind,
                                input_.Fill({wanted, request.waker}));
      if (kind == Pull::Kind::kBlocked) return false;
      if (kind == Pull::Kind::kEnd) {
        has_ended_ = true;
        break;
      }
      const int64_t rows = input_.rows_held();
      store_.Append(input_.chunk(), input_.begin(), rows);
      input_.Consume(rows);
      for (int64_t i = 0; i < rows; ++i) ordinals_.push_back(read_++);
      PENSTOCK_RETURN_IF_ERROR(Charge());
    }
    is_full_ = true;
    return true;
  }

  // After a restore: reads again what the window held. False: not yet.
  absl::StatusOr<bool> Reread(const Request& request) {
    while (read_ < reread_until_) {
      const int64_t wanted = std::min(reread_until_ - read_, kMaxChunkRows);
      PENSTOCK_ASSIGN_OR_RETURN(const Pull::Kind kind,
                                input_.Fill({wanted, request.waker}));
      if (kind == Pull::Kind::kBlocked) return false;
      if (kind == Pull::Kind::kEnd) {
        return info_.Located(absl::DataLossError(
            "the input is shorter than when the state was saved"));
      }
      const int64_t rows = input_.rows_held();
      for (int64_t i = 0; i < rows; ++i, ++read_) {
        auto place = places_.find(read_);
        if (place == places_.end()) continue;
        store_.Put(place->second, input_.chunk(), input_.begin() + i);
      }
      input_.Consume(rows);
      PENSTOCK_RETURN_IF_ERROR(Charge());
    }
    places_.clear();
    is_rereading_ = false;
    is_full_ = true;
    return true;
  }

  // Fails early if the whole window will not fit.
  absl::Status Charge() {
    const int64_t rows = store_.size();
    const int64_t bytes = store_.num_bytes();
    const int64_t limit = scope_.run->environment.memory->limit();
    if (rows >= 64 && window_ != kWholeInput && rows < window_) {
      const double needed = static_cast<double>(bytes) /
                            static_cast<double>(rows) *
                            static_cast<double>(window_);
      if (needed > static_cast<double>(limit)) {
        return info_.Located(absl::ResourceExhaustedError(absl::StrCat(
            "shuffle window needs about ", static_cast<int64_t>(needed),
            " bytes; the memory budget is ", limit, "\n  (window ", window_,
            " x ", bytes / rows, " bytes per element, measured over ", rows,
            " elements)\n  Lower the window, or raise "
            "Options(memory_budget=...).")));
      }
      if (!is_reserved_) store_.Reserve(window_);
      is_reserved_ = true;
    }
    return info_.Located(reservation_.Resize(bytes));
  }

  int64_t Random(int64_t draw, int64_t size) const {
    const auto product = static_cast<unsigned __int128>(
                             Combine(key_, static_cast<uint64_t>(draw))) *
                         static_cast<uint64_t>(size);
    return static_cast<int64_t>(product >> 64);
  }

  absl::StatusOr<Pull> Draw(const Request& request) {
    const int64_t rows =
        std::min({request.max_rows, input_.rows_held(), max_given_});
    const int64_t size = store_.size();
    drawn_.resize(rows);
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t place = Random(given_ + i, size);
      drawn_[i] = place;
      ordinals_[place] = read_ + i;
    }
    Chunk chunk = store_.Swap(drawn_, input_.chunk(), input_.begin());
    input_.Consume(rows);
    read_ += rows;
    given_ += rows;
    PENSTOCK_RETURN_IF_ERROR(Charge());
    return Pull::Rows(std::move(chunk));
  }

  absl::StatusOr<Pull> Drain(const Request& request) {
    const int64_t rows =
        std::min({request.max_rows, store_.size(), max_given_});
    if (rows <= 0) return Pull::End();
    drawn_.resize(rows);
    for (int64_t i = 0; i < rows; ++i) {
      const auto size = static_cast<int64_t>(ordinals_.size());
      const int64_t place = Random(given_ + i, size);
      drawn_[i] = place;
      ordinals_[place] = ordinals_.back();
      ordinals_.pop_back();
    }
    given_ += rows;
    return Pull::Rows(store_.Remove(drawn_));
  }

  // As many as the window has, so that recordings cost a little per row.
  int64_t RowsBetween() const {
    return std::max<int64_t>(static_cast<int64_t>(ordinals_.size()),
                             kMinRowsBetween);
  }

  void AddMark() {
    WireWriter position;
    input_.Save(position);
    marks_.push_back({read_, position.Take()});
  }

  void MarkIfDue() {
    if (read_ - marks_.back().ordinal >= RowsBetween() / 4) AddMark();
  }

  // Writing down a window costs as much as giving its rows: not more often than
  // rows are worth it, nor than a restore would notice.
  bool IsRecordingDue() const {
    if (given_ - recorded_at_ < RowsBetween()) return false;
    const double nanos =
        static_cast<double>(Ticks() - recorded_ticks_) * NanosPerTick();
    return nanos >=
           static_cast<double>(scope_.run->environment.min_recording_nanos);
  }

  // Writes down the window, and forgets marks that no row needs any more.
  bool IsReceiving() const {
    return scope_.run->environment.receiver != nullptr;
  }
  // The input's state before its first row.
  const std::string& Beginning() const {
    if (beginning_.empty()) {
      WireWriter writer;
      input_.Save(writer);
      beginning_ = writer.Take();
    }
    return beginning_;
  }

  void Record() {
    int64_t oldest = read_;
    for (int64_t ordinal : ordinals_) oldest = std::min(oldest, ordinal);
    while (marks_.size() > 1 && marks_[1].ordinal <= oldest) marks_.pop_front();
    WireWriter writer;
    writer.Varint(static_cast<uint64_t>(given_));
    writer.Varint(static_cast<uint64_t>(read_));
    writer.Varint(static_cast<uint64_t>(marks_.front().ordinal));
    writer.Bytes(marks_.front().position);
    writer.Varint(ordinals_.size());
    int64_t previous = 0;
    for (int64_t ordinal : ordinals_) {
      writer.Signed(ordinal - previous);
      previous = ordinal;
    }
    recording_ = writer.Take();
    recorded_at_ = given_;
    recorded_ticks_ = Ticks();
  }

  const Scope scope_;
  const OpInfo& info_;
  const uint64_t key_;
  const int64_t window_;
  const int64_t max_given_;  // rows in a chunk
  Input input_;
  RowStore store_;
  Reservation reservation_;
  std::vector<int64_t> ordinals_;  // of the row at each place
  std::vector<int64_t> drawn_;     // kept from call to call for its memory
  int64_t read_ = 0;               // rows taken from the input
  int64_t given_ = 0;              // rows given: the number of the next draw
  bool is_reserved_ = false;       // memory for the window
  bool is_full_ = false;           // the window was filled once
  bool has_ended_ = false;         // the input

  std::deque<Mark> marks_;
  std::string recording_;  // empty: the beginning
  mutable std::string beginning_;
  int64_t recorded_at_ = 0;
  uint64_t recorded_ticks_ = 0;

  // After a restore, until the window's rows were read again.
  bool is_rereading_ = false;
  int64_t reread_until_ = 0;
  std::unordered_map<int64_t, int64_t> places_;  // by ordinal
};

}  // namespace

OperatorOr MakeShuffle(const plan::Shuffle& spec, OperatorPtr input,
                       OpContext& context) {
  const OpInfo& info = *context.info;
  return MakeOperator([spec, &info, input](const Scope& scope) -> StreamOr {
    int64_t window = kWholeInput;
    if (spec.has_window()) {
      PENSTOCK_ASSIGN_OR_RETURN(
          window, IntegerOf(spec.window(), scope, "shuffle.buffer_size", 1));
    }
    const bool reshuffle = spec.reshuffle_each_iteration();
    uint64_t key = Combine(scope.run->RandomKey(info, reshuffle),
                           reshuffle ? scope.iteration : scope.binding);
    // By what it shuffles, not by who does: a share that is run again gives its
    // rows in the same order.
    const uint64_t part = scope.run->PartKey(info);
    if (part != 0) key = Combine(key, part);
    PENSTOCK_ASSIGN_OR_RETURN(auto stream, input->Start(scope));
    return std::make_unique<ShuffleStream>(scope, info, key, window,
                                           std::move(stream));
  });
}

}  // namespace penstock::engine

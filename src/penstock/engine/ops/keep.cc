#include "penstock/engine/ops/keep.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "penstock/base/hash.h"
#include "penstock/base/status.h"
#include "penstock/data/builder.h"
#include "penstock/data/encode.h"
#include "penstock/engine/io_call.h"
#include "penstock/engine/kept_rows.h"

namespace penstock::engine {
namespace {

// Rows, or bytes, that kept chunks have at least, where rows follow each other.
constexpr int64_t kSettledRows = 1024;
constexpr int64_t kSettledBytes = 1 << 16;

// What a chunk costs besides its rows.
constexpr int64_t kPartBytes = 512;

int64_t CompactBytes(const Chunk& chunk) {
  return static_cast<int64_t>(EncodedSize(chunk) + chunk.lineage.size()) +
         kPartBytes;
}

// A copy that holds on to nothing but itself: views into file blocks would keep
// the blocks.
absl::StatusOr<Chunk> Compact(const Chunk& chunk) {
  Buffer bytes = Buffer::Allocate(EncodedSize(chunk));
  Encode(chunk, bytes.MutableAs<std::byte>());
  PENSTOCK_ASSIGN_OR_RETURN(Chunk copy, Decode(bytes));
  if (chunk.has_lineage()) {
    copy.lineage = Buffer::Allocate(chunk.lineage.size());
    std::memcpy(copy.lineage.MutableAs<uint64_t>(),
                chunk.lineage.As<uint64_t>(), chunk.lineage.size());
  }
  return copy;
}

// The name of all that decides which rows there are.
std::string KeyOf(const KeepSpec& spec, const Run& run) {
  uint64_t word = HashBytes(run.environment.directory);
  word = Combine(word, static_cast<uint64_t>(run.options.max_element_bytes));
  if (run.options.needs_lineage) word = Combine(word, spec.keys);
  return absl::StrFormat("%s-%016x", spec.fingerprint, word);
}

// Gathers the rows of a pass and puts them into the store, chunk by chunk.
class Keeper final {
 public:
  Keeper(const Run& run, const KeepSpec& spec, KeptRows::Use& use)
      : run_(run), spec_(spec), use_(use), losses_(use.losses()) {
    files_seen_.resize(spec.file_ops.size());
  }

  // The rows that have come, whose first has ordinal `first`.
  void Keep(const Chunk& chunk, int64_t first, int64_t max_bytes) {
    if (is_full_) return;
    max_bytes_ = max_bytes;
    int64_t begin = 0;
    for (const RowError& error : chunk.errors) {
      Append(chunk, begin, error.row, first);
      Settle();
      begin = error.row + 1;
    }
    Append(chunk, begin, chunk.rows, first);
    if (fresh_.rows() >= kSettledRows || fresh_bytes_ >= kSettledBytes) {
      Settle();
    }
  }

  // Makes one chunk of the rows that came last.
  void Settle() {
    fresh_bytes_ = 0;
    if (fresh_.rows() == 0) return;
    const Chunk chunk = fresh_.Build();
    if (is_full_) return;
    auto reservation = std::make_unique<Reservation>(run_.environment.memory);
    const int64_t bytes = CompactBytes(chunk);
    // What had to give way is not put back in this pass: it would go again.
    is_full_ = use_.losses() != losses_ || use_.bytes() + bytes > max_bytes_ ||
               !reservation->TryGrow(bytes) || !AddFiles();
    if (is_full_) return;
    absl::StatusOr<Chunk> copy = Compact(chunk);
    if (!copy.ok()) return;  // not encodable: computed again
    use_.Add(first_, *std::move(copy), std::move(reservation));
  }

 private:
  void Append(const Chunk& chunk, int64_t begin, int64_t end, int64_t first) {
    if (begin >= end) return;
    const bool follows =
        fresh_.rows() > 0 && first_ + fresh_.rows() == first + begin;
    if (!follows || !fresh_.Fits(chunk)) Settle();
    if (fresh_.rows() == 0) first_ = first + begin;
    const Chunk rows = Slice(chunk, begin, end - begin);
    fresh_bytes_ += rows.NumBytes();
    fresh_.Append(rows, 0, rows.rows);
  }

  // Every file that the rows may have come from was opened before they came.
  bool AddFiles() {
    for (size_t i = 0; i < spec_.file_ops.size(); ++i) {
      const auto records =
          run_.file_logs.at(spec_.file_ops[i])->Since(files_seen_[i]);
      if (!records.has_value() || !use_.AddFiles(*records)) return false;
      files_seen_[i] += records->size();
    }
    losses_ = use_.losses();  // those of files that changed are over
    return true;
  }

  const Run& run_;
  const KeepSpec& spec_;
  KeptRows::Use& use_;
  uint64_t losses_;
  std::vector<size_t> files_seen_;  // records of each log
  int64_t max_bytes_ = 0;
  bool is_full_ = false;  // nothing more in this pass
  ChunkBuilder fresh_;
  int64_t fresh_bytes_ = 0;
  int64_t first_ = 0;  // of fresh_
};

class KeepStream final : public Stream {
 public:
  KeepStream(const Scope& scope, const OpInfo& info,
             std::shared_ptr<const KeepSpec> spec,
             std::unique_ptr<Stream> input)
      : Stream(StatsOf(scope, info), Counts::kTime),
        run_(scope.run),
        knobs_(run_->knobs[info.id]),
        counts_(run_->kept[info.id]),
        spec_(std::move(spec)),
        input_(std::move(input)) {}

  ~KeepStream() override { StopUsing(); }

  void Save(WireWriter& writer) const override {
    if (behind_ + skip_rows() == 0) return input_->Save(writer);
    WireWriter state;
    input_->Save(state);
    SaveLater(writer, state.bytes(), behind_ + skip_rows());
  }

  absl::Status Restore(WireReader& reader) override {
    SkipRows(-skip_rows());  // as in every stream, the state's count instead
    // A state that says "the beginning, and so many rows later" tells the row.
    WireWriter fresh;
    input_->Save(fresh);
    WireReader beginning(fresh.bytes());
    WireReader later(reader.rest());
    PENSTOCK_RETURN_IF_ERROR(beginning.Varint().status());
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t rows, later.Varint());
    if (later.rest().substr(0, beginning.rest().size()) == beginning.rest()) {
      row_ = behind_ = static_cast<int64_t>(rows);
      may_be_past_end_ = rows > 0;
      reader = WireReader(later.rest().substr(beginning.rest().size()));
      return absl::OkStatus();
    }
    is_lost_ = true;
    return input_->Restore(reader);
  }

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    const int64_t max_bytes = knobs_.keep_bytes.load(std::memory_order_relaxed);
    if (use_ == nullptr) {
      if (max_bytes == 0 || is_lost_ || run_->environment.kept == nullptr) {
        return Compute(request);
      }
      if (!StartUsing(request)) return Pull::Blocked();
    }
    KeptRows::Found found = use_->Find(row_, request.max_rows);
    switch (found.kind) {
      case KeptRows::Found::Kind::kRows:
        row_ += found.chunk.rows;
        behind_ += found.chunk.rows;
        may_be_past_end_ = false;
        counts_.hits.fetch_add(found.chunk.rows, std::memory_order_relaxed);
        return Pull::Rows(std::move(found.chunk));
      case KeptRows::Found::Kind::kEnd:
        return Pull::End();
      case KeptRows::Found::Kind::kHole:
        break;
    }
    return max_bytes > 0 ? ComputeAndKeep(request, found.hole_rows, max_bytes)
                         : StopAndCompute(request);
  }
  int64_t DoSkip(int64_t rows) override {
    row_ += rows;
    behind_ += rows;
    may_be_past_end_ = true;
    return rows;
  }
  void DoSave(WireWriter&) const override {}
  absl::Status DoRestore(WireReader&) override { return absl::OkStatus(); }

 private:
  absl::StatusOr<Pull> Compute(const Request& request) {
    if (behind_ > 0) input_->SkipRows(std::exchange(behind_, 0));
    PENSTOCK_ASSIGN_OR_RETURN(Pull pull, input_->Next(request));
    if (pull.has_rows()) {
      row_ += pull.chunk.rows;
      may_be_past_end_ = false;
    }
    return pull;
  }

  absl::StatusOr<Pull> StopAndCompute(const Request& request) {
    StopUsing();
    return Compute(request);
  }

  absl::StatusOr<Pull> ComputeAndKeep(const Request& request, int64_t hole_rows,
                                      int64_t max_bytes) {
    const int64_t first = row_;
    PENSTOCK_ASSIGN_OR_RETURN(Pull pull,
                              Compute({std::min(request.max_rows, hole_rows),
                                       request.waker, request.group}));
    if (pull.has_rows()) {
      counts_.misses.fetch_add(pull.chunk.rows, std::memory_order_relaxed);
      keeper_->Keep(pull.chunk, first, max_bytes);
    } else if (pull.is_end()) {
      keeper_->Settle();
      if (!may_be_past_end_) use_->SetEnd(row_);
    }
    if (!pull.is_blocked()) Count();
    return pull;
  }

  // False: not now, since the files that rows came from are being looked at.
  bool StartUsing(const Request& request) {
    if (opening_ == nullptr) {
      key_ = KeyOf(*spec_, *run_);
      opening_ = run_->environment.kept->Open(key_, run_->instances);
      manifest_ = opening_->manifest();
    }
    if (!manifest_.empty()) {
      const std::optional<bool> is_unchanged = checking_.Poll(
          *run_->environment.io_pool, request.waker,
          [files = run_->environment.files, manifest = manifest_] {
            return IsUnchanged(*files, manifest);
          });
      if (!is_unchanged.has_value()) return false;
      manifest_.clear();
      if (!*is_unchanged) {
        opening_->Drop();
        opening_ = run_->environment.kept->Open(key_, run_->instances);
      }
    }
    use_ = std::move(opening_);
    keeper_.emplace(*run_, *spec_, *use_);
    Count();
    return true;
  }

  void StopUsing() {
    if (use_ == nullptr) return;
    keeper_->Settle();
    Count();
    keeper_.reset();
    use_.reset();
  }

  void Count() {
    counts_.held_bytes.store(use_->bytes(), std::memory_order_relaxed);
    counts_.is_complete.store(use_->is_complete(), std::memory_order_relaxed);
  }

  // First, so that it goes last: streams count into it when they end.
  const std::shared_ptr<Run> run_;
  NodeKnobs& knobs_;
  KeptCounts& counts_;
  const std::shared_ptr<const KeepSpec> spec_;
  const std::unique_ptr<Stream> input_;

  int64_t row_ = 0;     // the next one's ordinal in the pass
  int64_t behind_ = 0;  // rows given since input_ was last asked
  // Rows were left out since one was last seen, perhaps more than there are.
  bool may_be_past_end_ = false;
  bool is_lost_ = false;  // row_ is not known

  std::string key_;
  std::unique_ptr<KeptRows::Use> opening_;  // to be checked
  FileManifest manifest_;
  IoCall<bool> checking_;
  std::unique_ptr<KeptRows::Use> use_;
  std::optional<Keeper> keeper_;  // of use_
};

}  // namespace

OperatorPtr MakeKeep(KeepSpec spec, OperatorPtr input, const OpInfo& info) {
  return MakeOperator([spec = std::make_shared<const KeepSpec>(std::move(spec)),
                       input = std::move(input),
                       &info](const Scope& scope) -> StreamOr {
    PENSTOCK_ASSIGN_OR_RETURN(auto stream, input->Start(scope));
    return std::make_unique<KeepStream>(scope, info, spec, std::move(stream));
  });
}

}  // namespace penstock::engine

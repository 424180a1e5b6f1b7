#include "penstock/engine/ops/keep.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "penstock/base/clock.h"
#include "penstock/base/hash.h"
#include "penstock/base/status.h"
#include "penstock/data/builder.h"
#include "penstock/data/compact.h"
#include "penstock/data/encode.h"
#include "penstock/engine/io_call.h"
#include "penstock/engine/kept_disk.h"
#include "penstock/engine/kept_rows.h"

namespace penstock::engine {
namespace {

// Rows, or bytes, that kept chunks have at least, where rows follow each other.
constexpr int64_t kSettledRows = 1024;
constexpr int64_t kSettledBytes = 1 << 16;

// No pass has as many rows: what says so counts wrongly.
constexpr int64_t kMaxRow = int64_t{1} << 62;

// What a chunk costs besides its rows.
constexpr int64_t kPartBytes = 512;

int64_t CompactBytes(const Chunk& chunk) {
  return static_cast<int64_t>(EncodedSize(chunk) + chunk.lineage.size()) +
         kPartBytes;
}

absl::StatusOr<Chunk> CompactWithLineage(const Chunk& chunk) {
  PENSTOCK_ASSIGN_OR_RETURN(Chunk copy, Compact(chunk));
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
  if (run.options.part.has_value()) {
    const RunPart& part = *run.options.part;
    word = Combine(word, static_cast<uint64_t>(part.begin));
    word = Combine(word, static_cast<uint64_t>(part.end));
    word = Combine(word, static_cast<uint64_t>(part.stride));
    word = Combine(word, static_cast<uint64_t>(part.pieces));
    word = Combine(word, static_cast<uint64_t>(part.piece));
  }
  return absl::StrFormat("%s-%016x", spec.fingerprint, word);
}

// Gathers the rows of a pass and puts them where they are kept, chunk by chunk.
class Keeper final {
 public:
  // `disk`: instead of memory, unless it is null.
  Keeper(const Run& run, const KeepSpec& spec, KeptRows::Use& use,
         DiskPass* disk)
      : run_(run),
        spec_(spec),
        use_(use),
        disk_(disk),
        losses_(use.losses()),
        gathered_(run.environment.memory) {
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
    if (disk_ != nullptr) return SettleForDisk(chunk);
    auto reservation = std::make_unique<Reservation>(run_.environment.memory);
    const int64_t bytes = CompactBytes(chunk);
    // What had to give way is not put back in this pass: it would go again.
    is_full_ = use_.losses() != losses_ || use_.bytes() + bytes > max_bytes_ ||
               !reservation->TryGrow(bytes) || !AddFiles();
    if (is_full_) return;
    absl::StatusOr<Chunk> copy = CompactWithLineage(chunk);
    if (!copy.ok()) return;  // not encodable: computed again
    use_.Add(first_, *std::move(copy), std::move(reservation));
  }

  // Whether the disk's rows are to be written before more are gathered.
  bool has_gathered() const { return has_gathered_; }
  void OnWritten() {
    has_gathered_ = false;
    gathered_.Resize(0).IgnoreError();  // less is never refused
  }

 private:
  void SettleForDisk(const Chunk& chunk) {
    const int64_t bytes = CompactBytes(chunk);
    is_full_ =
        disk_->bytes() + bytes > max_bytes_ ||
        disk_->bytes() + bytes > run_.environment.kept_disk->max_bytes() / 2 ||
        !gathered_.TryGrow(gathered_.bytes() + bytes) || !AddFiles();
    if (is_full_) return;
    absl::StatusOr<Chunk> copy = CompactWithLineage(chunk);
    if (!copy.ok()) return;
    has_gathered_ |= disk_->Add(first_, *std::move(copy), bytes);
  }

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
      if (!records.has_value()) return false;
      if (disk_ != nullptr) {
        disk_->AddFiles(*records);
      } else if (!use_.AddFiles(*records)) {
        return false;
      }
      files_seen_[i] += records->size();
    }
    losses_ = use_.losses();  // those of files that changed are over
    return true;
  }

  const Run& run_;
  const KeepSpec& spec_;
  KeptRows::Use& use_;
  DiskPass* const disk_;
  uint64_t losses_;
  Reservation gathered_;  // of rows for the disk
  bool has_gathered_ = false;
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
        info_(info),
        knobs_(run_->knobs[info.id]),
        counts_(run_->kept[info.id]),
        spec_(std::move(spec)),
        input_(std::move(input)) {}

  ~KeepStream() override { StopUsing(); }

  bool IsOver() const override {
    return use_ == nullptr && call_ == nullptr && behind_ == 0 && KeepsNone() &&
           input_->IsOver();
  }

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
    if (rows > static_cast<uint64_t>(kMaxRow)) {
      return absl::DataLossError("damaged state: it leaves out too many rows");
    }
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
    if (call_ != nullptr && !Await(request)) return Pull::Blocked();
    const int64_t max_bytes = knobs_.keep_bytes.load(std::memory_order_relaxed);
    if (use_ == nullptr) {
      if (KeepsNone()) return Compute(request);
      if (!StartUsing(request)) return Pull::Blocked();
    }
    if (has_ended_) return Pull::End();
    KeptRows::Found found = use_->Find(row_, request.max_rows);
    if (disk_ != nullptr && found.kind == KeptRows::Found::Kind::kHole) {
      DiskPass::Found on_disk = disk_->Find(row_, request.max_rows);
      switch (on_disk.kind) {
        case DiskPass::Found::Kind::kRows:
          return Give(std::move(on_disk.chunk));
        case DiskPass::Found::Kind::kUnread:
          return Start(request,
                       [disk = disk_, row = row_] { disk->Load(row); });
        case DiskPass::Found::Kind::kEnd:
          return End(request);
        case DiskPass::Found::Kind::kHole:
          found.hole_rows = std::min(found.hole_rows, on_disk.hole_rows);
          break;
      }
    }
    switch (found.kind) {
      case KeptRows::Found::Kind::kRows:
        return Give(std::move(found.chunk));
      case KeptRows::Found::Kind::kEnd:
        return End(request);
      case KeptRows::Found::Kind::kHole:
        break;
    }
    return max_bytes > 0 ? ComputeAndKeep(request, found.hole_rows, max_bytes)
                         : StopAndCompute(request);
  }
  int64_t DoSkip(int64_t rows) override {
    if (rows > kMaxRow - row_) return 0;
    row_ += rows;
    behind_ += rows;
    may_be_past_end_ = true;
    return rows;
  }
  void DoSave(WireWriter&) const override {}
  absl::Status DoRestore(WireReader&) override { return absl::OkStatus(); }

 private:
  bool KeepsNone() const {
    return knobs_.keep_bytes.load(std::memory_order_relaxed) == 0 || is_lost_ ||
           run_->environment.kept == nullptr;
  }
  Pull Give(Chunk chunk) {
    row_ += chunk.rows;
    behind_ += chunk.rows;
    may_be_past_end_ = false;
    counts_.hits.fetch_add(chunk.rows, std::memory_order_relaxed);
    return Pull::Rows(std::move(chunk));
  }

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
    if (keeper_->has_gathered()) {
      keeper_->OnWritten();
      return Start(request, [disk = disk_] { disk->Write(); });
    }
    const int64_t first = row_;
    PENSTOCK_ASSIGN_OR_RETURN(Pull pull,
                              Compute({std::min(request.max_rows, hole_rows),
                                       request.waker, request.group}));
    if (pull.has_rows()) {
      counts_.misses.fetch_add(pull.chunk.rows, std::memory_order_relaxed);
      keeper_->Keep(pull.chunk, first, max_bytes);
      Count();
    } else if (pull.is_end()) {
      if (!may_be_past_end_) SetEnd();
      return End(request);
    }
    return pull;
  }

  Pull End(const Request& request) {
    keeper_->Settle();
    Count();
    if (disk_ == nullptr) return Pull::End();
    // The next pass may begin at once, and wants to find it.
    has_ended_ = true;
    return Start(request, [disk = disk_] { disk->Finish(); });
  }

  void SetEnd() {
    if (disk_ != nullptr) {
      disk_->SetEnd(row_);
    } else {
      use_->SetEnd(row_);
    }
  }

  // Has an I/O thread make `call`. Until it is done, nothing else is asked.
  Pull Start(const Request& request, std::function<void()> call) {
    call_ = std::move(call);
    Await(request);
    return Pull::Blocked();
  }
  bool Await(const Request& request) {
    const std::optional<bool> done = calling_.Poll(
        *run_->environment.io_pool, request.waker, [call = call_] {
          call();
          return true;
        });
    if (done.has_value()) call_ = nullptr;
    return done.has_value();
  }

  // What an I/O thread finds out before a pass gives anything.
  struct Opening {
    std::unique_ptr<KeptRows::Use> use;
    FileManifest manifest;
    std::shared_ptr<DiskPass> disk;
    bool is_changed = false;
    int64_t checked_nanos = 0;
  };

  // False: not now, since the files that rows came from are being looked at.
  bool StartUsing(const Request& request) {
    const Environment& environment = run_->environment;
    if (opening_ == nullptr) {
      key_ = KeyOf(*spec_, *run_);
      opening_ = std::make_shared<Opening>();
      opening_->use =
          environment.kept->Open(key_, run_->instances, environment.memory);
      opening_->manifest = opening_->use->manifest();
      if (knobs_.keeps_on_disk.load(std::memory_order_relaxed) &&
          environment.kept_disk != nullptr && spec_->is_storable) {
        opening_->disk = std::make_shared<DiskPass>(
            environment.kept_disk, key_, info_.leaves, environment.memory);
      }
      const int64_t now = SteadyClock().NowNanos();
      const int64_t checked = counts_.checked_nanos;
      const bool is_fresh =
          checked > 0 && now - checked < environment.min_check_nanos;
      if ((!opening_->manifest.empty() && !is_fresh) ||
          opening_->disk != nullptr) {
        opening_->checked_nanos = now;
        Start(request, [files = environment.files, opening = opening_] {
          opening->is_changed = !IsUnchanged(*files, opening->manifest);
          if (opening->disk != nullptr) opening->disk->Open(*files);
        });
        return false;
      }
    }
    use_ = std::move(opening_->use);
    disk_ = std::move(opening_->disk);
    if (opening_->checked_nanos > 0) {
      counts_.checked_nanos = opening_->checked_nanos;
    }
    if (opening_->is_changed) {
      use_->Drop();
      use_ = environment.kept->Open(key_, run_->instances, environment.memory);
    }
    opening_.reset();
    keeper_.emplace(*run_, *spec_, *use_, disk_.get());
    Count();
    return true;
  }

  void StopUsing() {
    if (use_ == nullptr) return;
    // While a call is under way, what it works on is left alone.
    if (call_ == nullptr) {
      keeper_->Settle();
      Count();
    }
    keeper_.reset();
    use_.reset();
    if (disk_ == nullptr) return;
    run_->environment.io_pool->Submit(
        [disk = std::exchange(disk_, nullptr)] { disk->Finish(); });
  }

  void Count() {
    const int64_t on_disk = disk_ != nullptr ? disk_->bytes() : 0;
    const bool is_complete =
        disk_ != nullptr ? disk_->is_complete() : use_->is_complete();
    counts_.held_bytes.store(use_->bytes() + on_disk,
                             std::memory_order_relaxed);
    counts_.is_complete.store(is_complete, std::memory_order_relaxed);
  }

  // First, so that it goes last: streams count into it when they end.
  const std::shared_ptr<Run> run_;
  const OpInfo& info_;
  NodeKnobs& knobs_;
  KeptCounts& counts_;
  const std::shared_ptr<const KeepSpec> spec_;
  const std::unique_ptr<Stream> input_;

  int64_t row_ = 0;     // the next one's ordinal in the pass
  int64_t behind_ = 0;  // rows given since input_ was last asked
  // Rows were left out since one was last seen, perhaps more than there are.
  bool may_be_past_end_ = false;
  bool is_lost_ = false;    // row_ is not known
  bool has_ended_ = false;  // the input has, and what was kept is written

  std::string key_;
  std::shared_ptr<Opening> opening_;
  std::function<void()> call_;  // under way
  IoCall<bool> calling_;
  std::unique_ptr<KeptRows::Use> use_;
  std::shared_ptr<DiskPass> disk_;  // null: rows are kept in memory
  std::optional<Keeper> keeper_;    // of use_
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

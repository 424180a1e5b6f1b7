#include "penstock/service/worker/bundle_run.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/clock.h"
#include "penstock/base/status.h"
#include "penstock/data/encode.h"

namespace penstock::service {
namespace {

bool IsSame(const std::weak_ptr<engine::Wakeable>& a, const engine::Waker& b) {
  return !a.owner_before(b) && !b.owner_before(a);
}

}  // namespace

BundleRun::BundleRun(engine::Executor* executor, Options options)
    : Task(executor), options_(std::move(options)) {}

void BundleRun::Charge(OutputBudget& budget) {
  std::unique_ptr<OutputBudget::Account> account =
      budget.Open(weak_from_this());
  MutexLock lock(&mutex_);
  account_ = std::move(account);
}

void BundleRun::Begin(absl::StatusOr<Setup> setup) {
  if (!setup.ok()) return Fail(setup.status());
  {
    MutexLock lock(&mutex_);
    if (failure_.has_value()) RestartAt(wanted_from_);
    setup_ = *std::move(setup);
  }
  Wake();
}

void BundleRun::Close(const absl::Status& why) {
  engine::Waker reader;
  std::unique_ptr<OutputBudget::Account> account;
  std::deque<OutFrame> frames;
  {
    MutexLock lock(&mutex_);
    if (closed_.has_value()) return;
    closed_ = why;
    frames.swap(frames_);
    account = std::move(account_);
    reader = reader_.lock();
  }
  if (reader != nullptr) reader->Wake();
  Wake();  // streams are freed on the executor
}

void BundleRun::RestartAt(uint64_t position) {
  frames_.clear();
  restart_at_ = position;
  next_position_ = position;
  end_.reset();
  failure_.reset();
  is_taken_ = false;
}

void BundleRun::Attach(const engine::Waker& reader, uint64_t from,
                       bool takes_parts) {
  engine::Waker replaced;
  {
    MutexLock lock(&mutex_);
    takes_parts_ = takes_parts;
    if (!IsSame(reader_, reader)) replaced = reader_.lock();
    reader_ = reader;
    is_reader_waiting_ = false;
    wanted_from_ = from;
    while (!frames_.empty() && frames_.front().end() <= from &&
           !frames_.front().is_end) {
      frames_.pop_front();
    }
    if (failure_.has_value() && frames_.empty()) {
      if (setup_.has_value()) RestartAt(from);
    } else if (!frames_.empty()) {
      if (frames_.front().position > from) RestartAt(from);
    } else if (from < next_position_) {
      RestartAt(from);
    } else if (end_.has_value()) {
      frames_.push_back(*end_);
    } else if (restart_at_.has_value()) {
      RestartAt(from);  // nothing was computed yet
    }
  }
  if (replaced != nullptr) replaced->Wake();
  Wake();
}

absl::Status BundleRun::CheckLocked(const engine::Waker& reader) const {
  if (closed_.has_value()) return *closed_;
  if (IsSame(reader_, reader)) return absl::OkStatus();
  return absl::AbortedError("another reading of the bundle has begun");
}

absl::Status BundleRun::Check(const engine::Waker& reader) const {
  MutexLock lock(&mutex_);
  return CheckLocked(reader);
}

absl::StatusOr<std::optional<OutFrame>> BundleRun::Take(
    const engine::Waker& reader) {
  std::optional<OutFrame> frame;
  {
    MutexLock lock(&mutex_);
    PENSTOCK_RETURN_IF_ERROR(CheckLocked(reader));
    if (!frames_.empty()) {
      frame = std::move(frames_.front());
      frames_.pop_front();
      if (frame->is_end) is_taken_ = true;
      is_reader_waiting_ = false;
    } else if (failure_.has_value()) {
      return *failure_;
    } else {
      is_reader_waiting_ = true;
    }
  }
  Wake();
  return frame;
}

void BundleRun::Detach(const engine::Waker& reader) {
  MutexLock lock(&mutex_);
  if (!IsSame(reader_, reader)) return;
  reader_.reset();
  is_reader_waiting_ = false;
  takes_parts_ = false;
}

bool BundleRun::is_read() const {
  MutexLock lock(&mutex_);
  return !reader_.expired();
}

bool BundleRun::is_taken() const {
  MutexLock lock(&mutex_);
  return is_taken_;
}

bool BundleRun::is_computed() const {
  MutexLock lock(&mutex_);
  return end_.has_value() || failure_.has_value();
}

bool BundleRun::is_closed() const {
  MutexLock lock(&mutex_);
  return closed_.has_value();
}

void BundleRun::Clear() {
  items_.Clear();
  load_.reset();
  load_chunk_ = Chunk();
}

void BundleRun::SetStalled(bool is_stalled) {
  if (is_stalled == is_stalled_) return;
  is_stalled_ = is_stalled;
  if (options_.on_stalled) options_.on_stalled(is_stalled);
}

engine::Task::Next BundleRun::RunSlice() {
  const int64_t start = SteadyClock().NowNanos();
  while (true) {
    std::optional<uint64_t> restart_at;
    std::optional<Setup> setup;
    bool is_over = false;
    bool may_add = false;
    {
      MutexLock lock(&mutex_);
      is_over = closed_.has_value();
      if (!is_over) {
        if (!setup_.has_value()) return Next::kWait;
        if (restart_at_.has_value()) {
          restart_at = std::exchange(restart_at_, std::nullopt);
          setup = setup_;
        } else if (end_.has_value() || failure_.has_value()) {
          return Next::kWait;
        }
        may_add = frames_.empty() || account_ == nullptr || account_->MayAdd();
      }
    }
    if (is_over) {
      Clear();
      return Next::kWait;
    }
    if (restart_at.has_value()) {
      Clear();
      needs_lineage_ = setup->plan->division.needs_lineage;
      receives_ = setup->plan->received != nullptr;
      digest_.BeginAt(*restart_at);
      const absl::Status started =
          items_.Start(*setup, *options_.instances, *restart_at);
      if (!started.ok()) {
        Fail(started);
        return Next::kWait;
      }
    }
    SetStalled(!may_add);
    if (!may_add) return Next::kWait;  // until a frame was taken or freed
    if (!load_.has_value()) {
      const ItemGatherer::Found found =
          items_.Gather(start, is_reader_waiting_, shared_from_this(),
                        /*may_stay=*/takes_parts_);
      if (found == ItemGatherer::Found::kBlocked) {
        if (receives_) SetStalled(true);
        return Next::kWait;
      }
      if (found == ItemGatherer::Found::kYield) return Next::kAgain;
    }
    if (!load_.has_value() && !items_.has_items() &&
        items_.outcome().has_value() && !items_.outcome()->ok()) {
      Fail(*items_.outcome());
      return Next::kWait;
    }
    const Made made = Emit();
    if (made == Made::kNoRoom) {
      SetStalled(true);
      return Next::kWait;
    }
    if (made == Made::kFailed) return Next::kWait;
    if (SteadyClock().NowNanos() - start > kSliceNanos) return Next::kAgain;
  }
}

BundleRun::Made BundleRun::Emit() {
  if (!load_.has_value()) {
    OutFrame frame;
    frame.is_end = items_.is_last();
    if (items_.has_items()) {
      frame.position = items_.position();
      frame.is_loose = items_.is_loose();
      load_chunk_ = items_.Build(options_.memory.get());
      frame.items = static_cast<uint64_t>(load_chunk_.rows);
      load_sums_.clear();  // those of a chunk that was given up, too
      digest_.Add(load_chunk_, frame.position,
                  takes_parts_ ? &load_sums_ : nullptr);
    } else {
      frame.position = items_.next_position();
    }
    if (frame.is_end) frame.digest = digest_.Get();
    load_ = std::move(frame);
  }
  bool is_alone;
  {
    MutexLock lock(&mutex_);
    is_alone = frames_.empty();
  }
  OutFrame& frame = *load_;
  if (frame.items > 0 && frame.bytes == 0) {
    const Made filled = FillLoad(is_alone);
    if (filled != Made::kYes) return filled;
  }
  const bool is_end = frame.is_end;
  engine::Waker reader;
  {
    MutexLock lock(&mutex_);
    // Of a reading that is over: another has begun elsewhere.
    if (restart_at_.has_value() || closed_.has_value()) {
      load_.reset();
      return Made::kYes;
    }
    if (account_ != nullptr && frame.items > 0) {
      frame.memory = account_->Hold(std::move(frame.memory),
                                    static_cast<int64_t>(frame.bytes));
    }
    next_position_ = frame.end();
    if (is_end) {
      OutFrame end;
      end.position = frame.end();
      end.is_end = true;
      end.digest = frame.digest;
      end_ = std::move(end);
    }
    if (is_end || frame.end() > wanted_from_) {
      frames_.push_back(*std::exchange(load_, std::nullopt));
      if (is_reader_waiting_.exchange(false)) reader = reader_.lock();
    }
    load_.reset();
  }
  if (reader != nullptr) reader->Wake();
  if (is_end) {
    items_.Clear();
    if (options_.on_computed) options_.on_computed();
  }
  return Made::kYes;
}

BundleRun::Made BundleRun::FillLoad(bool is_alone) {
  OutFrame& frame = *load_;
  const Buffer lineage = needs_lineage_ ? load_chunk_.lineage : Buffer();
  std::shared_ptr<FrameParts> parts;
  if (takes_parts_) {
    parts = MakeParts(load_chunk_, lineage, std::move(load_sums_));
  }
  if (parts != nullptr) {
    frame.chunk_bytes = parts->chunk_bytes;
    frame.bytes = parts->bytes;
    frame.segment = kNoSegment;
    frame.memory = parts;
    frame.parts = std::move(parts);
  } else {
    absl::StatusOr<Frame> room = options_.memory->Make(
        load_chunk_, {lineage.As<char>(), lineage.size()}, is_alone);
    if (!room.ok()) {
      if (!is_alone) return Made::kNoRoom;
      Fail(absl::ResourceExhaustedError(absl::StrCat(
          "an element takes ", EncodedSize(load_chunk_),
          " bytes of shared memory; the worker has ",
          options_.memory->arena().limit_bytes(), " (", room.status().message(),
          ")\n  Make elements or batches smaller, or give the worker more "
          "--memory.")));
      return Made::kFailed;
    }
    frame.memory = std::move(room->memory);
    frame.data = static_cast<const std::byte*>(frame.memory.get());
    frame.segment = room->segment;
    frame.offset = room->offset;
    frame.chunk_bytes = room->chunk_bytes;
    frame.bytes = room->chunk_bytes + lineage.size();
  }
  load_chunk_ = Chunk();
  return Made::kYes;
}

void BundleRun::Fail(const absl::Status& why) {
  engine::Waker reader;
  {
    MutexLock lock(&mutex_);
    // Of a reading that is over: another has begun, and may get further.
    if (restart_at_.has_value() && setup_.has_value()) {
      Wake();
      return;
    }
    failure_ = why;
    is_reader_waiting_ = false;
    reader = reader_.lock();
  }
  if (reader != nullptr) reader->Wake();
  if (options_.on_computed) options_.on_computed();
}

}  // namespace penstock::service

#include "penstock/service/worker/productions.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"

namespace penstock::service {
namespace {

// Productions that nobody reads now, though there may be room for more.
constexpr size_t kMaxEntries = 4096;
constexpr size_t kMaxRemembered = 65'536;
constexpr uint32_t kMaxLanes = 65'536;

bool IsSame(const std::weak_ptr<engine::Wakeable>& a, const engine::Waker& b) {
  return !a.owner_before(b) && !b.owner_before(a);
}

}  // namespace

// One lease's part of it.
class Productions::Frames final : public FrameSource {
 public:
  Frames(std::shared_ptr<Productions> owner, uint64_t id)
      : owner_(std::move(owner)), id_(id) {}
  ~Frames() override { owner_->Forget(id_); }

  // Several may read a frame: it is made as a whole.
  void Attach(const engine::Waker& reader, uint64_t from,
              bool /*takes_parts*/) override {
    owner_->Attach(id_, reader, from);
  }
  absl::StatusOr<std::optional<OutFrame>> Take(
      const engine::Waker& reader) override {
    return owner_->Take(id_, reader);
  }
  absl::Status Check(const engine::Waker& reader) const override {
    return owner_->Check(id_, reader);
  }
  void Detach(const engine::Waker& reader) override {
    owner_->Detach(id_, reader);
  }
  void Close(const absl::Status& why) override {
    owner_->CloseReader(id_, why);
  }
  bool is_read() const override {
    MutexLock lock(&owner_->mutex_);
    return !owner_->readers_.at(id_).waker.expired();
  }
  bool is_taken() const override {
    MutexLock lock(&owner_->mutex_);
    return owner_->readers_.at(id_).has_had_all;
  }
  bool is_closed() const override {
    MutexLock lock(&owner_->mutex_);
    return owner_->readers_.at(id_).closed.has_value();
  }

 private:
  const std::shared_ptr<Productions> owner_;
  const uint64_t id_;
};

// Frames are freed by anybody, with whatever locks: so it is a task.
class Productions::RoomBell final : public engine::Task {
 public:
  RoomBell(engine::Executor* executor, std::weak_ptr<Productions> owner)
      : Task(executor), owner_(std::move(owner)) {}

 protected:
  Next RunSlice() override {
    if (const auto owner = owner_.lock()) owner->OnRoom();
    return Next::kWait;
  }

 private:
  const std::weak_ptr<Productions> owner_;
};

Productions::Entry::Entry(uint64_t serial, uint64_t production, uint32_t lanes,
                          FrameWindow::Policy policy)
    : serial(serial),
      production(production),
      lanes(lanes),
      window(std::max<size_t>(1, lanes), policy) {}

std::shared_ptr<Productions> Productions::Make(Options options) {
  std::shared_ptr<Productions> made(new Productions(std::move(options)));
  made->bell_ = std::make_shared<RoomBell>(made->options_.executor, made);
  return made;
}

Productions::Productions(Options options)
    : options_(std::move(options)),
      limit_bytes_(options_.budget->limit_bytes() / 4 * 3),
      bytes_(std::make_shared<std::atomic<int64_t>>(0)),
      away_bytes_(std::make_shared<std::atomic<int64_t>>(0)),
      awaits_sent_(std::make_shared<std::atomic<bool>>(false)) {}

Productions::~Productions() = default;

Productions::Joined Productions::Join(const Lease& lease) {
  const Sharing& sharing = lease.sharing();
  MutexLock lock(&mutex_);
  const uint64_t id = next_reader_++;
  Reader& reader = readers_[id];
  reader.production = sharing.production();
  reader.run = lease.epoch().run();
  reader.lanes = sharing.lanes();
  if (sharing.has_split()) reader.split = sharing.split();
  reader.lane = sharing.lanes() == 0 ? 0 : sharing.lane();
  reader.policy = sharing.policy() == Sharing::SKIP
                      ? FrameWindow::Policy::kSkip
                      : FrameWindow::Policy::kWait;
  ++runs_[reader.run].readers;
  Touch(reader);
  Joined joined{std::make_shared<Frames>(shared_from_this(), id)};
  if (is_closed_) {
    reader.closed = absl::UnavailableError("the worker ends");
    return joined;
  }
  if (sharing.lanes() > kMaxLanes ||
      (sharing.lanes() > 0 && sharing.lane() >= sharing.lanes()) ||
      sharing.split().lanes() > kMaxLanes) {
    reader.closed = absl::InvalidArgumentError(
        absl::StrCat("a lane must be one of at most ", kMaxLanes, "; got ",
                     sharing.lane(), " of ", sharing.lanes()));
    joined.is_ready = true;
    return joined;
  }
  const bool is_known = serials_.contains(reader.production);
  if (sharing.is_following() && !is_known &&
      reader.policy == FrameWindow::Policy::kSkip) {
    joined.is_ready = true;
    return joined;
  }
  Move(id, reader, reader.split ? reader.split->position() : 0);
  const Entry& entry = entries_.at(reader.entry);
  joined.is_ready = entry.window.has_end();
  joined.needs_setup = !entry.setup.has_value();
  return joined;
}

Productions::Entry& Productions::AddEntry(const Reader& like) {
  const uint64_t serial = next_serial_++;
  if (account_ == nullptr) account_ = options_.budget->Open(bell_);
  Production::Options options;
  options.owner = weak_from_this();
  options.serial = serial;
  options.lanes = like.lanes;
  options.split = like.split;
  options.memory = options_.memory;
  options.first_segment = options_.first_segment;
  options.instances = options_.instances;
  options.on_computed = [told = options_.on_computed, of = like.production] {
    if (told) told(of);
  };
  options.on_stalled = [told = options_.on_stalled,
                        of = like.production](bool is_stalled) {
    if (told) told(of, is_stalled);
  };
  Entry entry(serial, like.production, like.lanes, like.policy);
  entry.task =
      std::make_shared<Production>(options_.executor, std::move(options));
  std::set<uint64_t>& others = serials_[like.production];
  for (const uint64_t other : others) entry.setup = entries_.at(other).setup;
  entry.is_ahead = others.empty();
  others.insert(serial);
  return entries_.emplace(serial, std::move(entry)).first->second;
}

Productions::Entry& Productions::FindEntry(const Reader& reader,
                                           uint64_t from) {
  Entry* now = reader.entry == 0 ? nullptr : &entries_.at(reader.entry);
  const bool is_skip = reader.policy == FrameWindow::Policy::kSkip;
  if (now != nullptr && is_skip) return *now;
  Entry* fresh = nullptr;
  const auto look = [&](Entry& entry) {
    const FrameWindow& window = entry.window;
    if (entry.lanes != reader.lanes) return false;
    if (!window.has_begun() && fresh == nullptr) fresh = &entry;
    // What it alone would wait for need not be computed.
    const bool is_far = &entry == now && window.num_readers() == 1 &&
                        entry.lanes == 0 && window.next_position() < from;
    return window.has_begun() &&
           (is_skip || (window.Covers(reader.lane, from) && !is_far));
  };
  if (now != nullptr && look(*now)) return *now;
  if (const auto found = serials_.find(reader.production);
      found != serials_.end()) {
    for (const uint64_t serial : found->second) {
      Entry& entry = entries_.at(serial);
      if (&entry != now && look(entry)) return entry;
    }
  }
  return fresh != nullptr ? *fresh : AddEntry(reader);
}

void Productions::Move(uint64_t id, Reader& reader, uint64_t from) {
  Entry& entry = FindEntry(reader, from);
  if (reader.entry == entry.serial) {
    entry.window.Seek(id, from);
  } else {
    if (reader.entry != 0) Leave(id, reader);
    entry.window.AddReader(id, reader.lane, from);
    reader.entry = entry.serial;
  }
  entry.task->Wake();
}

void Productions::Leave(uint64_t id, Reader& reader) {
  Entry& entry = entries_.at(std::exchange(reader.entry, 0));
  entry.window.RemoveReader(id);
  entry.task->Wake();
  WakeStalled();
}

bool Productions::IsWanted(uint64_t production) const {
  MutexLock lock(&mutex_);
  return std::ranges::any_of(readers_, [&](const auto& each) {
    return each.second.production == production && !each.second.closed;
  });
}

void Productions::Begin(uint64_t production, absl::StatusOr<RunSetup> setup) {
  bool is_over = true;
  Wakers wakers;
  {
    MutexLock lock(&mutex_);
    const auto found = serials_.find(production);
    if (found == serials_.end()) return;
    for (auto& [id, reader] : readers_) {
      if (reader.production != production) continue;
      Touch(reader);
      if (setup.ok()) continue;
      reader.is_waiting = false;
      if (engine::Waker waker = reader.waker.lock()) wakers.push_back(waker);
    }
    for (const uint64_t serial : found->second) {
      Entry& entry = entries_.at(serial);
      if (setup.ok()) {
        entry.setup = *setup;
        entry.failure.reset();
      } else if (!entry.setup.has_value()) {
        entry.failure = setup.status();
      }
      is_over = is_over && (entry.window.has_end() || entry.failure);
      entry.task->Wake();
    }
  }
  for (const engine::Waker& waker : wakers) waker->Wake();
  if (is_over && options_.on_computed) options_.on_computed(production);
}

void Productions::Close(const absl::Status& why) {
  Wakers wakers;
  std::map<uint64_t, Entry> entries;
  std::unique_ptr<OutputBudget::Account> account;
  {
    MutexLock lock(&mutex_);
    is_closed_ = true;
    for (auto& [id, reader] : readers_) {
      if (!reader.closed.has_value()) reader.closed = why;
      reader.entry = 0;
      if (engine::Waker waker = reader.waker.lock()) wakers.push_back(waker);
    }
    entries.swap(entries_);
    serials_.clear();
    account = std::move(account_);
    *awaits_sent_ = false;  // nobody waits: frames outlive the executor
  }
  for (const engine::Waker& waker : wakers) waker->Wake();
  for (auto& [serial, entry] : entries) entry.task->Wake();  // it frees itself
}

void Productions::Attach(uint64_t id, const engine::Waker& waker,
                         uint64_t from) {
  engine::Waker replaced;
  Garbage garbage;
  {
    MutexLock lock(&mutex_);
    Reader& reader = readers_.at(id);
    if (!IsSame(reader.waker, waker)) replaced = reader.waker.lock();
    reader.waker = waker;
    reader.has_come = true;
    reader.is_waiting = false;
    reader.has_had_all = false;
    Touch(reader);
    if (reader.entry != 0) {
      Move(id, reader, from);
      Entry& entry = entries_.at(reader.entry);
      // What went wrong may go well now.
      if (entry.failure.has_value() && entry.setup.has_value()) {
        entry.failure.reset();
      }
      Prune(garbage);
    }
  }
  if (replaced != nullptr) replaced->Wake();
}

absl::Status Productions::CheckLocked(const Reader& reader,
                                      const engine::Waker& waker) const {
  if (reader.closed.has_value()) return *reader.closed;
  if (IsSame(reader.waker, waker)) return absl::OkStatus();
  return absl::AbortedError("another reading of the bundle has begun");
}

absl::Status Productions::Check(uint64_t id, const engine::Waker& waker) const {
  MutexLock lock(&mutex_);
  return CheckLocked(readers_.at(id), waker);
}

absl::StatusOr<std::optional<OutFrame>> Productions::Take(
    uint64_t id, const engine::Waker& waker) {
  while (true) {
    PENSTOCK_ASSIGN_OR_RETURN(std::optional<OutFrame> frame,
                              TakeAny(id, waker));
    if (!frame.has_value() || frame->spilled == nullptr) return frame;
    const auto piece = std::exchange(frame->spilled, nullptr);
    if (const absl::StatusOr<Buffer> bytes = piece->Read(); bytes.ok()) {
      frame->memory = bytes->owner();
      frame->data = bytes->data();
      return frame;
    }
    // Then it is computed again.
    MutexLock lock(&mutex_);
    const Reader& reader = readers_.at(id);
    if (reader.entry == 0) continue;
    FrameWindow& window = entries_.at(reader.entry).window;
    window.LoseSpilled();
    window.Seek(id, frame->position);
  }
}

absl::StatusOr<std::optional<OutFrame>> Productions::TakeAny(
    uint64_t id, const engine::Waker& waker) {
  MutexLock lock(&mutex_);
  Reader& reader = readers_.at(id);
  PENSTOCK_RETURN_IF_ERROR(CheckLocked(reader, waker));
  if (reader.entry == 0) {
    OutFrame gone;
    gone.is_end = true;
    gone.is_gone = true;
    reader.has_had_all = true;
    return gone;
  }
  if (MustWaitForSent(reader)) return std::nullopt;
  FrameWindow::Taken taken = entries_.at(reader.entry).window.Take(id);
  if (taken.is_missing) {
    Move(id, reader, entries_.at(reader.entry).window.next_of(id));
    taken = entries_.at(reader.entry).window.Take(id);
  }
  Entry& entry = entries_.at(reader.entry);
  if (!taken.frame.has_value()) {
    if (entry.failure.has_value()) return *entry.failure;
    reader.is_waiting = true;
    entry.task->SetReaderWaiting(true);
    entry.task->Wake();
    return std::nullopt;
  }
  reader.is_waiting = false;
  Touch(reader);
  counts_.set_sent_frames(counts_.sent_frames() + 1);
  counts_.set_sent_again(counts_.sent_again() + (taken.was_had ? 1 : 0));
  counts_.set_skipped_items(counts_.skipped_items() + taken.skipped);
  if (taken.frame->is_end) reader.has_had_all = true;
  SendAway(reader, *taken.frame);
  WakeStalled();
  return std::move(taken.frame);
}

void Productions::SendAway(const Reader& reader, OutFrame& frame) {
  if (reader.policy != FrameWindow::Policy::kSkip || frame.bytes == 0) return;
  const bool is_sent = IsCrowding(reader);
  if (is_sent) frame.segment = kNoSegment;
  const auto bytes = static_cast<int64_t>(frame.bytes);
  const std::shared_ptr<Away> away = runs_.at(reader.run).away;
  away->bytes += bytes;
  away->sending += is_sent ? bytes : 0;
  *away_bytes_ += bytes;
  const void* at = frame.memory.get();
  frame.memory = Owner(at, [memory = std::move(frame.memory), away, is_sent,
                            bytes, all = away_bytes_, awaited = awaits_sent_,
                            bell = bell_](const void*) mutable {
    memory.reset();  // before others look whether there is room
    away->bytes -= bytes;
    away->sending -= is_sent ? bytes : 0;
    *all -= bytes;
    if (awaited->exchange(false)) bell->Wake();
  });
}

void Productions::Detach(uint64_t id, const engine::Waker& waker) {
  MutexLock lock(&mutex_);
  Reader& reader = readers_.at(id);
  if (!IsSame(reader.waker, waker)) return;
  reader.waker.reset();
  reader.is_waiting = false;
}

void Productions::CloseReader(uint64_t id, const absl::Status& why) {
  engine::Waker waker;
  Garbage garbage;
  {
    MutexLock lock(&mutex_);
    Reader& reader = readers_.at(id);
    if (reader.closed.has_value()) return;
    reader.closed = why;
    waker = reader.waker.lock();
    if (reader.entry != 0) Leave(id, reader);
    Prune(garbage);
  }
  if (waker != nullptr) waker->Wake();
}

void Productions::Forget(uint64_t id) {
  Garbage garbage;
  MutexLock lock(&mutex_);
  Reader& reader = readers_.at(id);
  if (reader.entry != 0) Leave(id, reader);
  --runs_.at(reader.run).readers;
  readers_.erase(id);
  // What is on its way to a run counts for its next lease, too.
  std::erase_if(runs_, [](const auto& each) {
    return each.second.readers == 0 && each.second.away->bytes == 0;
  });
  Prune(garbage);
  // The others' shares may have grown.
  if (awaits_sent_->exchange(false)) bell_->Wake();
}

Productions::Order Productions::Ask(uint64_t serial) {
  Garbage garbage;  // freed without the lock
  Order order;
  MutexLock lock(&mutex_);
  const auto found = entries_.find(serial);
  if (found == entries_.end()) {
    order.what = Order::kStop;
    return order;
  }
  Entry& entry = found->second;
  entry.is_stalled = false;
  if (entry.window.num_readers() == 0) {
    entry.needs_start = true;
    order.what = Order::kStop;
    return order;
  }
  if (!entry.setup.has_value() || entry.failure.has_value() ||
      entry.window.has_end()) {
    return order;
  }
  if (!entry.window.has_begun() && !entry.is_ahead &&
      std::ranges::none_of(readers_, [&](const auto& each) {
        return each.second.entry == serial && each.second.has_come;
      })) {
    order.what = Order::kFull;
    return order;
  }
  if (std::exchange(entry.needs_start, false)) {
    // Rounds follow from all items before them.
    if (!entry.window.has_begun()) {
      entry.window.Begin(entry.lanes > 0 ? 0 : entry.window.least_wanted());
    }
    order.begin = entry.lanes > 0 ? 0 : entry.window.next_position();
    order.skip_until = entry.window.next_position();
    order.setup = entry.setup;
  }
  const bool may = MayAdd(serial, entry, garbage);
  order.is_alone = !entry.window.has_needed();
  entry.is_stalled = !may;
  order.what = may ? Order::kMake : Order::kFull;
  return order;
}

Owner Productions::Charge(const OutFrame& frame) {
  const auto bytes = static_cast<int64_t>(frame.bytes);
  Owner held = account_->Hold(frame.memory, bytes);
  const void* data = held.get();
  bytes_->fetch_add(bytes);
  return Owner(
      data, [held = std::move(held), sum = bytes_, bytes](const void*) mutable {
        sum->fetch_sub(bytes);
        held.reset();
      });
}

void Productions::Add(uint64_t serial, std::vector<OutFrame> frames,
                      std::optional<uint64_t> end_digest) {
  Wakers wakers;
  Garbage garbage;
  {
    MutexLock lock(&mutex_);
    const auto found = entries_.find(serial);
    if (found == entries_.end()) return;
    Entry& entry = found->second;
    if (!frames.empty()) {
      for (OutFrame& frame : frames) frame.memory = Charge(frame);
      entry.window.Add(std::move(frames));
    }
    if (end_digest.has_value()) {
      entry.window.End(*end_digest);
      const bool is_new = computed_.insert(entry.production).second;
      counts_.set_computed(counts_.computed() + 1);
      counts_.set_again(counts_.again() + (is_new ? 0 : 1));
      if (is_new) computed_order_.push_back(entry.production);
      if (computed_order_.size() > kMaxRemembered) {
        computed_.erase(computed_order_.front());
        computed_order_.pop_front();
      }
    }
    entry.task->SetReaderWaiting(false);
    for (auto& [id, reader] : readers_) {
      if (reader.entry != serial || !reader.is_waiting) continue;
      reader.is_waiting = false;
      Touch(reader);
      if (engine::Waker waker = reader.waker.lock()) wakers.push_back(waker);
    }
    Prune(garbage);
  }
  for (const engine::Waker& waker : wakers) waker->Wake();
}

void Productions::Fail(uint64_t serial, const absl::Status& why) {
  Wakers wakers;
  {
    MutexLock lock(&mutex_);
    const auto found = entries_.find(serial);
    if (found == entries_.end()) return;
    found->second.failure = why;
    found->second.needs_start = true;
    for (auto& [id, reader] : readers_) {
      if (reader.entry != serial) continue;
      reader.is_waiting = false;
      if (engine::Waker waker = reader.waker.lock()) wakers.push_back(waker);
    }
  }
  for (const engine::Waker& waker : wakers) waker->Wake();
}

void Productions::Prune(Garbage& garbage) {
  size_t left = entries_.size();
  for (auto it = entries_.begin(); it != entries_.end();) {
    Entry& entry = it->second;
    const bool is_read = entry.window.num_readers() > 0;
    if (is_read || (entry.window.num_frames() > 0 && left <= kMaxEntries)) {
      ++it;
      continue;
    }
    while (auto gone =
               entry.window.Evict(FrameWindow::Spare::kUnwanted, false)) {
      garbage.push_back(*std::move(gone));
    }
    entry.task->Wake();  // it frees itself
    std::set<uint64_t>& serials = serials_.at(entry.production);
    serials.erase(it->first);
    if (serials.empty()) serials_.erase(entry.production);
    it = entries_.erase(it);
    --left;
  }
  if (entries_.empty()) account_.reset();
}

}  // namespace penstock::service

// Whose frames stay, and whose go.
#include <algorithm>
#include <utility>

#include "penstock/service/worker/productions.h"

namespace penstock::service {
namespace {

// Written at once.
constexpr int64_t kSpillBytes = int64_t{16} << 20;
// When the disk is full.
constexpr int64_t kSpillPauseNanos = 1'000'000'000;

}  // namespace

void Productions::Touch(const Reader& reader) {
  runs_[reader.run].active_ns = options_.clock->NowNanos();
}

int64_t Productions::ShareOf(int64_t bytes) const {
  return bytes / std::max<int64_t>(1, static_cast<int64_t>(runs_.size()));
}

bool Productions::IsCrowding(const Reader& reader) const {
  const int64_t most = limit_bytes_ / 4 * 3;
  const bool is_short =
      *away_bytes_ > most ||
      options_.budget->used_bytes() > options_.budget->limit_bytes();
  return is_short && runs_.at(reader.run).away->bytes > ShareOf(most);
}

bool Productions::MustWaitForSent(Reader& reader) {
  if (reader.policy != FrameWindow::Policy::kSkip) return false;
  const Away& away = *runs_.at(reader.run).away;
  const auto must = [&] {
    return away.sending > ShareOf(limit_bytes_ / 2) && IsCrowding(reader);
  };
  if (!must()) return false;
  *awaits_sent_ = true;  // before it looks again: what is sent then rings
  if (!must()) return false;
  reader.awaits_sent = true;
  return true;
}

void Productions::UpdateLate() {
  const int64_t since =
      options_.clock->NowNanos() - absl::ToInt64Nanoseconds(options_.patience);
  for (const auto& [id, reader] : readers_) {
    if (reader.entry == 0) continue;
    const bool is_late =
        !reader.is_waiting && runs_.at(reader.run).active_ns <= since;
    entries_.at(reader.entry).window.SetLate(id, is_late);
  }
}

std::optional<int64_t> Productions::LookWhoIsLate() {
  MutexLock lock(&mutex_);
  WakeStalled();  // they look
  const int64_t now = options_.clock->NowNanos();
  const int64_t patience = absl::ToInt64Nanoseconds(options_.patience);
  std::optional<int64_t> next;
  for (const auto& [id, reader] : readers_) {
    if (reader.entry == 0) continue;
    const int64_t due =
        patience + (reader.is_waiting ? now : runs_.at(reader.run).active_ns);
    if (due > now && (!next.has_value() || due < *next)) next = due;
  }
  return next;
}

bool Productions::MayAdd(uint64_t serial, Entry& entry, Garbage& garbage) {
  account_->Await();  // before it is looked: what is freed meanwhile is heard
  const auto reading = std::ranges::count_if(entries_, [](const auto& each) {
    return each.second.window.num_readers() > 0;
  });
  const auto has_room = [&] {
    return entry.window.needed_bytes() * std::max<int64_t>(1, reading) <
           limit_bytes_;
  };
  const int64_t over = bytes_->load() - options_.retained_bytes;
  if (over > 0) Evict(FrameWindow::Spare::kUnwanted, serial, over, garbage);
  int64_t excess =
      std::max(bytes_->load() - limit_bytes_,
               options_.budget->used_bytes() - options_.budget->limit_bytes()) +
      1;
  // Who is late matters only where there is no room: this is asked often.
  if (excess <= 0 && has_room()) return true;
  UpdateLate();
  const bool has_share = has_room();
  if (has_share && excess > 0) {
    excess -= Evict(FrameWindow::Spare::kUnwanted, serial, excess, garbage);
  }
  if (has_share && excess <= 0) return true;
  if (IsSpilling()) return false;
  if (has_share) {
    excess -= Evict(FrameWindow::Spare::kUnneeded, serial, excess, garbage);
    if (excess <= 0) return true;
  }
  return entry.window.is_driven() && !entry.window.has_needed();
}

int64_t Productions::Evict(FrameWindow::Spare spare, uint64_t serial,
                           int64_t bytes, Garbage& garbage) {
  int64_t freed = 0;
  for (auto& [number, entry] : entries_) {
    while (freed < bytes) {
      std::optional<FrameWindow::Evicted> gone =
          entry.window.Evict(spare, number == serial);
      if (!gone.has_value()) break;
      counts_.set_evicted_frames(counts_.evicted_frames() +
                                 (gone->was_wanted ? 1 : 0));
      // Of one that is being sent, or looked at, nothing is free yet.
      if (gone->frame.memory.use_count() == 1) {
        freed += static_cast<int64_t>(gone->frame.bytes);
      }
      garbage.push_back(*std::move(gone));
    }
  }
  return freed;
}

bool Productions::IsSpilling() {
  if (is_spilling_ || options_.spill == nullptr) return is_spilling_;
  if (options_.clock->NowNanos() < spill_after_ns_) return false;
  const SpillFile& file = *options_.spill;
  int64_t left = std::min(kSpillBytes, file.limit_bytes() - file.used_bytes());
  Picked picked;
  for (auto& [serial, entry] : entries_) {
    if (left <= 0) break;
    std::vector<FrameWindow::ToSpill> frames = entry.window.PickToSpill(left);
    for (const auto& each : frames) {
      left -= static_cast<int64_t>(each.frame.bytes);
    }
    if (!frames.empty()) picked[serial] = std::move(frames);
  }
  if (picked.empty()) return false;
  is_spilling_ = true;
  auto kept = std::make_shared<Picked>(std::move(picked));
  options_.pool->Submit([self = shared_from_this(), kept] {
    self->Spill(std::exchange(*kept, {}));
  });
  return true;
}

void Productions::Spill(Picked picked) {
  std::vector<Owner> freed;
  for (auto& [serial, frames] : picked) {
    for (FrameWindow::ToSpill& each : frames) {
      auto piece = options_.spill->Write(each.frame.data, each.frame.bytes);
      MutexLock lock(&mutex_);
      const auto found = entries_.find(serial);
      if (found == entries_.end()) break;
      if (!piece.ok()) {
        found->second.window.KeepUnspilled();
        spill_after_ns_ = options_.clock->NowNanos() + kSpillPauseNanos;
        break;
      }
      freed.push_back(found->second.window.Spilled(each, *std::move(piece)));
    }
  }
  picked.clear();
  freed.clear();
  MutexLock lock(&mutex_);
  is_spilling_ = false;
  WakeStalled();
}

void Productions::MakeRoom(int64_t bytes) {
  Garbage garbage;
  MutexLock lock(&mutex_);
  UpdateLate();
  for (const auto spare :
       {FrameWindow::Spare::kUnwanted, FrameWindow::Spare::kUnneeded}) {
    bytes -= Evict(spare, 0, bytes, garbage);
  }
  Prune(garbage);
}

void Productions::AwaitRoom(uint64_t serial) {
  MutexLock lock(&mutex_);
  const auto found = entries_.find(serial);
  if (found == entries_.end()) return;
  found->second.is_stalled = true;
  account_->Await();
}

void Productions::WakeStalled() {
  for (auto& [serial, entry] : entries_) {
    if (std::exchange(entry.is_stalled, false)) entry.task->Wake();
  }
}

void Productions::OnRoom() {
  Wakers wakers;
  {
    MutexLock lock(&mutex_);
    WakeStalled();
    for (auto& [id, reader] : readers_) {
      if (!std::exchange(reader.awaits_sent, false)) continue;
      if (engine::Waker waker = reader.waker.lock()) wakers.push_back(waker);
    }
  }
  for (const engine::Waker& waker : wakers) waker->Wake();
}

WorkerReport::Shared Productions::Report() const {
  MutexLock lock(&mutex_);
  WorkerReport::Shared report = counts_;
  report.set_productions(entries_.size());
  report.set_bytes(bytes_->load());
  return report;
}

uint64_t Productions::num_running() const {
  MutexLock lock(&mutex_);
  return static_cast<uint64_t>(
      std::ranges::count_if(entries_, [](const auto& each) {
        const Entry& entry = each.second;
        return entry.setup.has_value() && !entry.failure.has_value() &&
               !entry.window.has_end() && entry.window.num_readers() > 0;
      }));
}

}  // namespace penstock::service

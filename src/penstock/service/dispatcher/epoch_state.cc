#include "penstock/service/dispatcher/epoch_state.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "penstock/service/dispatcher/records.h"

namespace penstock::service {
namespace {

// Times that a worker is passed over with what could not be read from it.
constexpr int kMostAvoids = 3;

}  // namespace

EpochState::EpochState(const EpochId& id, const Settings& settings,
                       const Progress& inherited, EpochIndex* index)
    : id_(id),
      settings_(settings),
      inherited_(inherited),
      name_{id.run(), id.epoch()},
      index_(index),
      done_(inherited.done) {
  for (const auto& [number, position] : inherited.open) {
    begun_[number].from = position;
    unowned_.insert(number);
    next_pass_ = std::max(next_pass_, number + 1);
  }
  for (const Bundles& run : inherited.done.ToRuns()) {
    next_pass_ = std::max(next_pass_, run.end());
  }
  inherited_end_ = next_pass_;
  if (index_ != nullptr && is_by_worker())
    index_->by_worker_epochs.insert(name_);
}

EpochState::~EpochState() {
  SetTable(nullptr);
  if (index_ == nullptr) return;
  index_->ready.erase(name_);
  index_->to_fold.erase(name_);
  index_->by_worker_epochs.erase(name_);
  for (const auto& [worker, numbers] : lent_) {
    const auto it = index_->by_worker.find(worker);
    it->second.erase(name_);
    if (it->second.empty()) index_->by_worker.erase(it);
    index_->news.workers.push_back(worker);
  }
}

void EpochState::MarkReady() {
  if (index_ == nullptr) return;
  if (is_by_worker() && has_bundles_) {
    index_->news.calls_workers = true;
  } else {
    index_->ready.insert(name_);
  }
}

void EpochState::Tell(uint32_t slot) {
  if (index_ != nullptr) index_->news.seats.push_back({name_, slot});
}

void EpochState::TellAll() {
  for (const auto& [slot, seat] : seats_) Tell(slot);
}

void EpochState::TellLow() {
  if (index_ != nullptr) index_->news.lows.insert(name_);
}

void EpochState::SetBundles(std::optional<uint64_t> bundles) {
  has_bundles_ = true;
  count_ = bundles;
  MarkReady();
}

bool EpochState::IsHungry(uint32_t slot) const {
  const auto seat = seats_.find(slot);
  if (seat == seats_.end()) return false;
  const auto owned = owned_.find(slot);
  const size_t has = owned == owned_.end() ? 0 : owned->second.size();
  return has < seat->second.want;
}

uint64_t EpochState::FairShare() const {
  const auto gone = static_cast<uint64_t>(std::ranges::count_if(
      seats_, [](const auto& entry) { return entry.second.is_gone; }));
  const uint64_t readers =
      settings_.slots - std::min<uint64_t>(gone, settings_.slots);
  if (readers < 2 || !count_) return std::numeric_limits<uint64_t>::max();
  const uint64_t left = *count_ - std::min(*count_, next_);
  return std::max<uint64_t>(2, left / (2 * readers));
}

std::optional<uint32_t> EpochState::SlotFor(uint64_t bundle) const {
  if (settings_.is_ordered) {
    const auto slot = static_cast<uint32_t>(bundle % settings_.slots);
    return IsHungry(slot) ? std::optional(slot) : std::nullopt;
  }
  const uint64_t fair = FairShare();
  std::optional<uint32_t> best;
  uint64_t most = 0;
  for (const auto& [slot, seat] : seats_) {
    // What was passed on may be held back until the end comes: it must not keep
    // the rest from coming.
    const uint64_t want =
        fair > seat.want ? seat.want
                         : std::min<uint64_t>(seat.want, fair + seat.passed_on);
    const auto owned = owned_.find(slot);
    const uint64_t has = owned == owned_.end() ? 0 : owned->second.size();
    if (has < want && want - has > most) {
      most = want - has;
      best = slot;
    }
  }
  return best;
}

void EpochState::Own(uint64_t number, Bundle& bundle, uint32_t slot,
                     Writes& writes) {
  bundle.slot = slot;
  owned_[slot].insert(number);
  unowned_.erase(number);
  BindRecord record;
  record.set_slot(slot);
  record.set_from(bundle.from);
  record.set_worker(bundle.maker);
  writes.durable.push_back({KeyOf(kBindKey, number), Bytes(record)});
  TellLow();
  if (is_by_worker()) TellAll();
  // The last one: whoever has none has nothing left.
  next_ = NextNew(next_);
  if (count_ && next_ >= *count_ && unowned_.empty()) TellAll();
}

EpochState::Given EpochState::Lend(uint64_t number, Bundle& bundle,
                                   uint64_t worker, uint64_t attempt) {
  bundle.worker = worker;
  bundle.attempt = attempt;
  bundle.is_started = false;
  bundle.is_waiting = false;
  bundle.is_following = false;
  bundle.is_recovered = false;
  std::set<uint64_t>& its = lent_[worker];
  if (its.empty() && index_ != nullptr) {
    index_->by_worker[worker].insert(name_);
  }
  its.insert(number);
  if (table_ != nullptr) table_->Set(number, worker);
  Tell(*bundle.slot);
  return {number, attempt, *bundle.slot, bundle.is_following};
}

void EpochState::Unlend(uint64_t number, Bundle& bundle) {
  const auto it = lent_.find(bundle.worker);
  if (it != lent_.end()) {
    it->second.erase(number);
    if (it->second.empty()) lent_.erase(it);
  }
  if (index_ != nullptr && bundle.worker != 0) {
    index_->news.workers.push_back(bundle.worker);
    const auto its = index_->by_worker.find(bundle.worker);
    if (its != index_->by_worker.end() && !lent_.contains(bundle.worker)) {
      its->second.erase(name_);
      if (its->second.empty()) index_->by_worker.erase(its);
    }
  }
  bundle.worker = 0;
  MarkReady();
}

std::optional<EpochState::Given> EpochState::Grant(
    uint64_t worker, uint64_t attempt, bool may_take_over, Writes& writes,
    std::optional<uint64_t> place) {
  has_passed_over_ = false;
  if (!has_bundles_) return std::nullopt;
  if (is_by_worker()) return GrantByWorker(worker, attempt, place, writes);
  // Somebody waits for these.
  for (const auto& [slot, numbers] : owned_) {
    const auto seat = seats_.find(slot);
    for (const uint64_t number : numbers) {
      Bundle& bundle = begun_[number];
      if (bundle.worker != 0) continue;
      // Its consumer has all of it.
      if (seat != seats_.end() && seat->second.complete.contains(number)) {
        continue;
      }
      if (bundle.is_recovered && !may_take_over) continue;
      if (IsElsewhere(number, worker)) continue;
      if (bundle.avoided == worker && bundle.avoids > 0) {
        --bundle.avoids;
        has_passed_over_ = true;
        continue;
      }
      return Lend(number, bundle, worker, attempt);
    }
  }
  // By number: in order, a consumer waits for its least. Where that is another
  // slot's, which has enough, the next one's may be granted.
  next_ = NextNew(next_);
  auto unowned = unowned_.begin();
  uint64_t fresh = next_;
  for (uint32_t tries = 0; tries < settings_.slots; ++tries) {
    const bool has_fresh = !count_ || fresh < *count_;
    const bool is_unowned =
        unowned != unowned_.end() && (!has_fresh || *unowned < fresh);
    if (!is_unowned && !has_fresh) return std::nullopt;
    const uint64_t number = is_unowned ? *unowned : fresh;
    const std::optional<uint32_t> slot =
        IsElsewhere(number, worker) ? std::nullopt : SlotFor(number);
    if (slot) {
      Bundle& bundle = begun_[number];
      Own(number, bundle, *slot, writes);
      return Lend(number, bundle, worker, attempt);
    }
    if (is_unowned) {
      ++unowned;
    } else {
      fresh = NextNew(fresh + 1);
    }
  }
  return std::nullopt;
}

uint64_t EpochState::NextNew(uint64_t number) const {
  while (done_.Has(number) || begun_.contains(number) ||
         quarantined_.contains(number)) {
    number = std::max(number + 1, done_.NextAbsent(number));
  }
  return number;
}

bool EpochState::Present(uint64_t worker, uint64_t bundle, uint64_t attempt,
                         bool is_started, bool is_waiting) {
  const auto it = begun_.find(bundle);
  if (it == begun_.end() || !it->second.slot) return false;
  Bundle& found = it->second;
  if (found.maker != 0 && found.maker != worker) return false;
  // From before a restart, or it was believed lost and nobody else has it.
  if (found.worker == 0 && found.bad_attempt != attempt) {
    Lend(bundle, found, worker, attempt);
  }
  if (found.worker != worker || found.attempt != attempt) return false;
  found.is_started |= is_started;
  found.is_waiting = is_waiting;
  return true;
}

void EpochState::Lose(uint64_t worker, uint64_t bundle, uint64_t attempt,
                      Loss loss, Writes& writes) {
  const auto it = begun_.find(bundle);
  if (it == begun_.end()) return;
  Bundle& found = it->second;
  if (found.worker != worker || found.attempt != attempt) return;
  const bool was_started = found.is_started;
  // Those of a slow trainer wait for hours, and see many workers go.
  const bool was_waiting = found.is_waiting;
  const bool is_unreachable =
      loss == Loss::kUnreadable || loss == Loss::kUnread;
  Unlend(bundle, found);
  // A pass ends when its worker does (Retire).
  if (settings_.visitation == EACH_WORKER) return;
  if (loss == Loss::kGivenBack || !was_started) return;
  // It may have been given back before it was read: that is heard of later.
  if (settings_.visitation == AT_MOST_ONCE && loss == Loss::kUnread) return;
  if (settings_.visitation == AT_MOST_ONCE) {
    ++dropped_;
    MarkDone(bundle, DoneRecord(), writes);
    return;
  }
  if (is_unreachable || was_waiting ||
      ++found.crashes < settings_.max_crashes) {
    return;
  }
  quarantined_[bundle] =
      absl::StrCat("each of ", found.crashes, " workers that computed it died");
  if (index_ != nullptr) {
    index_->news.happenings.push_back(
        {"bundle_quarantined",
         {{"run", absl::StrCat(name_.run)},
          {"epoch", absl::StrCat(name_.epoch)},
          {"bundle", absl::StrCat(bundle)},
          {"workers_lost", absl::StrCat(found.crashes)}}});
  }
  if (found.slot) owned_[*found.slot].erase(bundle);
  unowned_.erase(bundle);
  begun_.erase(it);
  TellAll();
}

void EpochState::LoseWorker(uint64_t worker, Writes& writes) {
  const auto it = lent_.find(worker);
  if (it == lent_.end()) return;
  const std::set<uint64_t> numbers = it->second;
  for (const uint64_t number : numbers) {
    Lose(worker, number, begun_[number].attempt, Loss::kCrash, writes);
  }
}

void EpochState::DropRecovered(Writes& writes) {
  MarkReady();
  if (is_by_worker()) TellAll();
  if (settings_.visitation != AT_MOST_ONCE &&
      settings_.visitation != EACH_WORKER) {
    return;
  }
  std::vector<uint64_t> numbers;
  for (const auto& [number, bundle] : begun_) {
    // At most once: somebody may have some of it. By worker: the one that has
    // not come back will not compute the rest, whoever reads it.
    const bool is_lost =
        settings_.visitation == EACH_WORKER
            ? bundle.maker != 0 && !joined_.contains(bundle.maker)
            : bundle.slot.has_value();
    if (bundle.is_recovered && is_lost) numbers.push_back(number);
  }
  for (const uint64_t number : numbers) {
    ++dropped_;
    MarkDone(number, DoneRecord(), writes);
  }
}

std::vector<EpochState::Given> EpochState::HeldBy(uint64_t worker) const {
  std::vector<Given> held;
  const auto it = lent_.find(worker);
  if (it == lent_.end()) return held;
  for (const uint64_t number : it->second) {
    const Bundle& bundle = begun_.at(number);
    held.push_back({number, bundle.attempt, *bundle.slot, bundle.is_following});
  }
  return held;
}

void EpochState::SetWant(uint32_t slot, uint32_t bundles,
                         const std::set<uint64_t>& complete,
                         uint32_t passed_on) {
  Seat& seat = seats_[slot];
  if (bundles > 0) left_.erase(slot);
  if (bundles > seat.want || passed_on > seat.passed_on ||
      !std::ranges::includes(complete, seat.complete)) {
    MarkReady();
  }
  seat.want = bundles;
  seat.passed_on = passed_on;
  seat.complete = complete;
  seat.is_gone = false;
}

void EpochState::SetGone(uint32_t slot) {
  Seat& seat = seats_[slot];
  if (seat.is_gone) return;
  seat = Seat();
  seat.is_gone = true;
  MarkReady();
}

void EpochState::ReportBad(uint32_t slot, uint64_t bundle, uint64_t attempt,
                           bool is_unread, Writes& writes) {
  const auto it = begun_.find(bundle);
  if (it == begun_.end() || it->second.slot != slot) return;
  Bundle& found = it->second;
  if (found.worker == 0 || found.attempt != attempt) return;
  found.bad_attempt = attempt;
  found.avoided = found.worker;
  // Nobody else may have it: at first it is tried again at once.
  found.avoids = !is_by_worker()              ? kMostAvoids
                 : ++found.bads > kMostAvoids ? 1
                                              : 0;
  Lose(found.worker, bundle, attempt,
       is_unread ? Loss::kUnread : Loss::kUnreadable, writes);
}

void EpochState::MarkDone(uint64_t number, const DoneRecord& record,
                          Writes& writes) {
  const auto it = begun_.find(number);
  uint64_t maker = 0;
  if (it != begun_.end()) {
    maker = it->second.maker;
    if (it->second.worker != 0) Unlend(number, it->second);
    if (it->second.slot) {
      owned_[*it->second.slot].erase(number);
      Tell(*it->second.slot);
    }
    unowned_.erase(number);
    begun_.erase(it);
    MarkReady();
  }
  quarantined_.erase(number);
  done_.Add(number);
  digests_[number] = record;
  digests_[number].set_worker(maker);
  if (is_by_worker()) TellAll();
  if (index_ != nullptr) index_->to_fold.insert(name_);
  writes.lazy.push_back({KeyOf(kDoneKey, number), Bytes(digests_[number])});
  writes.lazy.push_back({KeyOf(kBindKey, number), std::nullopt});
}

bool EpochState::Finish(uint32_t slot, const Finished& finished,
                        Writes& writes) {
  const uint64_t number = finished.bundle();
  DoneRecord record;
  record.set_items(finished.items());
  record.set_digest(finished.digest());
  if (done_.Has(number)) {
    const auto known = digests_.find(number);
    // One that was not computed from its beginning has no digest.
    if (known != digests_.end() && known->second.items() != 0 &&
        record.items() != 0 &&
        (known->second.items() != record.items() ||
         (known->second.digest() != 0 && record.digest() != 0 &&
          known->second.digest() != record.digest()))) {
      ++mismatches_;
    }
    return true;
  }
  const auto it = begun_.find(number);
  const bool is_its = it != begun_.end() && it->second.slot == slot;
  if (!is_its && !quarantined_.contains(number)) return false;
  MarkDone(number, record, writes);
  ++num_finished_;
  finishers_.insert(slot);
  OnShared(number, finished);
  return true;
}

void EpochState::Release(uint32_t slot, const Cursor& cursor, Writes& writes) {
  const auto it = begun_.find(cursor.bundle());
  if (it == begun_.end() || it->second.slot != slot) return;
  Bundle& bundle = it->second;
  if (bundle.worker != 0) Unlend(cursor.bundle(), bundle);
  owned_[slot].erase(cursor.bundle());
  unowned_.insert(cursor.bundle());
  bundle.slot.reset();
  bundle.from = cursor.position();
  has_released_ = true;
  MarkReady();
  TellLow();
  BindRecord record;
  record.set_from(bundle.from);
  record.set_worker(bundle.maker);
  writes.durable.push_back({KeyOf(kBindKey, cursor.bundle()), Bytes(record)});
  if (is_by_worker()) TellAll();
}

void EpochState::ReleaseRest(uint32_t slot, const BundleSet& done,
                             Writes& writes) {
  SetLeft(slot);
  if (is_by_worker()) TellAll();
  const std::set<uint64_t> numbers = owned_[slot];
  for (const uint64_t number : numbers) {
    if (done.Has(number)) {
      MarkDone(number, DoneRecord(), writes);
      continue;
    }
    Cursor cursor;
    cursor.set_bundle(number);
    cursor.set_position(begun_[number].from);
    Release(slot, cursor, writes);
  }
}

std::vector<EpochState::Owned> EpochState::OwnedBy(uint32_t slot) const {
  std::vector<Owned> owned;
  const auto it = owned_.find(slot);
  if (it == owned_.end()) return owned;
  for (const uint64_t number : it->second) {
    const Bundle& bundle = begun_.at(number);
    owned.push_back({number, bundle.from, bundle.worker, bundle.attempt});
  }
  return owned;
}

std::vector<Cursor> EpochState::Unowned() const {
  std::vector<Cursor> cursors;
  for (const uint64_t number : unowned_) {
    Cursor& cursor = cursors.emplace_back();
    cursor.set_bundle(number);
    cursor.set_position(begun_.at(number).from);
  }
  return cursors;
}

void EpochState::Keep(uint32_t slot, uint64_t bundle, Writes& writes) {
  if (!unowned_.contains(bundle)) return;
  Own(bundle, begun_[bundle], slot, writes);
}

bool EpochState::HasNothingFor(uint32_t slot,
                               const std::set<uint64_t>& complete) const {
  if (!has_bundles_) return false;
  const auto owned = owned_.find(slot);
  if (owned != owned_.end() &&
      !std::ranges::includes(complete, owned->second)) {
    return false;
  }
  if (is_by_worker()) return HasNothingByWorker(slot);
  if (!count_) return false;
  // In order, others' bundles are never this slot's.
  const auto may_have = [&](uint64_t number) {
    return !settings_.is_ordered || number % settings_.slots == slot;
  };
  if (std::ranges::any_of(unowned_, may_have)) return false;
  for (uint64_t number = next_; number < *count_;) {
    if (done_.Has(number)) {
      number = done_.NextAbsent(number);
      continue;
    }
    if (!begun_.contains(number) && !quarantined_.contains(number) &&
        may_have(number)) {
      return false;
    }
    ++number;
  }
  return true;
}

bool EpochState::is_done() const {
  return has_bundles_ && count_ &&
         done_.size() + quarantined_.size() >= *count_;
}

}  // namespace penstock::service

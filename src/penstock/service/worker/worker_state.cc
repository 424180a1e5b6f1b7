#include "penstock/service/worker/worker_state.h"

#include <algorithm>
#include <utility>

namespace penstock::service {
namespace {

bool IsOfOne(const Lease& a, const Lease& b) {
  return a.has_sharing() && b.has_sharing() &&
         a.sharing().production() == b.sharing().production();
}

}  // namespace

WorkerState::Key WorkerState::KeyOf(const EpochId& epoch, uint64_t bundle) {
  return {epoch.run(), epoch.epoch(), epoch.generation(), bundle};
}

WorkerState::Key WorkerState::KeyOf(const Lease& lease) {
  return KeyOf(lease.epoch(), lease.bundle());
}

WorkerBeat::Held WorkerState::Described(const Held& held) {
  WorkerBeat::Held out;
  *out.mutable_epoch() = held.lease.epoch();
  out.set_bundle(held.lease.bundle());
  out.set_attempt(held.lease.attempt());
  out.set_is_started(held.is_started);
  out.set_is_waiting(held.is_computed || held.is_stalled);
  return out;
}

WorkerBeat WorkerState::MakeBeat() const {
  WorkerBeat beat;
  beat.set_worker(settings_.worker);
  beat.set_address(settings_.address);
  beat.set_local_socket(settings_.local_socket);
  beat.set_frame_port(settings_.frame_port);
  beat.set_term(term_);
  for (const std::string& tag : settings_.tags) beat.add_tags(tag);
  Counter waiting;
  for (const auto& [key, held] : held_) {
    *beat.add_held() = Described(held);
    // One that waits for its reader keeps nobody else's from being computed.
    if (IsInTheWay(held)) waiting.Add(held);
  }
  for (const auto& [key, held] : given_back_) {
    *beat.add_given_back() = Described(held);
  }
  for (const auto& [attempt, made] : made_) *beat.add_made() = made;
  beat.set_is_draining(is_draining_);
  if (!is_draining_ && waiting.count() < window_) {
    beat.set_room(window_ - waiting.count());
  }
  return beat;
}

WorkerState::Changes WorkerState::OnReply(const WorkerReply& reply) {
  Changes changes;
  // Of a dispatcher that has been replaced.
  if (reply.term() < term_) return changes;
  term_ = reply.term();
  for (const uint64_t attempt : reply.made_taken()) made_.erase(attempt);
  for (const WorkerBeat::Held& revoked : reply.revoked()) {
    const Key key = KeyOf(revoked.epoch(), revoked.bundle());
    if (const auto it = given_back_.find(key);
        it != given_back_.end() &&
        it->second.lease.attempt() == revoked.attempt()) {
      given_back_.erase(it);
    }
    if (const auto it = held_.find(key);
        it != held_.end() && it->second.lease.attempt() == revoked.attempt()) {
      changes.removed.push_back(it->second.lease);
      held_.erase(it);
    }
  }
  is_drained_ = reply.is_drained() && held_.empty() && given_back_.empty();
  if (held_.empty()) window_ = FirstWindow(settings_);
  for (const Lease& lease : reply.leases()) {
    const Key key = KeyOf(lease);
    if (made_.contains(lease.attempt())) continue;
    const auto it = held_.find(key);
    if (it != held_.end()) {
      // Late, or sent again: the newer attempt is in force.
      if (it->second.lease.attempt() >= lease.attempt()) continue;
      changes.removed.push_back(it->second.lease);
      held_.erase(it);
    }
    if (const auto back = given_back_.find(key);
        back != given_back_.end() &&
        back->second.lease.attempt() >= lease.attempt()) {
      continue;
    }
    Held held;
    held.lease = lease;
    held.order = ++order_;
    for (const auto& [other_key, other] : held_) {
      if (!IsOfOne(other.lease, lease)) continue;
      held.is_started = other.is_started;
      held.is_computed = other.is_computed;
      held.is_stalled = other.is_stalled;
    }
    held_[key] = held;
    changes.added.push_back(lease);
    if (is_draining_) GiveBack(lease);
  }
  return changes;
}

std::optional<Lease> WorkerState::Start() {
  Counter running;
  Held* next = nullptr;
  const auto start = [this](const Held& first) {
    for (Held* held : AllOf(first.lease)) held->is_started = true;
    return first.lease;
  };
  for (auto& [key, held] : held_) {
    if (held.is_started) {
      if (IsInTheWay(held)) running.Add(held);
      continue;
    }
    if (held.lease.is_whole()) return start(held);
    const auto rank = [](const Held& each) {
      return std::pair(!each.lease.is_for_manifest(), each.order);
    };
    if (next == nullptr || rank(held) < rank(*next)) next = &held;
  }
  if (next == nullptr) return std::nullopt;
  const uint32_t most =
      next->order == kBegun ? 2 * settings_.max_running : settings_.max_running;
  if (running.count() >= most) return std::nullopt;
  return start(*next);
}

void WorkerState::Hurry(const EpochId& epoch, uint64_t bundle, uint64_t from) {
  const auto it = held_.find(KeyOf(epoch, bundle));
  if (it != held_.end()) it->second.order = from > 0 ? kBegun : kHurried;
}

std::vector<WorkerState::Held*> WorkerState::AllOf(const Lease& lease) {
  const auto it = held_.find(KeyOf(lease));
  if (it == held_.end() || it->second.lease.attempt() != lease.attempt()) {
    return {};
  }
  std::vector<Held*> all;
  for (auto& [key, held] : held_) {
    if (key == it->first || IsOfOne(held.lease, lease)) all.push_back(&held);
  }
  return all;
}

void WorkerState::OnComputed(const Lease& lease) {
  window_ = std::min(window_ + 1, settings_.max_held);
  for (Held* held : AllOf(lease)) {
    held->is_started = true;
    held->is_computed = true;
  }
}

void WorkerState::OnStalled(const Lease& lease, bool is_stalled) {
  for (Held* held : AllOf(lease)) held->is_stalled = is_stalled;
}

void WorkerState::OnManifest(const Lease& lease,
                             const absl::StatusOr<Manifest>& manifest) {
  const auto it = held_.find(KeyOf(lease));
  if (it == held_.end() || it->second.lease.attempt() != lease.attempt()) {
    return;
  }
  held_.erase(it);
  WorkerBeat::Made& made = made_[lease.attempt()];
  *made.mutable_epoch() = lease.epoch();
  made.set_attempt(lease.attempt());
  if (manifest.ok()) {
    *made.mutable_manifest() = *manifest;
  } else {
    made.set_error(std::string(manifest.status().message()));
    made.set_error_code(static_cast<int>(manifest.status().code()));
  }
}

const Lease* WorkerState::Find(const EpochId& epoch, uint64_t bundle) const {
  const auto it = held_.find(KeyOf(epoch, bundle));
  return it == held_.end() ? nullptr : &it->second.lease;
}

bool WorkerState::IsStarted(const Lease& lease) const {
  const auto it = held_.find(KeyOf(lease));
  return it != held_.end() && it->second.is_started;
}

void WorkerState::Drain() {
  is_draining_ = true;
  std::vector<Lease> waiting;
  for (const auto& [key, held] : held_) {
    if (!held.is_started) waiting.push_back(held.lease);
  }
  for (const Lease& lease : waiting) GiveBack(lease);
}

void WorkerState::GiveBack(const Lease& lease) {
  const auto it = held_.find(KeyOf(lease));
  if (it == held_.end() || it->second.lease.attempt() != lease.attempt()) {
    return;
  }
  given_back_[it->first] = it->second;
  held_.erase(it);
}

}  // namespace penstock::service

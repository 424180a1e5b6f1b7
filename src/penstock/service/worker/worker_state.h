// What a worker holds: leases that it was given, those that it computes, and
// what it has to say of them.
//
// Leases of one production (Sharing) are one computation: they take one place,
// and are begun, stalled and computed together.
//
// A state machine without clock, lock or socket. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/service.pb.h"

namespace penstock::service {

class WorkerState final {
 public:
  struct Settings {
    uint64_t worker = 0;  // this incarnation
    std::string address;
    std::string local_socket = {};  // empty: none
    uint32_t frame_port = 0;        // 0: none
    uint32_t max_held = 16;         // leases
    uint32_t max_running = 2;       // of them, computed at once
    std::vector<std::string> tags = {};
  };
  struct Changes {
    std::vector<Lease> added;
    std::vector<Lease> removed;  // to be given up, whatever their state
  };

  explicit WorkerState(const Settings& settings)
      : settings_(settings), window_(FirstWindow(settings)) {}

  WorkerBeat MakeBeat() const;
  Changes OnReply(const WorkerReply& reply);

  // The next to be computed, which it then is; unset: none now. Those for
  // manifests first, then in the order in which they came. Those that a
  // consumer has had some of are computed besides `max_running`, up to as many
  // again: it is not kept waiting until others are done.
  std::optional<Lease> Start();
  // A consumer waits for it: it is begun next. `from`: the first item that is
  // wanted; those of which it has had some come first, since their worker was
  // lost and rows of others may wait behind theirs.
  void Hurry(const EpochId& epoch, uint64_t bundle, uint64_t from = 0);
  // All of it was computed, or there is nothing to compute. It stays held until
  // the dispatcher takes it away: its consumer may want to read it again.
  void OnComputed(const Lease& lease);
  // Its frames wait for their reader, or do not any more: meanwhile another may
  // be computed.
  void OnStalled(const Lease& lease, bool is_stalled);
  void OnManifest(const Lease& lease, const absl::StatusOr<Manifest>& manifest);

  // The lease in force for a bundle, if this worker holds one.
  const Lease* Find(const EpochId& epoch, uint64_t bundle) const;
  bool IsStarted(const Lease& lease) const;

  // No more leases; those not begun go back, and so does each that is handed
  // over.
  void Drain();
  void GiveBack(const Lease& lease);
  // Nothing is held, and the dispatcher knows.
  bool is_drained() const { return is_drained_; }
  uint64_t term() const { return term_; }

 private:
  using Key = std::tuple<uint64_t, uint64_t, uint64_t, uint64_t>;
  // Before all that nobody waits for.
  static constexpr uint64_t kBegun = 0;
  static constexpr uint64_t kHurried = 1;
  struct Held {
    Lease lease;
    uint64_t order = 0;
    bool is_started = false;
    bool is_computed = false;
    bool is_stalled = false;
  };
  static Key KeyOf(const EpochId& epoch, uint64_t bundle);
  static Key KeyOf(const Lease& lease);
  static WorkerBeat::Held Described(const Held& held);
  // Others wait until it is computed.
  static bool IsInTheWay(const Held& held) {
    return !held.is_computed && !held.is_stalled && !held.lease.is_whole();
  }
  // Counts computations, not leases.
  class Counter {
   public:
    void Add(const Held& held) {
      if (!held.lease.has_sharing() ||
          productions_.insert(held.lease.sharing().production()).second) {
        ++count_;
      }
    }
    uint32_t count() const { return count_; }

   private:
    std::set<uint64_t> productions_;
    uint32_t count_ = 0;
  };
  // The lease if it is held, and all that are computed with it.
  std::vector<Held*> AllOf(const Lease& lease);

  // What it computes at once, and two that wait.
  static uint32_t FirstWindow(const Settings& settings) {
    return std::min(settings.max_held, settings.max_running + 2);
  }

  const Settings settings_;
  // So many may wait to be computed. Few at first, so that other workers have
  // some of a job with few bundles, too; one more with each that is computed.
  uint32_t window_;
  std::map<Key, Held> held_;
  std::map<Key, Held> given_back_;
  std::map<uint64_t, WorkerBeat::Made> made_;  // by attempt
  uint64_t order_ = kHurried;
  uint64_t term_ = 0;
  bool is_draining_ = false;
  bool is_drained_ = false;
};

}  // namespace penstock::service

// One generation of an epoch, as the dispatcher sees it: whose its bundles are,
// who computes them, which are done.
//
//   no owner --Grant--> owned by a slot, computed by a worker
//   computed --worker lost, given back, unreadable--> owned, computed by nobody
//   owned    --its session releases it--> no owner, from that position on
//   owned    --its session says that all was returned--> done
//
// A bundle's owner never changes on the dispatcher's own belief: the consumer
// that has some of its items may be alive and unheard. So owners are durable
// before anybody hears of them, and leases, which only save double work, are
// not.
//
// With STATIC and EACH_WORKER a bundle is all that one worker computes in the
// epoch, and nobody else's: number k is that of the k-th worker, or of the k-th
// that has come. In the latter case it ends with its worker
// (epoch_by_worker.cc).
//
// An epoch of a group's member (shared_table.h) has what the worker of another
// member computes from there (epoch_shared.cc).
//
// Pure: no clock, no lock, no store. What must be written down is appended to a
// batch, and what is decided may be told once that is durable.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "penstock/service.pb.h"
#include "penstock/service/dispatcher/epoch_index.h"
#include "penstock/service/dispatcher/shared_table.h"
#include "penstock/service/protocol/bundle_set.h"
#include "penstock/service/protocol/checkpoint.h"
#include "penstock/service/store/meta_store.h"

namespace penstock::service {

// What is to be written: before anybody is told, and whenever it suits.
struct Writes {
  store::WriteBatch durable;
  store::WriteBatch lazy;
};

class EpochState final {
 public:
  struct Settings {
    Visitation visitation = EXACTLY_ONCE;
    bool is_ordered = false;
    uint32_t slots = 1;
    // A bundle that was being computed whenever so many workers died is not
    // tried again.
    int max_crashes = 5;
    // Records of single bundles that are done, while the epoch goes on: digests
    // of attempts are compared with the last ones.
    size_t most_records = 256;
    // Of a group's member: who is behind the others leaves bundles out.
    bool may_skip = false;
  };
  struct Given {
    uint64_t bundle;
    uint64_t attempt;
    uint32_t slot;
    bool is_following = false;  // another member had it computed there
  };
  enum class Loss {
    kCrash,       // the worker died or is not heard of
    kUnreadable,  // its consumer cannot reach the worker
    kUnread,      // the same, and nothing of it has come
    kGivenBack    // it was not begun, or left at a clean point
  };

  // `index`, if there is one, outlives it, and is told what changes.
  EpochState(const EpochId& id, const Settings& settings,
             const Progress& inherited, EpochIndex* index = nullptr);
  ~EpochState();
  EpochState(const EpochState&) = delete;
  EpochState& operator=(const EpochState&) = delete;

  const EpochId& id() const { return id_; }
  const Settings& settings() const { return settings_; }
  const Progress& inherited() const { return inherited_; }

  // Until then there is nothing to grant. `bundles`: unset if without end.
  void SetBundles(std::optional<uint64_t> bundles);
  bool has_bundles() const { return has_bundles_; }

  // What was written down, after a restart. REQUIRES: before anything else.
  void Recover(uint64_t bundle, const BindRecord& bind);
  void Recover(uint64_t bundle, const DoneRecord& done);
  void Recover(const BundleSet& folded);

  // A bundle for `worker` to compute: one whose owner waits for it, or one that
  // is new to the hungriest slot. `may_take_over`: also those whose worker was
  // not heard of since a restart. One that could not be read from it is left to
  // others for a while, in case there are any. `place`: STATIC, the worker's
  // number; one that has none gets nothing.
  std::optional<Given> Grant(uint64_t worker, uint64_t attempt,
                             bool may_take_over, Writes& writes,
                             std::optional<uint64_t> place = std::nullopt);
  bool is_by_worker() const {
    return settings_.visitation == STATIC ||
           settings_.visitation == EACH_WORKER;
  }
  // EACH_WORKER: `worker` is there, and has a pass of its own; or goes on with
  // one that the generation began with.
  void Join(uint64_t worker);
  // It takes no more leases. What it does not compute now, it never will.
  void Retire(uint64_t worker, Writes& writes);
  // It is a member's: others look at the same table, which outlives it.
  void SetTable(SharedTable* table);
  SharedTable* table() { return table_; }
  // Has the workers of others' bundles compute this one's, as far as its reader
  // wants them. At most once, a reader that is behind all that there is goes on
  // there. True: it has passed bundles over, which is to be written down.
  bool Follow(const std::function<uint64_t()>& next_attempt, Writes& writes);
  // Bundles before this one that were not assigned never will be.
  uint64_t skipped_to() const { return skipped_to_; }
  // What its reader missed with those, as far as it is known, and with those
  // that had gone.
  uint64_t missed_items() const { return missed_items_; }
  uint64_t missed_bundles() const { return missed_bundles_; }
  // Of those that it was lent, what another member had computed.
  uint64_t shared_bundles() const { return shared_bundles_; }

  // The last Grant() gave nothing, but another worker would have got something.
  bool has_passed_over() const { return has_passed_over_; }
  // It may have something to grant.
  void MarkReady();
  // `worker` says that it holds an attempt. False: it need not go on.
  // `is_waiting`: it computes nothing of it now.
  bool Present(uint64_t worker, uint64_t bundle, uint64_t attempt,
               bool is_started, bool is_waiting = false);
  // It does so no more. Of another attempt than the one in force: nothing.
  void Lose(uint64_t worker, uint64_t bundle, uint64_t attempt, Loss loss,
            Writes& writes);
  void LoseWorker(uint64_t worker, Writes& writes);
  // At most once: what nobody has presented since a restart may be half read.
  void DropRecovered(Writes& writes);
  // What `worker` should hold.
  std::vector<Given> HeldBy(uint64_t worker) const;

  // Bundles that a slot would have at once, those among them that are here as a
  // whole included (`complete`), of which `passed_on` have no row that waits.
  void SetWant(uint32_t slot, uint32_t bundles,
               const std::set<uint64_t>& complete = {}, uint32_t passed_on = 0);
  // Nobody is there any more; what is its own stays its own.
  void SetGone(uint32_t slot);
  // Could not be read from the worker that computes it.
  // `is_unread`: nothing of it came.
  void ReportBad(uint32_t slot, uint64_t bundle, uint64_t attempt,
                 bool is_unread, Writes& writes);
  // All of it was returned to the trainer. False: it is not that slot's.
  bool Finish(uint32_t slot, const Finished& finished, Writes& writes);
  // The slot's consumer takes no more of it.
  void Release(uint32_t slot, const Cursor& cursor, Writes& writes);
  // A consumer that leaves has had all of `done`, and nothing of the rest that
  // it has not released.
  void ReleaseRest(uint32_t slot, const BundleSet& done, Writes& writes);
  // Its consumer has left, and another may come. By worker: what is the slot's
  // and was not begun is there for others.
  void SetLeft(uint32_t slot) { left_.insert(slot); }

  struct Owned {
    uint64_t bundle;
    uint64_t from;
    uint64_t worker;  // 0: nobody, now
    uint64_t attempt;
  };
  std::vector<Owned> OwnedBy(uint32_t slot) const;

  // What consumers have released, and nobody has taken yet.
  std::vector<Cursor> Unowned() const;

  // Nothing is left for the slot: all is done or others', or here as a whole at
  // its consumer (`complete`).
  bool HasNothingFor(uint32_t slot, const std::set<uint64_t>& complete) const;
  // The slot's consumer goes on in an order that it has begun, and so has this
  // one again, which its generation began with.
  void Keep(uint32_t slot, uint64_t bundle, Writes& writes);
  bool is_done() const;
  // Every bundle before this one is done or somebody's.
  uint64_t low() const {
    return unowned_.empty() ? next_ : std::min(next_, *unowned_.begin());
  }
  std::optional<uint64_t> count() const { return count_; }
  const BundleSet& done() const { return done_; }
  // Not tried again, and not lost to a consumer without a word.
  const std::map<uint64_t, std::string>& quarantined() const {
    return quarantined_;
  }
  // At most once: bundles of which some items came to nobody.
  uint64_t dropped() const { return dropped_; }
  // (Items, digest) of two attempts were not the same.
  uint64_t mismatches() const { return mismatches_; }

  // Nothing was returned to the slot's trainer in this generation, as far as it
  // is known here: whoever begins it anew finds all that it began with,
  // whatever others have had since.
  bool is_untouched_by(uint32_t slot) const {
    return done_.size() == inherited_.done.size() + num_finished_ &&
           !has_released_ && !finishers_.contains(slot);
  }

  // Takes up to `most` records of bundles that are done away, once there are
  // many or the epoch is over. False: there was nothing to do. True: folded(),
  // which is to be written with them, has changed.
  bool Fold(size_t most, Writes& writes);
  // Bundles that are done, and have no record of their own.
  const BundleSet& folded() const { return folded_; }
  // Removes all that was written of this generation.
  void Erase(Writes& writes) const;

 private:
  struct Bundle {
    std::optional<uint32_t> slot;
    uint64_t from = 0;
    uint64_t worker = 0;
    uint64_t attempt = 0;
    uint64_t maker = 0;  // EACH_WORKER: whose pass it is
    bool is_started = false;
    bool is_waiting = false;
    bool is_following = false;  // another member had it computed there
    bool is_recovered = false;  // nobody has presented it since a restart
    uint64_t bad_attempt = 0;   // that could not be read
    uint64_t avoided = 0;       // its worker
    int avoids = 0;             // times that it is passed over
    int bads = 0;               // attempts that could not be read
    int crashes = 0;
  };

  // --- epoch_by_worker.cc ---
  std::optional<Given> GrantByWorker(uint64_t worker, uint64_t attempt,
                                     std::optional<uint64_t> place,
                                     Writes& writes);
  std::optional<Given> GrantOne(uint64_t number, uint64_t worker,
                                uint64_t attempt, Writes& writes);
  std::optional<uint32_t> SlotOfWorkers(uint64_t number) const;
  bool HasNothingByWorker(uint32_t slot) const;
  // It is not its slot's any more, or that has nobody.
  bool IsForAnyone(uint64_t number) const;
  // Nobody will compute the rest.
  void Drop(uint64_t number, Writes& writes);
  // A pass that is known from a record.
  void RecoverPass(uint64_t number, uint64_t worker);

  // --- epoch_shared.cc ---
  // Another worker computes it for other members.
  bool IsElsewhere(uint64_t number, uint64_t worker) const;
  bool SkipToOthers();
  void OnShared(uint64_t number, const Finished& finished);

  std::optional<uint32_t> SlotFor(uint64_t bundle) const;
  // Bundles that a slot may have of the last ones, of which nobody takes many,
  // since others may be about to come.
  uint64_t FairShare() const;
  bool IsHungry(uint32_t slot) const;
  // The first from `number` on that was never granted.
  uint64_t NextNew(uint64_t number) const;
  void Own(uint64_t number, Bundle& bundle, uint32_t slot, Writes& writes);
  Given Lend(uint64_t number, Bundle& bundle, uint64_t worker,
             uint64_t attempt);
  // Nobody computes it now.
  void Unlend(uint64_t number, Bundle& bundle);
  void MarkDone(uint64_t number, const DoneRecord& record, Writes& writes);
  std::string KeyOf(std::string_view kind, uint64_t bundle) const;
  // What consumers should hear: that of a slot, or of all that read.
  void Tell(uint32_t slot);
  void TellAll();
  void TellLow();

  const EpochId id_;
  const Settings settings_;
  const Progress inherited_;
  const EpochName name_;
  EpochIndex* const index_;
  bool has_passed_over_ = false;
  bool has_bundles_ = false;
  std::optional<uint64_t> count_;
  uint64_t next_ = 0;  // from here on, those not done were never granted
  std::map<uint64_t, Bundle> begun_;  // granted once, or inherited; not done
  std::set<uint64_t> unowned_;        // of begun_
  std::map<uint64_t, std::set<uint64_t>> lent_;   // by worker
  std::map<uint32_t, std::set<uint64_t>> owned_;  // by slot
  // What a slot's consumer has said last.
  struct Seat {
    uint32_t want = 0;
    std::set<uint64_t> complete;
    uint32_t passed_on = 0;
    bool is_gone = false;
  };
  std::map<uint32_t, Seat> seats_;  // by slot
  bool has_released_ = false;       // somebody, something
  uint64_t num_finished_ = 0;       // bundles since it was made or recovered
  std::set<uint32_t> finishers_;    // slots, of these
  std::set<uint32_t> left_;         // slots
  BundleSet done_;
  BundleSet folded_;                        // of them
  std::map<uint64_t, DoneRecord> digests_;  // of those done here
  std::map<uint64_t, std::string> quarantined_;
  // EACH_WORKER: the passes of each worker that has come, those over included.
  // One that came in the place of one whose pass was over has none.
  std::map<uint64_t, std::set<uint64_t>> passes_;
  std::set<uint64_t> joined_;  // workers that were heard of in this term
  uint64_t next_pass_ = 0;
  uint64_t inherited_end_ = 0;  // passes before this are of an earlier life
  uint64_t dropped_ = 0;
  uint64_t mismatches_ = 0;
  SharedTable* table_ = nullptr;
  uint64_t skipped_to_ = 0;
  uint64_t missed_items_ = 0;
  uint64_t missed_bundles_ = 0;
  uint64_t shared_bundles_ = 0;
};

}  // namespace penstock::service

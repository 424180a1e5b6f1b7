// What a consumer knows of its place in an epoch: which bundles it reads, how
// far it has got with each, and what the trainer has had of that.
//
// Each bundle has four positions: items that came from workers, items that were
// taken to be passed on (loose rows wait for others), items that the pipeline
// after this was given, and items whose rows the trainer was given. Frames are
// checked against the first, so that nothing comes twice whoever sent it; a
// saved state is made of the third; and the dispatcher hears of the last alone,
// since what an engine had taken is gone when it dies.
//
// A state machine without clock, lock or socket. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "penstock/service.pb.h"
#include "penstock/service/protocol/bundle_set.h"
#include "penstock/service/protocol/checkpoint.h"

namespace penstock::service {

// What a frame says of itself. Positions are of items in the bundle.
struct FrameHead {
  EpochId epoch;
  uint64_t bundle = 0;
  uint64_t attempt = 0;
  uint64_t position = 0;  // of its first item
  uint64_t items = 0;
  bool is_end = false;   // nothing comes after it
  uint64_t digest = 0;   // is_end: of all items of the bundle
  bool is_gone = false;  // is_end: there was nothing of it any more
};

class ClientState final {
 public:
  struct Settings {
    Opener opener;
    std::string job;
    std::string plan;
    uint32_t slot = 0;
    uint32_t slots = 1;
    bool is_ordered = false;
    uint32_t max_open = 8;  // bundles that are not here as a whole
    // What the epoch's shares are run with.
    uint64_t epoch_number = 0;
    uint64_t iteration = 0;
    uint32_t lanes = 0;  // Group
    // Items may be missing where a frame begins: they are counted.
    bool may_skip = false;
  };
  struct Read {
    uint64_t bundle;
    uint64_t attempt;
    std::string address;
    uint64_t from;
    std::string local_socket;  // of the worker; empty: none
    uint32_t frame_port = 0;   // the same; 0: none
  };
  struct Actions {
    std::vector<Read> start;     // in place of one of the same bundle
    std::vector<uint64_t> stop;  // bundles
    // Of these nothing more comes: they end after so many items.
    std::vector<Finished> dropped;
    BundleSet skipped;  // nor of these anything
  };

  // `resumed`: the state that this consumer goes on from in this generation.
  ClientState(const Settings& settings, const OpenReply& opened,
              const std::optional<ConsumerState>& resumed);

  const EpochId& epoch() const { return epoch_; }

  ClientBeat MakeBeat() const;
  Actions OnReply(const ClientReply& reply);

  // Which of a frame's items are new: [skip, skip + take). None of a frame that
  // begins after the next one that is wanted: then the reading is out of step,
  // and is to begin again (OnBroken).
  struct Taken {
    uint64_t skip = 0;
    uint64_t take = 0;
    bool is_out_of_step = false;
    // After the last item of the bundle that has come: more may be missing.
    uint64_t end = 0;
  };
  Taken OnFrame(const FrameHead& head);
  // A reading has ended before the bundle did.
  void OnBroken(uint64_t bundle, uint64_t attempt, const std::string& why);

  // In order: the bundle whose items are next. Unset: any.
  std::optional<uint64_t> NextToTake() const;
  // Items that came were taken, to be given sooner or later.
  void Take(uint64_t bundle, uint64_t items);
  // Items that were taken went into the pipeline.
  void Give(uint64_t bundle, uint64_t items);
  // Of bundles before this one nothing more will be taken, but for what others
  // give back.
  uint64_t low() const;
  // The place after all that was given.
  ConsumerState Save() const;
  // The trainer has had all before this place, which Save() once gave. Whether
  // bundles were finished by that.
  bool OnDelivered(const ConsumerState& state);

  // All that this consumer will ever get was given.
  bool has_ended() const;
  const absl::Status& failure() const { return failure_; }

  // Items that it did not get, of all bundles, as far as it is known.
  uint64_t missed_items() const { return missed_ + told_missed_items_; }
  uint64_t missed_bundles() const { return told_missed_bundles_; }

  // Something was delivered that no reply has taken yet.
  bool has_finished() const { return !to_report_.empty(); }
  // All that this consumer will ever get is here and was taken.
  bool is_all_taken() const;
  // Rows of these are to come in an order that was begun: what becomes of them
  // must be known, whoever has them now.
  void Await(uint64_t bundle) { awaited_.insert(bundle); }
  // Nothing more comes of the bundle.
  bool is_over(uint64_t bundle) const;
  // Of a bundle that it reads or has read, and that was not delivered as a
  // whole: where it began with it.
  uint64_t from(uint64_t bundle) const;
  // Items of the bundle are still to come.
  bool is_wanted(uint64_t bundle) const;
  // No more bundles are asked for while there is no room for their rows.
  void set_is_full(bool is_full) { is_full_ = is_full; }
  bool is_full() const { return is_full_; }

  // The last message of a consumer that leaves: others may have what it did not
  // deliver.
  ReleaseRequest MakeRelease() const;

 private:
  struct Bundle {
    uint64_t from = 0;
    uint64_t received = 0;
    uint64_t end = 0;  // of the last item that came
    uint64_t taken = 0;
    uint64_t given = 0;
    uint64_t delivered = 0;
    std::optional<uint64_t> items;  // once the end has come
    uint64_t digest = 0;
    bool is_gone = false;
    uint64_t attempt = 0;  // being read; 0: none
    uint64_t bad = 0;      // the attempt that could not be read
    std::string why;
  };
  Bundle& Opened(uint64_t bundle, uint64_t from);
  // Nothing of it is left to take.
  static bool IsTaken(const Bundle& bundle) {
    return bundle.items && bundle.taken >= *bundle.items;
  }

  const Settings settings_;
  const EpochId epoch_;
  const uint64_t manifest_;
  const Progress inherited_;
  const BundleSet done_;                // when it was opened, by whomever
  std::map<uint64_t, Bundle> bundles_;  // not delivered as a whole
  std::set<uint64_t> awaited_;
  BundleSet given_;                         // as a whole, by this consumer
  BundleSet finished_;                      // delivered as a whole
  std::map<uint64_t, Finished> to_report_;  // of them, until a reply takes it
  uint64_t term_;
  uint64_t low_ = 0;
  mutable uint64_t next_to_take_;  // in order: those before it were taken
  const uint64_t seed_;
  const std::vector<Split> splits_;
  const uint64_t resized_at_;
  bool has_come_ = false;  // an item
  uint64_t missed_ = 0;    // inside bundles
  uint64_t told_missed_items_ = 0;
  uint64_t told_missed_bundles_ = 0;
  bool has_nothing_left_ = false;
  bool is_full_ = false;
  absl::Status failure_;
};

}  // namespace penstock::service

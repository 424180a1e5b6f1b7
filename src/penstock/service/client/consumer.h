// A reader of distributed rows, as the engine knows it: the passes that one
// iterator makes, and what its states must say of them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "penstock/base/mutex.h"
#include "penstock/engine/receiver.h"
#include "penstock/plan.pb.h"
#include "penstock/service.pb.h"
#include "penstock/service/client/pass.h"
#include "penstock/service/client/received_source.h"
#include "penstock/service/client/row_log.h"

namespace penstock::service {

// Thread-safe.
class Consumer final : public engine::Receiver {
 public:
  struct Options {
    // Where relative names start from, and what a plan's own options leave
    // unset: they go to the workers with the plan.
    std::string directory;
    plan::Options defaults;
    // Of the readings of one pass.
    uint64_t budget_bytes = uint64_t{64} << 20;
    // What rows go through: an iterator's rows are those of its one pass, as
    // they came. Then a reader that leaves can say how many it had.
    bool is_plain = false;
    // Rounds: states may be of another number of consumers.
    bool may_resize = false;
    uint64_t random = 0;  // a word that nobody else has drawn
  };
  explicit Consumer(Options options);
  // Where a reader was that had `rows` rows after a sealed state of it. Of one
  // whose rows are those of its one pass, as they came (Options::is_plain).
  static absl::StatusOr<ConsumerState> StateOf(std::string_view sealed,
                                               uint64_t rows);
  // Goes on where the readers of a checkpoint were, however many of them.
  // Before any stream is started.
  void RestoreFrom(std::vector<ConsumerState> states)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Passes that were not left or ended are kept for whoever goes on with them.
  ~Consumer() override;

  engine::StreamOr Start(const plan::Received& spec, const engine::Scope& scope,
                         const engine::OpInfo& info) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::string Mark() override ABSL_LOCKS_EXCLUDED(mutex_);
  Seal SealState(std::string_view state) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Restore(std::string_view journal, bool is_recovery) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Readers of one checkpoint wait for each other: they ask at once.
  void OnRestored() override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnTaken(uint64_t ticket) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnLeft(uint64_t ticket, uint64_t rows) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void OnEnded() override ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<plan::Offer> Offers() override ABSL_LOCKS_EXCLUDED(mutex_);

  // The stream of a pass has gone.
  void OnStreamEnd(uint64_t stream) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Known {
    std::shared_ptr<Pass> pass;
    // States that were saved before its stream went; unset: it is there.
    std::optional<uint64_t> states_before_end;
  };
  // How far each pass is in a state. One that it does not name is over if its
  // stream had gone before; else it had not given anything.
  struct Ticket {
    std::map<uint64_t, uint64_t> rows;  // by stream
    uint64_t state = 0;                 // its number

    bool IsOver(uint64_t stream, const Known& known) const {
      return !rows.contains(stream) && known.states_before_end &&
             *known.states_before_end < state;
    }
  };
  absl::StatusOr<ReceivedSource> SourceOf(
      const plan::Distribution& distribution, const engine::Run& run, int node)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Deliver(const Ticket& ticket) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  Mutex mutex_;
  uint64_t consumer_ ABSL_GUARDED_BY(mutex_);
  bool is_recovery_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<uint64_t, Journal::Pass> restored_ ABSL_GUARDED_BY(mutex_);
  std::vector<ConsumerState> states_ ABSL_GUARDED_BY(mutex_);
  std::map<int, ReceivedSource> sources_ ABSL_GUARDED_BY(mutex_);  // by op
  std::map<uint64_t, Known> passes_ ABSL_GUARDED_BY(mutex_);       // by stream
  std::vector<plan::Offer> offers_ ABSL_GUARDED_BY(mutex_);        // the last
  uint64_t num_states_ ABSL_GUARDED_BY(mutex_) = 0;                // saved
  std::map<uint64_t, Ticket> tickets_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_ticket_ ABSL_GUARDED_BY(mutex_) = 1;
};

}  // namespace penstock::service

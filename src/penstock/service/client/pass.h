// One pass of a reader over the rows of a distribute(): opened at a dispatcher,
// read from its workers, and given row by row.
#pragma once

#include <grpcpp/client_context.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "penstock/base/mutex.h"
#include "penstock/data/chunk.h"
#include "penstock/dispatcher.pb.h"
#include "penstock/engine/run.h"
#include "penstock/engine/stream.h"
#include "penstock/plan.pb.h"
#include "penstock/plan/divide.h"
#include "penstock/service.pb.h"
#include "penstock/service/client/client_state.h"
#include "penstock/service/client/reading.h"
#include "penstock/service/client/row_log.h"
#include "penstock/service/client/service_link.h"
#include "penstock/service/client/stitcher.h"

namespace penstock::service {

// Thread-safe; Next() has one caller at a time. A thread of its own talks to
// the dispatcher, and keeps the pass alive until it has said goodbye.
class Pass final : public ReadingSink,
                   public std::enable_shared_from_this<Pass> {
 public:
  // Bundles of an epoch that is cut as this manifest says: all others count as
  // done. Its run is brief (OpenRequest), and nobody else's.
  struct Selection {
    uint64_t manifest = 0;
    uint64_t begin = 0;
    uint64_t end = std::numeric_limits<uint64_t>::max();
    std::optional<uint64_t> bundles;  // that there are; unset: without end
  };
  // Loose rows (plan::Division::Stitch) that are not put together here, but
  // handed on (loose()): none, those that are left at the end, or all.
  enum class Loose { kNone, kRest, kAll };

  struct Options {
    std::shared_ptr<ServiceLink> link;
    plan::Distribution distribution;
    std::shared_ptr<const plan::Division> division;
    plan::Options defaults;
    // What loose rows are put together with.
    engine::Environment environment;
    std::string job;
    uint64_t consumer = 0;  // Opener
    uint64_t seed = 0;
    uint64_t epoch = 0;
    uint64_t iteration = 0;
    // Where the readers of a checkpoint were, all of them: it begins there.
    std::vector<ConsumerState> states;
    // Instead: where a consumer was of as many as there were then.
    std::optional<ConsumerState> resized_from;
    std::optional<Selection> selection;
    std::shared_ptr<const void> keep;  // what the environment points to
    Loose loose = Loose::kNone;
    // Rows that were received and not yet given, in bytes.
    uint64_t budget_bytes = uint64_t{64} << 20;
  };
  explicit Pass(Options options) : options_(std::move(options)) {}

  // Goes on from a journal's pass. REQUIRES: before Next().
  void Resume(RowLog log, bool is_recovery) ABSL_LOCKS_EXCLUDED(mutex_);
  // From that row of it on.
  void SeekTo(uint64_t row) ABSL_LOCKS_EXCLUDED(mutex_);

  // Opens the pass if it goes on from a journal.
  void OpenIfResumed() ABSL_LOCKS_EXCLUDED(mutex_);
  // The first call opens the pass.
  absl::StatusOr<engine::Pull> Next(const engine::Request& request)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Next() is not called again: who waited is not woken, nor kept alive.
  void ForgetReader() ABSL_LOCKS_EXCLUDED(mutex_);
  // What the dispatcher last said.
  std::vector<plan::Offer> offers() const ABSL_LOCKS_EXCLUDED(mutex_);
  // That Next() gives next.
  uint64_t row() const ABSL_LOCKS_EXCLUDED(mutex_);
  // After the end: loose rows that were not put together, in order.
  std::vector<Chunk> loose() const ABSL_LOCKS_EXCLUDED(mutex_);

  Journal::Pass ToProto() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The trainer has had all rows before this one.
  void OnDelivered(uint64_t row) ABSL_LOCKS_EXCLUDED(mutex_);
  // It wants no more: others may have the rest.
  void Leave() ABSL_LOCKS_EXCLUDED(mutex_);
  // Nobody reads any more. What was delivered is still told.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);

  // ReadingSink.
  void OnFrame(uint64_t bundle, uint64_t attempt, const FrameHeader& head,
               Buffer bytes) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnReadingDone(uint64_t bundle, uint64_t attempt,
                     const absl::Status& status) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Where the trainer reads, if there is room: then nothing is copied again.
  Buffer Allocate(size_t size) override;

 private:
  // Rows of a frame that were not given yet.
  struct Arrived {
    Chunk chunk;
    uint64_t position = 0;
    bool is_loose = false;
    bool is_spare = false;
    uint64_t bytes = 0;  // of credit that goes back with its last row
  };
  struct Reader {
    std::shared_ptr<Reading> reading;
    uint64_t attempt = 0;
    std::string address;
    std::shared_ptr<WorkerMemory> memory;  // that it looks at; null: none
    std::shared_ptr<WorkerSocket> socket;  // that it reads over; null: none
    bool has_come = false;                 // a frame of it
    uint64_t window = 0;  // credit that it has, or will have again
    uint64_t owed = 0;  // credit for frames that came before `reading` was set

    void AddCredit(uint64_t bytes) {
      if (reading != nullptr) {
        reading->AddCredit(bytes);
      } else {
        owed += bytes;
      }
    }
  };
  // Loose rows that wait for others; or, of coordinated reads, items that are
  // to make a round.
  struct Pool {
    std::vector<Chunk> chunks;
    std::vector<RowLog::Part> parts;
    uint64_t rows = 0;
    uint64_t pass = 0;
    bool is_spare = false;
    uint64_t given = 0;         // rows that came of it, others' too
    std::optional<Chunk> like;  // one of these
  };

  // --- the thread ---
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Open() ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes calls that Close() cancels: nobody is to take a place for a trainer
  // that has gone. False: it was closed. One that leaves has a place to give
  // back.
  bool CallUnlessClosed(std::vector<grpc::ClientContext*> contexts,
                        const std::function<void()>& call)
      ABSL_LOCKS_EXCLUDED(mutex_);
  OpenRequest MakeOpen(const std::string& plan) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnOpened(const OpenReply& reply, const std::string& plan,
                const OpenRequest& request) ABSL_LOCKS_EXCLUDED(mutex_);
  struct Beats;
  void BeatUntilOver() ABSL_LOCKS_EXCLUDED(mutex_);
  // There is nothing more to say but goodbye.
  bool IsOver() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sends beats as there is news, until a reply has come or the stream has
  // ended. False: it is over.
  bool WaitForReply(const std::shared_ptr<Beats>& beats)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SendBeat(const std::shared_ptr<Beats>& beats)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of a stream that was cancelled, or of none.
  void AwaitEnd(Beats& beats) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnReply(const ClientReply& reply) ABSL_LOCKS_EXCLUDED(mutex_);
  // The ways that its frames may come: known before the first one is asked for,
  // which may be large.
  void ConnectTo(const ClientState::Read& read);
  void StartReading(const ClientState::Read& read) ABSL_LOCKS_EXCLUDED(mutex_);
  void StopReading(const Reader& reader) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // One frame is to be on its way while another is taken in.
  void Widen(Reader& reader, uint64_t frame_bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndReading(uint64_t bundle, uint64_t attempt, const absl::Status& status)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void SayGoodbye() ABSL_LOCKS_EXCLUDED(mutex_);
  void Fail(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  // Finds out why a worker cannot be read from.
  void LookAtWorker(const std::string& address, const absl::Status& status);
  // Something for the dispatcher to hear, soon or at once.
  void Tell(bool is_urgent = false) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives back who was woken: to be let go without the lock, since that may be
  // the end of the iterator, and so of this pass's readers.
  [[nodiscard]] engine::Waker WakeReader()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void Begin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // --- Next() ---
  // Rows that can be given at once, if any; sets up a group if one is due.
  std::optional<Chunk> TakeRows(int64_t max_rows)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<Chunk> FollowScript(int64_t max_rows)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Chunk TakeFrom(uint64_t bundle, int64_t max_rows, bool is_given)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Rows before `position` that came, since they were missing when a script was
  // made: it goes on without them, again.
  void DropBefore(uint64_t bundle, uint64_t position)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PoolLoose(uint64_t bundle) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Moves rows of the bundle's first frame, so that the pool has `size` of them
  // at most.
  void PoolFrom(uint64_t bundle, uint64_t size, Pool& pool)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Loose rows that go through what follows at once.
  uint64_t GroupSize() const;
  std::optional<uint64_t> Pick() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The next rows of the group that is being put together.
  absl::StatusOr<engine::Pull> NextOfGroup(const engine::Request& request)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // A pool that has enough, or to which nothing more will come.
  bool BeginGroup() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndGroup() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetGroup(Pool pool) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Nothing more comes: what is left in pools goes to loose().
  void KeepLoose() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // --- coordinated reads (rounds.cc) ---
  // How many consumers a round has; 0: there are none.
  uint32_t lanes() const { return options_.distribution.consumers(); }
  // This one's row of a round of spare items; none of an unfinished one.
  std::optional<Chunk> TakeOfRound() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // This one's of what comes of a group of loose rows. `is_last`: nothing comes
  // after it.
  Chunk KeepOwn(const Chunk& rows, bool is_last)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // With the column that says which are elements: the first `elements` of them.
  Chunk Marked(Chunk rows, int64_t elements) const;
  // What other members should know of this one.
  void AddPlace(ClientBeat& beat) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WarnOfMissed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Leaves in `parts` what has come of them; false: more comes, sooner or
  // later.
  bool ClipToArrived(std::vector<RowLog::Part>& parts) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t PassOf(uint64_t bundle) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsAllDelivered() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;

  mutable Mutex mutex_;
  CondVar changed_;  // for the thread
  bool has_started_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<grpc::ClientContext*> calls_ ABSL_GUARDED_BY(mutex_);
  bool is_leaving_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_news_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_urgent_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  engine::Waker waker_ ABSL_GUARDED_BY(mutex_);

  // What it goes on from: rows that come once more as they came then.
  std::optional<RowLog> resumed_ ABSL_GUARDED_BY(mutex_);
  bool is_recovery_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<RowLog::Entry> script_ ABSL_GUARDED_BY(mutex_);
  uint64_t first_row_ ABSL_GUARDED_BY(mutex_) = 0;

  // Once it is open.
  std::unique_ptr<ClientState> client_ ABSL_GUARDED_BY(mutex_);
  uint64_t bundles_in_pass_ ABSL_GUARDED_BY(mutex_) = 0;
  RowLog log_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, Reader> readers_ ABSL_GUARDED_BY(mutex_);
  size_t num_readings_ ABSL_GUARDED_BY(mutex_) = 0;  // that are not done
  uint64_t windows_ ABSL_GUARDED_BY(mutex_) = 0;     // of readers_
  std::map<uint64_t, std::deque<Arrived>> arrived_ ABSL_GUARDED_BY(mutex_);
  uint64_t arrived_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<uint64_t> current_ ABSL_GUARDED_BY(mutex_);  // bundle
  bool is_turn_over_ ABSL_GUARDED_BY(mutex_) = false;        // a frame of it
  std::map<uint64_t, Pool> pools_ ABSL_GUARDED_BY(mutex_);   // by pass
  std::vector<Chunk> loose_ ABSL_GUARDED_BY(mutex_);
  Pool spares_ ABSL_GUARDED_BY(mutex_);
  std::vector<plan::Offer> offers_ ABSL_GUARDED_BY(mutex_);
  uint64_t warned_missed_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t warned_missed_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<Pool> group_ ABSL_GUARDED_BY(mutex_);  // being put together
  // Touched by Next() alone, but for its making.
  std::unique_ptr<Stitcher> stitcher_;
  std::optional<absl::StatusOr<engine::Pull>> ahead_;  // of what it gives
};

// Opens an epoch of a brief run, hears how it is cut, and leaves. Waits for its
// service, a minute at most, and then for workers there, as long as it is
// wanted: Cancelled.
absl::StatusOr<OpenReply> OpenOnce(ServiceLink& link,
                                   const plan::Distribution& distribution,
                                   const std::string& job, uint64_t random,
                                   const std::function<bool()>& is_wanted);

// Waits until passes that were closed have said goodbye, or the time is over.
void WaitForGoodbyes(absl::Duration most);

}  // namespace penstock::service

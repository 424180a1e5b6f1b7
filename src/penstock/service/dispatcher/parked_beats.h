// Beats that wait for an answer. One is answered at once if there is something
// that its sender does not know, otherwise when there is, or after a while.
//
// Nobody is looked at without a reason: the dispatcher's news say whose reply
// has changed, and work is offered to those that have room, who has waited
// longest first, until there is none. What comes within a millisecond is
// answered together, and what nobody waits for with what follows from it.
#pragma once

#include <atomic>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/base/mutex.h"
#include "penstock/service.pb.h"
#include "penstock/service/dispatcher/dispatcher.h"
#include "penstock/service/dispatcher/epoch_index.h"

namespace penstock::service {

// Who sends beats for a slot.
struct ClientKey {
  Seat seat;
  uint64_t generation = 0;
  uint64_t consumer = 0;
  uint64_t request = 0;
  auto operator<=>(const ClientKey&) const = default;
};
ClientKey KeyOf(const ClientBeat& beat);

// Thread-safe. Answers come from any thread, once each, and must not call back.
class ParkedBeats final {
 public:
  template <typename Reply>
  using Answer = std::function<void(const absl::StatusOr<Reply>&)>;

  struct Settings {
    // An answer comes so long after the first beat without one.
    int64_t client_wait_ms = 1'000;
    int64_t worker_wait_ms = 1'600;
    int64_t news_ms = 1;       // news wait so long for others
    int64_t revoked_ms = 10;   // what a worker need not hold any more
    int64_t low_ms = 100;      // that bundles are somebody's now
    int64_t taken_ms = 1'000;  // what a client need not say any more
    int64_t tick_ms = 100;
    // Leases in one reply: a share of so many, so that there are some for the
    // others. One that has more room asks again.
    uint32_t leases = 64;
    uint32_t min_leases = 2;
  };

  explicit ParkedBeats(const Settings& settings) : settings_(settings) {}
  ~ParkedBeats() { Stop(); }
  ParkedBeats(const ParkedBeats&) = delete;
  ParkedBeats& operator=(const ParkedBeats&) = delete;

  // From here on `dispatcher`, which outlives it or Stop(), is asked, and
  // ticks.
  void Start(DurableDispatcher& dispatcher);
  // The same without a thread, for simulations: Poll() does what is due. False:
  // nothing was.
  void Attach(DurableDispatcher& dispatcher) { dispatcher_ = &dispatcher; }
  bool Poll() ABSL_LOCKS_EXCLUDED(mutex_);
  // All that wait hear Unavailable, and so does whoever comes.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // To be called under the dispatcher's lock.
  void OnNews(const News& news) ABSL_LOCKS_EXCLUDED(mutex_);

  // The sender's call before, if it waits, hears Cancelled. Returns what
  // Forget() knows the call by. `is_first`: on a new connection; whether its
  // sender has heard what it was told before is not known.
  uint64_t OnWorker(WorkerBeat beat, Answer<WorkerReply> answer)
      ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t OnClient(ClientBeat beat, Answer<ClientReply> answer,
                    bool is_first = false) ABSL_LOCKS_EXCLUDED(mutex_);
  // Nobody listens to the call any more: it hears Cancelled, and what it was
  // told last is told again.
  void Forget(uint64_t worker, uint64_t call) ABSL_LOCKS_EXCLUDED(mutex_);
  void Forget(const ClientKey& key, uint64_t call) ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls that wait now, and senders that are known.
  size_t num_parked() const ABSL_LOCKS_EXCLUDED(mutex_);
  size_t num_senders() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // What of a reply its client is to know.
  struct Told {
    Told() = default;
    explicit Told(const ClientReply& reply);
    // Whether `reply`, of which this is made, says something to a client that
    // was told `before`.
    bool IsNewsTo(Told before, const ClientReply& reply) const;

    uint64_t rest = 0;                      // a digest
    std::map<uint64_t, uint64_t> assigned;  // by bundle, and a digest of each
  };
  // What is known of a sender.
  template <typename Beat, typename Reply>
  struct Sender {
    std::shared_ptr<const Beat> beat;
    Answer<Reply> answer;  // empty: no call waits
    uint64_t call = 0;
    int64_t heard_ms = 0;
    int64_t give_up_ms = 0;
    bool is_asked = false;           // the dispatcher is being asked
    std::optional<int64_t> look_ms;  // there is news: ask again, then
    std::optional<int64_t> due_ms;   // as it stands in Desk::due
    Reply reply;                     // what the dispatcher has said last
    // Clients: what that comes to, and what they were told last. Workers say
    // what they know.
    Told to_tell;
    std::optional<Told> told;
    std::optional<int64_t> taken_ms;  // something was, and is not told yet
    uint64_t told_low = 0;
    int64_t told_ms = 0;
  };
  template <typename Key, typename Beat, typename Reply>
  struct Desk {
    std::map<Key, Sender<Beat, Reply>> senders;
    std::set<std::pair<int64_t, Key>> due;  // when to look at those that wait
  };
  using Workers = Desk<uint64_t, WorkerBeat, WorkerReply>;
  using Clients = Desk<ClientKey, ClientBeat, ClientReply>;
  using Calls = std::vector<std::function<void()>>;

  Workers& DeskOf(uint64_t) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return workers_;
  }
  Clients& DeskOf(const ClientKey&) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return clients_;
  }
  template <typename Key, typename Beat, typename Reply>
  uint64_t Arrive(const Key& key, Beat beat, int64_t wait_ms,
                  Answer<Reply> answer, bool is_first)
      ABSL_LOCKS_EXCLUDED(mutex_);
  template <typename Reply, typename Key>
  void ForgetCall(const Key& key, uint64_t call) ABSL_LOCKS_EXCLUDED(mutex_);
  // No newer beat of its sender has come.
  template <typename Key>
  bool IsLast(const Key& key, uint64_t call)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of a call that is the last no more, nothing happens: what an older beat
  // says must not take the place of what a newer one has said.
  void Ask(uint64_t worker, const std::shared_ptr<const WorkerBeat>& beat,
           uint64_t call, int64_t heard_ms) ABSL_LOCKS_EXCLUDED(mutex_);
  void Ask(const ClientKey& key, const std::shared_ptr<const ClientBeat>& beat,
           uint64_t call, int64_t heard_ms) ABSL_LOCKS_EXCLUDED(mutex_);
  // The dispatcher has answered.
  template <typename Key, typename Reply>
  void Judge(const Key& key, uint64_t call, const absl::StatusOr<Reply>& reply)
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsNew(Sender<WorkerBeat, WorkerReply>& sender, const WorkerReply& reply)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsNew(Sender<ClientBeat, ClientReply>& sender, const ClientReply& reply)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteTold(Sender<WorkerBeat, WorkerReply>& sender,
                const WorkerReply& reply) {}
  void NoteTold(Sender<ClientBeat, ClientReply>& sender,
                const ClientReply& reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteParked(uint64_t worker,
                  const Sender<WorkerBeat, WorkerReply>& sender)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteParked(const ClientKey& key,
                  const Sender<ClientBeat, ClientReply>& sender) {}
  template <typename Key, typename Beat, typename Reply>
  void Schedule(Desk<Key, Beat, Reply>& desk, const Key& key,
                Sender<Beat, Reply>& sender)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // It is looked at again at `look_ms` or before.
  template <typename Key, typename Beat, typename Reply>
  void Mark(Desk<Key, Beat, Reply>& desk, const Key& key,
            Sender<Beat, Reply>& sender, int64_t look_ms)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What to do, without the lock, for those whose time has come.
  template <typename Key, typename Beat, typename Reply>
  void TakeDue(Desk<Key, Beat, Reply>& desk, int64_t now_ms, Calls& calls)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  template <typename Key, typename Beat, typename Reply>
  void StopIn(Desk<Key, Beat, Reply>& desk, Calls& calls)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  template <typename Key, typename Beat, typename Reply>
  void DropOld(Desk<Key, Beat, Reply>& desk, int64_t now_ms)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MarkWorker(uint64_t id, int64_t look_ms)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OfferWork() ABSL_LOCKS_EXCLUDED(mutex_);
  void WakeAt(int64_t ms) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t Now() const { return dispatcher_->NowMillis(); }
  void Loop() ABSL_LOCKS_EXCLUDED(mutex_);

  const Settings settings_;
  DurableDispatcher* dispatcher_ = nullptr;
  std::thread thread_;
  std::atomic<bool> has_work_{false};

  mutable Mutex mutex_;
  CondVar changed_;
  Workers workers_ ABSL_GUARDED_BY(mutex_);
  Clients clients_ ABSL_GUARDED_BY(mutex_);
  // Workers that wait and have room, by their calls: who came first is first.
  std::map<uint64_t, uint64_t> roomy_ ABSL_GUARDED_BY(mutex_);
  std::optional<int64_t> offer_ms_ ABSL_GUARDED_BY(mutex_);
  int64_t tick_ms_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t drop_ms_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t wake_ms_ ABSL_GUARDED_BY(mutex_) = 0;  // when the thread looks next
  uint64_t calls_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace penstock::service

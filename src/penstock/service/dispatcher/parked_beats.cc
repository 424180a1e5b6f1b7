#include "penstock/service/dispatcher/parked_beats.h"

#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "penstock/base/hash.h"
#include "penstock/service/dispatcher/records.h"

namespace penstock::service {
namespace {

constexpr int64_t kKeepSendersMillis = 120'000;
constexpr int64_t kDropOldMillis = 10'000;

absl::Status EndingError() {
  return absl::UnavailableError("the dispatcher is ending");
}

}  // namespace

ClientKey KeyOf(const ClientBeat& beat) {
  return {{{beat.epoch().run(), beat.epoch().epoch()}, beat.slot()},
          beat.epoch().generation(),
          beat.opener().consumer(),
          beat.opener().request()};
}

ParkedBeats::Told::Told(const ClientReply& reply) {
  ClientReply others = reply;
  // What changes without being news, or by what the client itself has said.
  others.clear_low();
  others.clear_taken();
  others.clear_assigned();
  // Its figures change with every report of a worker.
  for (plan::Offer& offer : *others.mutable_offers()) {
    offer.clear_bytes_low();
    offer.clear_bytes_high();
    offer.clear_cpu_seconds();
    offer.clear_cpu_share();
  }
  rest = HashBytes(Bytes(others));
  for (const ClientReply::Assigned& each : reply.assigned()) {
    assigned[each.bundle()] = Combine(
        Combine(each.attempt(), each.from()),
        Combine(HashBytes(each.address()),
                Combine(HashBytes(each.local_socket()), each.frame_port())));
  }
}

bool ParkedBeats::Told::IsNewsTo(Told before, const ClientReply& reply) const {
  for (const uint64_t bundle : reply.taken()) before.assigned.erase(bundle);
  return rest != before.rest || assigned != before.assigned;
}

void ParkedBeats::Start(DurableDispatcher& dispatcher) {
  dispatcher_ = &dispatcher;
  thread_ = std::thread([this] { Loop(); });
}

template <typename Key, typename Beat, typename Reply>
void ParkedBeats::StopIn(Desk<Key, Beat, Reply>& desk, Calls& calls) {
  for (auto& [key, sender] : desk.senders) {
    if (!sender.answer) continue;
    calls.push_back([answer = std::exchange(sender.answer, nullptr)] {
      answer(EndingError());
    });
  }
  desk.senders.clear();
  desk.due.clear();
}

void ParkedBeats::Stop() {
  Calls calls;
  {
    MutexLock lock(&mutex_);
    is_stopping_ = true;
    StopIn(workers_, calls);
    StopIn(clients_, calls);
    roomy_.clear();
    changed_.SignalAll();
  }
  for (const auto& call : calls) call();
  if (thread_.joinable()) thread_.join();
}

size_t ParkedBeats::num_parked() const {
  MutexLock lock(&mutex_);
  return workers_.due.size() + clients_.due.size();
}

size_t ParkedBeats::num_senders() const {
  MutexLock lock(&mutex_);
  return workers_.senders.size() + clients_.senders.size();
}

void ParkedBeats::WakeAt(int64_t ms) {
  if (ms >= wake_ms_) return;
  wake_ms_ = ms;
  changed_.Signal();
}

template <typename Key, typename Beat, typename Reply>
void ParkedBeats::Schedule(Desk<Key, Beat, Reply>& desk, const Key& key,
                           Sender<Beat, Reply>& sender) {
  if (sender.due_ms) desk.due.erase({*sender.due_ms, key});
  sender.due_ms.reset();
  if (!sender.answer || sender.is_asked) return;
  sender.due_ms =
      std::min(sender.give_up_ms, sender.look_ms.value_or(sender.give_up_ms));
  desk.due.emplace(*sender.due_ms, key);
  WakeAt(*sender.due_ms);
}

template <typename Key, typename Beat, typename Reply>
void ParkedBeats::Mark(Desk<Key, Beat, Reply>& desk, const Key& key,
                       Sender<Beat, Reply>& sender, int64_t look_ms) {
  if (!sender.answer) return;
  if (sender.look_ms && *sender.look_ms <= look_ms) return;
  sender.look_ms = look_ms;
  Schedule(desk, key, sender);
}

void ParkedBeats::MarkWorker(uint64_t id, int64_t look_ms) {
  const auto it = workers_.senders.find(id);
  if (it != workers_.senders.end()) Mark(workers_, id, it->second, look_ms);
}

void ParkedBeats::OnNews(const News& news) {
  const bool had_work = has_work_.exchange(news.has_work);
  const bool is_offered = news.has_work && !had_work;
  if (!is_offered && news.workers.empty() && news.drained.empty() &&
      news.seats.empty() && news.lows.empty() && news.called.empty()) {
    return;
  }
  const int64_t now_ms = Now();
  MutexLock lock(&mutex_);
  if (is_offered && !offer_ms_ && !roomy_.empty()) {
    offer_ms_ = now_ms + settings_.news_ms;
    WakeAt(*offer_ms_);
  }
  for (const uint64_t id : news.workers) {
    MarkWorker(id, now_ms + settings_.revoked_ms);
  }
  for (const uint64_t id : news.drained) {
    MarkWorker(id, now_ms + settings_.news_ms);
  }
  for (const uint64_t id : news.called) {
    MarkWorker(id, now_ms + settings_.news_ms);
  }
  for (const Seat& seat : news.seats) {
    for (auto it = clients_.senders.lower_bound({seat});
         it != clients_.senders.end() && it->first.seat == seat; ++it) {
      Mark(clients_, it->first, it->second, now_ms + settings_.news_ms);
    }
  }
  for (const EpochName& name : news.lows) {
    for (auto it = clients_.senders.lower_bound({{name, 0}});
         it != clients_.senders.end() && it->first.seat.epoch == name; ++it) {
      Mark(clients_, it->first, it->second,
           std::max(now_ms + settings_.news_ms,
                    it->second.told_ms + settings_.low_ms));
    }
  }
}

template <typename Key, typename Beat, typename Reply>
uint64_t ParkedBeats::Arrive(const Key& key, Beat beat, int64_t wait_ms,
                             Answer<Reply> answer, bool is_first) {
  const auto shared = std::make_shared<const Beat>(std::move(beat));
  const int64_t now_ms = Now();
  Answer<Reply> before;
  uint64_t call;
  {
    MutexLock lock(&mutex_);
    if (is_stopping_) {
      before = std::move(answer);
      call = 0;
    } else {
      auto& desk = DeskOf(key);
      Sender<Beat, Reply>& sender = desk.senders[key];
      before = std::exchange(sender.answer, std::move(answer));
      if (is_first) sender.told.reset();
      roomy_.erase(sender.call);
      call = sender.call = ++calls_;
      sender.beat = shared;
      sender.heard_ms = now_ms;
      if (!before) sender.give_up_ms = now_ms + wait_ms;
      sender.is_asked = true;
      sender.look_ms.reset();
      Schedule(desk, key, sender);
    }
  }
  if (call == 0) {
    before(EndingError());
    return 0;
  }
  if (before) before(absl::CancelledError("a newer beat has come"));
  Ask(key, shared, call, now_ms);
  return call;
}

uint64_t ParkedBeats::OnWorker(WorkerBeat beat, Answer<WorkerReply> answer) {
  const uint64_t key = beat.worker();
  return Arrive(key, std::move(beat), settings_.worker_wait_ms,
                std::move(answer), /*is_first=*/false);
}

uint64_t ParkedBeats::OnClient(ClientBeat beat, Answer<ClientReply> answer,
                               bool is_first) {
  const ClientKey key = KeyOf(beat);
  return Arrive(key, std::move(beat), settings_.client_wait_ms,
                std::move(answer), is_first);
}

template <typename Key>
bool ParkedBeats::IsLast(const Key& key, uint64_t call) {
  auto& senders = DeskOf(key).senders;
  const auto it = senders.find(key);
  return it != senders.end() && it->second.call == call;
}

void ParkedBeats::Ask(uint64_t worker,
                      const std::shared_ptr<const WorkerBeat>& beat,
                      uint64_t call, int64_t heard_ms) {
  const auto done = [this, worker, call](const auto& reply) {
    Judge(worker, call, reply);
  };
  size_t others;
  {
    MutexLock lock(&mutex_);
    if (!IsLast(worker, call)) return;
    others = workers_.senders.size();
  }
  const uint32_t most =
      std::max(settings_.min_leases,
               settings_.leases / static_cast<uint32_t>(others + 1));
  if (beat->room() <= most) {
    return dispatcher_->OnWorker(*beat, heard_ms, done);
  }
  WorkerBeat modest = *beat;
  modest.set_room(most);
  dispatcher_->OnWorker(modest, heard_ms, done);
}

void ParkedBeats::Ask(const ClientKey& key,
                      const std::shared_ptr<const ClientBeat>& beat,
                      uint64_t call, int64_t heard_ms) {
  {
    MutexLock lock(&mutex_);
    if (!IsLast(key, call)) return;
  }
  dispatcher_->OnClient(*beat, heard_ms, [this, key, call](const auto& reply) {
    Judge(key, call, reply);
  });
}

bool ParkedBeats::IsNew(Sender<WorkerBeat, WorkerReply>& sender,
                        const WorkerReply& reply) {
  return reply.term() != sender.beat->term() || reply.leases_size() > 0 ||
         reply.revoked_size() > 0 || reply.made_taken_size() > 0 ||
         reply.is_drained() ||
         (reply.should_drain() && !sender.beat->is_draining());
}

bool ParkedBeats::IsNew(Sender<ClientBeat, ClientReply>& sender,
                        const ClientReply& reply) {
  sender.to_tell = Told(reply);
  if (reply.dropped_size() > 0 || !sender.told ||
      sender.to_tell.IsNewsTo(*sender.told, reply)) {
    return true;
  }
  std::optional<int64_t> tell_ms;
  if (reply.taken_size() > 0) {
    // Nobody waits for that, and what takes the place of these follows.
    if (!sender.taken_ms) sender.taken_ms = Now();
    tell_ms = *sender.taken_ms + settings_.taken_ms;
  } else if (sender.told_low != reply.low()) {
    tell_ms = sender.told_ms + settings_.low_ms;
  }
  if (!tell_ms) return false;
  if (Now() >= *tell_ms) return true;
  sender.look_ms = std::min(sender.look_ms.value_or(*tell_ms), *tell_ms);
  return false;
}

void ParkedBeats::NoteTold(Sender<ClientBeat, ClientReply>& sender,
                           const ClientReply& reply) {
  sender.told = sender.to_tell;
  sender.taken_ms.reset();
  sender.told_low = reply.low();
  sender.told_ms = Now();
}

void ParkedBeats::NoteParked(uint64_t worker,
                             const Sender<WorkerBeat, WorkerReply>& sender) {
  if (sender.beat->room() == 0 || sender.beat->is_draining()) return;
  roomy_[sender.call] = worker;
  // It came while the dispatcher was asked.
  if (has_work_ && !offer_ms_) {
    offer_ms_ = Now() + settings_.news_ms;
    WakeAt(*offer_ms_);
  }
}

template <typename Key, typename Reply>
void ParkedBeats::Judge(const Key& key, uint64_t call,
                        const absl::StatusOr<Reply>& reply) {
  Answer<Reply> answer;
  {
    MutexLock lock(&mutex_);
    auto& desk = DeskOf(key);
    const auto it = desk.senders.find(key);
    if (it == desk.senders.end()) return;
    auto& sender = it->second;
    if (sender.call != call || !sender.answer) return;
    sender.is_asked = false;
    if (!reply.ok() || IsNew(sender, *reply) || Now() >= sender.give_up_ms) {
      answer = std::exchange(sender.answer, nullptr);
      if (reply.ok()) NoteTold(sender, *reply);
    } else {
      sender.reply = *reply;
      NoteParked(key, sender);
    }
    Schedule(desk, key, sender);
  }
  if (answer) answer(reply);
}

template <typename Reply, typename Key>
void ParkedBeats::ForgetCall(const Key& key, uint64_t call) {
  Answer<Reply> answer;
  {
    MutexLock lock(&mutex_);
    auto& desk = DeskOf(key);
    const auto it = desk.senders.find(key);
    if (it == desk.senders.end() || it->second.call != call) return;
    answer = std::exchange(it->second.answer, nullptr);
    it->second.told.reset();
    roomy_.erase(call);
    Schedule(desk, key, it->second);
  }
  if (answer) answer(absl::CancelledError("the caller has gone"));
}

void ParkedBeats::Forget(uint64_t worker, uint64_t call) {
  ForgetCall<WorkerReply>(worker, call);
}

void ParkedBeats::Forget(const ClientKey& key, uint64_t call) {
  ForgetCall<ClientReply>(key, call);
}

template <typename Key, typename Beat, typename Reply>
void ParkedBeats::TakeDue(Desk<Key, Beat, Reply>& desk, int64_t now_ms,
                          Calls& calls) {
  while (!desk.due.empty() && desk.due.begin()->first <= now_ms) {
    const Key key = desk.due.begin()->second;
    Sender<Beat, Reply>& sender = desk.senders.at(key);
    roomy_.erase(sender.call);
    if (sender.look_ms && *sender.look_ms <= now_ms) {
      sender.look_ms.reset();
      sender.is_asked = true;
      calls.push_back(
          [this, key, beat = sender.beat, call = sender.call,
           heard_ms = sender.heard_ms] { Ask(key, beat, call, heard_ms); });
    } else {
      NoteTold(sender, sender.reply);
      calls.push_back([answer = std::exchange(sender.answer, nullptr),
                       reply = std::move(sender.reply)] { answer(reply); });
    }
    Schedule(desk, key, sender);
  }
}

template <typename Key, typename Beat, typename Reply>
void ParkedBeats::DropOld(Desk<Key, Beat, Reply>& desk, int64_t now_ms) {
  std::erase_if(desk.senders, [&](const auto& entry) {
    return !entry.second.answer &&
           now_ms - entry.second.heard_ms > kKeepSendersMillis;
  });
}

void ParkedBeats::OfferWork() {
  uint64_t last = 0;  // each is asked once
  while (has_work_) {
    std::function<void()> ask;
    {
      MutexLock lock(&mutex_);
      const auto it = roomy_.upper_bound(last);
      if (it == roomy_.end()) break;
      last = it->first;
      Sender<WorkerBeat, WorkerReply>& sender = workers_.senders.at(it->second);
      const uint64_t id = it->second;
      roomy_.erase(it);
      sender.is_asked = true;
      sender.look_ms.reset();
      Schedule(workers_, id, sender);
      ask = [this, id, beat = sender.beat, call = sender.call,
             heard_ms = sender.heard_ms] { Ask(id, beat, call, heard_ms); };
    }
    ask();
  }
}

bool ParkedBeats::Poll() {
  Calls calls;
  bool is_offer = false;
  bool is_tick = false;
  {
    MutexLock lock(&mutex_);
    const int64_t now_ms = Now();
    TakeDue(workers_, now_ms, calls);
    TakeDue(clients_, now_ms, calls);
    if (offer_ms_ && *offer_ms_ <= now_ms) {
      offer_ms_.reset();
      is_offer = true;
    }
    if (tick_ms_ <= now_ms) {
      tick_ms_ = now_ms + settings_.tick_ms;
      is_tick = true;
      // What a worker was passed over with.
      if (has_work_) is_offer = true;
    }
    if (drop_ms_ <= now_ms) {
      drop_ms_ = now_ms + kDropOldMillis;
      DropOld(workers_, now_ms);
      DropOld(clients_, now_ms);
    }
  }
  for (const auto& call : calls) call();
  if (is_offer) OfferWork();
  if (is_tick) dispatcher_->Tick();
  return !calls.empty() || is_offer || is_tick;
}

void ParkedBeats::Loop() {
  while (true) {
    if (Poll()) continue;
    MutexLock lock(&mutex_);
    if (is_stopping_) return;
    wake_ms_ = std::min(tick_ms_, offer_ms_.value_or(tick_ms_));
    if (!workers_.due.empty()) {
      wake_ms_ = std::min(wake_ms_, workers_.due.begin()->first);
    }
    if (!clients_.due.empty()) {
      wake_ms_ = std::min(wake_ms_, clients_.due.begin()->first);
    }
    const int64_t wait_ms = wake_ms_ - Now();
    if (wait_ms > 0) changed_.WaitFor(&mutex_, wait_ms * 1'000'000);
    wake_ms_ = std::numeric_limits<int64_t>::min();
  }
}

}  // namespace penstock::service

// What a dispatcher's decisions cost: many workers and jobs in virtual time.
// Prints the time spent in the state machine per simulated second; what the
// store and the network cost comes on top.
//
//   tools/build release dispatcher_bench
//   build/release/src/penstock/service/dispatcher/dispatcher_bench [workers]
//     [jobs] [milliseconds that a bundle takes]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/base/clock.h"
#include "penstock/service/dispatcher/dispatcher_state.h"

namespace penstock::service {
namespace {

constexpr int64_t kSeconds = 20;
constexpr uint32_t kSlots = 4;  // consumers of each job
constexpr uint32_t kWant = 16;  // bundles that each would have open
constexpr size_t kHeld = 4;     // leases that a worker takes
constexpr uint64_t kForManifest = std::numeric_limits<uint64_t>::max();

struct Worker {
  std::map<std::pair<uint64_t, uint64_t>, Lease> held;  // by run and bundle
  std::deque<Lease> waiting;
  std::vector<WorkerBeat::Made> made;
  int64_t done_ms = 0;  // when the first of them is computed
  int64_t beat_ms = 0;
};
struct Consumer {
  ClientBeat beat;
  int64_t beat_ms = 0;
};

class Bench final {
 public:
  Bench(uint64_t workers, uint64_t jobs, int64_t bundle_ms)
      : workers_(workers), bundle_ms_(bundle_ms) {
    state_ = *DispatcherState::Make({}, 1, 0, {});
    Writes writes;
    state_->AddPlan("p", "plan", false, 0, writes);
    for (uint64_t job = 0; job < jobs; ++job) {
      for (uint32_t slot = 0; slot < kSlots; ++slot) Open(job, slot);
    }
    for (size_t i = 0; i < workers; ++i) {
      workers_[i].beat_ms = static_cast<int64_t>(i % 1'600);
    }
  }

  void Run() {
    int64_t at_start_ns = 0;
    for (now_ms_ = 0; now_ms_ < kSeconds * 1'000; ++now_ms_) {
      if (now_ms_ == 5'000) {
        at_start_ns = spent_ns_;
        worker_beats_ = client_beats_ = bundles_ = 0;
      }
      Step();
    }
    const double seconds = kSeconds - 5;
    std::printf(
        "%zu workers, %zu jobs: %.1f ms per second; %.0f beats of workers, "
        "%.0f of consumers, %.0f bundles per second\n",
        workers_.size(), consumers_.size() / kSlots,
        static_cast<double>(spent_ns_ - at_start_ns) / 1e6 / seconds,
        static_cast<double>(worker_beats_) / seconds,
        static_cast<double>(client_beats_) / seconds,
        static_cast<double>(bundles_) / seconds);
  }

 private:
  template <typename Call>
  auto Timed(Call call) {
    const int64_t begin_ns = SteadyClock().NowNanos();
    auto result = call();
    const News news = state_->TakeNews();
    spent_ns_ += SteadyClock().NowNanos() - begin_ns;
    for (const uint64_t id : news.workers) Sooner(workers_[id - 1], 10);
    for (const Seat& seat : news.seats) {
      const auto it = consumers_.find(seat);
      if (it != consumers_.end()) {
        it->second.beat_ms = std::min(it->second.beat_ms, now_ms_ + 1);
      }
    }
    has_work_ = news.has_work;
    return result;
  }
  void Sooner(Worker& worker, int64_t in_ms) const {
    worker.beat_ms = std::min(worker.beat_ms, now_ms_ + in_ms);
  }

  void Open(uint64_t job, uint32_t slot) {
    OpenRequest request;
    request.mutable_opener()->set_consumer(job * kSlots + slot + 1);
    request.set_job(absl::StrCat("job", job));
    request.set_plan("p");
    request.set_visitation(EXACTLY_ONCE);
    request.set_slot(slot);
    request.set_slots(kSlots);
    Writes writes;
    const OpenReply reply = *state_->Open(request, now_ms_, writes);
    Consumer& consumer =
        consumers_[{{reply.epoch().run(), reply.epoch().epoch()}, slot}];
    *consumer.beat.mutable_epoch() = reply.epoch();
    *consumer.beat.mutable_opener() = request.opener();
    consumer.beat.set_slot(slot);
    consumer.beat.set_want(kWant);
  }

  void Step() {
    if (now_ms_ % 100 == 0) {
      Writes writes;
      Timed([&] {
        state_->Tick(now_ms_, writes);
        return 0;
      });
    }
    for (auto& [seat, consumer] : consumers_) {
      if (consumer.beat_ms <= now_ms_) BeatOf(consumer);
    }
    for (size_t i = 0; i < workers_.size(); ++i) {
      Worker& worker = workers_[i];
      Compute(worker);
      if (worker.beat_ms <= now_ms_) BeatOf(i + 1, worker);
    }
    // Work is offered to whoever has room, in turn.
    for (size_t n = 0; n < workers_.size() && has_work_; ++n) {
      offered_ = (offered_ + 1) % workers_.size();
      Worker& worker = workers_[offered_];
      if (worker.waiting.size() < kHeld) BeatOf(offered_ + 1, worker);
    }
  }

  void Compute(Worker& worker) {
    if (worker.waiting.empty() || now_ms_ < worker.done_ms) return;
    const Lease lease = worker.waiting.front();
    worker.waiting.pop_front();
    worker.done_ms = now_ms_ + bundle_ms_;
    Sooner(worker, 1);
    if (lease.is_for_manifest()) {
      worker.held.erase({lease.epoch().run(), kForManifest});
      WorkerBeat::Made& made = worker.made.emplace_back();
      *made.mutable_epoch() = lease.epoch();
      made.set_attempt(lease.attempt());
      made.mutable_manifest()->set_rows(1'000'000);
      made.mutable_manifest()->set_rows_per_bundle(1);
      made.mutable_manifest()->set_passes(1);
      return;
    }
    ++bundles_;
    Consumer& consumer = consumers_.at(
        {{lease.epoch().run(), lease.epoch().epoch()}, lease.slot()});
    consumer.beat.add_finished()->set_bundle(lease.bundle());
    consumer.beat_ms = std::min(consumer.beat_ms, now_ms_ + 1);
  }

  void BeatOf(Consumer& consumer) {
    Writes writes;
    ++client_beats_;
    Timed([&] { return state_->OnClient(consumer.beat, now_ms_, writes); });
    consumer.beat.clear_finished();
    consumer.beat_ms = now_ms_ + 1'000;
  }

  void BeatOf(uint64_t id, Worker& worker) {
    WorkerBeat beat;
    beat.set_worker(id);
    beat.set_address("worker:1");
    for (const auto& [key, lease] : worker.held) {
      WorkerBeat::Held* held = beat.add_held();
      *held->mutable_epoch() = lease.epoch();
      held->set_bundle(lease.bundle());
      held->set_attempt(lease.attempt());
    }
    for (const auto& made : worker.made) *beat.add_made() = made;
    worker.made.clear();
    const size_t room = kHeld - std::min(kHeld, worker.waiting.size());
    beat.set_room(static_cast<uint32_t>(std::min<size_t>(room, 2)));
    Writes writes;
    ++worker_beats_;
    const WorkerReply reply =
        Timed([&] { return state_->OnWorker(beat, now_ms_, writes); });
    for (const auto& revoked : reply.revoked()) {
      worker.held.erase({revoked.epoch().run(), revoked.bundle()});
    }
    for (const Lease& lease : reply.leases()) {
      worker.held[{lease.epoch().run(), lease.bundle()}] = lease;
      if (worker.waiting.empty()) worker.done_ms = now_ms_ + bundle_ms_;
      worker.waiting.push_back(lease);
    }
    worker.beat_ms = now_ms_ + (reply.leases_size() > 0 ? 1 : 1'600);
  }

  std::unique_ptr<DispatcherState> state_;
  std::vector<Worker> workers_;
  std::map<Seat, Consumer> consumers_;
  const int64_t bundle_ms_;
  int64_t now_ms_ = 0;
  int64_t spent_ns_ = 0;
  int64_t worker_beats_ = 0;
  int64_t client_beats_ = 0;
  int64_t bundles_ = 0;
  size_t offered_ = 0;
  bool has_work_ = true;
};

}  // namespace
}  // namespace penstock::service

int main(int argc, char** argv) {
  const auto number = [&](int i, int64_t otherwise) {
    return argc > i ? std::atoll(argv[i]) : otherwise;
  };
  penstock::service::Bench(number(1, 1'000), number(2, 100), number(3, 1'000))
      .Run();
}

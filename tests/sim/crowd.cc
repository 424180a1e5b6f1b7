#include "sim/crowd.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "penstock/service/client/client_state.h"
#include "penstock/service/dispatcher/dispatcher.h"
#include "penstock/service/dispatcher/parked_beats.h"
#include "penstock/service/store/memory_store.h"
#include "penstock/service/worker/worker_state.h"
#include "sim/clock.h"
#include "sim/world.h"

namespace penstock::sim {
namespace {

using service::ClientState;
using service::Lease;
using service::WorkerState;

constexpr uint32_t kMaxOpen = 8;
constexpr int64_t kGatherMs = 5;  // a reader's news wait so long for others

class Cast final {
 public:
  explicit Cast(const Crowd& crowd)
      : crowd_(crowd), clock_(world_), beats_({}), store_(disk_) {
    service::DurableDispatcher::Options options;
    options.holder = "crowd";
    options.on_news = [this](const service::News& news) {
      beats_.OnNews(news);
    };
    dispatcher_ =
        *service::DurableDispatcher::Make(store_, clock_, std::move(options));
    beats_.Attach(*dispatcher_);
    dispatcher_->AddPlan("plan", "", false, [](const auto&) {});
  }
  // Events hold on to what is here.
  ~Cast() { world_.End(); }

  CrowdOutcome Run() {
    const auto start = std::chrono::steady_clock::now();
    Pump();
    for (uint64_t i = 0; i < crowd_.workers; ++i) AddWorker(i + 1);
    for (uint64_t job = 0; job < crowd_.jobs; ++job) {
      for (uint32_t slot = 0; slot < crowd_.readers; ++slot) {
        AddReader(absl::StrCat("job", job), slot);
      }
    }
    CrowdOutcome outcome;
    for (int64_t second = 1; second <= crowd_.seconds; ++second) {
      while (world_.next_ms() < second * 1'000 && world_.Step()) {
      }
      outcome.each_second.push_back(Look());
    }
    outcome.commits = disk_->num_commits();
    outcome.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
    beats_.Stop();
    return outcome;
  }

 private:
  struct Worker {
    explicit Worker(const WorkerState::Settings& settings) : state(settings) {}
    WorkerState state;
    bool is_asking = false;
    bool has_news = false;
  };
  struct Reader {
    service::OpenRequest request;
    std::optional<ClientState> state;
    std::map<uint64_t, uint64_t> reading;  // bundle -> attempt
    bool is_asking = false;
    bool has_news = false;
  };
  using WorkerPtr = std::shared_ptr<Worker>;
  using ReaderPtr = std::shared_ptr<Reader>;
  using BundleName = std::pair<uint64_t, uint64_t>;  // run and number

  // What a dispatcher's threads do.
  void Pump() {
    while (dispatcher_->Poll() || beats_.Poll()) {
    }
    world_.After(1, [this] { Pump(); });
  }

  Piles Look() {
    Piles piles;
    piles.parked = beats_.num_parked();
    piles.senders = beats_.num_senders();
    piles.records = store_.Scan("")->size();
    piles.done = done_;
    dispatcher_->Look([&](const service::DispatcherState& state) {
      for (uint64_t job = 0; job < crowd_.jobs; ++job) {
        const auto* epoch = state.FindEpoch(absl::StrCat("job", job), 0);
        if (epoch == nullptr) continue;
        for (uint32_t slot = 0; slot < crowd_.readers; ++slot) {
          piles.bundles += epoch->OwnedBy(slot).size();
        }
      }
    });
    return piles;
  }

  // --- workers ---

  void AddWorker(uint64_t id) {
    WorkerState::Settings settings;
    settings.worker = id;
    settings.address = absl::StrCat("w", id);
    settings.max_held = 4;
    settings.max_running = 1;
    auto worker = std::make_shared<Worker>(settings);
    // They do not come all at once.
    world_.After(static_cast<int64_t>(id % 1'000), [=, this] { Ask(worker); });
  }

  // Their calls wait at the dispatcher; one that has news makes another.
  void Ask(const WorkerPtr& worker) {
    worker->is_asking = true;
    worker->has_news = false;
    beats_.OnWorker(
        worker->state.MakeBeat(),
        [this, worker](const absl::StatusOr<service::WorkerReply>& reply) {
          if (!reply.ok()) return;  // another call has taken its place
          world_.After(1, [=, this, answer = *reply] { Hear(worker, answer); });
        });
  }

  void Hear(const WorkerPtr& worker, const service::WorkerReply& reply) {
    for (const Lease& lease : worker->state.OnReply(reply).removed) {
      computed_.erase({lease.epoch().run(), lease.bundle()});
    }
    Compute(worker);
    Ask(worker);
  }

  void Compute(const WorkerPtr& worker) {
    while (const std::optional<Lease> lease = worker->state.Start()) {
      const int64_t ms = lease->is_for_manifest() ? 10 : crowd_.bundle_ms;
      world_.After(ms, [=, this, lease = *lease] {
        if (lease.is_for_manifest()) {
          service::Manifest manifest;
          manifest.set_rows(1'000'000'000);
          manifest.set_rows_per_bundle(1);
          manifest.set_passes(1);
          worker->state.OnManifest(lease, manifest);
        } else {
          worker->state.OnComputed(lease);
          const BundleName name{lease.epoch().run(), lease.bundle()};
          computed_[name] = lease.attempt();
          if (const auto it = waiting_.find(name); it != waiting_.end()) {
            const ReaderPtr reader = it->second;
            waiting_.erase(it);
            Deliver(reader, lease.bundle(), lease.attempt());
          }
        }
        Compute(worker);
        Ask(worker);
      });
    }
  }

  // --- readers ---

  void AddReader(const std::string& job, uint32_t slot) {
    auto reader = std::make_shared<Reader>();
    service::OpenRequest& request = reader->request;
    request.mutable_opener()->set_consumer(++readers_);
    request.set_job(job);
    request.set_plan("plan");
    request.set_visitation(service::EXACTLY_ONCE);
    request.set_slot(slot);
    request.set_slots(crowd_.readers);
    Open(reader);
  }

  void Open(const ReaderPtr& reader) {
    dispatcher_->Open(
        reader->request,
        [this, reader](const absl::StatusOr<service::OpenReply>& reply) {
          world_.After(100, [=, this, reply = *reply] {
            if (reply.phase() != service::OpenReply::OPEN) return Open(reader);
            ClientState::Settings settings;
            settings.opener = reader->request.opener();
            settings.job = reader->request.job();
            settings.plan = "plan";
            settings.slot = reader->request.slot();
            settings.slots = reader->request.slots();
            settings.max_open = kMaxOpen;
            reader->state.emplace(settings, reply, std::nullopt);
            Ask(reader);
          });
        });
  }

  void Ask(const ReaderPtr& reader) {
    reader->has_news = false;
    beats_.OnClient(
        reader->state->MakeBeat(),
        [this, reader](const absl::StatusOr<service::ClientReply>& reply) {
          if (!reply.ok()) return;
          world_.After(1, [=, this, answer = *reply] { Hear(reader, answer); });
        });
  }

  void Hear(const ReaderPtr& reader, const service::ClientReply& reply) {
    const ClientState::Actions actions = reader->state->OnReply(reply);
    const uint64_t run = reader->state->epoch().run();
    for (const ClientState::Read& read : actions.start) {
      if (const auto it = computed_.find({run, read.bundle});
          it != computed_.end()) {
        Deliver(reader, read.bundle, it->second);
      } else {
        waiting_[{run, read.bundle}] = reader;
      }
    }
    Ask(reader);
  }

  void Deliver(const ReaderPtr& reader, uint64_t bundle, uint64_t attempt) {
    service::FrameHead head;
    head.epoch = reader->state->epoch();
    head.bundle = bundle;
    head.attempt = attempt;
    head.items = 1;
    head.is_end = true;
    if (reader->state->OnFrame(head).take == 0) return;
    reader->state->Take(bundle, 1);
    reader->state->Give(bundle, 1);
    reader->state->OnDelivered(reader->state->Save());
    ++done_;
    if (std::exchange(reader->has_news, true)) return;
    world_.After(kGatherMs, [=, this] {
      if (reader->has_news) Ask(reader);
    });
  }

  const Crowd crowd_;
  World world_{1};
  VirtualClock clock_;
  service::ParkedBeats beats_;
  std::shared_ptr<store::MemoryDisk> disk_ =
      std::make_shared<store::MemoryDisk>();
  store::MemoryStore store_;
  std::unique_ptr<service::DurableDispatcher> dispatcher_;
  std::map<BundleName, uint64_t> computed_;  // and held: its attempt
  std::map<BundleName, ReaderPtr> waiting_;
  uint64_t readers_ = 0;
  uint64_t done_ = 0;
};

}  // namespace

Piles CrowdOutcome::Most(double begin, double end) const {
  Piles most;
  const auto all = static_cast<double>(each_second.size());
  for (auto i = static_cast<size_t>(begin * all);
       i < static_cast<size_t>(end * all); ++i) {
    const Piles& piles = each_second[i];
    most.parked = std::max(most.parked, piles.parked);
    most.senders = std::max(most.senders, piles.senders);
    most.records = std::max(most.records, piles.records);
    most.bundles = std::max(most.bundles, piles.bundles);
    most.done = std::max(most.done, piles.done);
  }
  return most;
}

std::string CrowdOutcome::ToString(const Crowd& crowd) const {
  std::string text = absl::StrCat(
      crowd.workers, " workers, ", crowd.jobs, " jobs of ", crowd.readers,
      " readers, bundles of ", crowd.bundle_ms, " ms\n",
      "  time     parked  senders  records  bundles      done\n");
  for (int third = 0; third < 3; ++third) {
    const Piles most = Most(third / 3.0, (third + 1) / 3.0);
    absl::StrAppendFormat(&text, "  up to %2d s %6d %8d %8d %8d %9d\n",
                          crowd.seconds * (third + 1) / 3, most.parked,
                          most.senders, most.records, most.bundles, most.done);
  }
  absl::StrAppendFormat(&text, "%.1f s; %d commits\n", seconds, commits);
  return text;
}

CrowdOutcome Gather(const Crowd& crowd) { return Cast(crowd).Run(); }

}  // namespace penstock::sim

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sim/actors.h"

namespace penstock::sim {

using service::ClientReply;
using service::ClientState;
using service::ConsumerState;
using service::FrameHead;
using service::OpenReply;
using service::OpenRequest;

namespace {

constexpr size_t kMostGiven = 3;  // rows that an engine has ready

}  // namespace

ConsumerActor::ConsumerActor(Site& site, uint32_t slot, uint32_t slots,
                             uint64_t number)
    : site_(site), slot_(slot), slots_(slots), number_(number) {}

void ConsumerActor::Start(std::vector<ConsumerState> states) {
  begins_with_ = std::move(states);
  engine_ = std::make_shared<Engine>();
  site_.world.Tell(absl::StrCat("consumer ", number_, " of slot ", slot_, "/",
                                slots_, " starts with ", begins_with_.size(),
                                " states"));
  ++request_;
  Open(engine_);
  if (is_training_) return;
  is_training_ = true;
  Train();
}

void ConsumerActor::KillEngine() {
  if (is_dead_ || has_ended_ || has_left_) return;
  site_.world.Tell(absl::StrCat("the engine of consumer ", number_, " dies"));
  engine_ = std::make_shared<Engine>();
  // An opening that was on its way is the same one still.
  if (is_resuming_) ++request_;
  Open(engine_);
}

void ConsumerActor::Open(const EnginePtr& engine) {
  if (!IsCurrent(engine) || engine->client) return;
  const auto self = shared_from_this();
  site_.world.After(site_.world.rng().Between(200, 500),
                    [self, engine] { self->Open(engine); });
  OpenRequest request;
  request.mutable_opener()->set_consumer(number_);
  request.mutable_opener()->set_request(request_);
  request.set_job("job");
  request.set_plan("plan");
  request.set_visitation(site_.plan.is_static         ? service::STATIC
                         : site_.plan.is_each_worker  ? service::EACH_WORKER
                         : site_.plan.is_at_most_once ? service::AT_MOST_ONCE
                                                      : service::EXACTLY_ONCE);
  request.set_is_ordered(site_.plan.is_ordered);
  request.set_slot(slot_);
  request.set_slots(slots_);
  request.set_on_existing(OpenRequest::ATTACH);
  if (is_resuming_) {
    *request.add_states() = *state_;
    request.set_is_same_consumer(true);
  } else {
    for (const ConsumerState& state : begins_with_) {
      *request.add_states() = state;
    }
  }
  site_.Send([self, engine, request] {
    // A call ends with the process that makes it.
    const auto dispatcher = self->site_.Listening();
    if (dispatcher == nullptr || self->is_dead_) return;
    dispatcher->OnOpen(request, [self, engine, opener = request.opener()](
                                    const absl::StatusOr<OpenReply>& reply) {
      self->site_.Send([self, engine, opener, reply] {
        if (!self->IsCurrent(engine) || engine->client) return;
        if (!reply.ok()) {
          self->site_.world.Tell(absl::StrCat(
              "consumer ", self->number_,
              " may not open: ", std::string(reply.status().message())));
          return;
        }
        if (reply->phase() != OpenReply::OPEN) return;
        ClientState::Settings settings;
        settings.opener = opener;
        settings.job = "job";
        settings.plan = "plan";
        settings.slot = self->slot_;
        settings.slots = self->slots_;
        settings.is_ordered = self->site_.plan.is_ordered;
        settings.max_open = 3;
        std::optional<ConsumerState> resumed;
        if (self->is_resuming_) resumed = self->state_;
        engine->client.emplace(settings, *reply, resumed);
        // Where it is before the first row, too.
        if (!resumed) self->state_ = engine->client->Save();
        self->is_resuming_ = true;
        self->Beat(engine);
      });
    });
  });
}

void ConsumerActor::Beat(const EnginePtr& engine) {
  if (!IsCurrent(engine) || has_left_ || has_ended_) return;
  const auto self = shared_from_this();
  site_.world.After(site_.world.rng().Between(50, 250),
                    [self, engine] { self->Beat(engine); });
  const service::ClientBeat beat = engine->client->MakeBeat();
  site_.Send([self, engine, beat] {
    const auto dispatcher = self->site_.Listening();
    if (dispatcher == nullptr) return;
    dispatcher->OnClient(beat, [self, engine](const ClientReply& reply) {
      self->site_.Send([self, engine, reply] {
        if (!self->IsCurrent(engine) || self->has_left_) return;
        self->Act(engine, engine->client->OnReply(reply));
      });
    });
  });
}

void ConsumerActor::Act(const EnginePtr& engine,
                        const ClientState::Actions& actions) {
  const auto self = shared_from_this();
  for (const uint64_t bundle : actions.stop) engine->reading.erase(bundle);
  for (const ClientState::Read& read : actions.start) {
    const uint64_t number = ++engine->reads;
    site_.world.Tell(absl::StrCat("consumer ", number_, " reads bundle ",
                                  read.bundle, " from ", read.address,
                                  ", from ", read.from, " on"));
    engine->reading[read.bundle] = number;
    const auto is_wanted = [self, engine, read, number] {
      if (!self->IsCurrent(engine)) return false;
      const auto it = engine->reading.find(read.bundle);
      return it != engine->reading.end() && it->second == number;
    };
    const auto broken = [self, engine, read,
                         is_wanted](const std::string& why) {
      if (!is_wanted()) return;
      engine->reading.erase(read.bundle);
      engine->client->OnBroken(read.bundle, read.attempt, why);
    };
    const auto frame = [self, engine, read, broken](const FrameHead& head) {
      if (!self->IsCurrent(engine)) return false;
      // One that a reading before has sent may still come.
      const ClientState::Taken taken = engine->client->OnFrame(head);
      if (taken.is_out_of_step) {
        broken("a frame is missing");
        return false;
      }
      const uint64_t first = head.position + taken.skip;
      for (uint64_t i = 0; i < taken.take; ++i) {
        engine->received[head.bundle].push_back({head.bundle, first + i});
        engine->order.push_back(head.bundle);
      }
      return true;
    };
    const auto it = site_.workers.find(read.address);
    const auto worker = it == site_.workers.end() ? nullptr : it->second;
    site_.world.After(
        site_.world.rng().Between(0, site_.plan.most_delay_ms),
        [worker, read, frame, broken, epoch = engine->client->epoch()] {
          if (worker == nullptr || worker->is_dead()) {
            return broken("nobody is there");
          }
          worker->Read(epoch, read.bundle, read.attempt, read.from, frame,
                       broken);
        });
  }
}

// The pipeline after the client: takes items, and has a few rows ready.
void ConsumerActor::Fill(Engine& engine) {
  while (engine.given.size() < kMostGiven) {
    std::optional<uint64_t> bundle = engine.client->NextToTake();
    if (!bundle) {
      if (engine.order.empty()) return;
      bundle = engine.order.front();
      engine.order.pop_front();
    }
    std::deque<Item>& items = engine.received[*bundle];
    if (items.empty()) return;  // in order: not here yet
    const Item item = items.front();
    items.pop_front();
    engine.client->Take(*bundle, 1);
    engine.client->Give(*bundle, 1);
    engine.given.push_back({item, engine.client->Save()});
  }
}

void ConsumerActor::Train() {
  if (is_dead_ || has_ended_ || has_left_) return;
  const auto self = shared_from_this();
  site_.world.After(site_.world.rng().Between(1, 40),
                    [self] { self->Train(); });
  Engine& engine = *engine_;
  if (!engine.client) return;
  if (!engine.client->failure().ok()) {
    site_.world.Tell(absl::StrCat(
        "consumer ", number_,
        " is told: ", std::string(engine.client->failure().message())));
    is_dead_ = true;
    return;
  }
  Fill(engine);
  if (engine.given.empty()) {
    // Empty bundles, and the end, come without an item.
    engine.client->OnDelivered(engine.client->Save());
    if (engine.client->has_ended()) {
      site_.world.Tell(absl::StrCat("consumer ", number_, " has ended"));
      has_ended_ = true;
      SendRelease(engine.client->MakeRelease());
    }
    return;
  }
  const Given given = engine.given.front();
  engine.given.pop_front();
  ledger_.push_back(given.item);
  state_ = given.after;
  // The engine hears of it a little later; it may be dead by then.
  site_.world.After(site_.world.rng().Between(0, 20),
                    [self, engine = engine_, after = given.after] {
                      if (!self->IsCurrent(engine)) return;
                      engine->client->OnDelivered(after);
                    });
}

void ConsumerActor::Leave() {
  if (is_dead_ || has_ended_ || has_left_ || !engine_->client) return;
  // What the trainer has had is known before it leaves.
  if (state_) engine_->client->OnDelivered(*state_);
  site_.world.Tell(absl::StrCat("consumer ", number_, " leaves"));
  has_left_ = true;
  const service::ReleaseRequest request = engine_->client->MakeRelease();
  SendRelease(request);
}

// Until it was heard.
void ConsumerActor::SendRelease(const service::ReleaseRequest& request) {
  if (is_heard_ || is_dead_) return;
  const auto self = shared_from_this();
  site_.Send([self, request] {
    const auto dispatcher = self->site_.Listening();
    if (dispatcher == nullptr) return;
    dispatcher->OnRelease(request, [self] {
      self->site_.Send([self] { self->is_heard_ = true; });
    });
  });
  site_.world.After(300, [self, request] { self->SendRelease(request); });
}

}  // namespace penstock::sim

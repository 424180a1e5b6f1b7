#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "sim/actors.h"

namespace penstock::sim {

using service::ClientReply;
using service::ClientState;
using service::ConsumerState;
using service::OpenReply;
using service::OpenRequest;
using service::RowLog;

namespace {

constexpr size_t kMostFrames = 2;  // that an engine has ready

// A saved state's journal, from its place on.
RowLog JournalOf(const Saved& saved) {
  RowLog log(saved.journal);
  log.TrimTo(saved.place);
  return log;
}

}  // namespace

ConsumerActor::ConsumerActor(Site& site, uint32_t slot, uint32_t slots,
                             uint64_t number)
    : site_(site), slot_(slot), slots_(slots), number_(number) {}

uint64_t ConsumerActor::missed() const {
  return engine_->client ? engine_->client->missed_items() : 0;
}

std::optional<uint64_t> ConsumerActor::row() const {
  if (!saved_) return std::nullopt;
  return saved_->place + saved_->since.size();
}

std::string ConsumerActor::ToString() const {
  std::string text = absl::StrCat("consumer ", number_, ": ", ledger_.size(),
                                  " items", has_ended_ ? ", ended" : "");
  if (!engine_ || !engine_->client) return text + ", not open";
  const service::ClientBeat beat = engine_->client->MakeBeat();
  absl::StrAppend(&text, ", wants ", beat.want(), ", waits for",
                  beat.open_size() == 0 ? " none" : "");
  for (const uint64_t bundle : beat.open()) absl::StrAppend(&text, " ", bundle);
  for (const uint64_t bundle : beat.complete()) {
    absl::StrAppend(&text, ", has ", bundle);
  }
  return text;
}

void ConsumerActor::Start(Begin begin) {
  begin_ = std::move(begin);
  engine_ = std::make_shared<Engine>();
  site_.world.Tell(absl::StrCat("consumer ", number_, " of slot ", slot_, "/",
                                slots_, " starts with ",
                                begin_.own ? 1 : begin_.all.size(), " states"));
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
  // Whether its restore was heard is not known. One that reads in rounds, and
  // had nothing yet, has no state but the one that it was begun with.
  const bool is_loaded =
      begin_.own.has_value() || !begin_.all.empty() || site_.plan.is_in_rounds;
  if (is_loaded && !has_taken_) is_resuming_ = false;
  ++request_;
  Open(engine_);
}

void ConsumerActor::Open(const EnginePtr& engine) {
  if (!IsCurrent(engine) || engine->client || has_failed_) return;
  const auto self = shared_from_this();
  site_.world.After(site_.world.rng().Between(200, 500),
                    [self, engine] { self->Open(engine); });
  OpenRequest request;
  request.mutable_opener()->set_consumer(number_);
  request.mutable_opener()->set_request(request_);
  request.set_job(site_.JobOf(slot_, slots_));
  request.set_plan("plan");
  request.set_visitation(site_.plan.is_static         ? service::STATIC
                         : site_.plan.is_each_worker  ? service::EACH_WORKER
                         : site_.plan.is_at_most_once ? service::AT_MOST_ONCE
                                                      : service::EXACTLY_ONCE);
  request.set_is_ordered(site_.plan.is_ordered);
  request.set_slot(site_.plan.is_group() ? 0 : slot_);
  request.set_slots(site_.plan.is_group() ? 1 : slots_);
  // One that is new takes nobody's place.
  request.set_on_existing(begin_.from_round && !begin_.rejoins
                              ? OpenRequest::ERROR
                              : OpenRequest::ATTACH);
  if (site_.plan.is_group()) {
    service::Group& group = *request.mutable_group();
    group.set_name("group");
    group.set_lanes(lanes());
    group.set_lane(site_.plan.is_in_rounds ? slot_ : 0);
    if (site_.plan.is_at_most_once) group.set_policy(service::Sharing::SKIP);
    if (begin_.from_round) group.set_row(*begin_.from_round);
    request.set_seed(number_);
  }
  if (is_resuming_) {
    *request.add_states() = JournalOf(*saved_).Wanted();
    request.set_is_same_consumer(true);
  } else if (begin_.own) {
    *request.add_states() = JournalOf(*begin_.own).Wanted();
  } else if (begin_.resized_from) {
    *request.mutable_group()->mutable_resized_from() = *begin_.resized_from;
  } else {
    for (const ConsumerState& state : begin_.all) *request.add_states() = state;
  }
  if (request.states_size() > 0 && request.has_group()) {
    *request.mutable_group()->mutable_splits() = request.states(0).splits();
    request.mutable_group()->set_resized_at(request.states(0).resized_at());
  }
  request.set_replaces(engine->replaces);
  site_.Send([self, engine, request] {
    // It may come when the process that made it is no more.
    const auto dispatcher = self->site_.Listening();
    if (dispatcher == nullptr) return;
    dispatcher->OnOpen(request, [self, engine, opener = request.opener()](
                                    const absl::StatusOr<OpenReply>& reply) {
      self->site_.Send([self, engine, opener, reply] {
        if (!self->IsCurrent(engine) || engine->client) return;
        if (!reply.ok()) {
          self->site_.world.Tell(absl::StrCat(
              "consumer ", self->number_,
              " may not open: ", std::string(reply.status().message())));
          if (opener.request() == self->request_) {
            self->OnRefused(reply.status());
          }
          return;
        }
        if (reply->replaces() != 0) engine->replaces = reply->replaces();
        if (reply->phase() != OpenReply::OPEN) return;
        self->OnOpened(engine, opener, *reply);
      });
    });
  });
}

void ConsumerActor::OnRefused(const absl::Status& status) {
  // It may be that others have taken their places already, and do not bring
  // their states again. Nothing else is a reason: its checkpoint is valid, and
  // nobody else goes on from one.
  if (absl::IsFailedPrecondition(status) &&
      absl::StrContains(status.message(), "needs the states of all")) {
    has_failed_ = true;
  } else if (absl::IsFailedPrecondition(status) ||
             absl::IsInvalidArgument(status)) {
    if (begin_.rejoins && absl::StrContains(status.message(), "nobody says")) {
      site_.world.Tell("all have forgotten where it was");
      is_lost_ = true;
      has_failed_ = true;
      return;
    }
    // Those who went on from an earlier round are not given up yet.
    if (begin_.is_restored &&
        absl::StrContains(status.message(), "they were resized at")) {
      has_failed_ = true;
      return;
    }
    site_.failure = absl::StrCat("refused: ", std::string(status.message()));
  }
}

void ConsumerActor::OnOpened(const EnginePtr& engine,
                             const service::Opener& opener,
                             const OpenReply& reply) {
  ClientState::Settings settings;
  settings.opener = opener;
  settings.job = site_.JobOf(slot_, slots_);
  settings.lanes = lanes();
  settings.plan = "plan";
  settings.slot = site_.plan.is_group() ? 0 : slot_;
  settings.slots = site_.plan.is_group() ? 1 : slots_;
  settings.may_skip = site_.plan.is_shared && site_.plan.is_at_most_once;
  settings.is_ordered = site_.plan.is_ordered;
  settings.max_open = 3;
  const std::optional<Saved> from = is_resuming_ ? saved_ : begin_.own;
  std::optional<RowLog> log;
  std::optional<ConsumerState> resumed;
  if (from) {
    log = JournalOf(*from);
    resumed = log->base();
    engine->place = from->place;
    engine->expected = {from->since.begin(), from->since.end()};
  }
  engine->client.emplace(settings, reply, resumed);
  CheckSeed(reply.seed());
  if (!from) engine->place = first_row_ = reply.row();
  if (begin_.resized_from) {
    if (!from && reply.row() != begin_.resized_from->row()) {
      site_.failure =
          absl::StrCat("it was resized at round ", begin_.resized_from->row(),
                       "; got ", reply.row());
      return;
    }
    first_row_ = 0;  // it goes on with what it had
  }
  if (!from && begin_.from_round) {
    if (reply.row() > *begin_.from_round) {
      site_.failure = absl::StrCat("round ", *begin_.from_round,
                                   " was asked for; got ", reply.row());
      return;
    }
    engine->place = *begin_.from_round;
    first_row_ = 0;  // it goes on with what it had
  }
  engine->feed.emplace(RowFeed::Groups{site_.plan.group_size,
                                       site_.plan.group_rows, lanes(), slot_},
                       *engine->client, std::move(log), reply.row(),
                       engine->place);
  // Where it is before the first row, too.
  saved_ = from ? *from : Saved{engine->feed->Seal(), engine->place, {}};
  is_resuming_ = true;
  Beat(engine);
}

// All that read a group's elements read those of one seed. When all others have
// left, one that comes begins anew.
void ConsumerActor::CheckSeed(uint64_t seed) {
  if (!site_.plan.is_group()) return;
  if (site_.has_member_left && !site_.plan.is_in_rounds) return;
  if (site_.seed == 0) site_.seed = seed;
  if (site_.seed == seed) return;
  site_.failure =
      absl::StrCat("members have the seeds ", site_.seed, " and ", seed);
}

void ConsumerActor::Beat(const EnginePtr& engine) {
  if (!IsCurrent(engine) || has_left_ || has_ended_) return;
  const auto self = shared_from_this();
  site_.world.After(site_.world.rng().Between(50, 250),
                    [self, engine] { self->Beat(engine); });
  service::ClientBeat beat = engine->client->MakeBeat();
  if (site_.plan.is_in_rounds) engine->feed->AddPlace(beat);
  site_.Send([self, engine, beat] {
    const auto dispatcher = self->site_.Listening();
    if (dispatcher == nullptr) return;
    dispatcher->OnClient(beat, [self, engine](const ClientReply& reply) {
      self->site_.may_reader_end |= reply.phase() == ClientReply::NOTHING_LEFT;
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
  for (const service::Finished& dropped : actions.dropped) {
    engine->feed->OnEnd(dropped.bundle(), dropped.items());
  }
  engine->feed->OnSkipped(actions.skipped);
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
    const auto broken = [engine, read, is_wanted](const std::string& why) {
      if (!is_wanted()) return;
      engine->reading.erase(read.bundle);
      engine->client->OnBroken(read.bundle, read.attempt, why);
    };
    const auto frame = [self, engine, read, broken](const Sent& sent) {
      if (!self->IsCurrent(engine)) return false;
      // One that a reading before has sent may still come.
      if (self->OnFrame(engine, read.address, sent)) return true;
      broken("a frame is missing");
      return false;
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

// False: it is out of step.
bool ConsumerActor::OnFrame(const EnginePtr& engine, const std::string& address,
                            const Sent& sent) {
  const service::FrameHead& head = sent.head;
  const ClientState::Taken taken = engine->client->OnFrame(head);
  if (taken.is_out_of_step) return false;
  RowFeed& feed = *engine->feed;
  const auto first = sent.items.begin() + static_cast<int64_t>(taken.skip);
  feed.OnItems(head.bundle, head.position + taken.skip,
               {first, first + static_cast<int64_t>(taken.take)},
               sent.loose_from);
  if (head.is_end) feed.OnEnd(head.bundle, taken.end);
  if (feed.waiting() >= site_.plan.budget) engine->client->set_is_full(true);
  if (taken.take == 0) return true;
  // Where nothing but drains happens, nobody goes on with what another one has
  // begun to send.
  const auto [it, is_first] = engine->came_from.emplace(head.bundle, address);
  if (site_.plan.is_calm() && it->second != address) {
    site_.failure =
        absl::StrCat("bundle ", head.bundle, " was begun at ", it->second,
                     ", which drained, and went on at ", address);
  }
  return true;
}

// The pipeline after the client: takes rows, and has a few frames ready. It may
// hold rows back, so that a frame's state names one before its first.
void ConsumerActor::Fill(Engine& engine) {
  Rng& rng = site_.world.rng();
  while (!engine.expected.empty()) {
    std::optional<Row> row = engine.feed->Next();
    if (!row) return;
    // At most once, some of them may be lost.
    if (!site_.plan.may_lose() && *row != engine.expected.front()) {
      site_.failure =
          absl::StrCat("after a restore, a row of bundle ", row->front().first,
                       " came instead of one of bundle ",
                       engine.expected.front().front().first);
      return;
    }
    engine.expected.pop_front();
    engine.held.push_back(*std::move(row));
  }
  while (engine.frames.size() < kMostFrames) {
    Frame frame;
    frame.held = engine.held.size();
    const uint64_t most = 1 + rng.Below(site_.plan.most_rows);
    while (frame.rows.size() < most) {
      std::optional<Row> row = engine.feed->Next();
      if (!row) break;
      frame.rows.push_back(*row);
      engine.held.push_back(*std::move(row));
    }
    if (frame.rows.empty()) return;
    // What the frame before has held back came with it, or still is.
    const uint64_t hold =
        std::min<uint64_t>(frame.held, rng.Below(site_.plan.most_held + 1));
    while (frame.held > hold) {
      engine.held.pop_front();
      ++engine.place;
      --frame.held;
    }
    frame.place = engine.place;
    frame.journal = engine.feed->Seal();
    engine.frames.push_back(std::move(frame));
  }
}

// The first row of a frame was returned: what its state does not name is the
// trainer's.
void ConsumerActor::Take(Frame& frame) {
  frame.is_taken = true;
  engine_->has_taken = true;
  has_taken_ = true;
  // The engine hears of it a little later; it may be dead by then.
  site_.world.After(
      site_.world.rng().Between(0, 20),
      [self = shared_from_this(), engine = engine_, place = frame.place] {
        if (!self->IsCurrent(engine)) return;
        engine->feed->OnDelivered(place);
      });
}

void ConsumerActor::Train() {
  if (is_dead_ || has_failed_ || has_ended_ || has_left_) return;
  const auto self = shared_from_this();
  site_.world.After(site_.world.rng().Between(1, 40),
                    [self] { self->Train(); });
  Engine& engine = *engine_;
  if (!engine.client) return;
  if (!engine.client->failure().ok()) {
    site_.world.Tell(absl::StrCat(
        "consumer ", number_,
        " is told: ", std::string(engine.client->failure().message())));
    has_failed_ = true;
    return;
  }
  Fill(engine);
  if (engine.feed->waiting() < site_.plan.budget / 2) {
    engine.client->set_is_full(false);
  }
  if (last_row_ && row() >= last_row_) return;
  if (engine.frames.empty()) {
    if (!engine.feed->has_ended()) return;
    if (!engine.expected.empty() && !site_.plan.may_lose()) {
      site_.failure = "rows of a checkpoint did not come once more";
      return;
    }
    site_.world.Tell(absl::StrCat("consumer ", number_, " has ended"));
    has_ended_ = true;
    site_.has_member_left = true;
    saved_ = Saved{engine.feed->Seal(), engine.feed->row(), {}};
    engine.feed->OnDelivered(engine.feed->row());
    SendRelease(engine.client->MakeRelease());
    return;
  }
  Frame& frame = engine.frames.front();
  const Row row = frame.rows.front();
  frame.rows.pop_front();
  ledger_.insert(ledger_.end(), row.begin(), row.end());
  if (!frame.is_taken) Take(frame);
  // The frame's state is the newest. Rows from its place on were had, too.
  std::vector<Row>& since = saved_->since;
  since.push_back(row);
  since.erase(since.begin(), since.begin() + static_cast<int64_t>(
                                                 frame.place - saved_->place));
  saved_->place = frame.place;
  saved_->journal = frame.journal;
  if (site_.plan.resizes > 0) history_[*this->row()] = *saved_;
  if (frame.rows.empty()) engine.frames.pop_front();
}

void ConsumerActor::Leave() {
  if (is_dead_ || has_ended_ || has_left_ || !engine_->has_taken) return;
  // What the trainer has had is known before it leaves.
  engine_->feed->OnDelivered(saved_->place + saved_->since.size());
  site_.world.Tell(absl::StrCat("consumer ", number_, " leaves"));
  has_left_ = true;
  site_.has_member_left = true;
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

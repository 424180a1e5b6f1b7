// What a pass says to the service: it opens an epoch, beats, has its bundles
// read and takes its leave.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "penstock/base/clock.h"
#include "penstock/base/status.h"
#include "penstock/data/encode.h"
#include "penstock/data/frame_memory.h"
#include "penstock/service/client/pass.h"
#include "penstock/service/client/received_source.h"
#include "penstock/service/client/rounds.h"
#include "penstock/service/rpc/beat_stream.h"
#include "penstock/service/rpc/diagnose.h"
#include "penstock/service/rpc/status.h"

namespace penstock::service {
namespace {

using std::chrono::milliseconds;

constexpr uint32_t kMaxOpen = 32;  // bundles that are on their way at once
constexpr milliseconds kCallTime{5'000};
constexpr milliseconds kGoodbyeTime{1'000};
constexpr int kGoodbyes = 3;
// Who has never answered is given up after this, who has is waited for: also
// by an engine in the place of one that died.
constexpr int64_t kPatienceNanos = 10'000'000'000;
// Of a reader that goes on from a checkpoint: the dispatcher may be starting.
constexpr int64_t kLongPatienceNanos = 60'000'000'000;
constexpr int64_t kWarnNanos = 5'000'000'000;
constexpr int64_t kMinWaitNanos = 2'000'000;
constexpr int64_t kMaxWaitNanos = 1'000'000'000;
// A dispatcher that has not answered for so long is asked over another stream.
constexpr int64_t kBeatNanos = 15'000'000'000;
// News of several bundles go out together; sooner where rows are waited for.
constexpr int64_t kGatherNanos = 5'000'000;
constexpr int64_t kHurryNanos = 300'000;

int64_t Now() { return SteadyClock().NowNanos(); }

// Passes whose threads run.
Mutex running_mutex;
CondVar running_changed;
int running ABSL_GUARDED_BY(running_mutex) = 0;

bool IsWorthAnotherTry(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsCancelled(status);
}

// Where a reader is that has had all but what is selected.
ConsumerState StateOf(const OpenRequest& request,
                      const Pass::Selection& selection) {
  ConsumerState state;
  state.set_job(request.job());
  state.set_plan(request.plan());
  state.set_manifest(selection.manifest);
  state.set_slots(1);
  state.set_epoch_number(request.epoch());
  state.set_iteration(request.iteration());
  state.set_seed(request.seed());
  BundleSet done;
  done.AddRun(0, selection.begin);
  if (selection.bundles && selection.end < *selection.bundles) {
    done.AddRun(selection.end, *selection.bundles);
  }
  *state.mutable_inherited_done() = done.ToRuns();
  return state;
}

}  // namespace

void WaitForGoodbyes(absl::Duration most) {
  const int64_t end = Now() + absl::ToInt64Nanoseconds(most);
  MutexLock lock(&running_mutex);
  while (running > 0) {
    const int64_t left = end - Now();
    if (left <= 0) return;
    running_changed.WaitFor(&running_mutex, left);
  }
}

void Pass::Begin() {
  if (std::exchange(has_started_, true)) return;
  {
    MutexLock lock(&running_mutex);
    ++running;
  }
  std::thread([self = shared_from_this()] { self->Run(); }).detach();
}

void Pass::OpenIfResumed() {
  MutexLock lock(&mutex_);
  if (resumed_) Begin();
}

void Pass::OnReadingDone(uint64_t bundle, uint64_t attempt,
                         const absl::Status& status) {
  EndReading(bundle, attempt, status);
  MutexLock lock(&mutex_);
  --num_readings_;
  changed_.SignalAll();
}

void Pass::EndReading(uint64_t bundle, uint64_t attempt,
                      const absl::Status& status) {
  engine::Waker woken;
  MutexLock lock(&mutex_);
  const auto reader = readers_.find(bundle);
  if (reader == readers_.end() || reader->second.attempt != attempt) return;
  const Reader ended = std::move(reader->second);
  windows_ -= ended.window;
  readers_.erase(reader);
  if (!status.ok() && ended.memory != nullptr) {
    options_.link->Forget(ended.address, ended.memory);
  }
  // A key that a worker in the place of another does not know.
  if (absl::IsAborted(status) && ended.socket != nullptr) {
    options_.link->Forget(ended.address, ended.socket);
  }
  if (is_closing_ || client_ == nullptr) return;
  if (absl::IsUnavailable(status)) LookAtWorker(ended.address, status);
  client_->OnBroken(bundle, attempt, std::string(status.message()));
  // A word that was good before may be so again: files of words change.
  const bool is_old_word = absl::IsUnauthenticated(status) &&
                           options_.link->HasAnswered(ended.address);
  // What computing the bundle came to is not the worker's fault.
  if (!status.ok() && !IsWorthAnotherTry(status) && !is_old_word &&
      !absl::IsNotFound(status) && !absl::IsDataLoss(status) &&
      !absl::IsAborted(status) && client_->is_wanted(bundle)) {
    failure_ =
        rpc::NameRefusal(status, ended.address, options_.link->credentials());
  }
  Tell(/*is_urgent=*/!status.ok());
  woken = WakeReader();
}

void Pass::Fail(const absl::Status& status) {
  engine::Waker woken;
  MutexLock lock(&mutex_);
  if (failure_.ok()) failure_ = status;
  woken = WakeReader();
}

void Pass::LookAtWorker(const std::string& address,
                        const absl::Status& status) {
  options_.link->OnWorkerBroken(
      address, status,
      [weak = weak_from_this()](const absl::Status& why, bool is_fatal) {
        const std::shared_ptr<Pass> self = weak.lock();
        if (self == nullptr) return;
        if (is_fatal) return self->Fail(why);
        if (self->options_.environment.warn) {
          self->options_.environment.warn(std::string(why.message()));
        }
      });
}

void Pass::Run() {
  const absl::Status opened = Open();
  if (opened.ok()) {
    BeatUntilOver();
    SayGoodbye();
  } else {
    Fail(opened);
  }
  MutexLock lock(&running_mutex);
  --running;
  running_changed.SignalAll();
}

OpenRequest Pass::MakeOpen(const std::string& plan) {
  const plan::Distribution& asked = options_.distribution;
  OpenRequest request;
  request.mutable_opener()->set_consumer(options_.consumer);
  // Later ones are larger, whichever process of this host makes them.
  request.mutable_opener()->set_request(static_cast<uint64_t>(Now()));
  request.set_job(options_.job);
  request.set_plan(plan);
  request.set_epoch(options_.epoch);
  request.set_iteration(options_.iteration);
  request.set_visitation(ToService(asked.visitation()));
  request.set_is_ordered(asked.is_ordered());
  request.set_seed(options_.seed);
  request.set_slot(asked.reader());
  request.set_slots(asked.readers());
  if (std::optional<Group> group = GroupOf(asked, plan)) {
    *request.mutable_group() = *std::move(group);
    request.set_is_ordered(true);
  }
  if (options_.resized_from) {
    request.set_epoch(options_.resized_from->epoch_number());
    request.set_iteration(options_.resized_from->iteration());
    *request.mutable_group()->mutable_resized_from() = *options_.resized_from;
  }
  request.set_on_existing(
      static_cast<OpenRequest::OnExisting>(asked.on_existing()));
  MutexLock lock(&mutex_);
  if (options_.selection) {
    *request.add_states() = StateOf(request, *options_.selection);
    request.set_is_brief(true);
  } else if (resumed_) {
    *request.add_states() = resumed_->Wanted();
    request.set_is_same_consumer(is_recovery_);
  } else {
    request.mutable_states()->Add(options_.states.begin(),
                                  options_.states.end());
  }
  if (request.states_size() > 0 && request.has_group()) {
    *request.mutable_group()->mutable_splits() = request.states(0).splits();
    request.mutable_group()->set_resized_at(request.states(0).resized_at());
  }
  return request;
}

bool Pass::CallUnlessClosed(std::vector<grpc::ClientContext*> contexts,
                            const std::function<void()>& call) {
  {
    MutexLock lock(&mutex_);
    if (is_closing_) return false;
    calls_ = std::move(contexts);
  }
  call();
  MutexLock lock(&mutex_);
  calls_.clear();
  return !is_closing_ || is_leaving_;
}

absl::Status Pass::Open() {
  const int64_t start = Now();
  // Who does not answer at all is named at once.
  int64_t warned = 0;
  int64_t wait = kMinWaitNanos;
  bool has_answered = false;
  bool is_forgotten = false;
  bool is_recovery = false;
  int64_t patience = kPatienceNanos;
  std::optional<OpenRequest> request;
  while (true) {
    {
      MutexLock lock(&mutex_);
      is_recovery = is_recovery_;
      if (resumed_ || !options_.states.empty() || options_.resized_from ||
          options_.selection) {
        patience = kLongPatienceNanos;
      }
    }
    grpc::ClientContext hello;
    grpc::ClientContext add;
    rpc::Prepare(hello, options_.link->credentials(), kCallTime);
    rpc::Prepare(add, options_.link->credentials(), 4 * kCallTime);
    absl::StatusOr<std::string> plan;
    if (!CallUnlessClosed({&hello, &add}, [&] {
          plan = options_.link->Register(hello, add, is_forgotten);
        })) {
      return absl::CancelledError("it was closed");
    }
    absl::Status status = plan.status();
    if (plan.ok()) {
      has_answered = true;
      if (!request) request = MakeOpen(*plan);
      OpenReply reply;
      grpc::ClientContext context;
      rpc::Prepare(context, options_.link->credentials(), kCallTime);
      if (!CallUnlessClosed({&context}, [&] {
            status = rpc::FromGrpc(
                options_.link->dispatcher().Open(&context, *request, &reply));
          })) {
        return absl::CancelledError("it was closed");
      }
      if (status.ok() && reply.phase() == OpenReply::OPEN) {
        OnOpened(reply, *plan, *request);
        return absl::OkStatus();
      }
      if (reply.replaces() != 0) {
        request->set_replaces(reply.replaces());
        wait = kMinWaitNanos;
      }
      // A dispatcher with an empty store in the place of the one before.
      is_forgotten = absl::IsNotFound(status) && !is_forgotten;
      if (is_forgotten) continue;
    }
    if (!status.ok() && !has_answered) status = options_.link->Explain(status);
    // A full disk refuses those that begin. Who has begun waits for it.
    const bool is_waited_for = is_recovery && absl::IsResourceExhausted(status);
    if (!status.ok() && !IsWorthAnotherTry(status) && !is_waited_for) {
      return status;
    }
    const int64_t now = Now();
    if (!status.ok() && !has_answered && !is_recovery &&
        now - start > patience) {
      return absl::UnavailableError(
          absl::StrCat("a dispatcher must answer at ", options_.link->address(),
                       "; got none within ", patience / 1'000'000'000, " s (",
                       status.message(), ")"));
    }
    if (warned == 0 && (has_answered || is_recovery)) warned = start;
    if (now - warned > kWarnNanos && options_.environment.warn) {
      warned = now;
      options_.environment.warn(
          status.ok()
              ? absl::StrCat("job '", options_.job, "' waits for ",
                             "workers, or for its other readers")
              : absl::StrCat("waiting for the dispatcher at ",
                             options_.link->address(), ": ", status.message()));
    }
    MutexLock lock(&mutex_);
    if (!is_closing_) changed_.WaitFor(&mutex_, wait);
    wait = std::min(wait * 2, status.ok() ? kMaxWaitNanos / 10 : kMaxWaitNanos);
  }
}

void Pass::OnOpened(const OpenReply& reply, const std::string& plan,
                    const OpenRequest& request) {
  engine::Waker woken;
  MutexLock lock(&mutex_);
  bundles_in_pass_ = reply.bundles_in_pass();
  ClientState::Settings settings;
  settings.opener = request.opener();
  settings.job = options_.job;
  settings.plan = plan;
  settings.slot = request.slot();
  settings.slots = request.slots();
  settings.is_ordered = request.is_ordered();
  settings.may_skip = request.group().policy() == Sharing::SKIP;
  settings.max_open = kMaxOpen;
  settings.lanes = request.group().lanes();
  settings.epoch_number = request.epoch();
  settings.iteration = request.iteration();
  std::optional<ConsumerState> state;
  uint64_t row = reply.row();
  // Rows before it come, and are left out.
  if (!resumed_ && options_.states.empty() && request.group().has_row()) {
    first_row_ = request.group().row();
  }
  if (!resumed_ && !options_.states.empty()) {
    settings.epoch_number = options_.states[0].epoch_number();
    settings.iteration = options_.states[0].iteration();
  }
  if (resumed_) {
    state = resumed_->base();
    settings.epoch_number = state->epoch_number();
    settings.iteration = state->iteration();
    row = resumed_->begin();
    script_ = resumed_->entries();
    resumed_.reset();
  }
  client_ = std::make_unique<ClientState>(settings, reply, state);
  for (const RowLog::Entry& entry : script_) {
    for (const RowLog::Part& part : entry.parts) client_->Await(part.bundle);
  }
  log_ = RowLog(client_->Save(), row);
  if (options_.division->stitch && options_.loose != Loose::kAll) {
    absl::StatusOr<std::unique_ptr<Stitcher>> stitcher = Stitcher::Make(
        *options_.division, options_.defaults, options_.environment,
        {settings.epoch_number, settings.iteration, reply.seed()});
    if (stitcher.ok()) {
      stitcher_ = *std::move(stitcher);
    } else {
      failure_ = stitcher.status();
    }
  }
  std::vector<std::string> others(reply.members().begin(),
                                  reply.members().end());
  std::erase(others, options_.job);
  if (options_.distribution.share() == kShareAuto && !others.empty() &&
      options_.environment.warn) {
    options_.environment.warn(absl::StrCat(
        "share=\"auto\": job '", options_.job,
        "' has what workers compute for ", absl::StrJoin(others, ", ")));
  }
  woken = WakeReader();
}

// A stream of beats. gRPC's threads write what comes of it.
struct Pass::Beats {
  std::shared_ptr<rpc::BeatStream<ClientBeat, ClientReply>> stream;
  std::deque<ClientReply> replies;  // that were not looked at yet
  std::optional<absl::Status> end;
  int64_t sent_at = 0;
  int64_t unanswered_at = 0;  // since then; 0: none is
};

void Pass::SendBeat(const std::shared_ptr<Beats>& beats) {
  ClientBeat beat = client_->MakeBeat();
  AddPlace(beat);
  has_news_ = false;
  is_urgent_ = false;
  beats->sent_at = Now();
  if (beats->unanswered_at == 0) beats->unanswered_at = beats->sent_at;
  if (beats->stream != nullptr) {
    beats->stream->Send(std::move(beat));
    return;
  }
  using Stream = rpc::BeatStream<ClientBeat, ClientReply>;
  Stream::Options options;
  options.call = [this](grpc::ClientContext* context,
                        Stream::Reactor* reactor) {
    options_.link->dispatcher().async()->BeatClient(context, reactor);
  };
  options.credentials = options_.link->credentials();
  options.on_reply = [this, beats](const ClientReply& reply) {
    MutexLock lock(&mutex_);
    beats->replies.push_back(reply);
    changed_.SignalAll();
  };
  options.on_end = [this, beats](const absl::Status& status) {
    MutexLock lock(&mutex_);
    beats->stream.reset();
    beats->end = status;
    changed_.SignalAll();
  };
  beats->stream = Stream::Start(std::move(options), std::move(beat));
}

bool Pass::IsOver() const {
  return is_closing_ || is_leaving_ || !failure_.ok() ||
         (IsAllDelivered() && !client_->has_finished());
}

bool Pass::WaitForReply(const std::shared_ptr<Beats>& beats) {
  while (true) {
    if (IsOver()) return false;
    if (!beats->replies.empty() || beats->end) return true;
    const int64_t now = Now();
    int64_t due = beats->unanswered_at + kBeatNanos;
    if (beats->unanswered_at == 0) {
      due = now;  // none waits for an answer
    } else if (has_news_) {
      due = std::min(due, beats->sent_at + (is_urgent_ || waker_ != nullptr
                                                ? kHurryNanos
                                                : kGatherNanos));
    }
    if (due > now) {
      changed_.WaitFor(&mutex_, due - now);
      continue;
    }
    if (beats->unanswered_at != 0 && now >= beats->unanswered_at + kBeatNanos) {
      beats->stream->Cancel();
      AwaitEnd(*beats);
      beats->end = absl::DeadlineExceededError(absl::StrCat(
          "it has not answered a beat for ", kBeatNanos / 1'000'000'000, " s"));
      return true;
    }
    // What the one before asked is in this one, too.
    SendBeat(beats);
  }
}

void Pass::AwaitEnd(Beats& beats) {
  while (beats.stream != nullptr) changed_.Wait(&mutex_);
}

void Pass::BeatUntilOver() {
  int64_t wait = kMinWaitNanos;
  int64_t failing_since = 0;
  bool is_answered = false;  // any beat
  auto beats = std::make_shared<Beats>();
  while (true) {
    std::deque<ClientReply> replies;
    {
      MutexLock lock(&mutex_);
      if (!WaitForReply(beats)) {
        if (beats->stream != nullptr) beats->stream->Cancel();
        return AwaitEnd(*beats);
      }
      replies.swap(beats->replies);
      if (!replies.empty()) {
        is_answered = true;
        beats->unanswered_at = 0;
      }
    }
    for (const ClientReply& reply : replies) OnReply(reply);
    if (!replies.empty()) {
      wait = kMinWaitNanos;
      failing_since = 0;
      continue;
    }
    engine::Waker woken;
    MutexLock lock(&mutex_);
    const absl::Status status = *beats->end;
    // A word that was good may have been replaced: another is shown then.
    const bool is_old_word = is_answered && absl::IsUnauthenticated(status);
    // The other end has no reason to end it well.
    if (!status.ok() && !IsWorthAnotherTry(status) &&
        !absl::IsResourceExhausted(status) && !is_old_word) {
      failure_ = rpc::NameRefusal(status, options_.link->address(),
                                  options_.link->credentials());
      woken = WakeReader();
      return;
    }
    beats = std::make_shared<Beats>();
    const int64_t now = Now();
    if (failing_since == 0) failing_since = now;
    if (now - failing_since > kWarnNanos && options_.environment.warn) {
      failing_since = now;
      options_.environment.warn(absl::StrCat(
          "the dispatcher at ", options_.link->address(), " does not answer: ",
          status.message(), "; reading goes on from the workers"));
    }
    while (!IsOver() && Now() < now + wait) {
      changed_.WaitFor(&mutex_, now + wait - Now());
    }
    wait = std::min(wait * 2, kMaxWaitNanos);
  }
}

void Pass::OnReply(const ClientReply& reply) {
  engine::Waker woken;
  ClientState::Actions actions;
  {
    MutexLock lock(&mutex_);
    actions = client_->OnReply(reply);
    offers_ = {reply.offers().begin(), reply.offers().end()};
    for (const uint64_t bundle : actions.stop) {
      const auto reader = readers_.find(bundle);
      if (reader == readers_.end()) continue;
      StopReading(reader->second);
      windows_ -= reader->second.window;
      readers_.erase(reader);
    }
    for (const Finished& dropped : actions.dropped) {
      log_.OnSize(dropped, client_->from(dropped.bundle()));
    }
    log_.OnSkipped(actions.skipped);
    WarnOfMissed();
    if (!client_->failure().ok() && failure_.ok()) {
      failure_ = client_->failure();
    }
    woken = WakeReader();
  }
  for (const ClientState::Read& read : actions.start) ConnectTo(read);
  for (const ClientState::Read& read : actions.start) StartReading(read);
}

void Pass::ConnectTo(const ClientState::Read& read) {
  if (!read.local_socket.empty()) {
    options_.link->OnSocket(read.address, read.local_socket);
  }
  if (options_.link->MemoryOf(read.address) == nullptr) {
    options_.link->OnFramePort(read.address, read.frame_port);
  }
}

std::vector<plan::Offer> Pass::offers() const {
  MutexLock lock(&mutex_);
  return offers_;
}

void Pass::StopReading(const Reader& reader) {
  if (reader.reading == nullptr) return;
  reader.reading->Stop();
  // A frame may be on its way that nobody will know to release: the end of the
  // connection does, when the last that looks at its memory has gone.
  if (reader.memory != nullptr) {
    options_.link->Forget(reader.address, reader.memory);
  }
}

void Pass::Widen(Reader& reader, uint64_t frame_bytes) {
  const uint64_t window = 2 * frame_bytes;
  if (window <= reader.window) return;
  const uint64_t more = window - reader.window;
  if (windows_ + more > options_.budget_bytes) return;
  reader.window = window;
  windows_ += more;
  reader.AddCredit(more);
}

void Pass::StartReading(const ClientState::Read& read) {
  ReadRequest first;
  const std::shared_ptr<WorkerMemory> memory =
      options_.link->MemoryOf(read.address);
  const std::shared_ptr<WorkerSocket> socket =
      memory == nullptr ? options_.link->SocketOf(read.address) : nullptr;
  {
    MutexLock lock(&mutex_);
    *first.mutable_epoch() = client_->epoch();
    ++num_readings_;
    Reader& reader = readers_[read.bundle];
    StopReading(reader);
    windows_ -= reader.window;
    const uint64_t left =
        options_.budget_bytes - std::min(windows_, options_.budget_bytes);
    reader = {nullptr, read.attempt, read.address, memory, socket};
    reader.window =
        std::clamp<uint64_t>(options_.budget_bytes / kMaxOpen, 1, left + 1);
    windows_ += reader.window;
    first.set_credit_bytes(reader.window);
  }
  first.set_bundle(read.bundle);
  first.set_attempt(read.attempt);
  first.set_from(read.from);
  const std::string& compression = options_.distribution.compression();
  if (compression != "none") {
    if (compression != "zstd") first.add_compressions(COMPRESSION_LZ4);
    if (compression != "lz4") first.add_compressions(COMPRESSION_ZSTD);
  }
  const absl::StatusOr<std::shared_ptr<grpc::Channel>> channel =
      options_.link->Worker(read.address);
  if (!channel.ok()) {
    OnReadingDone(read.bundle, read.attempt, channel.status());
    return;
  }
  std::shared_ptr<Reading> reading =
      Reading::Start(*channel, options_.link->credentials(), std::move(first),
                     memory, socket, *this);
  MutexLock lock(&mutex_);
  const auto reader = readers_.find(read.bundle);
  if (reader == readers_.end() || reader->second.attempt != read.attempt) {
    reading->Stop();
    return;
  }
  reader->second.reading = std::move(reading);
  if (const uint64_t owed = std::exchange(reader->second.owed, 0); owed > 0) {
    reader->second.reading->AddCredit(owed);
  }
}

void Pass::SayGoodbye() {
  std::map<uint64_t, Reader> readers;
  ReleaseRequest release;
  bool is_said;
  {
    MutexLock lock(&mutex_);
    readers.swap(readers_);
    release = client_->MakeRelease();
    is_said = is_leaving_ || IsAllDelivered();
  }
  for (auto& [bundle, reader] : readers) {
    if (reader.reading != nullptr) reader.reading->Stop();
  }
  {
    MutexLock lock(&mutex_);
    while (num_readings_ > 0) changed_.Wait(&mutex_);
  }
  // Else it may be restored from a checkpoint, and keeps what is its own.
  if (!is_said) return;
  for (int tries = 0; tries < kGoodbyes; ++tries) {
    grpc::ClientContext context;
    rpc::Prepare(context, options_.link->credentials(), kGoodbyeTime);
    ReleaseReply reply;
    if (options_.link->dispatcher().Release(&context, release, &reply).ok()) {
      return;
    }
  }
}

}  // namespace penstock::service

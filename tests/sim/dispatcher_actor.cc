#include <utility>

#include "absl/strings/str_cat.h"
#include "sim/actors.h"

namespace penstock::sim {

using service::DurableDispatcher;

DispatcherActor::DispatcherActor(Site& site) : site_(site), store_(site.disk) {}

void DispatcherActor::Start() {
  DurableDispatcher::Options options;
  options.settings.lease_ms = 2'000;
  options.settings.client_timeout_ms = 10'000;
  options.settings.run_timeout_ms = int64_t{1} << 40;
  options.settings.max_crashes = 1'000;
  options.holder = "sim";
  if (site_.plan.is_static) {
    for (int i = 1; i <= site_.plan.workers; ++i) {
      options.settings.workers.push_back(absl::StrCat("w", i));
    }
  }
  // It ends, as its process would; whoever watches it starts another.
  options.on_failure = [this](const absl::Status& status) {
    site_.world.Tell(
        absl::StrCat("the dispatcher ends: ", std::string(status.message())));
    is_dead_ = true;
    if (site_.dispatchers.back().get() == this) site_.restart_dispatcher();
  };
  auto made = DurableDispatcher::Make(store_, site_.clock, options);
  if (absl::IsDataLoss(made.status())) {
    site_.failure = std::string(made.status().message());
  }
  if (!made.ok()) {
    is_dead_ = true;
    site_.restart_dispatcher();
    return;
  }
  dispatcher_ = *std::move(made);
  site_.world.Tell(
      absl::StrCat("a dispatcher starts, term ", dispatcher_->term()));
  dispatcher_->AddPlan("plan", "", false, [](const absl::StatusOr<bool>&) {});
  Tick();
}

void DispatcherActor::Die() {
  is_dead_ = true;
  store_.Crash();
}

void DispatcherActor::Pause(int64_t ms) {
  paused_until_ms_ = site_.world.now_ms() + ms;
}

void DispatcherActor::Handle(const std::function<void()>& handle) {
  if (is_dead_) return;
  const int64_t wait = paused_until_ms_ - site_.world.now_ms();
  if (wait > 0) {
    site_.world.After(
        wait, [self = shared_from_this(), handle] { self->Handle(handle); });
    return;
  }
  handle();
  WriteSoon();
}

void DispatcherActor::WriteSoon() {
  site_.world.After(site_.world.rng().Between(0, 10), [self =
                                                           shared_from_this()] {
    if (self->is_dead_) return;
    const int64_t wait = self->paused_until_ms_ - self->site_.world.now_ms();
    if (wait > 0) {
      self->site_.world.After(wait, [self] { self->WriteSoon(); });
      return;
    }
    while (!self->is_dead_ && self->dispatcher_->Poll()) {
    }
  });
}

void DispatcherActor::Tick() {
  if (is_dead_) return;
  Handle([self = shared_from_this()] { self->dispatcher_->Tick(); });
  site_.world.After(100, [self = shared_from_this()] { self->Tick(); });
}

void DispatcherActor::OnWorker(
    const service::WorkerBeat& beat,
    std::function<void(const service::WorkerReply&)> reply) {
  Handle([self = shared_from_this(), beat, reply] {
    self->dispatcher_->OnWorker(
        beat, self->dispatcher_->NowMillis(),
        [reply](const absl::StatusOr<service::WorkerReply>& answer) {
          if (answer.ok()) reply(*answer);
        });
  });
}

void DispatcherActor::OnClient(
    const service::ClientBeat& beat,
    std::function<void(const service::ClientReply&)> reply) {
  Handle([self = shared_from_this(), beat, reply] {
    self->dispatcher_->OnClient(
        beat, self->dispatcher_->NowMillis(),
        [reply](const absl::StatusOr<service::ClientReply>& answer) {
          if (answer.ok()) reply(*answer);
        });
  });
}

void DispatcherActor::OnOpen(
    const service::OpenRequest& request,
    std::function<void(const absl::StatusOr<service::OpenReply>&)> reply) {
  Handle([self = shared_from_this(), request, reply] {
    self->dispatcher_->Open(request, reply);
  });
}

void DispatcherActor::OnRelease(const service::ReleaseRequest& request,
                                std::function<void()> reply) {
  Handle([self = shared_from_this(), request, reply] {
    self->dispatcher_->Release(
        request, [reply](const absl::StatusOr<service::ReleaseReply>& answer) {
          if (answer.ok()) reply();
        });
  });
}

}  // namespace penstock::sim

#include "penstock/service/worker/beater.h"

#include <grpcpp/client_context.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/clock.h"
#include "penstock/service/rpc/diagnose.h"
#include "penstock/service/rpc/status.h"
#include "penstock/service/rpc/version.h"

namespace penstock::service {
namespace {

constexpr int64_t kMillisecond = 1'000'000;
// Until the dispatcher says how long leases live.
constexpr int64_t kFirstLeaseNanos = 3'000 * kMillisecond;
constexpr int64_t kMinBackoffNanos = 50 * kMillisecond;
constexpr int64_t kMaxBackoffNanos = 2'000 * kMillisecond;
// Changes that come together are told together.
constexpr int64_t kMinGapNanos = 1 * kMillisecond;
// A dispatcher that answers at once and has nothing to say is not asked at once
// again.
constexpr int64_t kHastyNanos = 20 * kMillisecond;
// A dispatcher that has not answered for so long is asked over another stream.
constexpr int64_t kDeadlineNanos = 30'000 * kMillisecond;
constexpr std::chrono::milliseconds kHelloDeadline{5'000};

bool HasNews(const WorkerReply& reply) {
  return reply.leases_size() > 0 || reply.revoked_size() > 0 ||
         reply.made_taken_size() > 0 || reply.is_drained();
}

bool IsNotAdmitted(const absl::Status& status) {
  return absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status);
}

}  // namespace

Beater::Beater(std::shared_ptr<Dispatcher::StubInterface> dispatcher,
               Options options)
    : dispatcher_(std::move(dispatcher)),
      options_(std::move(options)),
      lease_ns_(kFirstLeaseNanos),
      random_(std::random_device()()) {}

void Beater::Start() {
  thread_ = std::thread([this] { Loop(); });
}

void Beater::Stop() {
  {
    MutexLock lock(&mutex_);
    is_ending_ = true;
    if (hello_ != nullptr) hello_->TryCancel();
    if (stream_ != nullptr) stream_->Cancel();
    changed_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
  MutexLock lock(&mutex_);
  while (stream_ != nullptr) changed_.Wait(&mutex_);
}

void Beater::Poke() {
  MutexLock lock(&mutex_);
  is_poked_ = true;
  if (failures_ == 0) not_before_ns_ = 0;
  changed_.SignalAll();
}

int64_t Beater::BackoffNanos() {
  const int64_t nanos =
      std::min(kMaxBackoffNanos, kMinBackoffNanos << std::min(failures_, 10));
  return nanos / 2 + static_cast<int64_t>(random_()) % nanos;
}

bool Beater::SayHello() {
  while (true) {
    grpc::ClientContext context;
    rpc::Prepare(context, options_.credentials, kHelloDeadline);
    {
      MutexLock lock(&mutex_);
      if (is_ending_) return false;
      hello_ = &context;
    }
    HelloRequest request;
    request.set_major(rpc::kMajorVersion);
    request.set_minor(rpc::kMinorVersion);
    request.set_version(options_.version);
    HelloReply reply;
    absl::Status status =
        rpc::FromGrpc(dispatcher_->Hello(&context, request, &reply));
    if (status.ok() && reply.major() != rpc::kMajorVersion) {
      status = absl::FailedPreconditionError(absl::StrCat(
          "the dispatcher must speak version ", rpc::kMajorVersion,
          " of the protocol; got ", reply.major(), " of ", reply.version(),
          "\n  Install the same version of penstock on both."));
    }
    if (!status.ok() && !options_.address.empty()) {
      status = rpc::DiagnoseDispatcher(status, options_.address,
                                       options_.credentials);
    }
    const bool is_refused = absl::IsFailedPrecondition(status) ||
                            IsNotAdmitted(status) ||
                            absl::IsUnimplemented(status);
    bool is_news = false;
    {
      MutexLock lock(&mutex_);
      is_news = failures_ == 0;
    }
    if (!status.ok() && !is_refused && is_news && options_.on_trouble) {
      options_.on_trouble(status);
    }
    {
      MutexLock lock(&mutex_);
      hello_ = nullptr;
      if (status.ok()) {
        failures_ = 0;
        return true;
      }
      if (is_ending_) return false;
      if (!is_refused) {
        const int64_t again_ns = SteadyClock().NowNanos() + BackoffNanos();
        ++failures_;
        while (!is_ending_) {
          const int64_t left = again_ns - SteadyClock().NowNanos();
          if (left <= 0) break;
          changed_.WaitFor(&mutex_, left);
        }
        continue;
      }
    }
    Refuse(status);
    return false;
  }
}

void Beater::Refuse(const absl::Status& why) {
  if (options_.on_refused) options_.on_refused(why);
}

void Beater::Loop() {
  if (!SayHello()) return;
  while (true) {
    {
      MutexLock lock(&mutex_);
      while (!is_ending_) {
        const int64_t now = SteadyClock().NowNanos();
        const int64_t latest = sent_ns_ + lease_ns_ / 3;
        const int64_t due =
            is_poked_ ? std::min(latest, std::max(not_before_ns_,
                                                  sent_ns_ + kMinGapNanos))
                      : latest;
        if (now >= due) break;
        changed_.WaitFor(&mutex_, due - now);
      }
      if (is_ending_) return;
      is_poked_ = false;
      sent_ns_ = SteadyClock().NowNanos();
    }
    Send();
  }
}

void Beater::Send() {
  bool says_all;
  {
    MutexLock lock(&mutex_);
    says_all = std::exchange(is_unheard_, false);
  }
  WorkerBeat beat = options_.make_beat(says_all);
  MutexLock lock(&mutex_);
  if (is_ending_) return;
  if (unanswered_ns_ == 0) unanswered_ns_ = sent_ns_;
  if (stream_ == nullptr) {
    Stream::Options options;
    options.call = [this](grpc::ClientContext* context,
                          Stream::Reactor* reactor) {
      dispatcher_->async()->BeatWorker(context, reactor);
    };
    options.credentials = options_.credentials;
    options.on_reply = [this](const WorkerReply& reply) { OnReply(reply); };
    options.on_end = [this](const absl::Status& status) { OnEnd(status); };
    stream_ = Stream::Start(std::move(options), std::move(beat));
  } else if (sent_ns_ - unanswered_ns_ > kDeadlineNanos) {
    is_overdue_ = true;
    stream_->Cancel();
  } else if (!stream_->Send(std::move(beat))) {
    is_unheard_ = true;
  }
}

void Beater::OnReply(const WorkerReply& reply) {
  {
    MutexLock lock(&mutex_);
    if (is_ending_) return;
    has_been_answered_ = true;
  }
  options_.on_reply(reply);
  MutexLock lock(&mutex_);
  const int64_t now = SteadyClock().NowNanos();
  failures_ = 0;
  unanswered_ns_ = 0;
  if (reply.lease_ms() > 0) {
    lease_ns_ =
        static_cast<int64_t>(std::min<uint64_t>(reply.lease_ms(), 3'600'000)) *
        kMillisecond;
  }
  not_before_ns_ = 0;
  if (!HasNews(reply) && now - sent_ns_ < kHastyNanos) {
    not_before_ns_ = now + kMinBackoffNanos;
  }
  is_poked_ = true;  // a beat takes the place of the one that was answered
  changed_.SignalAll();
}

void Beater::OnEnd(absl::Status status) {
  bool is_ending;
  bool is_first;
  bool is_refused;
  {
    MutexLock lock(&mutex_);
    if (std::exchange(is_overdue_, false)) {
      status = absl::DeadlineExceededError(
          absl::StrCat("it has not answered a beat for ",
                       kDeadlineNanos / (1'000 * kMillisecond), " s"));
    }
    is_ending = is_ending_;
    is_first = failures_ == 0;
    // A word that was good before may be so again: files of words change.
    is_refused = !has_been_answered_ &&
                 (IsNotAdmitted(status) || absl::IsFailedPrecondition(status));
  }
  if (is_refused && !is_ending) {
    Refuse(status);
  } else if (!is_ending && is_first && !absl::IsCancelled(status) &&
             options_.on_trouble) {
    options_.on_trouble(status);
  }
  MutexLock lock(&mutex_);
  not_before_ns_ = SteadyClock().NowNanos() + BackoffNanos();
  ++failures_;
  unanswered_ns_ = 0;
  is_unheard_ = true;
  is_poked_ = true;
  if (is_refused) is_ending_ = true;
  // It holds the channel, whose last holder must not be one of gRPC's threads:
  // Stop() goes on only when it is gone.
  stream_.reset();
  changed_.SignalAll();
}

}  // namespace penstock::service

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "penstock/base/clock.h"
#include "penstock/base/status.h"
#include "penstock/service/client/pass.h"
#include "penstock/service/client/received_source.h"
#include "penstock/service/rpc/status.h"

namespace penstock::service {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kCallTime{5'000};
constexpr int64_t kPatienceNanos = 60'000'000'000;
constexpr milliseconds kFirstWait{2};
constexpr milliseconds kMaxWait{200};

int64_t Now() { return SteadyClock().NowNanos(); }

bool IsWorthAnotherTry(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsCancelled(status);
}

void Leave(ServiceLink& link, const OpenRequest& request,
           const OpenReply& opened) {
  ReleaseRequest release;
  *release.mutable_epoch() = opened.epoch();
  *release.mutable_opener() = request.opener();
  ReleaseReply reply;
  grpc::ClientContext context;
  rpc::Prepare(context, link.credentials(), kCallTime);
  // If it is not heard, the run is over a little later.
  (void)link.dispatcher().Release(&context, release, &reply);
}

}  // namespace

absl::StatusOr<OpenReply> OpenOnce(ServiceLink& link,
                                   const plan::Distribution& distribution,
                                   const std::string& job, uint64_t random,
                                   const std::function<bool()>& is_wanted) {
  OpenRequest request;
  request.mutable_opener()->set_consumer(random);
  request.mutable_opener()->set_request(static_cast<uint64_t>(Now()));
  request.set_job(job);
  request.set_visitation(ToService(distribution.visitation()));
  request.set_is_ordered(true);
  request.set_seed(1);
  request.set_slots(1);
  request.set_is_brief(true);
  const int64_t start = Now();
  bool has_answered = false;
  bool is_forgotten = false;
  milliseconds wait = kFirstWait;
  while (is_wanted()) {
    grpc::ClientContext hello;
    grpc::ClientContext add;
    rpc::Prepare(hello, link.credentials(), kCallTime);
    rpc::Prepare(add, link.credentials(), 4 * kCallTime);
    const absl::StatusOr<std::string> plan =
        link.Register(hello, add, is_forgotten);
    absl::Status status = plan.status();
    if (plan.ok()) {
      has_answered = true;
      request.set_plan(*plan);
      OpenReply reply;
      grpc::ClientContext context;
      rpc::Prepare(context, link.credentials(), kCallTime);
      status = rpc::FromGrpc(link.dispatcher().Open(&context, request, &reply));
      if (status.ok() && reply.phase() == OpenReply::OPEN) {
        Leave(link, request, reply);
        return reply;
      }
      // A dispatcher with an empty store in the place of the one before.
      is_forgotten = absl::IsNotFound(status) && !is_forgotten;
      if (is_forgotten) continue;
    }
    if (!status.ok() && !has_answered) status = link.Explain(status);
    if (!status.ok() && !IsWorthAnotherTry(status)) return status;
    if (!status.ok() && !has_answered && Now() - start > kPatienceNanos) {
      return absl::UnavailableError(absl::StrCat(
          "a dispatcher must answer at ", link.address(), "; got none within ",
          kPatienceNanos / 1'000'000'000, " s (", status.message(), ")"));
    }
    std::this_thread::sleep_for(wait);
    wait = std::min(wait * 2, kMaxWait);
  }
  return absl::CancelledError("nobody wants to know any more");
}

}  // namespace penstock::service

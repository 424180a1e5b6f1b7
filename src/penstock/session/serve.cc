#include "penstock/session/serve.h"

#include <google/protobuf/util/json_util.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "penstock/base/clock.h"
#include "penstock/base/status.h"
#include "penstock/service/client/pass.h"
#include "penstock/session/host_limits.h"
#include "penstock/session/session.h"

namespace penstock::session {
namespace {

constexpr absl::Duration kGoodbyes = absl::Seconds(2);

// A container's limits may change while it runs, and to look takes 0.2 ms.
constexpr int kLimitsMillis = 5000;
constexpr uint32_t kMaxRequestBytes = 256u << 20;

absl::Status AnswerOne(int control, Session& session) {
  uint32_t size;
  std::vector<Descriptor> fds;
  PENSTOCK_RETURN_IF_ERROR(
      ReceiveAll(control, reinterpret_cast<char*>(&size), sizeof(size), &fds));
  if (size > kMaxRequestBytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a request may have ", kMaxRequestBytes, " bytes; got ", size));
  }
  std::string json(size, '\0');
  PENSTOCK_RETURN_IF_ERROR(ReceiveAll(control, json.data(), size, &fds));

  Request request;
  Answer answer;
  const auto parsed =
      google::protobuf::util::JsonStringToMessage(json, &request);
  if (!parsed.ok()) {
    Error* error = answer.response.mutable_error();
    error->set_code(static_cast<int>(absl::StatusCode::kInvalidArgument));
    error->set_message(absl::StrCat("a request cannot be read: ",
                                    std::string(parsed.message())));
  } else {
    answer = session.Handle(request, std::move(fds));
  }
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string text(sizeof(uint32_t), '\0');
  const auto printed = google::protobuf::util::MessageToJsonString(
      answer.response, &text, options);
  if (!printed.ok()) {
    return absl::InternalError(std::string(printed.message()));
  }
  const auto length = static_cast<uint32_t>(text.size() - sizeof(uint32_t));
  std::memcpy(text.data(), &length, sizeof(length));
  return SendAll(control, text, answer.fds);
}

// Readable when the process that started this one has ended, also where its
// forked children keep its sockets open.
Descriptor WatchParent() {
  return Descriptor(static_cast<int>(syscall(SYS_pidfd_open, getppid(), 0)));
}

absl::Status Serve(Session& session, const Descriptor& control) {
  const Descriptor parent = WatchParent();
  std::vector<pollfd> watched;
  int64_t limits_read_at = SteadyClock().NowNanos();
  while (true) {
    const int64_t now = SteadyClock().NowNanos();
    if (now - limits_read_at >= kLimitsMillis * int64_t{1'000'000}) {
      limits_read_at = now;
      session.SetLimits(FindHostLimits());
    }
    watched.clear();
    watched.push_back({parent.get(), POLLIN, 0});
    watched.push_back({control.get(), POLLIN, 0});
    watched.push_back({session.service().fd(), POLLIN, 0});
    for (int fd : session.IteratorSockets()) watched.push_back({fd, POLLIN, 0});
    const int due = session.Tick();
    const int wait = due < 0 ? kLimitsMillis : std::min(due, kLimitsMillis);
    if (poll(watched.data(), watched.size(), wait) < 0) {
      if (errno == EINTR) continue;
      return absl::InternalError(
          absl::StrCat("cannot wait: ", std::strerror(errno)));
    }
    // Iterators first: their messages are small and somebody waits for them;
    // or they are the last words of a trainer that is gone.
    for (size_t i = 3; i < watched.size(); ++i) {
      if (watched[i].revents != 0) session.OnReadable(watched[i].fd);
    }
    if (watched[0].revents != 0) return absl::OkStatus();
    if (watched[2].revents != 0) {
      const absl::Status status = session.service().OnReadable();
      if (absl::IsCancelled(status)) return absl::OkStatus();
      PENSTOCK_RETURN_IF_ERROR(status);
    }
    if (watched[1].revents != 0) {
      const absl::Status status = AnswerOne(control.get(), session);
      if (absl::IsCancelled(status)) return absl::OkStatus();
      PENSTOCK_RETURN_IF_ERROR(status);
    }
  }
}

}  // namespace

absl::Status Serve(Descriptor control, Descriptor service) {
  absl::Status status;
  {
    Session session(FindHostLimits(), std::move(service));
    status = Serve(session, control);
  }
  // Dispatchers hear that readers have left, so that others need not wait.
  service::WaitForGoodbyes(kGoodbyes);
  return status;
}

}  // namespace penstock::session

#include "penstock/base/socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

absl::Status Gone() { return absl::CancelledError("the other end has gone"); }

absl::Status SystemError(absl::string_view what) {
  if (errno == EPIPE || errno == ECONNRESET) return Gone();
  return absl::InternalError(absl::StrCat(what, ": ", std::strerror(errno)));
}

// False: nothing has happened for so long.
bool WaitFor(int socket, short events, int patience_ms = -1) {
  pollfd poll_fd{socket, events, 0};
  return poll(&poll_fd, 1, patience_ms) != 0;
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) close(fd_);
    fd_ = other.Release();
  }
  return *this;
}

absl::Status SendAll(int socket, std::string_view bytes,
                     absl::Span<const int> fds) {
  int open[kMaxDescriptors];
  size_t num_open = 0;
  for (const int fd : fds) {
    if (fd >= 0) open[num_open++] = fd;
  }
  while (!bytes.empty()) {
    iovec io{const_cast<char*>(bytes.data()), bytes.size()};
    msghdr message = {};
    message.msg_iov = &io;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(open))] = {};
    if (num_open > 0) {
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(num_open * sizeof(int));
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(num_open * sizeof(int));
      std::memcpy(CMSG_DATA(header), open, num_open * sizeof(int));
    }
    const ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) {
        WaitFor(socket, POLLOUT);
        continue;
      }
      return SystemError("cannot send");
    }
    num_open = 0;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> TrySend(int socket, std::string_view bytes) {
  const ssize_t sent =
      send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0) {
    if (errno == EAGAIN || errno == EINTR) return false;
    return SystemError("cannot send");
  }
  // The kernel took a part: the rest must follow or the stream is torn.
  if (static_cast<size_t>(sent) < bytes.size()) {
    absl::Status rest = SendAll(socket, bytes.substr(sent));
    if (!rest.ok()) return rest;
  }
  return true;
}

absl::Status ReceiveAll(int socket, char* out, size_t size,
                        std::vector<Descriptor>* fds, int patience_ms) {
  const int flags = MSG_CMSG_CLOEXEC | (patience_ms < 0 ? 0 : MSG_DONTWAIT);
  while (size > 0) {
    iovec io{out, size};
    msghdr message = {};
    message.msg_iov = &io;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t got = recvmsg(socket, &message, flags);
    if (got < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) {
        if (WaitFor(socket, POLLIN, patience_ms)) continue;
        return absl::DeadlineExceededError(
            "the other end has stopped in the middle of a message");
      }
      return SystemError("cannot receive");
    }
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
         header = CMSG_NXTHDR(&message, header)) {
      if (header->cmsg_type != SCM_RIGHTS) continue;
      const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t i = 0; i < count; ++i) {
        int fd;
        std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
        Descriptor descriptor(fd);
        if (fds != nullptr) fds->push_back(std::move(descriptor));
      }
    }
    if (got == 0) return Gone();
    out += got;
    size -= static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> ReceiveSome(int socket, char* out, size_t size) {
  const ssize_t got = recv(socket, out, size, MSG_DONTWAIT);
  if (got > 0) return static_cast<size_t>(got);
  if (got == 0) return Gone();
  if (errno == EAGAIN || errno == EINTR) return size_t{0};
  return SystemError("cannot receive");
}

}  // namespace penstock

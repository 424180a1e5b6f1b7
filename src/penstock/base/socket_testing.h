// Sockets for tests, with deadlines instead of hanging.
#pragma once

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "penstock/base/socket.h"

namespace penstock {

// Far longer than anything under test takes, also under a sanitizer.
inline constexpr int kDeadlineMillis = 30'000;

inline std::pair<Descriptor, Descriptor> SocketPair() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) abort();
  return {Descriptor(fds[0]), Descriptor(fds[1])};
}

// Whether something can be read, or the other end is gone, before the deadline.
inline bool IsReadable(int fd, int millis = kDeadlineMillis) {
  pollfd poll_fd{fd, POLLIN, 0};
  return poll(&poll_fd, 1, millis) == 1;
}

inline int BytesToRead(int fd) {
  int bytes = 0;
  ioctl(fd, FIONREAD, &bytes);
  return bytes;
}

// Exactly `size` bytes; fewer only if they do not come in time.
inline std::string ReadExactly(int fd, size_t size) {
  std::string bytes;
  while (bytes.size() < size && IsReadable(fd)) {
    char part[4096];
    const ssize_t got =
        recv(fd, part, std::min(sizeof(part), size - bytes.size()), 0);
    if (got <= 0) break;
    bytes.append(part, static_cast<size_t>(got));
  }
  return bytes;
}

}  // namespace penstock

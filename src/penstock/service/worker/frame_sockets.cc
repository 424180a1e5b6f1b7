#include "penstock/service/worker/frame_sockets.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "penstock/base/random_name.h"
#include "penstock/base/status.h"
#include "penstock/io/crc32c.h"
#include "penstock/service/protocol/frame_socket.h"

namespace penstock::service {
namespace {

// More are refused, and read over gRPC: a trainer has one.
constexpr size_t kMaxConnections = 256;
static_assert(kSumBlockBytes <= kFramePieceBytes);

absl::Status SystemFailure(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

// All of both, waiting if need be.
bool SendBoth(int socket, std::string_view first, std::string_view second) {
  iovec parts[2] = {{const_cast<char*>(first.data()), first.size()},
                    {const_cast<char*>(second.data()), second.size()}};
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  while (parts[0].iov_len + parts[1].iov_len > 0) {
    const ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    auto left = static_cast<size_t>(sent);
    for (iovec& part : parts) {
      const size_t of = std::min(left, part.iov_len);
      part.iov_base = static_cast<char*>(part.iov_base) + of;
      part.iov_len -= of;
      left -= of;
    }
  }
  return true;
}

}  // namespace

bool FrameSocket::Send(Frame frame) {
  MutexLock lock(&mutex_);
  if (has_ended_) return false;
  frames_.push_back(std::move(frame));
  changed_.Signal();
  return true;
}

void FrameSocket::End() {
  MutexLock lock(&mutex_);
  has_ended_ = true;
  shutdown(socket_.get(), SHUT_RDWR);
  changed_.Signal();
}

void FrameSocket::Run() {
  while (true) {
    Frame frame;
    {
      MutexLock lock(&mutex_);
      while (frames_.empty() && !has_ended_) changed_.Wait(&mutex_);
      if (has_ended_) break;
      frame = std::move(frames_.front());
      frames_.pop_front();
    }
    const bool is_sent = SendPieces(frame);
    if (!is_sent) End();
    frame.bytes.reset();
    frame.memory.reset();
    frame.done(is_sent);
  }
  std::deque<Frame> left;
  {
    MutexLock lock(&mutex_);
    left.swap(frames_);
  }
  for (Frame& frame : left) {
    frame.bytes.reset();
    frame.memory.reset();
    frame.done(false);
  }
}

bool FrameSocket::SendPieces(Frame& frame) const {
  const FrameParts& bytes = *frame.bytes;
  frame.header.set_piece_offset(0);
  if (bytes.bytes == 0) return SendPiece(frame, {}, io::Crc32c({}));
  for (const Buffer& part : bytes.parts) {
    std::string_view left(part.As<char>(), part.size());
    while (!left.empty()) {
      const auto sum =
          bytes.sums.find(reinterpret_cast<const std::byte*>(left.data()));
      const bool is_known =
          sum != bytes.sums.end() && sum->second.bytes <= left.size();
      const std::string_view piece =
          left.substr(0, is_known ? sum->second.bytes : kFramePieceBytes);
      if (!SendPiece(frame, piece,
                     is_known ? sum->second.crc32c : io::Crc32c(piece))) {
        return false;
      }
      frame.header.set_piece_offset(frame.header.piece_offset() + piece.size());
      left.remove_prefix(piece.size());
    }
  }
  return true;
}

bool FrameSocket::SendPiece(Frame& frame, std::string_view piece,
                            uint32_t crc32c) const {
  frame.header.set_piece_bytes(piece.size());
  frame.header.set_crc32c(crc32c);
  std::string head(sizeof(PieceStart), '\0');
  frame.header.AppendToString(&head);
  const std::string_view header =
      std::string_view(head).substr(sizeof(PieceStart));
  const PieceStart start = {frame.reading, static_cast<uint32_t>(header.size()),
                            io::Crc32c(header)};
  std::memcpy(head.data(), &start, sizeof(start));
  return SendBoth(socket_.get(), head, piece);
}

absl::StatusOr<std::unique_ptr<FrameSockets>> FrameSockets::Start(
    const std::string& host, uint16_t port) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  absl::string_view name = host;
  if (absl::ConsumePrefix(&name, "[")) absl::ConsumeSuffix(&name, "]");
  addrinfo* found = nullptr;
  if (getaddrinfo(name.empty() ? nullptr : std::string(name).c_str(),
                  std::to_string(port).c_str(), &hints, &found) != 0) {
    return absl::UnavailableError(
        absl::StrCat("no address of this machine is called '", host, "'"));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found,
                                                                 &freeaddrinfo);
  Descriptor listener(
      socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  sockaddr_storage bound = {};
  socklen_t size = sizeof(bound);
  if (!listener.is_open() ||
      setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) !=
          0 ||
      bind(listener.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      listen(listener.get(), SOMAXCONN) != 0 ||
      getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound), &size) !=
          0) {
    return SystemFailure(
        absl::StrCat("cannot listen for frames on ", host, ":", port));
  }
  const in_port_t got = bound.ss_family == AF_INET6
                            ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                            : reinterpret_cast<sockaddr_in*>(&bound)->sin_port;
  int wake[2];
  if (pipe2(wake, O_CLOEXEC | O_NONBLOCK) != 0) {
    return SystemFailure("cannot make a pipe");
  }
  return std::unique_ptr<FrameSockets>(
      new FrameSockets(std::move(listener), ntohs(got), Descriptor(wake[0]),
                       Descriptor(wake[1])));
}

FrameSockets::FrameSockets(Descriptor listener, uint16_t port,
                           Descriptor wake_read, Descriptor wake_write)
    : listener_(std::move(listener)),
      port_(port),
      wake_read_(std::move(wake_read)),
      wake_write_(std::move(wake_write)),
      thread_([this] { Serve(); }) {}

FrameSockets::~FrameSockets() {
  const char byte = 0;
  while (write(wake_write_.get(), &byte, 1) < 0 && errno == EINTR) {
  }
  thread_.join();
  MutexLock lock(&mutex_);
  for (const auto& [descriptor, socket] : sockets_) socket->End();
  while (num_threads_ > 0) changed_.Wait(&mutex_);
}

std::shared_ptr<FrameSocket> FrameSockets::Find(const std::string& key) const {
  MutexLock lock(&mutex_);
  const auto found = std::ranges::find_if(
      sockets_, [&](const auto& each) { return each.second->key() == key; });
  return found == sockets_.end() ? nullptr : found->second;
}

void FrameSockets::Serve() {
  while (true) {
    std::vector<pollfd> polled = {{wake_read_.get(), POLLIN, 0},
                                  {listener_.get(), POLLIN, 0}};
    {
      MutexLock lock(&mutex_);
      for (const auto& [descriptor, socket] : sockets_) {
        polled.push_back({descriptor, POLLIN, 0});
      }
    }
    if (poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) return;
    if (polled[0].revents != 0) return;
    // Clients say nothing: whose connection has something to read has ended.
    for (size_t i = 2; i < polled.size(); ++i) {
      if (polled[i].revents != 0) Remove(polled[i].fd);
    }
    if (polled[1].revents != 0) Accept();
  }
}

void FrameSockets::Remove(int descriptor) {
  std::shared_ptr<FrameSocket> socket;
  {
    MutexLock lock(&mutex_);
    const auto found = sockets_.find(descriptor);
    if (found == sockets_.end()) return;
    socket = std::move(found->second);
    sockets_.erase(found);
  }
  socket->End();
}

void FrameSockets::Accept() {
  Descriptor connection(
      accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!connection.is_open()) return;
  const int yes = 1;
  setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  setsockopt(connection.get(), SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
  const std::string key = RandomName(kFrameKeyBytes / 2);
  const uint32_t head[2] = {kFrameMagic, kFrameKeyBytes};
  std::string greeting(reinterpret_cast<const char*>(head), sizeof(head));
  greeting += key;
  const int descriptor = connection.get();
  auto socket = std::make_shared<FrameSocket>(std::move(connection), key);
  MutexLock lock(&mutex_);
  if (sockets_.size() >= kMaxConnections) return;
  // A new connection has room for that.
  if (!SendAll(descriptor, greeting).ok()) return;
  sockets_[descriptor] = socket;
  ++num_threads_;
  std::thread([this, socket] {
    socket->Run();
    MutexLock ended(&mutex_);
    --num_threads_;
    changed_.SignalAll();
  }).detach();
}

}  // namespace penstock::service

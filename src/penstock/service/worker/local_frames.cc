#include "penstock/service/worker/local_frames.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/base/random_name.h"
#include "penstock/base/status.h"

namespace penstock::service {
namespace {

// More are refused: a trainer has one.
constexpr size_t kMaxConnections = 256;

absl::Status SystemFailure(const char* what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

bool IsSameUser(int socket) {
  ucred who = {};
  socklen_t size = sizeof(who);
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 &&
         who.uid == geteuid();
}

}  // namespace

std::optional<uint64_t> LocalPeer::Lend(Owner frame) {
  MutexLock lock(&mutex_);
  if (has_ended_) return std::nullopt;
  const uint64_t number = next_frame_++;
  frames_[number] = std::move(frame);
  return number;
}

void LocalPeer::Release(uint64_t frame) {
  Owner released;  // freed without the lock
  MutexLock lock(&mutex_);
  const auto found = frames_.find(frame);
  if (found == frames_.end()) return;
  released = std::move(found->second);
  frames_.erase(found);
}

void LocalPeer::End() {
  std::map<uint64_t, Owner> frames;
  MutexLock lock(&mutex_);
  has_ended_ = true;
  frames.swap(frames_);
}

size_t LocalPeer::num_lent() const {
  MutexLock lock(&mutex_);
  return frames_.size();
}

absl::StatusOr<std::unique_ptr<LocalFrames>> LocalFrames::Start(
    std::shared_ptr<FrameMemory> memory, std::shared_ptr<FrameMemory> shared) {
  Descriptor socket(
      ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return SystemFailure("cannot make a Unix socket");
  const std::string name = absl::StrCat("penstock-worker-", RandomName(8));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(socket.get(), SOMAXCONN) != 0) {
    return SystemFailure("cannot listen on a Unix socket");
  }
  int wake[2];
  if (pipe2(wake, O_CLOEXEC | O_NONBLOCK) != 0) {
    return SystemFailure("cannot make a pipe");
  }
  return std::unique_ptr<LocalFrames>(new LocalFrames(
      std::move(memory), std::move(shared), name, std::move(socket),
      Descriptor(wake[0]), Descriptor(wake[1])));
}

LocalFrames::LocalFrames(std::shared_ptr<FrameMemory> memory,
                         std::shared_ptr<FrameMemory> shared, std::string name,
                         Descriptor socket, Descriptor wake_read,
                         Descriptor wake_write)
    : memory_(std::move(memory)),
      shared_(std::move(shared)),
      name_(std::move(name)),
      socket_(std::move(socket)),
      wake_read_(std::move(wake_read)),
      wake_write_(std::move(wake_write)),
      thread_([this] { Serve(); }) {}

LocalFrames::~LocalFrames() {
  const char byte = 0;
  while (write(wake_write_.get(), &byte, 1) < 0 && errno == EINTR) {
  }
  thread_.join();
}

std::shared_ptr<LocalPeer> LocalFrames::Find(const std::string& key) const {
  MutexLock lock(&mutex_);
  const auto found = peers_.find(key);
  return found == peers_.end() ? nullptr : found->second;
}

void LocalFrames::Serve() {
  std::map<int, Connection> connections;
  while (true) {
    std::vector<pollfd> polled = {{wake_read_.get(), POLLIN, 0},
                                  {socket_.get(), POLLIN, 0}};
    for (const auto& [fd, connection] : connections) {
      polled.push_back({fd, POLLIN, 0});
    }
    if (poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) break;
    if (polled[0].revents != 0) break;
    for (size_t i = 2; i < polled.size(); ++i) {
      if (polled[i].revents == 0) continue;
      const auto it = connections.find(polled[i].fd);
      if (OnReadable(it->second).ok()) continue;
      {
        MutexLock lock(&mutex_);
        peers_.erase(it->second.key);
      }
      it->second.peer->End();
      connections.erase(it);
    }
    if (polled[1].revents != 0) Accept(connections);
  }
  for (auto& [fd, connection] : connections) connection.peer->End();
}

void LocalFrames::Accept(std::map<int, Connection>& connections) {
  Descriptor socket(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket.is_open() || !IsSameUser(socket.get()) ||
      connections.size() >= kMaxConnections) {
    return;
  }
  Connection connection;
  connection.key = RandomName(kLocalKeyBytes / 2);
  connection.peer = std::make_shared<LocalPeer>();
  {
    MutexLock lock(&mutex_);
    peers_[connection.key] = connection.peer;
  }
  const uint32_t head[2] = {kLocalMagic, kLocalKeyBytes};
  std::string greeting(reinterpret_cast<const char*>(head), sizeof(head));
  greeting += connection.key;
  if (!SendAll(socket.get(), greeting).ok()) {
    MutexLock lock(&mutex_);
    peers_.erase(connection.key);
    return;
  }
  const int fd = socket.get();
  connection.socket = std::move(socket);
  connections[fd] = std::move(connection);
}

absl::Status LocalFrames::OnReadable(Connection& connection) {
  char bytes[4096];
  PENSTOCK_ASSIGN_OR_RETURN(
      const size_t size,
      ReceiveSome(connection.socket.get(), bytes, sizeof(bytes)));
  std::string& partial = connection.partial;
  partial.append(bytes, size);
  size_t at = 0;
  for (; partial.size() - at >= sizeof(LocalMessage);
       at += sizeof(LocalMessage)) {
    LocalMessage message;
    std::memcpy(&message, partial.data() + at, sizeof(message));
    PENSTOCK_RETURN_IF_ERROR(Answer(connection, message));
  }
  partial.erase(0, at);
  return absl::OkStatus();
}

absl::StatusOr<Arena::SegmentInfo> LocalFrames::Segment(
    uint32_t number, Descriptor& kept) const {
  if (number < kFirstSharedSegment) return memory_->arena().Segment(number);
  if (shared_ == nullptr) return absl::NotFoundError("no such segment");
  absl::StatusOr<Arena::SegmentInfo> segment =
      shared_->arena().Segment(number - kFirstSharedSegment);
  if (!segment.ok()) return segment;
  // The worker has its own mapping already: no other can write from now on.
  if (fcntl(segment->fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0) return segment;
  kept = Descriptor(open(absl::StrCat("/proc/self/fd/", segment->fd).c_str(),
                         O_RDONLY | O_CLOEXEC));
  if (!kept.is_open()) return SystemFailure("cannot open memory for reading");
  segment->fd = kept.get();
  return segment;
}

absl::Status LocalFrames::Answer(Connection& connection,
                                 const LocalMessage& message) {
  if (message.kind == kReleaseFrame) {
    connection.peer->Release(message.value);
    return absl::OkStatus();
  }
  if (message.kind != kWantSegment) {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown message ", message.kind));
  }
  LocalMessage answer = {kWantSegment, 0, 0};
  int fd = -1;
  Descriptor kept;
  if (message.value <= UINT32_MAX) {
    answer.segment = static_cast<uint32_t>(message.value);
    const absl::StatusOr<Arena::SegmentInfo> segment =
        Segment(answer.segment, kept);
    if (segment.ok()) {
      answer.value = segment->size;
      fd = segment->fd;
    }
  }
  // Others must not wait for a client that does not take its answers.
  pollfd room = {connection.socket.get(), POLLOUT, 0};
  if (poll(&room, 1, 0) != 1) {
    return absl::ResourceExhaustedError("the client takes no answers");
  }
  return SendAll(connection.socket.get(),
                 {reinterpret_cast<const char*>(&answer), sizeof(answer)},
                 {fd});
}

}  // namespace penstock::service

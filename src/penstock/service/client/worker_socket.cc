#include "penstock/service/client/worker_socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "penstock/base/mutex.h"
#include "penstock/base/socket.h"
#include "penstock/base/status.h"
#include "penstock/service/client/unpack.h"
#include "penstock/service/protocol/frame_socket.h"

namespace penstock::service {
namespace {

constexpr size_t kSkippedBytes = size_t{64} << 10;  // at once

absl::StatusOr<Descriptor> Open(const std::string& host, uint16_t port,
                                int patience_ms) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) !=
      0) {
    return absl::UnavailableError(absl::StrCat("no host is called ", host));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found,
                                                                 &freeaddrinfo);
  Descriptor opened(
      socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!opened.is_open()) return absl::UnavailableError(std::strerror(errno));
  if (connect(opened.get(), found->ai_addr, found->ai_addrlen) != 0) {
    if (errno != EINPROGRESS) {
      return absl::UnavailableError(std::strerror(errno));
    }
    pollfd polled = {opened.get(), POLLOUT, 0};
    if (poll(&polled, 1, patience_ms) != 1) {
      return absl::DeadlineExceededError("nobody answers");
    }
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(opened.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return absl::UnavailableError(std::strerror(error));
  }
  fcntl(opened.get(), F_SETFL, 0);  // it waits from here on
  const int yes = 1;
  setsockopt(opened.get(), SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
  return opened;
}

}  // namespace

struct WorkerSocket::State {
  Descriptor socket;

  Mutex mutex;
  std::map<uint64_t, std::weak_ptr<PieceReader>> readers ABSL_GUARDED_BY(mutex);
  uint64_t next_reading ABSL_GUARDED_BY(mutex) = 1;
  bool has_ended ABSL_GUARDED_BY(mutex) = false;

  absl::Status ReceivePiece();
  void Run();
};

absl::Status WorkerSocket::State::ReceivePiece() {
  PieceStart start = {};
  PENSTOCK_RETURN_IF_ERROR(
      ReceiveAll(socket.get(), reinterpret_cast<char*>(&start), sizeof(start)));
  if (start.header_bytes > kMaxHeaderBytes) {
    return Damaged("its header is too long");
  }
  std::string header(start.header_bytes, '\0');
  PENSTOCK_RETURN_IF_ERROR(
      ReceiveAll(socket.get(), header.data(), header.size()));
  PENSTOCK_ASSIGN_OR_RETURN(const FrameHeader head,
                            ParseHeader(header, start.header_crc32c));
  std::shared_ptr<PieceReader> reader;
  {
    MutexLock lock(&mutex);
    const auto found = readers.find(start.reading);
    if (found != readers.end()) reader = found->second.lock();
  }
  std::optional<Buffer> room;
  if (reader != nullptr) room = reader->OnPieceStart(head);
  if (room) {
    PENSTOCK_RETURN_IF_ERROR(
        ReceiveAll(socket.get(), room->MutableAs<char>(), room->size()));
    reader->OnPieceHere(head);
    return absl::OkStatus();
  }
  std::vector<char> skipped(
      std::min<uint64_t>(head.piece_bytes(), kSkippedBytes));
  for (uint64_t left = head.piece_bytes(); left > 0;) {
    const size_t size = std::min<uint64_t>(left, skipped.size());
    PENSTOCK_RETURN_IF_ERROR(ReceiveAll(socket.get(), skipped.data(), size));
    left -= size;
  }
  return absl::OkStatus();
}

void WorkerSocket::State::Run() {
  absl::Status status;
  while (status.ok()) status = ReceivePiece();
  std::map<uint64_t, std::weak_ptr<PieceReader>> left;
  {
    MutexLock lock(&mutex);
    has_ended = true;
    left.swap(readers);
  }
  // What came damaged is not believed from there on: the rest is read again.
  shutdown(socket.get(), SHUT_RDWR);
  for (const auto& [number, weak] : left) {
    if (const std::shared_ptr<PieceReader> reader = weak.lock()) {
      reader->OnSocketEnd(absl::UnavailableError(absl::StrCat(
          "the connection for frames has ended: ", status.message())));
    }
  }
}

absl::StatusOr<std::shared_ptr<WorkerSocket>> WorkerSocket::Connect(
    const std::string& address, uint16_t port, int patience_ms) {
  absl::string_view host =
      absl::string_view(address).substr(0, address.rfind(':'));
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  auto state = std::make_shared<State>();
  PENSTOCK_ASSIGN_OR_RETURN(state->socket,
                            Open(std::string(host), port, patience_ms));
  uint32_t head[2] = {};
  PENSTOCK_RETURN_IF_ERROR(ReceiveAll(state->socket.get(),
                                      reinterpret_cast<char*>(head),
                                      sizeof(head), nullptr, patience_ms));
  if (head[0] != kFrameMagic || head[1] != kFrameKeyBytes) {
    return absl::UnavailableError("something else answers there");
  }
  std::string key(kFrameKeyBytes, '\0');
  PENSTOCK_RETURN_IF_ERROR(ReceiveAll(state->socket.get(), key.data(),
                                      key.size(), nullptr, patience_ms));
  std::thread([state] { state->Run(); }).detach();
  return std::shared_ptr<WorkerSocket>(
      new WorkerSocket(std::move(state), std::move(key)));
}

WorkerSocket::~WorkerSocket() { shutdown(state_->socket.get(), SHUT_RDWR); }

bool WorkerSocket::is_open() const {
  MutexLock lock(&state_->mutex);
  return !state_->has_ended;
}

std::optional<uint64_t> WorkerSocket::Add(std::weak_ptr<PieceReader> reader) {
  MutexLock lock(&state_->mutex);
  if (state_->has_ended) return std::nullopt;
  const uint64_t reading = state_->next_reading++;
  state_->readers[reading] = std::move(reader);
  return reading;
}

void WorkerSocket::Remove(uint64_t reading) {
  MutexLock lock(&state_->mutex);
  state_->readers.erase(reading);
}

}  // namespace penstock::service

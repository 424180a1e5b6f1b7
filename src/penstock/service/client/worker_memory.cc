#include "penstock/service/client/worker_memory.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/service/protocol/local_socket.h"

namespace penstock::service {
namespace {

std::string_view BytesOf(const LocalMessage& message) {
  return {reinterpret_cast<const char*>(&message), sizeof(message)};
}

}  // namespace

absl::StatusOr<std::shared_ptr<WorkerMemory>> WorkerMemory::Connect(
    const std::string& name, const std::shared_ptr<FrameMemory>& frames,
    int patience_ms) {
  const auto failed = [&](absl::string_view what) {
    return absl::UnavailableError(
        absl::StrCat("cannot reach the worker's socket ", name, ": ", what));
  };
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (name.empty() || name.size() + 1 > sizeof(address.sun_path)) {
    return failed("not a name");
  }
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (!socket.is_open() ||
      connect(socket.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) {
    return failed(std::strerror(errno));
  }
  uint32_t head[2] = {};
  PENSTOCK_RETURN_IF_ERROR(ReceiveAll(socket.get(),
                                      reinterpret_cast<char*>(head),
                                      sizeof(head), nullptr, patience_ms));
  if (head[0] != kLocalMagic || head[1] != kLocalKeyBytes) {
    return failed("it speaks otherwise");
  }
  std::string key(kLocalKeyBytes, '\0');
  PENSTOCK_RETURN_IF_ERROR(
      ReceiveAll(socket.get(), key.data(), key.size(), nullptr, patience_ms));
  return std::shared_ptr<WorkerMemory>(
      new WorkerMemory(std::move(socket), std::move(key), frames, patience_ms));
}

WorkerMemory::~WorkerMemory() {
  const std::shared_ptr<FrameMemory> frames = frames_.lock();
  if (frames == nullptr) return;
  MutexLock lock(&mutex_);
  for (const uint32_t segment : adopted_) frames->Disown(segment);
}

absl::StatusOr<WorkerMemory::Segment> WorkerMemory::Map(uint32_t segment) {
  if (const auto it = segments_.find(segment); it != segments_.end()) {
    return it->second;
  }
  {
    MutexLock lock(&send_mutex_);
    PENSTOCK_ASSIGN_OR_RETURN(
        const bool is_sent,
        TrySend(socket_.get(), BytesOf({kWantSegment, 0, segment})));
    if (!is_sent) {
      return absl::UnavailableError("the worker takes no messages");
    }
  }
  LocalMessage answer = {};
  std::vector<Descriptor> fds;
  PENSTOCK_RETURN_IF_ERROR(ReceiveAll(socket_.get(),
                                      reinterpret_cast<char*>(&answer),
                                      sizeof(answer), &fds, patience_ms_));
  if (answer.segment != segment || answer.value == 0 || fds.size() != 1) {
    return absl::UnavailableError("the worker has no such segment of memory");
  }
  const uint64_t size = answer.value;
  void* data = mmap(nullptr, size, PROT_READ, MAP_SHARED, fds[0].get(), 0);
  if (data == MAP_FAILED) {
    return absl::UnavailableError(
        absl::StrCat("cannot map ", size, " bytes: ", std::strerror(errno)));
  }
  Segment mapped;
  mapped.data = {
      static_cast<const std::byte*>(data),
      [size](const std::byte* p) { munmap(const_cast<std::byte*>(p), size); }};
  mapped.size = size;
  segments_[segment] = mapped;
  if (const std::shared_ptr<FrameMemory> frames = frames_.lock()) {
    adopted_.push_back(
        frames->Adopt(mapped.data.get(), size, fds[0].get(), weak_from_this()));
    descriptors_.push_back(std::move(fds[0]));
  }
  return mapped;
}

absl::StatusOr<Buffer> WorkerMemory::Find(uint32_t segment, uint64_t offset,
                                          uint64_t size, uint64_t frame) {
  Segment mapped;
  {
    MutexLock lock(&mutex_);
    PENSTOCK_ASSIGN_OR_RETURN(mapped, Map(segment));
  }
  if (offset > mapped.size || size > mapped.size - offset) {
    return absl::DataLossError("a frame must lie in its segment; it does not");
  }
  const std::byte* data = mapped.data.get() + offset;
  Owner owner(data, [self = shared_from_this(), mapped, data,
                     frame](const void*) { self->Release(data, frame); });
  return Buffer(std::move(owner), data, size);
}

void WorkerMemory::Keep(const std::byte* data) {
  MutexLock lock(&kept_mutex_);
  kept_.insert(data);
}

void WorkerMemory::Release(const std::byte* data, uint64_t frame) {
  {
    MutexLock lock(&kept_mutex_);
    if (kept_.contains(data)) return;
  }
  MutexLock lock(&send_mutex_);
  released_.push_back(frame);
  while (!released_.empty()) {
    const absl::StatusOr<bool> is_sent =
        TrySend(socket_.get(), BytesOf({kReleaseFrame, 0, released_.front()}));
    // A worker that is gone has nothing to free, and one that hangs hears of it
    // with the next.
    if (is_sent.ok() && !*is_sent) return;
    released_.pop_front();
  }
}

}  // namespace penstock::service

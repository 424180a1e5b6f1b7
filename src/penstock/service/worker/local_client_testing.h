// For tests: a process on the worker's host that reads its memory.
#pragma once

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/base/socket.h"
#include "penstock/base/status.h"
#include "penstock/data/buffer.h"
#include "penstock/service/worker/local_frames.h"

namespace penstock::service {

// Not thread-safe.
class LocalClient final {
 public:
  static absl::StatusOr<std::unique_ptr<LocalClient>> Connect(
      const std::string& name) {
    Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) +
                                             1 + name.size());
    if (connect(socket.get(), reinterpret_cast<sockaddr*>(&address), size) !=
        0) {
      return absl::UnavailableError("no such socket");
    }
    uint32_t head[2];
    std::string key(kLocalKeyBytes, '\0');
    PENSTOCK_RETURN_IF_ERROR(
        ReceiveAll(socket.get(), reinterpret_cast<char*>(head), sizeof(head)));
    if (head[0] != kLocalMagic || head[1] != kLocalKeyBytes) {
      return absl::DataLossError("another greeting");
    }
    PENSTOCK_RETURN_IF_ERROR(ReceiveAll(socket.get(), key.data(), key.size()));
    return std::unique_ptr<LocalClient>(
        new LocalClient(std::move(socket), std::move(key)));
  }

  const std::string& key() const { return key_; }
  int fd() const { return socket_.get(); }

  // Bytes of a segment, which is mapped when it is first asked for.
  absl::StatusOr<Buffer> Look(uint32_t segment, uint64_t offset, size_t bytes) {
    auto it = segments_.find(segment);
    if (it == segments_.end()) {
      PENSTOCK_ASSIGN_OR_RETURN(const Descriptor fd,
                                SegmentDescriptor(segment));
      void* data =
          mmap(nullptr, segment_size_, PROT_READ, MAP_SHARED, fd.get(), 0);
      if (data == MAP_FAILED) return absl::ResourceExhaustedError("mmap");
      const size_t size = segment_size_;
      Owner owner(
          data, [size](const void* p) { munmap(const_cast<void*>(p), size); });
      it = segments_.emplace(segment, Buffer(owner, data, size)).first;
    }
    if (offset + bytes > it->second.size()) {
      return absl::OutOfRangeError("past the end of the segment");
    }
    return it->second.Slice(offset, bytes);
  }
  // What the worker gives to map a segment by.
  absl::StatusOr<Descriptor> SegmentDescriptor(uint32_t segment) {
    PENSTOCK_RETURN_IF_ERROR(Send(kWantSegment, segment));
    LocalMessage answer;
    std::vector<Descriptor> fds;
    PENSTOCK_RETURN_IF_ERROR(ReceiveAll(
        socket_.get(), reinterpret_cast<char*>(&answer), sizeof(answer), &fds));
    if (fds.empty() || answer.segment != segment) {
      return absl::NotFoundError("no such segment");
    }
    segment_size_ = answer.value;
    return std::move(fds[0]);
  }
  absl::Status Release(uint64_t frame) { return Send(kReleaseFrame, frame); }
  absl::Status Send(uint32_t kind, uint64_t value) {
    const LocalMessage message = {kind, 0, value};
    return SendAll(socket_.get(),
                   {reinterpret_cast<const char*>(&message), sizeof(message)});
  }

 private:
  LocalClient(Descriptor socket, std::string key)
      : socket_(std::move(socket)), key_(std::move(key)) {}

  const Descriptor socket_;
  const std::string key_;
  std::map<uint32_t, Buffer> segments_;
  size_t segment_size_ = 0;  // of the last that was given
};

}  // namespace penstock::service

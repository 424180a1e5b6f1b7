// Bytes and descriptors over a local stream socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace penstock {

// Closes its descriptor.
class Descriptor final {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : fd_(other.Release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  int Release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }

 private:
  int fd_ = -1;  // a closed descriptor, as the system has it
};

// How many descriptors can go along with some bytes.
inline constexpr size_t kMaxDescriptors = 4;

// Writes all of `bytes`, waiting if need be; those of `fds` that are open go
// along with the first of them. Cancelled if the other end is gone.
// REQUIRES: fds.size() <= kMaxDescriptors.
absl::Status SendAll(int socket, std::string_view bytes,
                     absl::Span<const int> fds = {});

// Writes `bytes` only if there is room for them now; false if there is not.
absl::StatusOr<bool> TrySend(int socket, std::string_view bytes);

// Reads exactly `size` bytes into `out`; descriptors that come along are added
// to `fds` (if not null). Cancelled at the end of the stream; DeadlineExceeded
// if nothing comes for `patience_ms` (below 0: it waits).
absl::Status ReceiveAll(int socket, char* out, size_t size,
                        std::vector<Descriptor>* fds = nullptr,
                        int patience_ms = -1);

// Reads what is there, at most `size` bytes: 0 if nothing is there now.
// Cancelled at the end of the stream.
absl::StatusOr<size_t> ReceiveSome(int socket, char* out, size_t size);

}  // namespace penstock

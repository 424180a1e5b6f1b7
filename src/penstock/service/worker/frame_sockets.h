// Frames to clients elsewhere, over TCP connections of their own
// (protocol/frame_socket.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "absl/status/statusor.h"
#include "penstock/base/mutex.h"
#include "penstock/base/socket.h"
#include "penstock/data/buffer.h"
#include "penstock/service/worker/frame_parts.h"
#include "penstock/worker.pb.h"

namespace penstock::service {

// A connection to one client. A thread of its own sends, one frame after the
// other. Thread-safe.
class FrameSocket final {
 public:
  struct Frame {
    uint64_t reading = 0;
    FrameHeader header;  // but for what it says of a piece
    Owner memory;        // kept until it is sent
    std::shared_ptr<const FrameParts> bytes;
    // Called once by the thread, without locks: the kernel has all of it, or
    // the connection has ended.
    std::function<void(bool is_sent)> done;
  };

  FrameSocket(Descriptor socket, std::string key)
      : socket_(std::move(socket)), key_(std::move(key)) {}

  const std::string& key() const { return key_; }
  int descriptor() const { return socket_.get(); }
  // False: the connection has ended, and nothing comes of it.
  [[nodiscard]] bool Send(Frame frame) ABSL_LOCKS_EXCLUDED(mutex_);
  void End() ABSL_LOCKS_EXCLUDED(mutex_);
  // What the thread does, until End().
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // False: the client is gone.
  bool SendPieces(Frame& frame) const;
  bool SendPiece(Frame& frame, std::string_view piece, uint32_t crc32c) const;

  const Descriptor socket_;
  const std::string key_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Frame> frames_ ABSL_GUARDED_BY(mutex_);
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
};

// Where they connect. Thread-safe.
class FrameSockets final {
 public:
  // `host`: an address of this machine, as gRPC takes it. Port 0: one that is
  // free.
  static absl::StatusOr<std::unique_ptr<FrameSockets>> Start(
      const std::string& host, uint16_t port);
  ~FrameSockets();
  FrameSockets(const FrameSockets&) = delete;
  FrameSockets& operator=(const FrameSockets&) = delete;

  uint16_t port() const { return port_; }
  // Null if no connection has this key.
  std::shared_ptr<FrameSocket> Find(const std::string& key) const
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  FrameSockets(Descriptor listener, uint16_t port, Descriptor wake_read,
               Descriptor wake_write);
  void Serve() ABSL_LOCKS_EXCLUDED(mutex_);
  void Accept() ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(int descriptor) ABSL_LOCKS_EXCLUDED(mutex_);

  const Descriptor listener_;
  const uint16_t port_;
  const Descriptor wake_read_;
  const Descriptor wake_write_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<int, std::shared_ptr<FrameSocket>> sockets_ ABSL_GUARDED_BY(mutex_);
  size_t num_threads_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

}  // namespace penstock::service

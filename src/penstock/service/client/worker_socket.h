// A connection to a worker's frame socket (protocol/frame_socket.h): frames
// come over it straight into the memory that they are read in.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/data/buffer.h"
#include "penstock/worker.pb.h"

namespace penstock::service {

// Who reads over it. Called by the connection's thread.
class PieceReader {
 public:
  virtual ~PieceReader() = default;
  // Room for the piece that comes next, writable; unset: nobody wants it.
  virtual std::optional<Buffer> OnPieceStart(const FrameHeader& head) = 0;
  // It is there.
  virtual void OnPieceHere(const FrameHeader& head) = 0;
  // Nothing more comes.
  virtual void OnSocketEnd(const absl::Status& why) = 0;
};

// Thread-safe. The connection ends with it.
class WorkerSocket final {
 public:
  // `address`: what the worker is called by; `port` is said by it. Unavailable
  // or DeadlineExceeded if nobody answers there within `patience_ms`.
  static absl::StatusOr<std::shared_ptr<WorkerSocket>> Connect(
      const std::string& address, uint16_t port, int patience_ms = 2'000);
  ~WorkerSocket();
  WorkerSocket(const WorkerSocket&) = delete;
  WorkerSocket& operator=(const WorkerSocket&) = delete;

  // The word that shows a worker which connection is meant.
  const std::string& key() const { return key_; }
  bool is_open() const;
  // The number that its pieces come under; unset: the connection has ended.
  std::optional<uint64_t> Add(std::weak_ptr<PieceReader> reader);
  // Pieces that still come are nobody's.
  void Remove(uint64_t reading);

 private:
  struct State;
  WorkerSocket(std::shared_ptr<State> state, std::string key)
      : state_(std::move(state)), key_(std::move(key)) {}

  // Shared with the thread, which may be the last to have it.
  const std::shared_ptr<State> state_;
  const std::string key_;
};

}  // namespace penstock::service

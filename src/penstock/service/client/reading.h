// One reading of one bundle from one worker: frames as they come.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/client_callback.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "penstock/base/mutex.h"
#include "penstock/data/buffer.h"
#include "penstock/service/client/worker_memory.h"
#include "penstock/service/client/worker_socket.h"
#include "penstock/service/rpc/channel.h"
#include "penstock/worker.pb.h"

namespace penstock::service {

// Whom a reading tells, and who lives until it is done. Called from gRPC's
// threads, one call at a time for each reading, and never from within a call of
// the reading's own methods.
class ReadingSink {
 public:
  virtual ~ReadingSink() = default;
  // A whole frame, as it was before it travelled; `bytes` is its chunk, and
  // after it the lineages.
  virtual void OnFrame(uint64_t bundle, uint64_t attempt,
                       const FrameHeader& head, Buffer bytes) = 0;
  // Room for a frame, writable.
  virtual Buffer Allocate(size_t size) = 0;
  // Nothing more comes, and the reading holds nothing any more. OK: the frame
  // before was the bundle's last.
  virtual void OnReadingDone(uint64_t bundle, uint64_t attempt,
                             const absl::Status& status) = 0;
};

// Thread-safe.
class Reading final
    : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
      public PieceReader {
 public:
  // `first` says what is read and how much may come before AddCredit(). Where
  // `memory` is open, frames are looked at in the worker's memory; else, where
  // `socket` is, they come over that.
  static std::shared_ptr<Reading> Start(
      const std::shared_ptr<grpc::Channel>& channel,
      const rpc::Credentials& credentials, ReadRequest first,
      std::shared_ptr<WorkerMemory> memory,
      std::shared_ptr<WorkerSocket> socket, ReadingSink& sink);

  void AddCredit(uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // The sink hears no more frames, but still that it is done.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Reading(ReadRequest first, std::shared_ptr<WorkerMemory> memory,
          std::shared_ptr<WorkerSocket> socket, ReadingSink& sink);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  std::optional<Buffer> OnPieceStart(const FrameHeader& head) override
      ABSL_LOCKS_EXCLUDED(piece_mutex_);
  void OnPieceHere(const FrameHeader& head) override
      ABSL_LOCKS_EXCLUDED(piece_mutex_, mutex_);
  void OnSocketEnd(const absl::Status& why) override
      ABSL_LOCKS_EXCLUDED(piece_mutex_);

  // Takes in one message; an error ends the reading.
  absl::Status TakeMessage() ABSL_EXCLUSIVE_LOCKS_REQUIRED(piece_mutex_);
  // Room for a piece, which EndPiece() looks at once it is there.
  absl::StatusOr<Buffer> BeginPiece(const FrameHeader& head)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(piece_mutex_);
  absl::Status EndPiece(const FrameHeader& head)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(piece_mutex_);
  void WriteIfDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint64_t bundle_;
  const uint64_t attempt_;
  const std::shared_ptr<WorkerMemory> memory_;
  const std::shared_ptr<WorkerSocket> socket_;
  uint64_t reading_ = 0;  // what it is to the socket
  ReadingSink& sink_;
  grpc::ClientContext context_;
  grpc::ByteBuffer incoming_;

  // Held while the sink hears of frames. gRPC's reactions and the socket's
  // thread may meet.
  Mutex piece_mutex_;
  Buffer frame_ ABSL_GUARDED_BY(piece_mutex_);  // that comes in pieces
  uint64_t frame_filled_ ABSL_GUARDED_BY(piece_mutex_) = 0;
  absl::Status failure_ ABSL_GUARDED_BY(piece_mutex_);
  bool is_done_ ABSL_GUARDED_BY(piece_mutex_) =
      false;  // the sink hears no more

  Mutex mutex_;
  ReadRequest next_ ABSL_GUARDED_BY(mutex_);  // to be sent
  bool has_next_ ABSL_GUARDED_BY(mutex_) = true;
  bool is_writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_had_all_ ABSL_GUARDED_BY(mutex_) = false;  // over the socket
  bool is_half_closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ByteBuffer outgoing_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<Reading> self_;  // until gRPC is done with it
};

}  // namespace penstock::service

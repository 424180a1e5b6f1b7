// Frames that clients on the same host read in this worker's memory.
//
// What goes over their socket is in protocol/local_socket.h. The client shows
// the key in ReadRequest.local_key of as many readings as it likes, and maps
// the segments that FrameHeader.place names, once each: a segment never changes
// its size and is never taken away while the connection lives. A frame stays
// where it is until it is released here, or by a message of any reading with
// the same key; such a message is lost if the reading ends first, so the last
// frames are released here. To release a frame twice does no harm. The end of
// the connection releases all of them, so it must live as long as anybody
// looks; a client that dies has its frames freed. A frame that several look at
// is free when the last has released it; they lie in segments that can be
// mapped for reading only.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "penstock/base/mutex.h"
#include "penstock/base/socket.h"
#include "penstock/data/buffer.h"
#include "penstock/data/frame_memory.h"
#include "penstock/service/protocol/local_socket.h"

namespace penstock::service {

// Segments from here on are of the memory that several read.
inline constexpr uint32_t kFirstSharedSegment = uint32_t{1} << 30;

// Frames that one connection looks at. Thread-safe.
class LocalPeer final {
 public:
  // What the frame is released by; nothing if the connection has ended.
  std::optional<uint64_t> Lend(Owner frame) ABSL_LOCKS_EXCLUDED(mutex_);
  // Of a frame that it does not have, nothing happens.
  void Release(uint64_t frame) ABSL_LOCKS_EXCLUDED(mutex_);
  void End() ABSL_LOCKS_EXCLUDED(mutex_);
  size_t num_lent() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable Mutex mutex_;
  std::map<uint64_t, Owner> frames_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_frame_ ABSL_GUARDED_BY(mutex_) = 1;
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
};

// The socket, served by a thread of its own. Thread-safe.
class LocalFrames final {
 public:
  // `shared`, which may be null: that several read.
  static absl::StatusOr<std::unique_ptr<LocalFrames>> Start(
      std::shared_ptr<FrameMemory> memory,
      std::shared_ptr<FrameMemory> shared = nullptr);
  ~LocalFrames();
  LocalFrames(const LocalFrames&) = delete;
  LocalFrames& operator=(const LocalFrames&) = delete;

  // Without the 0 before it.
  const std::string& name() const { return name_; }
  // Null if no connection has this key.
  std::shared_ptr<LocalPeer> Find(const std::string& key) const
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Connection {
    Descriptor socket;
    std::string key;
    std::shared_ptr<LocalPeer> peer;
    std::string partial;  // of a message
  };

  LocalFrames(std::shared_ptr<FrameMemory> memory,
              std::shared_ptr<FrameMemory> shared, std::string name,
              Descriptor socket, Descriptor wake_read, Descriptor wake_write);
  void Serve();
  void Accept(std::map<int, Connection>& connections);
  // Does what the client asks for. Not OK: the connection is over.
  absl::Status OnReadable(Connection& connection);
  absl::Status Answer(Connection& connection, const LocalMessage& message);

  // A descriptor to be sent; `kept` is open as long as it is used.
  absl::StatusOr<Arena::SegmentInfo> Segment(uint32_t number,
                                             Descriptor& kept) const;

  const std::shared_ptr<FrameMemory> memory_;
  const std::shared_ptr<FrameMemory> shared_;
  const std::string name_;
  const Descriptor socket_;
  const Descriptor wake_read_;
  const Descriptor wake_write_;
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<LocalPeer>> peers_
      ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace penstock::service

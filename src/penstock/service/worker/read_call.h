// The calls of worker.proto: a bundle's frames to one client, and what the
// worker does.
#pragma once

#include <grpcpp/impl/service_type.h>
#include <grpcpp/server_context.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "penstock/service.pb.h"
#include "penstock/service/worker/frame_sockets.h"
#include "penstock/service/worker/links.h"
#include "penstock/service/worker/local_frames.h"
#include "penstock/service/worker/out_frame.h"
#include "penstock/worker.pb.h"

namespace penstock::service {

// No piece of a frame is larger.
inline constexpr size_t kMaxPieceBytes = size_t{4} << 20;

// What all calls of a worker share. Thread-safe, and outlives the calls.
struct ReadContext {
  using Found = std::function<void(std::shared_ptr<FrameSource>)>;

  // Gives the frames of a bundle that somebody wants to read from item `from`
  // on, or null if it is not held; at once or a little later, from any thread.
  std::function<void(const EpochId& epoch, uint64_t bundle, uint64_t from,
                     Found found)>
      find;
  // Whether a caller may make a call. Unset: everyone may.
  std::function<absl::Status(const grpc::CallbackServerContext&,
                             std::string_view method)>
      check_caller;
  std::function<WorkerReport()> report;
  LocalFrames* local = nullptr;     // null: no socket on this host
  FrameSockets* sockets = nullptr;  // null: none for frames
  Links links;
  std::atomic<uint64_t> sent_frames{0};
  std::atomic<uint64_t> socket_frames{0};  // of them
  std::atomic<uint64_t> sent_bytes{0};     // as they travel, or are shown
};

// Answers Read and GetState. `context` outlives it.
std::unique_ptr<grpc::Service> MakeReadService(ReadContext& context);

}  // namespace penstock::service

// Beats and their replies, as gRPC carries them: a stream for each sender.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <functional>

#include "absl/status/status.h"
#include "penstock/service.pb.h"
#include "penstock/service/dispatcher/parked_beats.h"
#include "penstock/service/rpc/status.h"

namespace penstock::service {

// Hands each beat of a stream to `beats`, which outlives the stream, and sends
// what it answers. `check` is asked of every beat: one that is not OK ends the
// stream, and so does an answer that is an error. Of a sender that does not
// take its replies no more than two are kept, and no further beat is read.
template <typename Beat>
using CheckBeat = std::function<absl::Status(const Beat&)>;
grpc::ServerBidiReactor<WorkerBeat, WorkerReply>* ReceiveBeats(
    ParkedBeats& beats, CheckBeat<WorkerBeat> check);
grpc::ServerBidiReactor<ClientBeat, ClientReply>* ReceiveBeats(
    ParkedBeats& beats, CheckBeat<ClientBeat> check);

// Ends the call with `status`.
template <typename Beat, typename Reply>
class RefusedBeats final : public grpc::ServerBidiReactor<Beat, Reply> {
 public:
  explicit RefusedBeats(const absl::Status& status) {
    this->Finish(rpc::ToGrpc(status));
  }
  void OnDone() override { delete this; }
};

}  // namespace penstock::service

// Documents that travel in parts.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/dispatcher.pb.h"

namespace penstock::service {

// Sends a document, or says why there is none.
// `id`: what it is known by, if its receiver may not know.
grpc::ServerWriteReactor<Part>* SendParts(
    absl::StatusOr<std::shared_ptr<const std::string>> bytes,
    const std::string& id = "");

// Reads a document of at most `max_bytes`: of a larger one ResourceExhausted is
// said at the part that is too much. `take` hears all of it, and what the first
// part says besides its bytes; the call ends with what it says to `finish`,
// from any thread.
using Finish = std::function<void(const absl::Status&)>;
grpc::ServerReadReactor<Part>* ReceiveParts(
    size_t max_bytes,
    std::function<void(std::string bytes, const Part& first, Finish finish)>
        take);

// Ends the call with `status`.
grpc::ServerReadReactor<Part>* RefuseParts(const absl::Status& status);

}  // namespace penstock::service

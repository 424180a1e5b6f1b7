// Errors, as gRPC carries them and as we say them. Their codes are the same
// numbers, but for those of gRPC itself: a connection that breaks or carries
// rubbish may end a call with almost any of them. What we say is marked, and
// what is not marked is the connection's.
#pragma once

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"

namespace penstock::rpc {

// Travels as the details of a status.
inline constexpr char kOurs[] = "penstock";

// Unavailable, if it is a failure that only the connection explains.
inline absl::Status FromGrpc(const grpc::Status& status) {
  auto code = static_cast<absl::StatusCode>(status.error_code());
  if (status.error_details() != kOurs &&
      (code == absl::StatusCode::kUnknown ||
       code == absl::StatusCode::kInternal ||
       code == absl::StatusCode::kResourceExhausted)) {
    code = absl::StatusCode::kUnavailable;
  }
  return absl::Status(code, status.error_message());
}

inline grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(status.message()), kOurs);
}

}  // namespace penstock::rpc

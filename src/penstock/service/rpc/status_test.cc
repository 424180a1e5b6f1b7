#include "penstock/service/rpc/status.h"

#include <gtest/gtest.h>

namespace penstock::rpc {
namespace {

TEST(RpcStatus, WhatWeSayStaysAsItIs) {
  for (int code = 0; code <= 16; ++code) {
    const absl::Status said(static_cast<absl::StatusCode>(code),
                            code == 0 ? "" : "why");
    EXPECT_EQ(FromGrpc(ToGrpc(said)), said);
  }
}

// gRPC says Unknown, "Stream removed", when a connection is reset at a bad
// moment, and the others when a length or a frame of HTTP/2 is damaged.
TEST(RpcStatus, WhatOnlyAConnectionSaysIsWorthAnotherTry) {
  for (const grpc::StatusCode code :
       {grpc::StatusCode::UNKNOWN, grpc::StatusCode::INTERNAL,
        grpc::StatusCode::RESOURCE_EXHAUSTED, grpc::StatusCode::UNAVAILABLE}) {
    const grpc::Status said(code, "Stream removed");
    EXPECT_EQ(FromGrpc(said), absl::UnavailableError("Stream removed"));
  }
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      FromGrpc({grpc::StatusCode::DEADLINE_EXCEEDED, ""})));
  EXPECT_TRUE(absl::IsUnimplemented(
      FromGrpc({grpc::StatusCode::UNIMPLEMENTED, "no such call"})));
}

}  // namespace
}  // namespace penstock::rpc

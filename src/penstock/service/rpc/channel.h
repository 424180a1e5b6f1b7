// Connections to other machines, made all alike.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace penstock::rpc {

// On the way at once, on connections of beats: plans and manifests go there,
// too.
inline constexpr int kBeatWindowBytes = 1 << 20;
// And on those of frames, whose readers give credit of their own: as much as a
// network of 10 Gbit/s has under way in 13 ms.
inline constexpr int kFrameWindowBytes = 16 << 20;

// What a caller shows, and whom it believes. Files are read again when they
// change.
struct Credentials {
  std::string ca_file;    // whose certificates are believed; empty: no TLS
  std::string cert_file;  // its own
  std::string key_file;
  // A word that says who calls; or lines as the servers' files have them (see
  // gate.h), of which the one for `role` is shown.
  std::string token_file;
  std::string role = "consumer";
};

// Why there is no word to show, though there is a file for it: it cannot be
// read, or is for other roles. Empty: there is one, or no file.
std::string WhyNoWord(const Credentials& credentials);

// What a connection mostly carries. To find out how much may be on its way at
// once, gRPC would send a ping for data that comes, which costs as much as a
// message: it is told instead.
enum class Carries { kFrames, kBeats };

// A lasting connection to `address` ("host:port"). It is made when it is first
// used, and again whenever it breaks. InvalidArgument if the address or a file
// is not what it should be.
absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(
    const std::string& address, const Credentials& credentials,
    Carries carries = Carries::kFrames);

// "host:port" of an address as people write it: that, or
// "penstock://host:port".
std::string AddressOf(const std::string& text);

// A call that ends after `deadline`, and carries the token, if there is one.
void Prepare(grpc::ClientContext& context, const Credentials& credentials,
             std::chrono::milliseconds deadline);
// The same without an end.
void Prepare(grpc::ClientContext& context, const Credentials& credentials);

}  // namespace penstock::rpc

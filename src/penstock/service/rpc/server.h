// Servers for other machines, made all alike: where they may listen, whom they
// let in, and how much they take.
#pragma once

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock::rpc {

struct ServerSecurity {
  std::string ca_file;    // whose certificates callers must show; empty: no TLS
  std::string cert_file;  // the server's own
  std::string key_file;
  std::string token_file;    // see gate.h; empty: none needed
  bool is_insecure = false;  // plain and open to the network, on purpose
};

// The largest message of a call. Manifests travel in beats; all others that
// control something are held to kMaxControlBytes by those who handle them.
inline constexpr int kMaxMessageBytes = 64 << 20;
inline constexpr int kMaxControlBytes = 4 << 20;

// Whether `address` ("host:port" or "unix:path") is this machine's alone.
bool IsLoopback(const std::string& address);

// What callers are let in with. Plain if there are no certificates, which only
// an address of this machine may be, unless `is_insecure`. With certificates:
// TLS 1.2 or newer, callers must show one that the CA has signed, and files are
// read again when they change.
//
// InvalidArgument says what is missing or wrong: a file that cannot be read, a
// key that is not the certificate's, a certificate that has expired.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const std::string& address, const ServerSecurity& security);

// Sizes, streams and pings that the server accepts.
void SetLimits(grpc::ServerBuilder& builder);

// What of it is unsafe, as sentences for people; empty: nothing.
std::vector<std::string> UnsafeSettings(const std::string& address,
                                        const ServerSecurity& security);

}  // namespace penstock::rpc

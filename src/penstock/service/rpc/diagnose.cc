#include "penstock/service/rpc/diagnose.h"

#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "penstock/base/socket.h"
#include "penstock/service/rpc/server.h"

namespace penstock::rpc {
namespace {

constexpr int kTimeoutSeconds = 3;
// What an HTTP/2 caller says first.
constexpr char kPreface[] =
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
constexpr char kTlsAlert = 0x15;
constexpr char kHttp[] = "HTTP/";

using Context = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;
using Session = std::unique_ptr<SSL, decltype(&SSL_free)>;

struct Place {
  std::string host;
  std::string port;
};

Place PlaceOf(const std::string& address) {
  const size_t colon = address.rfind(':');
  Place place{address.substr(0, colon), address.substr(colon + 1)};
  if (absl::StartsWith(place.host, "[") && absl::EndsWith(place.host, "]")) {
    place.host = place.host.substr(1, place.host.size() - 2);
  }
  return place;
}

// The socket, or what stands in the way.
absl::StatusOr<Descriptor> Connect(const std::string& address) {
  const Place place = PlaceOf(address);
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(place.host.c_str(), place.port.c_str(), &hints, &found);
  if (error != 0) {
    return absl::UnavailableError(absl::StrCat(
        "the host '", place.host, "' is not known: ", gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(
      found, &freeaddrinfo);
  int why = 0;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    Descriptor socket(::socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval timeout = {kTimeoutSeconds, 0};
    setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout,
               sizeof(timeout));
    setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout,
               sizeof(timeout));
    if (connect(socket.get(), each->ai_addr, each->ai_addrlen) == 0) {
      return socket;
    }
    why = errno;
  }
  return absl::UnavailableError(absl::StrCat(
      "nobody answers at ", address, ": ", std::strerror(why),
      "\n  Is the address right, and does it run there?",
      IsLoopback(address) ? " `penstock up` starts a service on this machine."
                          : ""));
}

// Whether the server has shown a certificate.
bool HasShown(const Session& session) {
  return SSL_get0_peer_certificate(session.get()) != nullptr;
}

bool SpeaksTls(const std::string& address) {
  const absl::StatusOr<Descriptor> socket = Connect(address);
  if (!socket.ok()) return false;
  const Context context(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  const Session session(SSL_new(context.get()), &SSL_free);
  SSL_set_fd(session.get(), socket->get());
  SSL_connect(session.get());
  return HasShown(session);
}

absl::Status ProbePlain(const Descriptor& socket, const std::string& address) {
  char first[sizeof(kHttp) - 1] = {};
  // A server that speaks without TLS answers with its settings.
  if (send(socket.get(), kPreface, sizeof(kPreface) - 1, MSG_NOSIGNAL) > 0 &&
      recv(socket.get(), first, sizeof(first), MSG_WAITALL) > 0 &&
      first[0] != kTlsAlert) {
    if (std::string_view(first, sizeof(first)) != kHttp) {
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError(absl::StrCat(
        address, " shows pages (HTTP/1), and is no dispatcher or ",
        "worker\n  Is it the port of --http? Give that of ", "--listen."));
  }
  if (!SpeaksTls(address)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      address, " expects TLS, and the caller has no certificates\n  Give it ",
      "--tls-ca, --tls-cert and --tls-key; in Python, ps.Credentials."));
}

absl::Status Refused(const Session& session, const std::string& address) {
  if (!HasShown(session)) {
    return absl::FailedPreconditionError(absl::StrCat(
        address, " does not speak TLS, and the caller does\n  Give the server ",
        "certificates, or the caller none."));
  }
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  return absl::FailedPreconditionError(absl::StrCat(
      address, " does not accept the caller's certificate (",
      reason == nullptr ? "it closes the connection" : reason,
      ")\n  --tls-cert must be signed by the server's CA, and not have ",
      "expired."));
}

absl::Status ProbeTls(const Descriptor& socket, const std::string& address,
                      const Credentials& credentials) {
  const Context context(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  SSL_CTX_load_verify_locations(context.get(), credentials.ca_file.c_str(),
                                nullptr);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_use_certificate_chain_file(context.get(),
                                     credentials.cert_file.c_str());
  SSL_CTX_use_PrivateKey_file(context.get(), credentials.key_file.c_str(),
                              SSL_FILETYPE_PEM);
  const Session session(SSL_new(context.get()), &SSL_free);
  const std::string host = PlaceOf(address).host;
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session.get()),
                                    host.c_str()) != 1) {
    SSL_set1_host(session.get(), host.c_str());
    SSL_set_tlsext_host_name(session.get(), host.c_str());
  }
  constexpr unsigned char kProtocols[] = {2, 'h', '2'};
  SSL_set_alpn_protos(session.get(), kProtocols, sizeof(kProtocols));
  SSL_set_fd(session.get(), socket.get());
  ERR_clear_error();
  const bool is_connected = SSL_connect(session.get()) == 1;
  const long verified = SSL_get_verify_result(session.get());  // NOLINT
  if (verified != X509_V_OK) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the certificate of ", address,
        " is not accepted: ", X509_verify_cert_error_string(verified),
        "\n  It must be signed by ", "the CA in '", credentials.ca_file,
        "', be for '", host, "', and not have expired."));
  }
  if (!is_connected) return Refused(session, address);
  // By TLS 1.3, a server that refuses the caller's says so after the handshake.
  char first;
  ERR_clear_error();
  const int got = SSL_read(session.get(), &first, 1);
  if (got <= 0 && ERR_peek_last_error() != 0) return Refused(session, address);
  return absl::OkStatus();
}

}  // namespace

absl::Status NameRefusal(const absl::Status& status, const std::string& address,
                         const Credentials& credentials) {
  if (!absl::IsUnauthenticated(status)) return status;
  const std::string why = WhyNoWord(credentials);
  return absl::UnauthenticatedError(
      absl::StrCat(address, " does not let the caller in: ",
                   why.empty() ? std::string(status.message()) : why));
}

absl::Status Diagnose(const absl::Status& status, const std::string& address,
                      const Credentials& credentials) {
  if (absl::IsUnauthenticated(status)) {
    return NameRefusal(status, address, credentials);
  }
  if (absl::IsPermissionDenied(status)) {
    return absl::PermissionDeniedError(absl::StrCat(
        address, " does not let the caller do this: ", status.message()));
  }
  if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) {
    return status;
  }
  if (absl::StartsWith(address, "unix:") ||
      address.find(':') == std::string::npos) {
    return status;
  }
  const absl::StatusOr<Descriptor> socket = Connect(address);
  if (!socket.ok()) return socket.status();
  const absl::Status found = credentials.ca_file.empty()
                                 ? ProbePlain(*socket, address)
                                 : ProbeTls(*socket, address, credentials);
  return found.ok() ? status : found;
}

absl::Status DiagnoseDispatcher(const absl::Status& status,
                                const std::string& address,
                                const Credentials& credentials) {
  if (absl::IsUnimplemented(status)) {
    return absl::FailedPreconditionError(
        absl::StrCat(address, " answers, and is no dispatcher\n  Is it a ",
                     "worker's address? Give that of the dispatcher."));
  }
  return Diagnose(status, address, credentials);
}

}  // namespace penstock::rpc

#include "penstock/service/rpc/server.h"

#include <arpa/inet.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <cstdio>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "penstock/base/status.h"

namespace penstock::rpc {
namespace {

constexpr unsigned kReloadSeconds = 10;
constexpr int kMaxStreams = 10'000;
constexpr int kLeastPingMillis = 5'000;

using File = std::unique_ptr<std::FILE, decltype(&std::fclose)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

absl::Status Wrong(const std::string& path, const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrCat("the file '", path, "' ", what));
}

absl::StatusOr<Certificate> ReadCertificate(const std::string& path) {
  const File file(std::fopen(path.c_str(), "re"), &std::fclose);
  if (file == nullptr) return Wrong(path, "cannot be read");
  Certificate certificate(PEM_read_X509(file.get(), nullptr, nullptr, nullptr),
                          &X509_free);
  if (certificate == nullptr) return Wrong(path, "has no certificate (PEM)");
  if (X509_cmp_current_time(X509_get0_notAfter(certificate.get())) < 0) {
    return Wrong(path, "holds a certificate that has expired");
  }
  return certificate;
}

absl::Status CheckFiles(const ServerSecurity& security) {
  PENSTOCK_RETURN_IF_ERROR(ReadCertificate(security.ca_file).status());
  PENSTOCK_ASSIGN_OR_RETURN(const Certificate certificate,
                            ReadCertificate(security.cert_file));
  const File file(std::fopen(security.key_file.c_str(), "re"), &std::fclose);
  if (file == nullptr) return Wrong(security.key_file, "cannot be read");
  const Key key(PEM_read_PrivateKey(file.get(), nullptr, nullptr, nullptr),
                &EVP_PKEY_free);
  if (key == nullptr) {
    return Wrong(security.key_file, "has no private key (PEM)");
  }
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return Wrong(security.key_file,
                 absl::StrCat("is not the key of the certificate in '",
                              security.cert_file, "'"));
  }
  return absl::OkStatus();
}

}  // namespace

bool IsLoopback(const std::string& address) {
  if (absl::StartsWith(address, "unix:")) return true;
  std::string host = address.substr(0, address.rfind(':'));
  if (absl::StartsWith(host, "[") && absl::EndsWith(host, "]")) {
    host = host.substr(1, host.size() - 2);
  }
  in_addr four;
  if (inet_pton(AF_INET, host.c_str(), &four) == 1) {
    return ntohl(four.s_addr) >> 24 == 127;
  }
  return host == "::1" || host == "localhost";
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const std::string& address, const ServerSecurity& security) {
  const int given = !security.ca_file.empty() + !security.cert_file.empty() +
                    !security.key_file.empty();
  if (given == 0) {
    if (IsLoopback(address) || security.is_insecure) {
      return grpc::InsecureServerCredentials();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "'", address, "' can be reached by other machines, so callers must ",
        "show certificates: expected --tls-ca, --tls-cert and --tls-key\n",
        "  `penstock certs DIR` makes some; --listen 127.0.0.1:PORT needs ",
        "none;\n  --insecure-i-know lets everybody in who can reach it."));
  }
  if (given < 3) {
    return absl::InvalidArgumentError(
        "expected all of --tls-ca, --tls-cert and --tls-key, or none");
  }
  PENSTOCK_RETURN_IF_ERROR(CheckFiles(security));
  grpc::experimental::TlsServerCredentialsOptions options(
      std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
          security.key_file, security.cert_file, security.ca_file,
          kReloadSeconds));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  return grpc::experimental::TlsServerCredentials(options);
}

void SetLimits(grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreams);
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kLeastPingMillis);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 10);
  // Two servers on one port would share callers, silently.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
}

std::vector<std::string> UnsafeSettings(const std::string& address,
                                        const ServerSecurity& security) {
  std::vector<std::string> unsafe;
  const bool is_plain = security.ca_file.empty();
  if (!IsLoopback(address) && is_plain) {
    unsafe.push_back(absl::StrCat(
        "'", address, "' is open to the network without TLS: everybody who ",
        "can reach it may read and change what it holds; give --tls-ca, ",
        "--tls-cert and --tls-key"));
  }
  if (!is_plain) {
    struct stat found;
    if (stat(security.key_file.c_str(), &found) == 0 &&
        (found.st_mode & 077) != 0) {
      unsafe.push_back(absl::StrFormat(
          "others can read the key '%s' (mode %04o): chmod 600 %s",
          security.key_file, found.st_mode & 07777, security.key_file));
    }
  }
  if (is_plain && !security.token_file.empty() && !IsLoopback(address)) {
    unsafe.push_back("tokens travel in plain text without TLS");
  }
  if (security.token_file.empty() && !IsLoopback(address)) {
    unsafe.push_back(
        "no --token-file: whoever may call at all may also drain workers and "
        "cancel jobs; give a file with words for roles");
  }
  return unsafe;
}

}  // namespace penstock::rpc

#include "penstock/service/rpc/channel.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <grpcpp/support/channel_arguments.h>

#include <fstream>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace penstock::rpc {
namespace {

constexpr int kPingMillis = 10'000;
constexpr int kPingTimeoutMillis = 5'000;
constexpr int kMaxBackoffMillis = 1'000;
constexpr int kConnectMillis = 5'000;
constexpr int kMaxMessageBytes = 64 << 20;
constexpr unsigned kReloadSeconds = 10;

// What a file has for a role.
struct Found {
  bool is_read = false;
  std::string word;              // empty: there is none
  std::set<std::string> others;  // roles that there are words for
};

Found ReadWord(const std::string& path, const std::string& role) {
  std::ifstream file(path);
  Found found;
  found.is_read = file.good();
  std::string line;
  while (std::getline(file, line)) {
    const absl::string_view text = absl::StripAsciiWhitespace(line);
    if (text.empty() || text[0] == '#') continue;
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(text, absl::MaxSplits(':', 1));
    // A consumer's may be a tenant's.
    const absl::string_view first =
        parts.first.substr(0, parts.first.find('@'));
    if (first == role) {
      found.word = std::string(parts.second);
      return found;
    }
    if (first == "consumer" || first == "worker" || first == "admin") {
      found.others.insert(std::string(first));
    } else if (found.word.empty()) {
      found.word = std::string(text);
    }
  }
  return found;
}

}  // namespace

std::string WhyNoWord(const Credentials& credentials) {
  if (credentials.token_file.empty()) return "";
  const Found found = ReadWord(credentials.token_file, credentials.role);
  if (!found.is_read) {
    return absl::StrCat("the token file '", credentials.token_file,
                        "' cannot be read");
  }
  if (!found.word.empty() || found.others.empty()) return "";
  return absl::StrCat(
      "the token file '", credentials.token_file, "' is for the role ",
      absl::StrJoin(found.others, " and "),
      ", which may not do this: it needs a word for ", credentials.role);
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(
    const std::string& address, const Credentials& credentials,
    Carries carries) {
  if (!absl::StrContains(address, ':') || absl::StrContains(address, "://")) {
    return absl::InvalidArgumentError(
        absl::StrCat("an address must be host:port, or penstock://host:port; ",
                     "got '", address, "'\n  As in localhost:5050."));
  }
  std::shared_ptr<grpc::ChannelCredentials> security;
  if (credentials.ca_file.empty()) {
    security = grpc::InsecureChannelCredentials();
  } else {
    for (const std::string& path :
         {credentials.ca_file, credentials.cert_file, credentials.key_file}) {
      if (!path.empty() && !std::ifstream(path).good()) {
        return absl::InvalidArgumentError(
            absl::StrCat("the file '", path, "' cannot be read"));
      }
    }
    grpc::experimental::TlsChannelCredentialsOptions options;
    options.set_certificate_provider(
        std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
            credentials.key_file, credentials.cert_file, credentials.ca_file,
            kReloadSeconds));
    options.watch_root_certs();
    if (!credentials.cert_file.empty()) options.watch_identity_key_cert_pairs();
    security = grpc::experimental::TlsCredentials(options);
  }
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingMillis);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMillis);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  // Despite its name: how long an attempt may take, not when the next begins.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectMillis);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMaxBackoffMillis);
  // One connection each, even between the same two processes: who shares one
  // waits for the other's frames.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(
      GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES,
      carries == Carries::kBeats ? kBeatWindowBytes : kFrameWindowBytes);
  return grpc::CreateCustomChannel(address, security, arguments);
}

void Prepare(grpc::ClientContext& context, const Credentials& credentials) {
  if (credentials.token_file.empty()) return;
  const std::string word =
      ReadWord(credentials.token_file, credentials.role).word;
  if (!word.empty()) context.AddMetadata("authorization", "Bearer " + word);
}

void Prepare(grpc::ClientContext& context, const Credentials& credentials,
             std::chrono::milliseconds deadline) {
  context.set_deadline(std::chrono::system_clock::now() + deadline);
  Prepare(context, credentials);
}

std::string AddressOf(const std::string& text) {
  return std::string(
      absl::StripSuffix(absl::StripPrefix(text, "penstock://"), "/"));
}

}  // namespace penstock::rpc

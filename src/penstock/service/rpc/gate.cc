#include "penstock/service/rpc/gate.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <sys/stat.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "penstock/base/status.h"

namespace penstock::rpc {
namespace {

struct Rule {
  std::string_view method;
  Roles roles;
};

constexpr Rule kRules[] = {
    {"/penstock.service.Dispatcher/Hello", kAnybody},
    {"/penstock.service.Dispatcher/AddPlan", kConsumer | kAdmin},
    {"/penstock.service.Dispatcher/GetPlan", kAnybody},
    {"/penstock.service.Dispatcher/Unregister", kConsumer | kAdmin},
    {"/penstock.service.Dispatcher/Open", kConsumer},
    {"/penstock.service.Dispatcher/BeatClient", kConsumer},
    {"/penstock.service.Dispatcher/Release", kConsumer},
    {"/penstock.service.Dispatcher/BeatWorker", kWorker},
    {"/penstock.service.Dispatcher/GetManifest", kConsumer | kWorker},
    {"/penstock.service.Dispatcher/GetState", kAdmin},
    {"/penstock.service.Dispatcher/Drain", kAdmin},
    {"/penstock.service.Dispatcher/Cancel", kAdmin},
    {"/penstock.service.Worker/Read", kConsumer},
    {"/penstock.service.Worker/GetState", kAdmin},
};

constexpr std::string_view kBearer = "Bearer ";

// Words are compared by their digests: as many bytes each, whatever the word.
std::string DigestOf(std::string_view word) {
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_Digest(word.data(), word.size(), bytes, &size, EVP_sha256(), nullptr);
  return std::string(reinterpret_cast<const char*>(bytes), size);
}

std::string NamesOf(Roles roles) {
  std::vector<std::string> names;
  if ((roles & kConsumer) != 0) names.push_back("consumer");
  if ((roles & kWorker) != 0) names.push_back("worker");
  if ((roles & kAdmin) != 0) names.push_back("admin");
  return absl::StrJoin(names, " or ");
}

bool IsSameFile(const struct stat& a, const struct stat& b) {
  return a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mode == b.st_mode && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

}  // namespace

Roles RolesFor(std::string_view method) {
  for (const Rule& rule : kRules) {
    if (rule.method == method) return rule.roles;
  }
  return 0;
}

absl::StatusOr<Gate::Loaded> Gate::Load(const std::string& path) {
  Loaded loaded;
  if (stat(path.c_str(), &loaded.seen) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the token file '", path, "' cannot be read"));
  }
  if ((loaded.seen.st_mode & 077) != 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "the token file '%s' must be its owner's alone (mode 0600); its mode "
        "is %04o\n  Run: chmod 600 %s",
        path, loaded.seen.st_mode & 07777, path));
  }
  std::ifstream file(path);
  if (!file) {
    return absl::InvalidArgumentError(
        absl::StrCat("the token file '", path, "' cannot be read"));
  }
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const absl::string_view text = absl::StripAsciiWhitespace(line);
    if (text.empty() || text[0] == '#') continue;
    const std::pair<std::string, std::string> words =
        absl::StrSplit(text, absl::MaxSplits(':', 1));
    const std::pair<std::string, std::string> who =
        absl::StrSplit(words.first, absl::MaxSplits('@', 1));
    const bool has_tenant = absl::StrContains(words.first, '@');
    Token token;
    if (!absl::StrContains(text, ':')) {
      token = {kAnybody, DigestOf(words.first), ""};
    } else if (who.first == "consumer" && has_tenant == !who.second.empty()) {
      token = {kConsumer, DigestOf(words.second), who.second};
    } else if (words.first == "worker") {
      token = {kWorker, DigestOf(words.second), ""};
    } else if (words.first == "admin") {
      token = {kAdmin, DigestOf(words.second), ""};
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, " of the token file '", path,
                       "': expected consumer:TOKEN, consumer@TENANT:TOKEN, "
                       "worker:TOKEN, admin:TOKEN or one word"));
    }
    if (absl::StrContains(text, ':') && words.second.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, " of the token file '", path,
                       "': expected a token after ", words.first, ":"));
    }
    loaded.tokens.push_back(std::move(token));
  }
  if (loaded.tokens.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the token file '", path, "' has no tokens"));
  }
  return loaded;
}

absl::StatusOr<std::unique_ptr<Gate>> Gate::Make(
    const std::string& token_file) {
  std::unique_ptr<Gate> gate(new Gate(token_file));
  if (token_file.empty()) return gate;
  PENSTOCK_ASSIGN_OR_RETURN(Loaded loaded, Load(token_file));
  MutexLock lock(&gate->mutex_);
  gate->seen_ = loaded.seen;
  gate->tokens_ = std::move(loaded.tokens);
  return gate;
}

Roles Gate::roles() const {
  if (path_.empty()) return kAnybody;
  MutexLock lock(&mutex_);
  Roles roles = 0;
  for (const Token& token : tokens_) roles |= token.roles;
  return roles;
}

void Gate::LoadIfChanged() {
  struct stat now = {};
  stat(path_.c_str(), &now);
  if (IsSameFile(now, seen_)) return;
  seen_ = now;
  absl::StatusOr<Loaded> loaded = Load(path_);
  if (!loaded.ok()) {
    std::cerr << "penstock: " << loaded.status().message()
              << "; the tokens that were there stay in force\n";
    return;
  }
  seen_ = loaded->seen;
  tokens_ = std::move(loaded->tokens);
}

std::string_view Gate::AuthorizationOf(const grpc::ServerContextBase& context) {
  const auto& metadata = context.client_metadata();
  const auto it = metadata.find("authorization");
  if (it == metadata.end()) return {};
  return {it->second.data(), it->second.size()};
}

absl::Status Gate::Admit(const grpc::ServerContextBase& context,
                         std::string_view method) {
  return Admit(AuthorizationOf(context), method);
}

std::string Gate::TenantOf(const grpc::ServerContextBase& context) {
  return TenantOf(AuthorizationOf(context));
}

std::string Gate::TenantOf(std::string_view authorization) {
  if (authorization.substr(0, kBearer.size()) != kBearer) return "";
  const std::string shown = DigestOf(authorization.substr(kBearer.size()));
  MutexLock lock(&mutex_);
  for (const Token& token : tokens_) {
    if (token.digest == shown) return token.tenant;
  }
  return "";
}

absl::Status Gate::Admit(std::string_view authorization,
                         std::string_view method) {
  const Roles allowed = RolesFor(method);
  if (allowed == 0) {
    return absl::PermissionDeniedError(
        absl::StrCat("nobody may call ", std::string(method)));
  }
  if (path_.empty()) return absl::OkStatus();
  if (authorization.substr(0, kBearer.size()) != kBearer) {
    return absl::UnauthenticatedError(
        "expected a token: give the caller --token-file, or "
        "PENSTOCK_TOKEN_FILE, with a word for its role");
  }
  const std::string shown = DigestOf(authorization.substr(kBearer.size()));
  Roles roles = 0;
  {
    MutexLock lock(&mutex_);
    LoadIfChanged();
    // All of them, whichever fits: how long it takes says nothing.
    for (const Token& token : tokens_) {
      const bool is_it =
          CRYPTO_memcmp(token.digest.data(), shown.data(), shown.size()) == 0;
      roles |= is_it ? token.roles : 0;
    }
  }
  if (roles == 0) {
    return absl::UnauthenticatedError(
        "the caller's token is not one of the server's");
  }
  if ((roles & allowed) == 0) {
    return absl::PermissionDeniedError(
        absl::StrCat(std::string(method), " needs the role ", NamesOf(allowed),
                     "; the caller's token is for ", NamesOf(roles)));
  }
  return absl::OkStatus();
}

}  // namespace penstock::rpc

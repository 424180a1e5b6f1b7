#include "penstock/service/worker/code_rules.h"

#include <openssl/evp.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace penstock::service {
namespace {

constexpr char kAny[] = "any";
constexpr char kHash[] = "sha256:";
constexpr size_t kHashDigits = 64;
// How python/penstock/_named.py begins.
constexpr char kNamed[] = "PSNAMED1";
// Larger ones are none of ours: python/penstock/_code.py makes none.
constexpr uintmax_t kMaxZipBytes = 64 << 20;

bool IsHash(absl::string_view text) {
  return text.size() == kHashDigits &&
         std::all_of(text.begin(), text.end(), absl::ascii_isxdigit);
}

bool HasZip(const std::string& folder, const std::string& sha256) {
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator(folder, ignored)) {
    if (entry.path().extension() != ".zip" || !entry.is_regular_file(ignored) ||
        entry.file_size(ignored) > kMaxZipBytes) {
      continue;
    }
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    if (Sha256Of(bytes) == sha256) return true;
  }
  return false;
}

std::string Shown(const PlanBundle::Code& code) {
  return absl::StrCat(kHash, code.sha256(), " (",
                      absl::StrJoin(code.contents(), ", "), ")");
}

}  // namespace

std::string Sha256Of(const std::string& bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr);
  return absl::BytesToHexString(
      std::string(reinterpret_cast<const char*>(digest), size));
}

absl::StatusOr<CodeRules> CodeRules::Make(std::vector<std::string> accepted,
                                          bool accepts_pickles) {
  for (std::string& each : accepted) {
    if (each == kAny) continue;
    if (absl::StartsWith(each, kHash)) {
      if (IsHash(absl::string_view(each).substr(sizeof(kHash) - 1))) {
        absl::AsciiStrToLower(&each);
        continue;
      }
    } else if (std::filesystem::is_directory(each)) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "--code-allow: expected any, sha256: and 64 digits of hex, or a folder "
        "of zips; got '",
        each, "'\n  `penstock code hash FILE` says what a zip's hash is."));
  }
  CodeRules rules;
  rules.accepted_ = std::move(accepted);
  rules.accepts_pickles_ = accepts_pickles;
  return rules;
}

bool CodeRules::accepts_any() const {
  return std::find(accepted_.begin(), accepted_.end(), kAny) != accepted_.end();
}

bool CodeRules::Accepts(const std::string& sha256) const {
  return std::any_of(accepted_.begin(), accepted_.end(),
                     [&](const std::string& each) {
                       if (each == kAny) return true;
                       if (absl::StartsWith(each, kHash)) {
                         return each.substr(sizeof(kHash) - 1) == sha256;
                       }
                       return HasZip(each, sha256);
                     });
}

absl::Status CodeRules::Check(const PlanBundle& bundle) const {
  if (bundle.functions().empty()) return absl::OkStatus();
  const PlanBundle::Code& code = bundle.code();
  if (bundle.has_code()) {
    if (Sha256Of(code.archive()) != code.sha256()) {
      return absl::DataLossError(
          absl::StrCat("the code of a job must have the hash that it is sent ",
                       "with; got other bytes for ", Shown(code)));
    }
    if (!Accepts(code.sha256())) {
      return absl::PermissionDeniedError(absl::StrCat(
          "workers must be told whose code they run; got ", Shown(code),
          ", and this one accepts ",
          accepted_.empty() ? "none" : absl::StrJoin(accepted_, ", "),
          "\n  Start workers with --code-allow sha256:", code.sha256(),
          ", with --code-allow and a folder that has this zip (`penstock code "
          "zip` writes it), or with --code-allow any."));
    }
  }
  for (const PlanBundle::Capture& function : bundle.functions()) {
    if (absl::StartsWith(function.bytes(), kNamed)) {
      if (bundle.has_code()) continue;
      return absl::PermissionDeniedError(
          "a function that is named must come with the code it is in; got "
          "none\n  Give distribute(code=[...]).");
    }
    if (accepts_pickles_) continue;
    return absl::PermissionDeniedError(
        "pickled functions need both sides: distribute(..., pickle=True), and "
        "workers that were started with --allow-pickle; this worker was not\n"
        "  Or put the function into a module, and give "
        "distribute(code=[\"that_module\"]).");
  }
  return absl::OkStatus();
}

}  // namespace penstock::service

#include "penstock/service/dispatcher/records.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "penstock/service/protocol/canonical.h"

namespace penstock::service {

std::string ManifestKey(uint64_t hash) {
  return absl::StrFormat("%s%016x", std::string(kManifestKey), hash);
}

std::string RunKey(uint64_t run) {
  return absl::StrFormat("%s%016x", std::string(kRunKey), run);
}

std::string EpochKey(const EpochId& id) {
  return absl::StrFormat("%s%016x/%016x", std::string(kEpochKey), id.run(),
                         id.epoch());
}

std::string BundleKey(std::string_view kind, const EpochId& id,
                      uint64_t bundle) {
  return absl::StrFormat("%s%016x/%016x/%016x/%016x", std::string(kind),
                         id.run(), id.epoch(), id.generation(), bundle);
}

std::optional<uint64_t> ReadBundleKey(std::string_view kind,
                                      std::string_view key, EpochId& id) {
  if (key.substr(0, kind.size()) != kind) return std::nullopt;
  const std::string rest(key.substr(kind.size()));
  const std::vector<std::string> words = absl::StrSplit(rest, '/');
  uint64_t numbers[4];
  if (words.size() != std::size(numbers)) return std::nullopt;
  for (size_t i = 0; i < words.size(); ++i) {
    if (!absl::SimpleHexAtoi(words[i], &numbers[i])) return std::nullopt;
  }
  id.set_run(numbers[0]);
  id.set_epoch(numbers[1]);
  id.set_generation(numbers[2]);
  return numbers[3];
}

std::string Bytes(const google::protobuf::MessageLite& message) {
  return CanonicalBytes(message);
}

}  // namespace penstock::service

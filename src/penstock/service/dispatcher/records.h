// The names under which the dispatcher writes things down. Numbers are written
// so that names sort as they do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "google/protobuf/message_lite.h"
#include "penstock/service.pb.h"

namespace penstock::service {

inline constexpr std::string_view kPlanKey = "plan/";
inline constexpr std::string_view kKeepKey = "keep/";
inline constexpr std::string_view kNameKey = "name/";
inline constexpr std::string_view kRunKey = "run/";
inline constexpr std::string_view kEpochKey = "epoch/";
inline constexpr std::string_view kManifestKey = "manifest/";
inline constexpr std::string_view kBindKey = "bind/";
inline constexpr std::string_view kDoneKey = "done/";

std::string ManifestKey(uint64_t hash);
std::string RunKey(uint64_t run);
// Of an epoch whatever its generation: only one is alive.
std::string EpochKey(const EpochId& id);
std::string BundleKey(std::string_view kind, const EpochId& id,
                      uint64_t bundle);

// The numbers of a key that BundleKey() made, in `id` and the result.
std::optional<uint64_t> ReadBundleKey(std::string_view kind,
                                      std::string_view key, EpochId& id);

// As it is written: the same bytes for the same message.
std::string Bytes(const google::protobuf::MessageLite& message);

}  // namespace penstock::service

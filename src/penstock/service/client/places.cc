#include "penstock/service/client/places.h"

#include <algorithm>
#include <cstring>

#include "penstock/base/hash.h"

namespace penstock::service {
namespace {

constexpr std::string_view kMagic = "\xd1\x9aplace\x07";
constexpr size_t kWord = sizeof(uint64_t);
constexpr size_t kSize = kMagic.size() + 3 * kWord;

}  // namespace

std::string ToBytes(const Place& place) {
  std::string bytes(kMagic);
  bytes.append(reinterpret_cast<const char*>(&place.stream), kWord);
  bytes.append(reinterpret_cast<const char*>(&place.row), kWord);
  const uint64_t hash = HashBytes(bytes);
  bytes.append(reinterpret_cast<const char*>(&hash), kWord);
  return bytes;
}

std::optional<Place> ReadPlace(std::string_view bytes) {
  if (bytes.size() != kSize || bytes.substr(0, kMagic.size()) != kMagic) {
    return std::nullopt;
  }
  uint64_t hash;
  std::memcpy(&hash, bytes.data() + kSize - kWord, kWord);
  if (hash != HashBytes(std::string(bytes.substr(0, kSize - kWord)))) {
    return std::nullopt;
  }
  Place place;
  std::memcpy(&place.stream, bytes.data() + kMagic.size(), kWord);
  std::memcpy(&place.row, bytes.data() + kMagic.size() + kWord, kWord);
  return place;
}

std::map<uint64_t, uint64_t> FindPlaces(std::string_view state) {
  std::map<uint64_t, uint64_t> rows;
  for (size_t at = state.find(kMagic); at != std::string_view::npos;
       at = state.find(kMagic, at + 1)) {
    const std::optional<Place> place = ReadPlace(state.substr(at, kSize));
    if (!place) continue;
    const auto [it, is_new] = rows.try_emplace(place->stream, place->row);
    if (!is_new) it->second = std::min(it->second, place->row);
  }
  return rows;
}

}  // namespace penstock::service

#include "penstock/service/dispatcher/worker_places.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace penstock::service {
namespace {

constexpr std::string_view kAnyPort = ":%port%";
constexpr std::string_view kOthers = "*";

// "[::1]:80" has a port, "[::1]" and "host" have none.
size_t ColonOf(std::string_view address) {
  const size_t colon = address.rfind(':');
  const size_t bracket = address.rfind(']');
  if (colon == std::string_view::npos) return colon;
  return bracket != std::string_view::npos && bracket > colon
             ? std::string_view::npos
             : colon;
}

std::string HostOf(const std::string& address) {
  return address.substr(0, ColonOf(address));
}

bool HasAnyPort(const std::string& listed) {
  return ColonOf(listed) == std::string::npos ||
         listed.substr(ColonOf(listed)) == kAnyPort;
}

}  // namespace

WorkerPlaces::WorkerPlaces(std::vector<std::string> listed) {
  for (std::string& each : listed) {
    if (each == kOthers) {
      has_others_ = true;
      continue;
    }
    Place place;
    if (HasAnyPort(each)) place.host = HostOf(each);
    place.listed = std::move(each);
    places_.push_back(std::move(place));
  }
}

absl::Status WorkerPlaces::Validate(const std::vector<std::string>& listed) {
  std::set<std::string> seen;
  for (const std::string& each : listed) {
    if (each == kOthers) continue;
    const size_t colon = ColonOf(each);
    const std::string port =
        colon == std::string::npos ? "" : each.substr(colon + 1);
    const bool has_number = !port.empty() && port.size() <= 5 &&
                            std::all_of(port.begin(), port.end(), [](char c) {
                              return c >= '0' && c <= '9';
                            });
    if (HostOf(each).empty() || (!HasAnyPort(each) && !has_number)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "expected the address of a worker, as host:5060, host or "
          "host:%port%; got '",
          each, "'"));
    }
    if (!HasAnyPort(each) && !seen.insert(each).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected each worker once; got '", each, "' twice"));
    }
  }
  return absl::OkStatus();
}

std::optional<uint64_t> WorkerPlaces::Find(const std::string& address) const {
  for (size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].address == address) return i;
  }
  return std::nullopt;
}

std::optional<uint64_t> WorkerPlaces::Match(const std::string& address,
                                            const IsThere& is_there) const {
  if (const auto found = Find(address)) return found;
  for (size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].listed == address) return i;
  }
  // One that nobody ever had, rather than one that somebody may come back to.
  const std::string host = HostOf(address);
  for (const bool may_follow : {false, true}) {
    for (size_t i = 0; i < places_.size(); ++i) {
      const Place& place = places_[i];
      if (place.host.empty() || place.host != host) continue;
      if (place.address.empty() || (may_follow && !is_there(place.address))) {
        return i;
      }
    }
  }
  return std::nullopt;
}

absl::Status WorkerPlaces::Check(const std::string& address,
                                 const IsThere& is_there) const {
  if (places_.empty() || has_others_ || Match(address, is_there))
    return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "a worker must be one of those that the dispatcher was told of with "
      "--workers (",
      absl::StrJoin(places_, ", ",
                    [](std::string* out, const Place& place) {
                      absl::StrAppend(out, place.listed);
                    }),
      "), and the only one there; got ", address,
      "\n  Add it to that list, or start it with --advertise as it is "
      "listed."));
}

std::optional<uint64_t> WorkerPlaces::Take(const std::string& address,
                                           const IsThere& is_there) {
  const std::optional<uint64_t> found = Match(address, is_there);
  if (found) places_[*found].address = address;
  return found;
}

}  // namespace penstock::service

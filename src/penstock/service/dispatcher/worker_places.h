// Which of the workers that a dispatcher was told of a worker is: what static
// shards are numbered by.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace penstock::service {

// Not thread-safe.
class WorkerPlaces final {
 public:
  // Addresses in order: "host:port"; or "host" or "host:%port%", which is
  // whoever comes first from there, and is free again when that one is lost;
  // "*": others are welcome, too, and have no number.
  explicit WorkerPlaces(std::vector<std::string> listed);
  // InvalidArgument names the one that is no address, or that comes twice.
  static absl::Status Validate(const std::vector<std::string>& listed);

  using IsThere = std::function<bool(const std::string& address)>;
  // FailedPrecondition if the worker is none of them. Without a list, all are
  // welcome.
  absl::Status Check(const std::string& address, const IsThere& is_there) const;
  // Its number, which is then its own; unset: it has none.
  std::optional<uint64_t> Take(const std::string& address,
                               const IsThere& is_there);
  // Of one that has taken it.
  std::optional<uint64_t> Find(const std::string& address) const;

  uint64_t size() const { return places_.size(); }

 private:
  struct Place {
    std::string listed;
    std::string host;     // any port of it; empty: `listed` alone
    std::string address;  // of the worker that has it; empty: nobody
  };
  std::optional<uint64_t> Match(const std::string& address,
                                const IsThere& is_there) const;

  std::vector<Place> places_;
  bool has_others_ = false;
};

}  // namespace penstock::service

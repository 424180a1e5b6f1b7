// When what a service's workers compute again and again is worth keeping.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "penstock/report.pb.h"

namespace penstock::tuner {

// Rows after a node, which are the same in every pass: the caller asks
// plan/keepable.h.
struct KeptPlace {
  std::string node;  // its name
  std::string file;  // that made it, if that is known
  int64_t line = 0;
  double cpu_ns = 0;          // of the node and all before it
  double bytes = 0;           // that it gave
  double bytes_squared = 0;   // of each bundle, summed
  bool is_in_shares = false;  // workers can keep them (snapshot)
  bool is_last = false;       // trainers can (cache): it is all that they get
};

// What was measured of one pass.
struct PassWork {
  uint64_t bundles = 0;  // that were computed
  uint64_t bundles_in_pass = 0;
  double cpu_ns = 0;              // of all nodes
  std::vector<KeptPlace> places;  // whose rows were computed before
};

// Reading back costs CPU, too. Shares of 400 kB rows, in the page cache,
// took 1.1 ns a byte to read and send, of which sending is 0.3 to 0.5.
inline constexpr double kReadNanosPerByte = 1;
// A place is worth it if it spares so much of the CPU, and of a pass so much.
inline constexpr double kLeastShare = 0.2;
inline constexpr double kLeastSeconds = 0.2;
// More is kept neither in files nor in a trainer's memory.
inline constexpr double kMostFileBytes = 1e12;
inline constexpr double kMostMemoryBytes = 16e9;

// The place that spares most CPU, if one is worth it; `why` is the offer's.
// Nothing of a pass of which too little was seen: two bundles, or all.
std::optional<plan::Offer> OfferToKeep(const PassWork& work,
                                       const std::string& why);

// Both jobs run now, with equal pipelines: half of what both cost is spared.
std::optional<plan::Offer> OfferToShare(const PassWork& work,
                                        const std::string& why);

}  // namespace penstock::tuner

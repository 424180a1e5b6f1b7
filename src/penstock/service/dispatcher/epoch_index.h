// What the dispatcher finds epochs by, and what it should tell of them, without
// asking each of them: epochs keep it up to date themselves.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "penstock/base/event_log.h"

namespace penstock::service {

// An epoch, whatever its generation.
struct EpochName {
  uint64_t run = 0;
  uint64_t epoch = 0;
  auto operator<=>(const EpochName&) const = default;
};

// Where a consumer reads.
struct Seat {
  EpochName epoch;
  uint32_t slot = 0;
  auto operator<=>(const Seat&) const = default;
};

// Something that people may want to know of; see base/event_log.h.
struct Happening {
  std::string event;
  EventFacts facts;
};

// Whose next reply says something that the one before did not. May name the
// same one twice, and some that nothing has changed for.
struct News {
  std::vector<uint64_t> workers;  // leases were taken from them
  std::vector<uint64_t> drained;  // people want them gone
  std::vector<Seat> seats;        // other assignments, or another phase
  std::set<EpochName> lows;       // the least bundle that is nobody's
  std::vector<Happening> happenings;
  bool has_work = false;  // a worker with room might get a lease
  // Any of the workers might get one that is for nobody else.
  bool calls_workers = false;
  std::vector<uint64_t> called;  // then: all that there are
};

struct EpochIndex {
  // Those that might have a bundle to grant: others have none.
  std::set<EpochName> ready;
  // Those whose bundles are each for one worker.
  std::set<EpochName> by_worker_epochs;
  // Those of which a worker has leases.
  std::map<uint64_t, std::set<EpochName>> by_worker;
  // Since it was last taken.
  News news;
};

}  // namespace penstock::service

// Files of records whose places follow from the file's size: they are cut into
// pieces, so that several workers share a large one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/engine/pipeline.h"
#include "penstock/engine/run.h"
#include "penstock/plan/divide.h"
#include "penstock/service/worker/plan_store.h"

namespace penstock::service {

struct PlacedFiles {
  std::vector<std::string> names;
  int64_t bytes = 0;         // of all
  int64_t most_bytes = 0;    // of one
  int64_t most_records = 0;  // of one
  // One is missing, or is no whole number of records: whoever reads it says so,
  // once.
  bool has_faults = false;
};

// Those that the plan's shares are made of. `environment` has everything set.
// Waits for storage. REQUIRES: plan.division.records.
absl::StatusOr<PlacedFiles> FindPlacedFiles(
    const ReadyPlan& plan, const engine::Environment& environment,
    engine::Instances& instances);

// How many pieces each of `rows` files is cut into: pieces have a 64th of all
// bytes, but at least 256 KiB and at most 64 MiB of the largest file, and a
// share has no fewer rows than the division needs.
uint32_t PiecesOf(const PlacedFiles& files, uint64_t rows,
                  const plan::Division& division);

}  // namespace penstock::service

// How an epoch's source is cut into bundles, and of which files it is.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "penstock/engine/pipeline.h"
#include "penstock/engine/run.h"
#include "penstock/io/file_system.h"
#include "penstock/plan/divide.h"
#include "penstock/service.pb.h"
#include "penstock/service/worker/plan_store.h"

namespace penstock::service {

// Rows of the source that a bundle has. It follows from the plan and the data
// alone, so that an order is the same for any number of workers.
//
//   where a row is a file   1, of more than 4096 files as many as make 4096
//                           bundles
//   where it is a bundle    1, of more than 64 as many as make 64 bundles
//   of another job
//   elsewhere               64, or as many as make 1024 bundles, or all
//
// and always at least division.least_rows; of shares that are kept, a multiple
// of the above.
uint64_t RowsPerBundle(const plan::Division& division, uint64_t rows);

// Finds out how another job is cut that the plan reads.
using InnerSurvey = std::function<absl::StatusOr<Manifest::Received>(
    const plan::Distribution& distribution)>;

// Finds the files and counts the source's rows. Waits for storage, and for the
// services that `survey` asks.
// `environment` is what shares are run with, but for files and captures.
// `workers`: of a static epoch, how many there are. Fails as the source does:
// NotFound if no file matches; InvalidArgument if there are fewer files than
// workers that need one each.
absl::StatusOr<Manifest> MakeManifest(const ReadyPlan& plan,
                                      io::FileSystem& files,
                                      const engine::Environment& environment,
                                      engine::Instances& instances,
                                      uint32_t workers = 0,
                                      const InnerSurvey& survey = nullptr);

// Of one pass over the source.
uint64_t BundlesInPass(const Manifest& manifest);

// What a bundle is run for. OutOfRange if the epoch has no such bundle.
absl::StatusOr<engine::RunPart> PartOfBundle(const plan::Division& division,
                                             const Manifest& manifest,
                                             uint64_t bundle,
                                             uint64_t iteration);

}  // namespace penstock::service

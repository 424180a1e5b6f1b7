// Puts loose rows of several shares together (plan/divide.h, Stitch).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/data/chunk.h"
#include "penstock/engine/pipeline.h"
#include "penstock/engine/run.h"
#include "penstock/plan/divide.h"

namespace penstock::service {

// Runs what follows the shares' last group over one group of loose rows after
// another. One caller at a time.
class Stitcher final {
 public:
  struct Keys {
    uint64_t epoch = 0;
    uint64_t iteration = 0;
    uint64_t seed = 0;
  };
  // `environment` without a receiver. REQUIRES: division.stitch is set.
  static absl::StatusOr<std::unique_ptr<Stitcher>> Make(
      const plan::Division& division, const plan::Options& defaults,
      const engine::Environment& environment, const Keys& keys);

  // A group: at most as many rows as the division's groups have.
  absl::Status Begin(std::vector<Chunk> loose, uint64_t pass);
  bool is_running() const { return iterator_ != nullptr; }
  // What comes of it. After the end it is not running any more.
  absl::StatusOr<engine::Pull> Next(const engine::Request& request);

 private:
  Stitcher(const plan::Division& division, engine::Environment environment,
           const Keys& keys);

  const std::optional<int> repeat_;
  const bool gives_lineage_;
  const engine::Environment environment_;
  const Keys keys_;
  engine::Instances instances_;
  std::shared_ptr<const engine::Pipeline> pipeline_;
  std::unique_ptr<engine::Iterator> iterator_;
};

}  // namespace penstock::service

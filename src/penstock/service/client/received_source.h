// What is the same in all passes over the rows of one distribute(): how its
// service is reached, and how its pipeline is divided.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "penstock/data/frame_memory.h"
#include "penstock/engine/row_source.h"
#include "penstock/plan.pb.h"
#include "penstock/plan/divide.h"
#include "penstock/service.pb.h"
#include "penstock/service/client/service_link.h"
#include "penstock/service/rpc/channel.h"

namespace penstock::service {

struct ReceivedSource {
  // Who reads it, and where.
  struct Settings {
    // Where relative names start from, and what a plan's own options leave
    // unset: they go to the workers with the plan.
    std::string directory;
    plan::Options defaults;
    rpc::Credentials credentials;
    // What the plan names of this process; null: nothing.
    engine::RowSources* captures = nullptr;
    // Where the trainer reads; null: it does so elsewhere.
    std::shared_ptr<FrameMemory> frames;
    // Something random follows: rows must come with their lineages.
    bool needs_lineage = false;
  };
  // Calls nobody yet.
  static absl::StatusOr<ReceivedSource> Make(
      const plan::Distribution& distribution, const Settings& settings);

  std::shared_ptr<ServiceLink> link;
  std::shared_ptr<const plan::Division> division;
};

service::Visitation ToService(plan::Distribution::Visitation visitation);

// Tells the distributions of one plan apart (Manifest::Received.source).
uint64_t HashOf(const plan::Distribution& distribution);

}  // namespace penstock::service

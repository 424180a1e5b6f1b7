#include "penstock/session/apply_knobs.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"

namespace penstock::session {
namespace {

absl::Status Check(uint32_t id, const plan::NodeKnobs& knobs,
                   const engine::Pipeline& pipeline, const engine::Run& run) {
  if (id >= pipeline.ops().size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("knobs must be of nodes below ", pipeline.ops().size(),
                     "; got node ", id));
  }
  if (!knobs.has_cache()) return absl::OkStatus();
  const plan::CacheKnob& cache = knobs.cache();
  const std::string& name = pipeline.ops()[id].name;
  const std::string& why_not = pipeline.WhyNotKept(static_cast<int>(id));
  if (!why_not.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("rows after ", name, " cannot be kept: ", why_not));
  }
  if (cache.has_max_bytes() && cache.max_bytes() < 1) {
    return absl::InvalidArgumentError(absl::StrCat("cache.max_bytes of ", name,
                                                   " must be at least 1; got ",
                                                   cache.max_bytes()));
  }
  if (cache.tier() == plan::DISK && run.environment.kept_disk == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("rows after ", name,
                     " cannot be kept on disk: there is no directory for them"
                     "\n  Give Options(kept_directory=...)."));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ApplyKnobs(const plan::Knobs& knobs, FrameSender& sender) {
  for (const auto& [id, node] : knobs.nodes()) {
    PENSTOCK_RETURN_IF_ERROR(Check(id, node, *sender.pipeline(), sender.run()));
  }
  engine::SetKnobs(knobs, sender.mutable_run());
  const bool is_set =
      knobs.has_output_rows() && knobs.output_rows().chosen_by() != plan::USER;
  sender.SetRunAheadRows(is_set ? knobs.output_rows().value() : 0);
  return absl::OkStatus();
}

}  // namespace penstock::session

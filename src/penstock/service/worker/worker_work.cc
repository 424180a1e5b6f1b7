// What a worker counts of its work, and what it keeps of it.
#include <memory>

#include "penstock/base/hash.h"
#include "penstock/base/status.h"
#include "penstock/service/worker/beater.h"
#include "penstock/service/worker/kept_folder.h"
#include "penstock/service/worker/manifest.h"
#include "penstock/service/worker/worker_server.h"

namespace penstock::service {

absl::Status WorkerServer::SetKept(const EpochFiles& files,
                                   RunSetup& setup) const {
  const ReadyPlan& plan = *setup.plan;
  if (plan.kept_by == 0) return absl::OkStatus();
  if (!options_.has_written_folders) {
    PENSTOCK_RETURN_IF_ERROR(CheckKeptFolder(plan.kept_in));
  }
  uint64_t word = Combine(plan.kept_by, files.manifest.rows());
  for (const Manifest::File& file : files.manifest.files()) {
    word = HashBytes(file.name(), word);
    word = Combine(word, file.size());
    word = Combine(word, static_cast<uint64_t>(file.changed_ns()));
  }
  setup.part.kept_by = word | 1;
  setup.part.gives_lineage = true;
  return absl::OkStatus();
}

std::shared_ptr<WorkLedger::Account> WorkerServer::AccountOf(
    const Lease& lease, const Manifest& manifest, const engine::RunPart& part) {
  Work named;
  named.set_run(lease.epoch().run());
  named.set_epoch(lease.epoch_number());
  named.set_iteration(lease.iteration());
  named.set_pass(part.pass);
  named.set_bundles_in_pass(BundlesInPass(manifest));
  return ledger_.Open(named);
}

}  // namespace penstock::service

#include "penstock/service/worker/python_host.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/socket.h"
#include "penstock/base/status.h"
#include "penstock/pool/python_check.h"
#include "penstock/pool/python_pool.h"

namespace penstock::service {
namespace {

constexpr int64_t kIdleNanos = 30'000'000'000;

// `bytes` in memory that nobody can change.
absl::StatusOr<Descriptor> Sealed(const std::string& bytes) {
  Descriptor memory(
      memfd_create("penstock-code", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  for (size_t at = 0; memory.is_open() && at < bytes.size();) {
    const ssize_t wrote =
        write(memory.get(), bytes.data() + at, bytes.size() - at);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) memory = Descriptor();
    at += static_cast<size_t>(std::max<ssize_t>(wrote, 0));
  }
  if (!memory.is_open() ||
      fcntl(memory.get(), F_ADD_SEALS,
            F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", bytes.size(), " bytes of code"));
  }
  return memory;
}

// The pool reads the archive for as long as it starts processes.
struct PlanProcesses {
  Descriptor archive;
  pool::PythonPool pool;
};

}  // namespace

absl::StatusOr<std::string> PythonHost::Prepare() {
  MutexLock lock(&mutex_);
  if (scratch_ == nullptr) {
    PENSTOCK_RETURN_IF_ERROR(
        pool::CheckPython(options_.interpreter, options_.version));
    PENSTOCK_ASSIGN_OR_RETURN(scratch_,
                              ScratchFolder::Make("penstock-worker-"));
  }
  return scratch_->path();
}

absl::StatusOr<std::shared_ptr<engine::RowFunctions>> PythonHost::Open(
    const PlanBundle& bundle) {
  PENSTOCK_RETURN_IF_ERROR(options_.rules.Check(bundle));
  if (bundle.functions().empty()) return nullptr;
  pool::PythonCommand command;
  command.interpreter = options_.interpreter;
  pool::Confinement& confinement = command.confinement.emplace();
  PENSTOCK_ASSIGN_OR_RETURN(confinement.scratch, Prepare());
  confinement.memory_bytes = options_.process_bytes;
  confinement.accepts_pickles = options_.rules.accepts_pickles();
  Descriptor archive;
  if (bundle.has_code()) {
    PENSTOCK_ASSIGN_OR_RETURN(archive, Sealed(bundle.code().archive()));
  }
  confinement.archive_fd = archive.get();
  pool::PythonPool::Options options;
  options.processes = options_.processes;
  options.memory_bytes = static_cast<size_t>(options_.rows_bytes);
  options.may_grow = false;
  options.idle_nanos = kIdleNanos;
  std::shared_ptr<PlanProcesses> made(
      new PlanProcesses{std::move(archive), pool::PythonPool(options)});
  for (const PlanBundle::Capture& function : bundle.functions()) {
    PENSTOCK_ASSIGN_OR_RETURN(Descriptor memory, Sealed(function.bytes()));
    made->pool.AddFunction(function.id(), std::move(memory),
                           function.bytes().size(), command, {});
  }
  return std::shared_ptr<engine::RowFunctions>(made, &made->pool);
}

}  // namespace penstock::service

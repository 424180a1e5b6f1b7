#include "penstock/service/worker/manifest.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/base/mutex.h"
#include "penstock/base/status.h"
#include "penstock/engine/bundle.h"
#include "penstock/io/relative_files.h"
#include "penstock/service/worker/frozen_files.h"

namespace penstock::service {
namespace {

constexpr uint64_t kMaxFileBundles = 4096;
constexpr uint64_t kMaxBundles = 1024;
// Of rows that are likely to be cheap, since there are many: a bundle costs
// about a millisecond, whoever computes it.
constexpr uint64_t kFewBundles = 64;
constexpr uint64_t kFewRows = 64;
constexpr uint64_t kManyRows = 1024;

uint64_t DivideUp(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

// Waits for a pull that is blocked.
class Bell final : public engine::Wakeable {
 public:
  void Wake() override {
    MutexLock lock(&mutex_);
    has_rung_ = true;
    rung_.SignalAll();
  }
  void Await() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    while (!has_rung_) rung_.Wait(&mutex_);
    has_rung_ = false;
  }

 private:
  Mutex mutex_;
  CondVar rung_;
  bool has_rung_ ABSL_GUARDED_BY(mutex_) = false;
};

// Files by name, each once.
class FileTable final {
 public:
  FileTable(io::FileSystem& files, Manifest& manifest)
      : files_(files), manifest_(manifest) {}

  uint32_t Add(const std::string& name) {
    const auto [it, is_new] =
        numbers_.emplace(name, static_cast<uint32_t>(manifest_.files_size()));
    if (is_new) {
      const io::FileStamp stamp = files_.Stamp(name);
      Manifest::File* file = manifest_.add_files();
      file->set_name(name);
      file->set_size(static_cast<uint64_t>(std::max<int64_t>(stamp.size, 0)));
      file->set_changed_ns(stamp.changed_ns);
    }
    return it->second;
  }

 private:
  io::FileSystem& files_;
  Manifest& manifest_;
  std::map<std::string, uint32_t> numbers_;
};

absl::Status ListFiles(const plan::Plan& plan, io::FileSystem& files,
                       Manifest& manifest) {
  FileTable table(files, manifest);
  std::map<std::string, bool> is_listed;
  for (const plan::Node& node : plan.nodes()) {
    if (node.has_list_files()) {
      for (const std::string& pattern :
           node.list_files().patterns().constant().strings()) {
        if (!is_listed.emplace(pattern, true).second) continue;
        PENSTOCK_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                                  files.Glob(pattern));
        Manifest::Listing* listing = manifest.add_listings();
        listing->set_pattern(pattern);
        for (const std::string& name : names) {
          listing->add_files(table.Add(name));
        }
      }
    }
    if (node.has_read_files()) {
      for (const std::string& name :
           node.read_files().files().constant().strings()) {
        // What is not there says so to whoever reads it.
        if (files.Stamp(name).size >= 0) table.Add(name);
      }
    }
  }
  return absl::OkStatus();
}

// Runs the plan up to its source.
absl::StatusOr<uint64_t> CountRows(const ReadyPlan& plan,
                                   const engine::Environment& environment,
                                   engine::Instances& instances) {
  plan::Plan source;
  for (int node = 0; node <= plan.division.source; ++node) {
    *source.add_nodes() = plan.division.remote.nodes(node);
  }
  PENSTOCK_ASSIGN_OR_RETURN(
      const auto pipeline,
      engine::Pipeline::Build(source, plan.defaults, plan.captures.get()));
  // Which order they have does not matter here.
  PENSTOCK_ASSIGN_OR_RETURN(
      const auto iterator,
      engine::Iterator::Start(pipeline, environment, instances, /*epoch=*/0,
                              /*seed=*/1));
  auto bell = std::make_shared<Bell>();
  const engine::Waker waker = bell;
  uint64_t rows = 0;
  while (true) {
    PENSTOCK_ASSIGN_OR_RETURN(const engine::Pull pull,
                              iterator->Next({engine::kMaxChunkRows, waker}));
    if (pull.is_end()) return rows;
    if (pull.is_blocked()) {
      bell->Await();
      continue;
    }
    if (!pull.chunk.errors.empty()) return pull.chunk.errors[0].status;
    rows += static_cast<uint64_t>(pull.chunk.rows);
  }
}

}  // namespace

uint64_t RowsPerBundle(const plan::Division& division, uint64_t rows) {
  const uint64_t by_size =
      division.is_files
          ? DivideUp(rows, kMaxFileBundles)
          : std::max(DivideUp(rows, kMaxBundles),
                     std::min(rows, std::clamp(rows / kFewBundles, kFewRows,
                                               kManyRows)));
  // Whole groups, where it is known how many rows one has: what is left of a
  // bundle travels row by row.
  const auto least =
      static_cast<uint64_t>(std::max<int64_t>(1, division.least_rows));
  if (least >= rows) return std::max<uint64_t>(rows, 1);
  return DivideUp(by_size, least) * least;
}

absl::StatusOr<Manifest> MakeManifest(const ReadyPlan& plan,
                                      io::FileSystem& files,
                                      const engine::Environment& environment,
                                      engine::Instances& instances) {
  Manifest manifest;
  const std::unique_ptr<io::FileSystem> relative =
      io::MakeRelativeFileSystem(files, plan.directory);
  PENSTOCK_RETURN_IF_ERROR(
      ListFiles(plan.division.remote, *relative, manifest));
  const plan::Division& division = plan.division;
  if (division.rows.has_value()) {
    manifest.set_rows(static_cast<uint64_t>(*division.rows));
  } else {
    // The same files that all workers will see.
    FrozenFiles frozen(files, plan.directory, manifest);
    engine::Environment here = environment;
    here.files = &frozen;
    here.directory = plan.directory;
    here.sources = plan.captures.get();
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t rows,
                              CountRows(plan, here, instances));
    manifest.set_rows(rows);
  }
  manifest.set_passes(1);
  if (division.passes.has_value()) {
    const std::optional<int64_t> count = division.passes->count;
    manifest.set_passes(static_cast<uint64_t>(count.value_or(0)));
    // No pass at all; 0 passes are passes without end.
    if (count.has_value() && *count <= 0) {
      manifest.set_passes(1);
      manifest.set_rows(0);
    }
  }
  manifest.set_rows_per_bundle(RowsPerBundle(division, manifest.rows()));
  return manifest;
}

absl::StatusOr<engine::RunPart> PartOfBundle(const plan::Division& division,
                                             const Manifest& manifest,
                                             uint64_t bundle,
                                             uint64_t iteration) {
  const uint64_t size = std::max<uint64_t>(1, manifest.rows_per_bundle());
  const uint64_t each_pass =
      manifest.rows() / size + (manifest.rows() % size > 0 ? 1 : 0);
  const uint64_t pass = each_pass == 0 ? 0 : bundle / each_pass;
  if (each_pass == 0 || (manifest.passes() != 0 && pass >= manifest.passes())) {
    return absl::OutOfRangeError(
        absl::StrCat("bundle ", bundle, " is not one of ", manifest.passes(),
                     " times ", each_pass, " that the epoch has"));
  }
  const uint64_t begin = bundle % each_pass * size;
  const uint64_t end = std::min(begin + size, manifest.rows());
  return engine::PartOf(division, static_cast<int64_t>(begin),
                        static_cast<int64_t>(end), pass, iteration);
}

}  // namespace penstock::service

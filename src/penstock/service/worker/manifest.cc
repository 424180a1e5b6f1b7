#include "penstock/service/worker/manifest.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/engine/bundle.h"
#include "penstock/io/relative_files.h"
#include "penstock/plan/distribute.h"
#include "penstock/service/client/received_source.h"
#include "penstock/service/worker/frozen_files.h"
#include "penstock/service/worker/placed_files.h"
#include "penstock/service/worker/source_rows.h"

namespace penstock::service {
namespace {

constexpr uint64_t kMaxFileBundles = 4096;
// Of another job's: each is a run there, which costs some milliseconds.
constexpr uint64_t kMaxReceivedBundles = 64;
constexpr uint64_t kMaxBundles = 1024;
// Of rows that are likely to be cheap, since there are many: a bundle costs
// about a millisecond, whoever computes it.
constexpr uint64_t kFewBundles = 64;
constexpr uint64_t kFewRows = 64;
constexpr uint64_t kManyRows = 1024;
// Of more files than this there is one for everybody.
constexpr uint64_t kMaxCutFiles = 1024;

uint64_t DivideUp(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

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
                       FileTable& table, Manifest& manifest) {
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
  uint64_t rows = 0;
  PENSTOCK_RETURN_IF_ERROR(ForRows(SourceOf(plan.division), plan, environment,
                                   instances, [&](const Chunk& chunk) {
                                     rows += static_cast<uint64_t>(chunk.rows);
                                     return absl::OkStatus();
                                   }));
  return rows;
}

// Other jobs that the plan reads, each once.
absl::Status AddReceived(const plan::Plan& plan, const InnerSurvey& survey,
                         Manifest& manifest) {
  for (const plan::Distribution* inner : plan::DistributionsIn(plan)) {
    const auto& known = manifest.received();
    if (std::ranges::any_of(known, [&](const auto& each) {
          return each.source() == HashOf(*inner);
        })) {
      continue;
    }
    if (survey == nullptr) {
      return absl::FailedPreconditionError(
          "other jobs must be read by a worker of a service");
    }
    PENSTOCK_ASSIGN_OR_RETURN(*manifest.add_received(), survey(*inner));
  }
  return absl::OkStatus();
}

uint64_t BundlesOf(const plan::Distribution& inner, const Manifest& manifest) {
  for (const Manifest::Received& each : manifest.received()) {
    if (each.source() == HashOf(inner)) return each.bundles();
  }
  return 0;
}

bool IsEndless(const plan::Division& division) {
  return division.remote.nodes(division.source).cardinality().has_infinite();
}

// One bundle for each of the workers, or, if these are not known, for each that
// comes.
absl::StatusOr<Manifest> ByWorker(const plan::Division& division,
                                  uint32_t workers, Manifest manifest) {
  const plan::Division::ByWorker& by = *division.by_worker;
  const bool is_each = !by.files && !by.rows;
  const uint64_t files = manifest.rows();
  manifest.set_rows_per_bundle(1);
  manifest.set_rows(is_each ? 1 : workers);
  manifest.set_passes(is_each ? 0 : 1);
  if (!by.files) return manifest;
  const bool has_enough = IsEndless(division) || files >= workers;
  if (!has_enough && !by.rows) {
    return absl::InvalidArgumentError(
        absl::StrCat("sharding=\"file\" needs a file for each of ", workers,
                     " workers; found ", files,
                     "\n  Use sharding=\"file_or_data\", or fewer workers."));
  }
  manifest.set_is_by_file(has_enough);
  return manifest;
}

}  // namespace

uint64_t RowsPerBundle(const plan::Division& division, uint64_t rows) {
  const uint64_t by_size =
      division.is_files ? DivideUp(rows, kMaxFileBundles)
      : division.is_received
          ? DivideUp(rows, kMaxReceivedBundles)
          : std::max(DivideUp(rows, kMaxBundles),
                     std::min(rows, std::clamp(rows / kFewBundles, kFewRows,
                                               kManyRows)));
  // Whole groups, where it is known how many rows one has: what is left of a
  // bundle travels row by row.
  const auto least =
      static_cast<uint64_t>(std::max<int64_t>(1, division.least_rows));
  if (least >= rows) return std::max<uint64_t>(rows, 1);
  // What is kept of one pipeline is found by others that begin as it does.
  if (division.is_kept) return DivideUp(least, by_size) * by_size;
  return DivideUp(by_size, least) * least;
}

absl::StatusOr<Manifest> MakeManifest(const ReadyPlan& plan,
                                      io::FileSystem& files,
                                      const engine::Environment& environment,
                                      engine::Instances& instances,
                                      uint32_t workers,
                                      const InnerSurvey& survey) {
  Manifest manifest;
  const std::unique_ptr<io::FileSystem> relative =
      io::MakeRelativeFileSystem(files, plan.directory);
  FileTable table(*relative, manifest);
  PENSTOCK_RETURN_IF_ERROR(
      ListFiles(plan.division.remote, *relative, table, manifest));
  const plan::Division& division = plan.division;
  PENSTOCK_RETURN_IF_ERROR(AddReceived(division.remote, survey, manifest));
  // The same files that all workers will see.
  FrozenFiles frozen(files, plan.directory, manifest);
  engine::Environment here = environment;
  here.files = &frozen;
  here.directory = plan.directory;
  here.sources = plan.captures.get();
  const bool is_counted = !division.by_worker ||
                          (division.by_worker->files && !IsEndless(division));
  if (division.is_received) {
    manifest.set_rows(BundlesOf(
        division.remote.nodes(division.source).received().distribution(),
        manifest));
  } else if (division.rows.has_value()) {
    manifest.set_rows(static_cast<uint64_t>(*division.rows));
  } else if (is_counted) {
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t rows,
                              CountRows(plan, here, instances));
    manifest.set_rows(rows);
  }
  if (division.by_worker) {
    return ByWorker(division, workers, std::move(manifest));
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
  const bool is_one_file =
      manifest.rows_per_bundle() == 1 && manifest.rows() <= kMaxCutFiles;
  if (division.records && is_one_file) {
    PENSTOCK_ASSIGN_OR_RETURN(const PlacedFiles placed,
                              FindPlacedFiles(plan, here, instances));
    for (const std::string& name : placed.names) table.Add(name);
    const uint32_t pieces = PiecesOf(placed, manifest.rows(), division);
    if (pieces > 1) manifest.set_pieces(pieces);
  }
  return manifest;
}

namespace {

// All of it, or every n-th row of a node.
absl::StatusOr<engine::RunPart> PartOfWorker(const plan::Division& division,
                                             const Manifest& manifest,
                                             uint64_t bundle,
                                             uint64_t iteration) {
  const plan::Division::ByWorker& by = *division.by_worker;
  engine::RunPart part;
  part.iteration = iteration;
  part.gives_lineage = division.needs_lineage;
  if (!by.files && !by.rows) return part;
  if (bundle >= manifest.rows()) {
    return absl::OutOfRangeError(
        absl::StrCat("bundle ", bundle, " is not one of ", manifest.rows(),
                     " workers' that the epoch has"));
  }
  part.node = manifest.is_by_file() ? by.files : by.rows;
  part.begin = static_cast<int64_t>(bundle);
  part.end = std::numeric_limits<int64_t>::max();
  part.stride = static_cast<int64_t>(manifest.rows());
  return part;
}

}  // namespace

uint64_t BundlesInPass(const Manifest& manifest) {
  return DivideUp(manifest.rows(),
                  std::max<uint64_t>(1, manifest.rows_per_bundle())) *
         std::max<uint32_t>(1, manifest.pieces());
}

absl::StatusOr<engine::RunPart> PartOfBundle(const plan::Division& division,
                                             const Manifest& manifest,
                                             uint64_t bundle,
                                             uint64_t iteration) {
  if (division.by_worker)
    return PartOfWorker(division, manifest, bundle, iteration);
  const uint64_t size = std::max<uint64_t>(1, manifest.rows_per_bundle());
  const uint64_t pieces = std::max<uint32_t>(1, manifest.pieces());
  const uint64_t each_pass = BundlesInPass(manifest);
  const uint64_t pass = each_pass == 0 ? 0 : bundle / each_pass;
  if (each_pass == 0 || (manifest.passes() != 0 && pass >= manifest.passes())) {
    return absl::OutOfRangeError(
        absl::StrCat("bundle ", bundle, " is not one of ", manifest.passes(),
                     " times ", each_pass, " that the epoch has"));
  }
  const uint64_t begin = bundle % each_pass / pieces * size;
  const uint64_t end = std::min(begin + size, manifest.rows());
  engine::RunPart part =
      engine::PartOf(division, static_cast<int64_t>(begin),
                     static_cast<int64_t>(end), pass, iteration);
  if (pieces > 1 && division.records) {
    part.pieces = static_cast<int64_t>(pieces);
    part.piece = static_cast<int64_t>(bundle % pieces);
    part.opener = division.records->opener;
  }
  return part;
}

}  // namespace penstock::service

#include "penstock/service/worker/placed_files.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "penstock/base/status.h"
#include "penstock/engine/operator.h"
#include "penstock/io/fixed_length_reader.h"
#include "penstock/service/worker/source_rows.h"

namespace penstock::service {
namespace {

constexpr int64_t kLeastPieceBytes = int64_t{256} << 10;
constexpr int64_t kMostPieceBytes = int64_t{64} << 20;
constexpr int64_t kFewPieces = 64;
constexpr int64_t kMostPieces = 4096;

// The values that the opener's function binds for each row of the source.
plan::Plan BoundValues(const plan::Division& division) {
  plan::Plan plan = SourceOf(division);
  const plan::Node& opener = division.remote.nodes(*division.records->opener);
  const plan::Function& function = opener.has_flat_map()
                                       ? opener.flat_map().function()
                                       : opener.interleave().function();
  plan::Node node;
  node.add_inputs(static_cast<uint32_t>(division.source));
  node.set_name(opener.name());
  *node.mutable_made_at() = opener.made_at();
  plan::ElementSpec::Tuple& tuple = *node.mutable_output()->mutable_tuple();
  for (const plan::TensorSpec& bound : function.dataset().bound()) {
    *tuple.add_items()->mutable_tensor() = bound;
  }
  plan::Function& values = *node.mutable_map()->mutable_function() = function;
  values.clear_dataset();
  *values.mutable_output() = node.output();
  *plan.add_nodes() = std::move(node);
  return plan;
}

// A file as the reader's values say: where, and records of which size.
absl::Status Add(const plan::ReadFiles& reader, const engine::Scope& scope,
                 io::FileSystem& files, PlacedFiles& found) {
  PENSTOCK_ASSIGN_OR_RETURN(const Column names,
                            engine::ValueOf(reader.files(), scope));
  const plan::ReadFiles::FixedLength& fixed = reader.fixed_length();
  io::FixedLengthFormat format;
  PENSTOCK_ASSIGN_OR_RETURN(
      format.record_bytes,
      engine::IntegerOf(fixed.record_bytes(), scope, "record_bytes", 1));
  PENSTOCK_ASSIGN_OR_RETURN(
      format.header_bytes,
      engine::IntegerOf(fixed.header_bytes(), scope, "header_bytes", 0));
  PENSTOCK_ASSIGN_OR_RETURN(
      format.footer_bytes,
      engine::IntegerOf(fixed.footer_bytes(), scope, "footer_bytes", 0));
  for (int64_t i = 0; i < names.RowItems(0); ++i) {
    const std::string name(names.Row<StringRef>(0)[i].view());
    const int64_t size = files.Stamp(name).size;
    const absl::StatusOr<int64_t> records =
        io::CountFixedLength(format, size, name);
    if (size < 0 || !records.ok()) {
      found.has_faults = true;
      continue;
    }
    found.names.push_back(name);
    found.bytes += size;
    found.most_bytes = std::max(found.most_bytes, size);
    found.most_records = std::max(found.most_records, *records);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PlacedFiles> FindPlacedFiles(
    const ReadyPlan& plan, const engine::Environment& environment,
    engine::Instances& instances) {
  const plan::Division::Records& records = *plan.division.records;
  PlacedFiles found;
  engine::Scope scope;
  if (!records.opener) {
    PENSTOCK_RETURN_IF_ERROR(
        Add(records.reader, scope, *environment.files, found));
    return found;
  }
  PENSTOCK_RETURN_IF_ERROR(
      ForRows(BoundValues(plan.division), plan, environment, instances,
              [&](const Chunk& chunk) -> absl::Status {
                for (int64_t row = 0; row < chunk.rows; ++row) {
                  auto bound = std::make_shared<std::vector<Column>>();
                  for (const Column& column : chunk.columns) {
                    bound->push_back(RowOf(column, row));
                  }
                  scope.bound = std::move(bound);
                  PENSTOCK_RETURN_IF_ERROR(
                      Add(records.reader, scope, *environment.files, found));
                }
                return absl::OkStatus();
              }));
  return found;
}

uint32_t PiecesOf(const PlacedFiles& files, uint64_t rows,
                  const plan::Division& division) {
  if (files.has_faults || rows == 0 || files.most_bytes == 0) return 1;
  const int64_t bytes =
      std::clamp(files.bytes / kFewPieces, kLeastPieceBytes, kMostPieceBytes);
  const int64_t least = std::max<int64_t>(1, division.least_elements);
  const int64_t most = std::min(
      {files.most_records / least, kMostPieces / static_cast<int64_t>(rows)});
  return static_cast<uint32_t>(std::clamp<int64_t>(
      (files.most_bytes + bytes - 1) / bytes, 1, std::max<int64_t>(1, most)));
}

}  // namespace penstock::service

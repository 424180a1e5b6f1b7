// What dividing a plan (divide.h) asks about single nodes, besides the facts of
// their kind.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "penstock/plan.pb.h"
#include "penstock/plan/rewrite/draft.h"

namespace penstock::plan {

// Whether it, or a dataset that its functions make, is a generator.
bool HasGenerator(const Node& node);

// Whether the datasets that its function makes read files that it is given.
bool OpensFiles(const Node& node);

bool MakesDatasets(const Node& node);

// A row for each row, and nothing is seen of others.
bool IsOneToOne(const Node& node);

// Of a node of InParts::kGroups: how many rows a group has. Unset: groups
// overlap, or rows are left out between them.
std::optional<int64_t> GroupSize(const Node& node);

// Of a node of InParts::kWindow: how many rows it holds. Unset: all.
std::optional<int64_t> WindowSize(const Node& node);

// Of a node of InParts::kWhole: what keeps it from being run in shares.
std::string WhyWhole(const Node& node);

// Whether which rows it gives depends on the order in which they come.
bool DependsOnOrder(const Node& node);

// Whether it, or a dataset inside, keys something random by rows' lineages.
bool NeedsLineage(const Node& node);

// Whether it reads records whose places follow from the size of their file.
bool HasPlacedRecords(const ReadFiles& reader);

// Of a node whose datasets give the records of one such file, each as it is or
// changed by itself: what reads them.
std::optional<ReadFiles> PlacedReaderOf(const Node& node);

// InvalidArgument, located, if a node that the root needs is none that a worker
// can run by itself: it has no generators, and writes no files.
absl::Status CheckForWorkers(const Draft& draft);

// InvalidArgument, located, if rows that are in the trainer's memory are too
// large to be sent to workers.
absl::Status CheckMemory(const Draft& draft);

// Rows as those of `like`, with the options of the plan that ends with `root`:
// what the user asked of a run holds for all parts of it.
absl::StatusOr<int> AddReceived(Draft& draft, int like, int root);

// Has all nodes, those of functions' datasets too, give rows in order: so that
// a position among them means the same in every run.
void KeepOrder(Plan& plan);

}  // namespace penstock::plan

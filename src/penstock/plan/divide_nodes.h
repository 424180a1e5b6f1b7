// What dividing a plan (divide.h) asks about single nodes, besides the facts of
// their kind.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "penstock/plan.pb.h"

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

// Has all nodes, those of functions' datasets too, give rows in order: so that
// a position among them means the same in every run.
void KeepOrder(Plan& plan);

}  // namespace penstock::plan

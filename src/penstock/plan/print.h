// A plan as text, fit for a log.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "penstock/plan.pb.h"

namespace penstock::plan {

// The operator's name as users write it: "flat_map", "TFRecordDataset".
std::string OpName(const Node& node);

// The node's name in messages and tables: its own if it has one, else the
// operator and the node's number, "map_2".
std::string NodeName(const Plan& plan, int node);

// The operator's parameters in a few words: "size=64, drop_remainder".
std::string Detail(const Node& node);

// One line per node, root first, inputs indented below it:
//   batch_3(size=2)  -> int64(None,)  [3]  train.py:12
//     map_2(f)       -> int64()       [5]  train.py:11
// The dataset that a function makes stands below its node, its names led by the
// node's: "flat_map_1/range_0".
std::string Print(const Plan& plan);

// What errors say of a node, below their message:
//   at node "map_2", made at train.py:31
std::string LineOfNode(absl::string_view name, const Location& made_at);

// Adds node and user's line to an error's message:
//   at node "map_2", made at train.py:31
absl::Status Located(const absl::Status& status, const Plan& plan, int node);

// The same error with `line` below its message; payloads stay.
absl::Status WithLine(const absl::Status& status, absl::string_view line);

}  // namespace penstock::plan

// A node done elsewhere in its chain, as if it had been written there. By what
// was seen of it: how many rows it gives for one, and how large they are.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "penstock/tuner/model.h"

namespace penstock::tuner {

// Has the node at one place run right before that at another, or last of all.
// Whoever it goes past has as many more or fewer rows as it leaves in or out,
// and they are larger or smaller as it makes them: functions cost by their
// rows, what hands rows on by its bytes. Past a batch its rows are others, and
// its work is the same. Places of nodes change. InvalidArgument where the two
// have no chain between them, rows would be others than those that the node
// knows, or rows are kept there, so that nobody saw what they cost.
absl::Status Move(Model& model, int node, std::optional<int> before);

}  // namespace penstock::tuner

// How large a data set is, and how large what a node makes of it would be in a
// cache: estimated from the part that was read.
#pragma once

#include <optional>

#include "penstock/snapshot.pb.h"
#include "penstock/tuner/model.h"

namespace penstock::tuner {

// A middle between two ends, two standard errors away.
struct Size {
  double low = 0;
  double middle = 0;
  // Unset: too little was seen to say.
  std::optional<double> high;
};

// Bytes of all files, from the sizes of those that were read to their end, less
// what sampling without replacement cannot be wrong about. Nothing if the
// number of files is not known and nor is their size.
std::optional<Size> FileBytes(const plan::FileCounts& files);

struct RowsAndBytes {
  Size rows;
  Size bytes;
};

// All rows that a node gives in one epoch, and their bytes in memory. Nothing
// if it has no end, did not run in the windows, or its sources are unknown.
std::optional<RowsAndBytes> SizeAfter(const Model& model, int place);

}  // namespace penstock::tuner

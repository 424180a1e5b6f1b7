// Cache in a file: the first whole pass is written to FILENAME.penstock, and
// every later one, of any process, reads that in place of the input.
//
// The file has TFRecords, each an encoded chunk (data/encode.h). It is written
// under another name and renamed when it is whole; FILENAME.lock is locked
// meanwhile, by the system, so that a writer that dies does not keep it.
//
// With `in_shares`, a run of a share (RunPart.kept_by) has a file of its own,
// FILENAME.<a word for the share>.penstock, with the rows' lineages: what comes
// after sees no difference. Where another computes the same share just now,
// this one keeps nothing.
//
//   Order        that of the input
//   Cardinality  that of the input
//   Memory       rows on their way to the file, a few MiB
//   Threads      one caller at a time; files are written on I/O threads
//   Checkpoint   rows given: restored before the file is whole, it begins again
//   Errors       the input's, and then nothing is kept; AlreadyExists if
//   another
//                iterator is writing the file
//   Knobs        none
#pragma once

#include "penstock/engine/operator.h"

namespace penstock::engine {

// `finite_rows` as for MakeCache().
OperatorOr MakeFileCache(const plan::Cache& spec,
                         std::optional<int64_t> finite_rows, OperatorPtr input,
                         OpContext& context);

}  // namespace penstock::engine

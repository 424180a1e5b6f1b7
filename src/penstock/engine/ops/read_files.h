// ReadFiles: the records of files, one file after another (TextLineDataset,
// TFRecordDataset, FixedLengthRecordDataset).
//
//   Order        files as given, records as they lie in them
//   Cardinality  unknown
//   Memory       a few blocks of read-ahead; records are views into them. Files
//                after the one that is read are opened, and begin to be read:
//                one, or as many as reads may be under way if they are small
//   Threads      one caller at a time; storage is waited for by I/O threads
//   Checkpoint   file ordinal and byte offset
//   Errors       at the record: damaged or truncated (DataLoss); at the file:
//                missing, a directory, no permission; then the next file
//   Knobs        buffer_bytes, read_depth, read_bytes
#pragma once

#include "penstock/engine/operator.h"

namespace penstock::engine {

OperatorOr MakeReadFiles(const plan::ReadFiles& spec, OpContext& context);

}  // namespace penstock::engine

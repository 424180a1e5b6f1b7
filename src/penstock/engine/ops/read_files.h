// ReadFiles: the records of files, one file after another (TextLineDataset,
// TFRecordDataset, FixedLengthRecordDataset).
//
//   Order        files as given, records as they lie in them
//   Cardinality  unknown
//   Memory       a few blocks of read-ahead; records are views into them
//   Threads      one caller at a time; storage is waited for by I/O threads
//   Checkpoint   file ordinal and byte offset
//   Errors       at the record: damaged or truncated (DataLoss); at the file:
//                missing, a directory, no permission; then the next file
//   Knobs        buffer_bytes
#pragma once

#include "penstock/engine/operator.h"

namespace penstock::engine {

OperatorOr MakeReadFiles(const plan::ReadFiles& spec, OpContext& context);

}  // namespace penstock::engine

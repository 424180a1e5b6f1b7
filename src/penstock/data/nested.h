// Datasets inside elements: runs of rows as strings, and back.
#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/data/chunk.h"
#include "penstock/data/column.h"

namespace penstock {

// One scalar string per chunk, each the encoded chunk (encode.h), all in memory
// of the column's own. Equal rows give equal strings.
Column EncodeNested(absl::Span<const Chunk> chunks);

// The rows in a column of one such string; no copy where it is aligned.
absl::StatusOr<Chunk> DecodeNested(const Column& rows);

}  // namespace penstock

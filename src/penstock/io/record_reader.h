// Records from files: what all readers have in common.
//
// A reader turns the bytes of one file into records, in order, for one caller.
// Everything that can go wrong has a place in that order: an error takes the
// place of a record, records before it are returned first, and records after it
// follow if the format lets them be found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "penstock/io/block.h"
#include "penstock/io/byte_stream.h"

namespace penstock::io {

// A place between two records; the default is the start of the file. Valid for
// as long as the file does not change.
struct RecordPosition {
  int64_t byte_offset = 0;  // of the next record, in decoded bytes
  int64_t ordinal = 0;      // of the next record; errors count as records
  bool is_end = false;      // there is no next record

  friend bool operator==(const RecordPosition&,
                         const RecordPosition&) = default;
};

struct RecordBatch {
  // Lie in the memory of `blocks`.
  std::vector<std::string_view> records;
  std::vector<Block> blocks;
  // If not OK, what stands in place of the record after `records`.
  absl::Status error;

  // Empties the batch but keeps the room for its views.
  void Clear() {
    records.clear();
    blocks.clear();
    error = absl::OkStatus();
  }
};

enum class ReadState {
  kReady,  // the batch holds at least one record or an error
  kWait,   // the batch is empty; `wake` will be called
  kEnd,    // the batch is empty, and will stay so
};

// One caller at a time.
class RecordReader {
 public:
  virtual ~RecordReader() = default;

  // Replaces the contents of `batch` by up to `max_records` records (at
  // least 1) that are here already; never waits, not even to fill the batch.
  // `wake` is as in ByteStream::Next: called once after kWait, and only then.
  //
  // A record inside one block is a view into that block; one that crosses an
  // edge is put together once, in a block of its own. A batch spans little more
  // than one block, so large records come in small batches.
  virtual ReadState Next(size_t max_records, std::function<void()> wake,
                         RecordBatch& batch) = 0;

  // After the last record or error returned. A reader of the same file opened
  // there returns what this one would return next.
  virtual RecordPosition position() const = 0;
};

struct RecordReaderOptions {
  ByteStreamOptions stream;
  Compression compression = Compression::kNone;
  // Plain files seek there; compressed ones decode and discard. A position at
  // the end does not open the file at all.
  RecordPosition start;
  // A longer record is an error, and the last thing the reader returns.
  size_t max_record_bytes = size_t{2} << 30;
};

}  // namespace penstock::io

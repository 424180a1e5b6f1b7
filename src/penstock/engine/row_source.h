// Rows that somebody else makes: the engine's door to Python generators.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "penstock/data/chunk.h"
#include "penstock/engine/stream.h"

namespace penstock::engine {

// One run of such a source. One caller at a time; dropping it ends the run.
class RowSource {
 public:
  virtual ~RowSource() = default;
  // At most request.max_rows rows. Asking again after a blocked answer asks
  // for no more rows than before.
  virtual absl::StatusOr<Pull> Next(const Request& request) = 0;
};

// Thread-safe.
class RowSources {
 public:
  virtual ~RowSources() = default;
  // Starts source `capture` anew with `args`, one row (or no columns).
  virtual absl::StatusOr<std::unique_ptr<RowSource>> Open(
      const std::string& capture, const Chunk& args) = 0;
  // The bytes of a captured array: an encoded chunk.
  virtual absl::StatusOr<Buffer> Capture(const std::string& id) = 0;
};

}  // namespace penstock::engine

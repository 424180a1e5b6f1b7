// Rows that other engines compute: the engine's door to where they arrive.
#pragma once

#include "penstock/engine/operator.h"
#include "penstock/plan.pb.h"

namespace penstock::engine {

// Thread-safe.
class Receiver {
 public:
  virtual ~Receiver() = default;
  // One pass over the rows that `spec` stands for, as a stream like any other:
  // it saves where it is and can be restored there. It counts time alone, since
  // the node counts the rows (Stream::Counts). `scope.iteration` says
  // which pass: that which the shares are to be run with (RunPart). Rows have a
  // lineage if the run needs one.
  virtual StreamOr Start(const plan::Received& spec, const Scope& scope,
                         const OpInfo& info) = 0;
};

}  // namespace penstock::engine

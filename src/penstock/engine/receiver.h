// Rows that other engines compute: the engine's door to where they arrive.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "penstock/engine/operator.h"
#include "penstock/plan.pb.h"
#include "penstock/report.pb.h"

namespace penstock::engine {

// What one iterator receives. Thread-safe.
//
// Rows come in an order of their own, which no state can foretell. So what a
// stream saves is a place in a journal of what was given, and a state goes out
// with as much of the journal as it needs to give the same rows once more:
// Seal() finds the places that a state names.
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

  // When a state is saved: written into it, and found there by Seal().
  virtual std::string Mark() { return ""; }

  // What a state needs besides itself, as of now: all rows that were given
  // since it was saved come again in their order. `ticket` names it.
  struct Seal {
    std::string journal;
    uint64_t ticket = 0;
  };
  virtual Seal SealState(std::string_view /*state*/) { return {}; }
  // Before any stream is started: goes on from there. `is_recovery`: whoever
  // had the state is still there, and has lost nothing but its engine.
  virtual absl::Status Restore(std::string_view /*journal*/,
                               bool /*is_recovery*/) {
    return absl::OkStatus();
  }

  // All streams are where the state was: what takes a while may begin.
  virtual void OnRestored() {}

  // The trainer has got to the state of that ticket, and will not go back but
  // by a checkpoint.
  virtual void OnTaken(uint64_t /*ticket*/) {}
  // It wants nothing more, having had `rows` rows after the state of that
  // ticket: others may have the rest.
  virtual void OnLeft(uint64_t /*ticket*/, uint64_t /*rows*/) {}
  // It has had all that the iterator gives.
  virtual void OnEnded() {}

  // What would spare those who compute the rows some work.
  virtual std::vector<plan::Offer> Offers() { return {}; }
};

}  // namespace penstock::engine

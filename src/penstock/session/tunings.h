// What tuning has found while pipelines ran, by pipeline: the next epoch begins
// with it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "penstock/knobs.pb.h"
#include "penstock/tuner/online.h"

namespace penstock::session {

struct Tuning {
  explicit Tuning(const tuner::OnlineOptions& options) : online(options) {}

  tuner::Online online;
  plan::Knobs knobs;            // chosen so far
  std::deque<std::string> log;  // what was decided, newest last; bounded

  void Note(std::string line);
};

// Keeps the last few. One iterator of a pipeline is tuned at a time: whoever
// holds its Tuning.
class Tunings final {
 public:
  // Null if another iterator of the pipeline is being tuned.
  std::shared_ptr<Tuning> Begin(const std::string& fingerprint,
                                const tuner::OnlineOptions& options);
  // What was found for a pipeline, if anything.
  const Tuning* Find(const std::string& fingerprint) const;

 private:
  struct Entry {
    std::shared_ptr<Tuning> tuning;
    uint64_t used = 0;
  };

  std::map<std::string, Entry> entries_;
  uint64_t uses_ = 0;
};

}  // namespace penstock::session

// What limits a pipeline, why we think so, and what to do: as data, which
// others show.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/knobs.pb.h"
#include "penstock/tuner/bound.h"
#include "penstock/tuner/choose.h"
#include "penstock/tuner/model.h"

namespace penstock::tuner {

// A line of the table of resources.
struct Evidence {
  std::string what;     // "cores", "map_2: tasks", "disk bytes"
  double used = 0;      // a second, as measured
  double capacity = 0;  // a second
  double rate = 0;      // what X it allows
};

// A line of the table of nodes.
struct NodeEvidence {
  int node = -1;             // place
  double cpu_share = 0;      // of all CPU
  double rate_per_core = 0;  // root elements; 0: costs nothing
  double visits = 0;
  double row_bytes = 0;
  double tasks_useful = 0;  // mean at work
  int64_t tasks = 1;
  double service_p50_ns = 0;
  double service_p99_ns = 0;
  double cpu_error = 0;  // relative, of its CPU
};

// Something to do, the best first.
struct Fix {
  std::string title;  // "set parallelism of map_2 to 4"
  std::string why;
  Interval expected;  // X after it
  // What to put in force. Empty if the program must change.
  plan::Knobs knobs;
  std::vector<Setting> settings;
  bool needs_the_user = false;
};

struct Diagnosis {
  // "input-bound: the consumer waits 71 % of its time; …"
  std::string sentence;
  bool is_input_bound = false;
  Limit wall;
  // The user's cache whose file is what the wall is about, or -1.
  int read_back = -1;
  Interval possible;  // X with the knobs as they are
  double measured = 0;
  // What comes after the wall, and by how much X rises until there.
  Limit next_wall;
  double next_wall_gain = 0;
  std::vector<Evidence> evidence;
  std::vector<NodeEvidence> nodes;  // costliest first
  std::vector<Fix> fixes;
  std::vector<std::string> notes;  // what is odd, and what the model cannot see
  double unattributed_share = 0;   // of all CPU
  Choice choice;
};

absl::StatusOr<Diagnosis> Diagnose(const Model& model,
                                   const Budget& budget = {});

}  // namespace penstock::tuner

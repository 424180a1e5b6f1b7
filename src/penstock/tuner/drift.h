// What elements cost, remembered: has it moved since?
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/tuner/model.h"

namespace penstock::tuner {

struct NodeDemand {
  uint32_t id = 0;
  std::string name;
  Estimate busy;
  Estimate cpu;
  Estimate read_time;
};

struct Demands {
  std::vector<NodeDemand> nodes;
  Estimate consumer_time;
  Estimate rate;
  double cores = 0;       // there are
  double used_cores = 0;  // were used
};

Demands DemandsOf(const Model& model);

enum class Moved {
  kNot,
  // Others use the cores: elements cost as much CPU as before, but tasks take
  // longer for it, and fewer cores were had.
  kCrowded,
  kDrifted,  // elements cost something else, or the consumer does
};

struct Movement {
  Moved moved = Moved::kNot;
  std::string what;  // of a drift: "cpu of decode: 1.2 ms, not 0.8"
};

// Moves of more than three standard errors and a sixth, of what makes up a
// twentieth of all; time that tasks spend waiting for cores is no demand.
Movement Compare(const Demands& before, const Demands& now);

}  // namespace penstock::tuner

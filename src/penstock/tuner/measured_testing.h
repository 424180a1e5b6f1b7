// A small language for tests: runs that were never run, as their snapshots.
//
//   const Model model = ModelOf({.nodes = {Source(), Map("decode", 1e-3),
//                                          Batch(64)},
//                                .cores = 8, .rate = 15});
//
// A test says how fast the run was and what a row costs; counters follow.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "penstock/snapshot.pb.h"
#include "penstock/tuner/model.h"

namespace penstock::tuner {

struct TestNode {
  std::string name;
  plan::Node::OpCase op = plan::Node::kMap;
  // Rows per root element.
  double visits = 64;
  // Of a row, on a core of its own.
  double cpu_seconds = 0;
  // Cores that a task uses while it is at work.
  double cores_per_task = 1;
  double row_bytes = 1000;
  double rows_per_chunk = 16;
  int64_t parallelism = 1;
  bool is_sequential = false;
  bool keeps_order = true;
  bool is_random = false;
  bool is_python = false;
  bool is_declared_pure = false;
  bool is_serialized = false;  // all its tasks seem at work, one is
  std::optional<uint32_t> stage;
  std::optional<uint32_t> inside;
  std::optional<std::vector<uint32_t>> inputs;  // unset: the node before
  std::optional<int64_t> cardinality;
  bool is_infinite = false;
  // Of rows' service time: a share takes so many times as long as the others.
  double slow_share = 0;
  double slow_factor = 1;
  double read_bytes = 0;    // per row
  double read_seconds = 0;  // per row
  int64_t read_depth = 0;
  int64_t read_sources = 1;
  double reads_per_row = 1;
  double wait_input_share = 0;  // of the wall time
  std::optional<plan::FileCounts> files;
  std::optional<plan::CacheCounts> cache;
  int64_t reorder_rows = 0;
  int64_t buffer_rows = 0;
  plan::Chooser chosen_by = plan::TUNER;
};

struct TestRun {
  std::vector<TestNode> nodes;  // the last is the root
  double cores = 2;
  double rate = 10;  // root elements a second
  double memory_bytes = 16e9;
  double resident_bytes = 100e6;
  std::optional<double> disk_bytes_per_second;
  std::optional<double> disk_free_bytes;
  // As if it had been measured, with reads of 256 KiB.
  std::optional<DiskLaw> disk;
  std::optional<double> kept_bytes_per_second;
  std::optional<double> memory_bytes_per_second;
  std::optional<double> consumer_seconds;
  double consumer_cv = 0;
  double consumer_wait_share = 0.5;
  std::optional<int64_t> output_rows;
  double unattributed_seconds = 0;  // per root element
  // Nodes without a stage run on their own; else nobody says who runs whom.
  bool has_stages = true;
  int windows = 3;
  // Of each window's counts: alternating, as a share.
  double noise = 0;
  // Tasks that want cores which others have: wall time is this much longer.
  double preemption = 1;
  // Used by other processes; unset: nobody looked.
  std::optional<double> other_cores;
};

TestNode Source(double row_bytes = 1000, double visits = 64);
TestNode Map(const std::string& name, double cpu_seconds,
             double row_bytes = 1000, double visits = 64);
TestNode Batch(int64_t size = 64, double row_bytes = 64'000);

std::vector<plan::Snapshot> SnapshotsOf(const TestRun& run);
Model ModelOf(const TestRun& run);  // ends the test if there is none

// The place of the node with this name.
int PlaceOf(const Model& model, const std::string& name);

}  // namespace penstock::tuner

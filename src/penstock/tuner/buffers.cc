#include "penstock/tuner/buffers.h"

#include <algorithm>
#include <cmath>

#include "penstock/tuner/bound.h"

namespace penstock::tuner {
namespace {

constexpr double kMaxUtilisation = 0.95;
constexpr double kMaxCv = 10;
constexpr double kWindowLoss = 0.05;

}  // namespace

int64_t BufferRows(double utilisation, double producer_cv, double consumer_cv) {
  const double u = std::clamp(utilisation, 0.0, kMaxUtilisation);
  const double a = std::clamp(producer_cv, 0.0, kMaxCv);
  const double s = std::clamp(consumer_cv, 0.0, kMaxCv);
  const double rows = u * u / (1 - u) * (a * a + s * s) / 2;
  return std::max<int64_t>(2, static_cast<int64_t>(std::ceil(rows - 1e-9)));
}

int64_t HandOverRows(double rate) {
  const double rows = std::clamp(100 * kWakeSeconds * rate, 2.0, 1e6);
  return static_cast<int64_t>(std::ceil(rows - 1e-9));
}

int64_t OutputRows(const Model& model, double producer) {
  const Resources& resources = model.resources;
  if (!resources.consumer_time || resources.consumer_time->value <= 0) {
    return 2;
  }
  const double consumer = 1 / resources.consumer_time->value;
  const double slower = std::min(consumer, producer);
  const double faster = std::max(consumer, producer);
  // A root element of many rows evens out what single rows vary.
  double variance = 0;
  for (const NodeModel& node : model.nodes) {
    variance = std::max(variance, node.service_cv * node.service_cv /
                                      std::max(1.0, node.visits));
  }
  const int64_t rows = BufferRows(faster > 0 ? slower / faster : 0,
                                  std::sqrt(variance), resources.consumer_cv);
  if (consumer >= producer) return rows;
  // A consumer that takes n at once and then pauses has a squared variation of
  // n - 1: all of them are to be ready after its pause.
  const double cv = std::min(resources.consumer_cv, kMaxCv);
  return std::max(rows, static_cast<int64_t>(std::ceil(1 + cv * cv)));
}

double ChunksHandedOver(const NodeModel& node) {
  if (!node.hands_over) return 0;
  if (node.buffer_rows <= 0) return node.chunks;
  // Of two chunks one is taken while the other is made; of more, some are
  // taken without a wait.
  const double held =
      static_cast<double>(node.buffer_rows) / RowsPerChunk(node);
  return node.chunks / std::max(1.0, held / 2);
}

double HandOverCpu(const NodeModel& node, const Resources& resources) {
  const double each =
      node.buffer_rows > 0 ? resources.wake : resources.task_handoff;
  return each * ChunksHandedOver(node);
}

double HandOverCpu(const Model& model) {
  double cpu = 0;
  for (const NodeModel& node : model.nodes) {
    cpu += HandOverCpu(node, model.resources);
  }
  return cpu;
}

double RowsPerChunk(const NodeModel& node) {
  return node.chunks > 0 ? std::max(1.0, node.visits / node.chunks) : 1;
}

double OwnWindowRows(int64_t tasks, double rows_per_chunk) {
  return 2 * static_cast<double>(tasks) * std::clamp(rows_per_chunk, 1.0, 1e9);
}

int64_t ReorderRows(const plan::Histogram& service_ns, int64_t tasks,
                    double work, double rows_per_chunk, int64_t most) {
  const double needed =
      std::min(static_cast<double>(tasks), work / (1 - 2 * kWindowLoss));
  double rows = OwnWindowRows(tasks, rows_per_chunk);
  while (rows < static_cast<double>(most) &&
         TasksInWindow(service_ns, static_cast<double>(tasks), rows) <
             (1 - kWindowLoss) * needed) {
    rows *= 2;
  }
  return std::max<int64_t>(
      tasks, static_cast<int64_t>(std::min(rows, static_cast<double>(most))));
}

}  // namespace penstock::tuner

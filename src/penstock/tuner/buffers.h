// How many rows are worth keeping ready, and how wide an ordered window must
// be: by variance, not by habit.
#pragma once

#include <cstdint>

#include "penstock/tuner/model.h"

namespace penstock::tuner {

// Rows that a buffer between two stages needs so that neither often waits for
// the other: the queue of a shared server at this utilisation,
// u^2 / (1 - u) (ca^2 + cs^2) / 2, rounded up, at least 2.
//   utilisation  the slower rate's share of the faster, taken as 0.95 at most
//   producer_cv, consumer_cv  of the times between rows
int64_t BufferRows(double utilisation, double producer_cv, double consumer_cv);

// Rows that it needs so that threads wake each other for less than 1 % of the
// time, at `rate` rows a second; at least 2.
int64_t HandOverRows(double rate);

// The first for what is ready for the consumer, if the pipeline can give
// `producer` root elements a second; for one that is slower than that, also as
// many as it takes at once.
int64_t OutputRows(const Model& model, double producer);

// Of a node, on average; at least 1.
double RowsPerChunk(const NodeModel& node);

// Chunks for which another thread has to be told, per root element: of a deep
// buffer not each. 0 where nothing is handed over.
double ChunksHandedOver(const NodeModel& node);

// What a chunk for a task costs, of what waking a thread does: where it matters
// what it costs, all threads are awake.
inline constexpr double kWakesForTask = 0.125;

// Core-seconds per root element for those; and of all nodes.
double HandOverCpu(const NodeModel& node, const Resources& resources);
double HandOverCpu(const Model& model);

// Rows of the window that an engine gives `tasks` tasks by itself: each has a
// chunk under way and another to begin.
double OwnWindowRows(int64_t tasks, double rows_per_chunk);

// The least rows of an ordered window in which `tasks` tasks lose at most 5 %
// to rows that take long, or `most`. Where less is to do, so that `work` of
// them are busy, they may lose what they have no use for.
int64_t ReorderRows(const plan::Histogram& service_ns, int64_t tasks,
                    double work, double rows_per_chunk, int64_t most);

}  // namespace penstock::tuner

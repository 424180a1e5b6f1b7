#include "penstock/service/dispatcher/work_table.h"

#include <algorithm>

namespace penstock::service {
namespace {

void Add(const Padding& from, Padding& to) {
  to.set_batches(to.batches() + from.batches());
  to.set_items(to.items() + from.items());
  to.set_padded_items(to.padded_items() + from.padded_items());
  // Most are the same at all workers.
  to.set_shapes(std::max(to.shapes(), from.shapes()));
}

void Add(const Work& from, Work& to) {
  to.set_bundles(to.bundles() + from.bundles());
  to.set_bundles_in_pass(
      std::max(to.bundles_in_pass(), from.bundles_in_pass()));
  to.set_cpu_ns(to.cpu_ns() + from.cpu_ns());
  for (int i = 0; i < from.places_size(); ++i) {
    if (i >= to.places_size()) {
      *to.add_places() = from.places(i);
      continue;
    }
    Work::Place& place = *to.mutable_places(i);
    place.set_cpu_ns(place.cpu_ns() + from.places(i).cpu_ns());
    place.set_bytes(place.bytes() + from.places(i).bytes());
    place.set_bytes_squared(place.bytes_squared() +
                            from.places(i).bytes_squared());
  }
  if (from.has_padding()) Add(from.padding(), *to.mutable_padding());
}

}  // namespace

void WorkTable::Take(uint64_t worker, const Work& work) {
  std::map<Pass, ByWorker>& passes = runs_[work.run()];
  passes[{work.epoch(), work.iteration(), work.pass()}][worker] = work;
  if (passes.size() > kMaxPasses) passes.erase(passes.begin());
  // Numbers of runs rise.
  if (runs_.size() > kMaxRuns) runs_.erase(runs_.begin());
}

std::map<WorkTable::Pass, Work> WorkTable::Of(uint64_t run) const {
  std::map<Pass, Work> sums;
  const auto found = runs_.find(run);
  if (found == runs_.end()) return sums;
  for (const auto& [pass, by_worker] : found->second) {
    Work& sum = sums[pass];
    for (const auto& [worker, work] : by_worker) Add(work, sum);
  }
  return sums;
}

std::set<uint64_t> WorkTable::runs() const {
  std::set<uint64_t> runs;
  for (const auto& [run, passes] : runs_) runs.insert(run);
  return runs;
}

}  // namespace penstock::service

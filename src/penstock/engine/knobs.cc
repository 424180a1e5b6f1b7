#include "penstock/engine/knobs.h"

#include <limits>

#include "penstock/engine/pipeline.h"

namespace penstock::engine {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

int64_t Chosen(bool is_set, const plan::Knob& knob) {
  return is_set && knob.chosen_by() != plan::USER ? knob.value() : 0;
}

int64_t KeepBytes(const plan::NodeKnobs& knobs) {
  if (!knobs.has_cache()) return 0;
  return knobs.cache().has_max_bytes() ? knobs.cache().max_bytes()
                                       : std::numeric_limits<int64_t>::max();
}

void Report(const std::atomic<int64_t>& knob, plan::NodeKnobs& node,
            plan::Knob* (plan::NodeKnobs::*mutable_knob)()) {
  const int64_t value = knob.load(kRelaxed);
  if (value <= 0) return;
  plan::Knob* out = (node.*mutable_knob)();
  out->set_value(value);
  out->set_chosen_by(plan::TUNER);
}

bool HasAny(const plan::NodeKnobs& node) {
  return node.has_parallelism() || node.has_reorder_rows() ||
         node.has_buffer_rows() || node.has_read_depth() ||
         node.has_read_bytes() || node.has_cache();
}

}  // namespace

void SetKnobs(const plan::Knobs& knobs, Run& run) {
  for (size_t id = 0; id < run.knobs.size(); ++id) {
    const auto it = knobs.nodes().find(static_cast<uint32_t>(id));
    const plan::NodeKnobs from =
        it == knobs.nodes().end() ? plan::NodeKnobs() : it->second;
    NodeKnobs& to = run.knobs[id];
    to.parallelism.store(Chosen(from.has_parallelism(), from.parallelism()),
                         kRelaxed);
    to.reorder_rows.store(Chosen(from.has_reorder_rows(), from.reorder_rows()),
                          kRelaxed);
    to.read_depth.store(Chosen(from.has_read_depth(), from.read_depth()),
                        kRelaxed);
    to.read_bytes.store(Chosen(from.has_read_bytes(), from.read_bytes()),
                        kRelaxed);
    to.keeps_on_disk.store(from.cache().tier() == plan::DISK, kRelaxed);
    to.keep_bytes.store(KeepBytes(from), kRelaxed);
    if (run.options.is_row_exact) continue;
    to.buffer_rows.store(Chosen(from.has_buffer_rows(), from.buffer_rows()),
                         kRelaxed);
  }
}

plan::Knobs KnobsInForce(const Run& run) {
  const auto& pipeline = *static_cast<const Pipeline*>(run.pipeline.get());
  plan::Knobs knobs;
  for (size_t id = 0; id < run.knobs.size(); ++id) {
    plan::NodeKnobs node = pipeline.ops()[id].pinned;
    const NodeKnobs& from = run.knobs[id];
    Report(from.parallelism, node, &plan::NodeKnobs::mutable_parallelism);
    Report(from.reorder_rows, node, &plan::NodeKnobs::mutable_reorder_rows);
    Report(from.buffer_rows, node, &plan::NodeKnobs::mutable_buffer_rows);
    Report(from.read_depth, node, &plan::NodeKnobs::mutable_read_depth);
    Report(from.read_bytes, node, &plan::NodeKnobs::mutable_read_bytes);
    if (const int64_t bytes = from.keep_bytes.load(kRelaxed); bytes > 0) {
      plan::CacheKnob* cache = node.mutable_cache();
      cache->set_tier(from.keeps_on_disk.load(kRelaxed) ? plan::DISK
                                                        : plan::MEMORY);
      cache->set_chosen_by(plan::TUNER);
      cache->set_max_bytes(bytes);
    }
    if (HasAny(node))
      (*knobs.mutable_nodes())[static_cast<uint32_t>(id)] = node;
  }
  return knobs;
}

}  // namespace penstock::engine

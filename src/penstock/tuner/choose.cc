#include "penstock/tuner/choose.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "penstock/base/status.h"
#include "penstock/tuner/buffers.h"
#include "penstock/tuner/number_text.h"
#include "penstock/tuner/what_if.h"

namespace penstock::tuner {
namespace {

constexpr double kUtilisation = 0.8;  // of a task
constexpr int64_t kMaxWindowRows = 1 << 16;
// Where no limit of memory is known, what windows and buffers may hold.
constexpr double kUnknownMemory = 256e6;
// Shares of the memory that one window or buffer may hold.
constexpr double kWindowShare = 0.1;
constexpr double kBufferShare = 0.25;
// Rows that go by faster are best still in the processor's cache when they are
// taken, so a buffer of them holds no more than what is near a core does; of
// large ones a few, as long as they are in any cache.
constexpr double kFastBytes = 1e9;  // a second
constexpr double kNearBytes = 4e6;
constexpr double kCachedBytes = 16e6;
constexpr double kFewRows = 4;
// Of all memory, for what the rest was thought too small.
constexpr double kMarginBesideCache = 0.1;
// Of what a cache would hold, for which buffers are made the least.
constexpr double kWorthBuffers = 0.02;
// What reads of many files may hold, and how near to the best they need to be.
constexpr double kMostForReads = 512e6;
constexpr double kSecondsOfReads = 2;  // until each file had its turn
constexpr double kNearly = 0.95;
constexpr double kWorthLarger = 1.05;
// A chunk that takes fewer hand-overs' time is better computed by its puller.
constexpr double kWorthHandoffs = 10;
constexpr int kMaxSpread = 16;  // nodes
constexpr double kLeastSpreadGain = 1.03;

// What the closed form gives one node.
struct NodeChoice {
  int64_t tasks = 1;
  int64_t reads = 0;       // of each source
  int64_t read_bytes = 0;  // 0: as it is
  int64_t window = 0;
  int64_t buffer = 0;
  std::string why_tasks;
};

struct Draft {
  std::vector<NodeChoice> nodes;
  int64_t output_rows = 2;
};

// As the knob counts: of each source.
int64_t ReadsNow(const NodeModel& node) {
  return (node.read_depth + node.read_sources - 1) / node.read_sources;
}

bool IsUsers(const plan::Knob& knob) { return knob.chosen_by() == plan::USER; }

class Chooser final {
 public:
  Chooser(const Model& model, double memory) : model_(model), memory_(memory) {}

  Draft Make() const {
    const Bound free = FindBound(model_, KnobsAre::kFree);
    // A node's tasks also do what is inside its function.
    std::vector<double> inside(model_.nodes.size(), 0);
    for (size_t i = 0; i < model_.nodes.size(); ++i) {
      const NodeModel& node = model_.nodes[i];
      if (node.inside >= 0) inside[node.inside] += node.busy.value + inside[i];
    }
    Draft draft;
    for (size_t i = 0; i < model_.nodes.size(); ++i) {
      draft.nodes.push_back(ForNode(i, free.rate.middle, inside[i]));
    }
    double producer = kUnlimitedRate;
    for (const Limit& limit : free.limits) {
      if (limit.wall != Wall::kConsumer) {
        producer = std::min(producer, limit.rate);
      }
    }
    const Measured& root = model_.measured->back();
    draft.output_rows =
        std::min(OutputRows(model_, producer),
                 RowsWithin(std::max(root.row_bytes, root.largest_row_bytes),
                            kBufferShare));
    return draft;
  }

  // Bytes that tasks, windows and buffers hold.
  double MemoryOf(const Draft& draft) const {
    const Measured& root = model_.measured->back();
    double bytes = static_cast<double>(draft.output_rows) * root.row_bytes;
    for (size_t i = 0; i < draft.nodes.size(); ++i) {
      const NodeModel& node = model_.nodes[i];
      const Measured& measured = (*model_.measured)[i];
      const NodeChoice& choice = draft.nodes[i];
      if (node.is_cached) continue;
      const double chunk = std::max(measured.largest_row_bytes,
                                    RowsPerChunk(node) * measured.row_bytes);
      bytes += static_cast<double>(choice.tasks) * chunk;
      bytes += static_cast<double>(choice.window + choice.buffer) *
               measured.row_bytes;
      bytes += static_cast<double>(choice.read_bytes) *
               static_cast<double>(choice.reads * node.read_sources);
    }
    return bytes;
  }

  // The knobs as they are.
  Draft Now() const {
    Draft draft;
    for (const NodeModel& node : model_.nodes) {
      draft.nodes.push_back({node.parallelism, ReadsNow(node), 0,
                             node.keeps_order ? node.reorder_rows : 0,
                             node.buffer_rows, ""});
    }
    draft.output_rows = model_.resources.output_rows.value_or(0);
    return draft;
  }

  // Buffers are the least that they can be.
  void ShrinkBuffers(Draft& draft) const {
    if (!model_.resources.is_output_pinned) {
      draft.output_rows = std::min<int64_t>(1, draft.output_rows);
    }
    for (size_t i = 0; i < draft.nodes.size(); ++i) {
      if (IsUsers((*model_.measured)[i].knobs.buffer_rows())) continue;
      draft.nodes[i].buffer = std::min<int64_t>(1, draft.nodes[i].buffer);
    }
  }

  // Makes the draft smaller until it holds at most `bytes`: buffers and windows
  // by halves, then tasks. False if the least is still too much.
  bool Shrink(Draft& draft, double bytes) const {
    while (MemoryOf(draft) > bytes) {
      bool is_smaller = false;
      if (draft.output_rows > 1 && !model_.resources.is_output_pinned) {
        draft.output_rows /= 2;
        is_smaller = true;
      }
      for (size_t i = 0; i < draft.nodes.size(); ++i) {
        NodeChoice& choice = draft.nodes[i];
        const plan::NodeKnobs& knobs = (*model_.measured)[i].knobs;
        if (choice.buffer > 1 && !IsUsers(knobs.buffer_rows())) {
          choice.buffer /= 2;
          is_smaller = true;
        }
        if (choice.window > choice.tasks && !IsUsers(knobs.reorder_rows())) {
          choice.window = std::max(choice.tasks, choice.window / 2);
          is_smaller = true;
        }
      }
      if (is_smaller) continue;
      for (size_t i = 0; i < draft.nodes.size(); ++i) {
        NodeChoice& choice = draft.nodes[i];
        if (choice.tasks > 1 && !model_.nodes[i].is_pinned) {
          choice.tasks = (choice.tasks + 1) / 2;
          choice.why_tasks = "as many as memory allows";
          is_smaller = true;
        }
      }
      if (!is_smaller) return false;
    }
    return true;
  }

 private:
  // As many rows as a share of the memory holds, at least 2.
  int64_t RowsWithin(double row_bytes, double share) const {
    const double rows = share * memory_ / std::max(1.0, row_bytes);
    return static_cast<int64_t>(std::clamp(rows, 2.0, 1e6));
  }

  NodeChoice ForNode(size_t place, double rate, double inside) const {
    const NodeModel& node = model_.nodes[place];
    const Measured& measured = (*model_.measured)[place];
    NodeChoice choice;
    FindTasks(node, rate, node.busy.value + inside,
              measured.knobs.has_parallelism(), choice);
    FindReads(node, rate, choice);
    if (IsUsers(measured.knobs.reorder_rows())) {
      choice.window = node.reorder_rows;
    } else if (node.keeps_order && choice.tasks > 1) {
      const int64_t most = std::min(
          kMaxWindowRows, RowsWithin(measured.row_bytes, kWindowShare));
      choice.window = ReorderRows(measured.service_ns, choice.tasks,
                                  rate * (node.busy.value + inside),
                                  RowsPerChunk(node), most);
    }
    if (IsUsers(measured.knobs.buffer_rows())) {
      choice.buffer = node.buffer_rows;
    } else if (node.buffer_rows > 0) {
      // Between two stages that are as fast as each other, at worst.
      int64_t need = std::max(BufferRows(0.8, node.service_cv, node.service_cv),
                              HandOverRows(rate * node.visits));
      if (place + 1 < model_.nodes.size()) {
        need = std::max(
            need, static_cast<int64_t>(std::min(2 * RowsPerChunk(node), 1e6)));
      }
      const double bytes = std::max(1.0, measured.row_bytes);
      if (rate * node.visits * bytes > kFastBytes) {
        const double near = std::max(kNearBytes / bytes,
                                     std::min(kFewRows, kCachedBytes / bytes));
        need = std::min(need, static_cast<int64_t>(std::max(2.0, near)));
      }
      choice.buffer =
          std::min(need, RowsWithin(measured.row_bytes, kBufferShare));
    }
    return choice;
  }

  // Reads under way and their size: enough for the rate, and no more than the
  // disk has a use for. Where it seeks between files, larger ones instead.
  void FindReads(const NodeModel& node, double rate, NodeChoice& choice) const {
    if (node.read_depth <= 0 || node.is_cached) return;
    const std::optional<DiskLaw>& disk = model_.resources.disk;
    const auto sources = static_cast<double>(node.read_sources);
    double time = node.read_time.value;
    const bool seeks =
        disk && disk->seek > 0 && sources > 1 && node.read_bytes > 0;
    if (seeks && !node.is_read_bytes_pinned) {
      const double most = std::min(
          {kMaxReadBytes, kWindowShare * memory_ / sources,
           kMostForReads / sources, disk->peak * kSecondsOfReads / sources});
      const double needed = rate * node.disk_bytes.value;
      double bytes = node.read_bytes;
      while (2 * bytes <= most &&
             MostBytesPerSecond(*disk, bytes, sources) < kNearly * needed) {
        bytes *= 2;
      }
      // As good as those that the disk does in a row already.
      if (MostBytesPerSecond(*disk, bytes, sources) >
          kWorthLarger *
              MostBytesPerSecond(*disk, node.read_bytes * node.reads_in_a_row,
                                 sources)) {
        choice.read_bytes = static_cast<int64_t>(bytes);
        time *= node.read_bytes / bytes * ReadTime(*disk, bytes) /
                ReadTime(*disk, node.read_bytes);
      }
    }
    const int64_t now = ReadsNow(node);
    choice.reads = now;
    if (node.is_read_pinned || time <= 0) return;
    const auto needed = static_cast<int64_t>(
        std::ceil(std::min(rate * time / kUtilisation / sources, 1e6) - 1e-9));
    const auto wanted = std::clamp<int64_t>(
        needed, 1, std::min(kMaxReadDepth, node.reads_of_file));
    // Fewer cost nobody anything, but where the head goes to and fro.
    choice.reads = choice.read_bytes > 0 ? wanted : std::max(wanted, now);
  }

  void FindTasks(const NodeModel& node, double rate, double busy,
                 bool is_chosen, NodeChoice& choice) const {
    if (node.is_pinned || node.is_sequential) {
      choice.tasks = node.parallelism;
      return;
    }
    if (node.is_serialized) {
      choice.why_tasks = "its tasks do no more than one";
      return;
    }
    if (node.is_cached || busy <= 0) {
      choice.why_tasks = "it has nothing to do";
      return;
    }
    // Inside a function, the tasks of the node around it count as well; one
    // each is what they share out.
    if (node.inside >= 0) {
      choice.why_tasks = "its node runs several of it";
      return;
    }
    const double cores = model_.resources.cores;
    // Two clocks never agree quite: about one core is one.
    const double of_task =
        node.cores_per_task > 0.9 && node.cores_per_task < 1.1
            ? 1
            : node.cores_per_task;
    const int64_t most = std::clamp<int64_t>(
        static_cast<int64_t>(cores / of_task + 1e-6), 1, node.max_parallelism);
    const double work = rate * busy;
    const double tasks = TasksFor(node.scaling, work);
    const double chunk_time = node.chunks > 0 ? busy / node.chunks : busy;
    const bool is_worth_handing =
        chunk_time > kWorthHandoffs * model_.resources.wake;
    if (work < 0.5 && !is_worth_handing) {
      // The engine by itself hands over what is worth it, and notices when that
      // changes.
      if (!is_chosen) {
        choice.tasks = node.parallelism;
        return;
      }
      choice.why_tasks = "a hand-over would cost more than its work";
      return;
    }
    const double padded = std::min(tasks / kUtilisation, 1e6);
    int64_t wanted = static_cast<int64_t>(std::ceil(padded - 1e-9));
    // Against the odd slow row, and against being the one that all wait for.
    if (node.service_cv > 1) ++wanted;
    wanted = std::max<int64_t>(wanted, 2);
    choice.tasks = std::min(wanted, most);
    choice.why_tasks = absl::StrFormat("%.2f tasks' work at %s/s",
                                       std::min(tasks, 1e6), NumberText(rate));
  }

  const Model& model_;
  const double memory_;
};

std::vector<Change> ChangesOf(const Model& model, const Draft& draft) {
  std::vector<Change> changes;
  for (size_t i = 0; i < draft.nodes.size(); ++i) {
    const NodeModel& node = model.nodes[i];
    const NodeChoice& choice = draft.nodes[i];
    const uint32_t id = (*model.measured)[i].id;
    if (choice.tasks != node.parallelism) {
      changes.push_back(SetTasks{id, choice.tasks});
    }
    if (choice.reads > 0 && choice.reads != ReadsNow(node)) {
      changes.push_back(SetReadDepth{id, choice.reads});
    }
    if (choice.read_bytes > 0) {
      changes.push_back(SetReadBytes{id, choice.read_bytes});
    }
    if (choice.window > 0 && choice.window != node.reorder_rows) {
      changes.push_back(SetReorderRows{id, choice.window});
    }
    if (choice.buffer != node.buffer_rows) {
      changes.push_back(SetBufferRows{id, choice.buffer});
    }
  }
  changes.push_back(SetOutputRows{draft.output_rows});
  return changes;
}

// Nodes that were left to their puller may be too much for it together: gives
// the costliest of them tasks of its own, as long as that helps.
absl::Status Spread(const Model& model, double bytes, double memory,
                    Draft& draft) {
  const Chooser chooser(model, memory);
  for (int step = 0; step < kMaxSpread; ++step) {
    PENSTOCK_ASSIGN_OR_RETURN(
        const Bound now,
        WhatIf(model, ChangesOf(model, draft), KnobsAre::kInForce));
    if (now.wall().wall != Wall::kStage) return absl::OkStatus();
    const std::optional<uint32_t> stage = model.nodes[now.wall().node].stage;
    int costliest = -1;
    for (size_t i = 0; i < model.nodes.size(); ++i) {
      const NodeModel& node = model.nodes[i];
      if (node.stage != stage || node.is_sequential || node.is_pinned ||
          node.is_serialized || node.is_cached || node.max_parallelism < 2 ||
          draft.nodes[i].tasks > 1 ||
          model.resources.cores < 2 * node.cores_per_task) {
        continue;
      }
      if (costliest < 0 ||
          node.busy.value > model.nodes[costliest].busy.value) {
        costliest = static_cast<int>(i);
      }
    }
    if (costliest < 0) return absl::OkStatus();
    Draft next = draft;
    NodeChoice& choice = next.nodes[costliest];
    choice.tasks = 2;
    choice.why_tasks = "its puller has too much to do";
    if (model.nodes[costliest].keeps_order && choice.window == 0) {
      choice.window = static_cast<int64_t>(
          std::min(4 * RowsPerChunk(model.nodes[costliest]), 1e6));
    }
    PENSTOCK_ASSIGN_OR_RETURN(
        const Bound then,
        WhatIf(model, ChangesOf(model, next), KnobsAre::kInForce));
    if (then.rate.middle < kLeastSpreadGain * now.rate.middle ||
        chooser.MemoryOf(next) > bytes) {
      return absl::OkStatus();
    }
    draft = std::move(next);
  }
  return absl::OkStatus();
}

void Write(plan::Knob* knob, int64_t value) {
  if (IsUsers(*knob)) return;
  knob->set_value(value);
  knob->set_chosen_by(plan::TUNER);
}

// The draft as knobs, and what of it is new.
void Report(const Model& model, const Draft& draft, Choice& choice) {
  const auto set = [&](KnobKind kind, int place, std::optional<int64_t> from,
                       int64_t to, std::string why) {
    if (from == to) return;
    choice.settings.push_back({kind, place, from, to, std::move(why), false});
  };
  for (size_t i = 0; i < draft.nodes.size(); ++i) {
    const NodeModel& node = model.nodes[i];
    const Measured& measured = (*model.measured)[i];
    const NodeChoice& made = draft.nodes[i];
    const int place = static_cast<int>(i);
    plan::NodeKnobs knobs = measured.knobs;
    // What nobody chose and nobody would change stays the engine's: it may see
    // reason for another number later.
    if (!node.is_sequential &&
        (made.tasks != node.parallelism || knobs.has_parallelism())) {
      Write(knobs.mutable_parallelism(), made.tasks);
      set(KnobKind::kParallelism, place, node.parallelism, made.tasks,
          made.why_tasks);
    }
    if (made.reads > 0 && made.reads != ReadsNow(node)) {
      Write(knobs.mutable_read_depth(), made.reads);
      set(KnobKind::kReadDepth, place, ReadsNow(node), made.reads,
          "what reads take, at that rate");
    }
    if (made.read_bytes > 0) {
      Write(knobs.mutable_read_bytes(), made.read_bytes);
      set(KnobKind::kReadBytes, place, static_cast<int64_t>(node.read_bytes),
          made.read_bytes,
          absl::StrFormat("the disk takes %.3g ms from one file to another",
                          1e3 * model.resources.disk->seek));
    }
    // What the engine does anyway is left to it.
    if (made.window > 0 &&
        (knobs.has_reorder_rows() ||
         static_cast<double>(made.window) >
             OwnWindowRows(made.tasks, RowsPerChunk(node)) + 1)) {
      Write(knobs.mutable_reorder_rows(), made.window);
      set(KnobKind::kReorderRows, place,
          node.reorder_rows > 0 ? std::optional(node.reorder_rows)
                                : std::nullopt,
          made.window,
          "slow rows hold up the others for at most 5 % of the time");
    }
    if (made.buffer > 0) {
      Write(knobs.mutable_buffer_rows(), made.buffer);
      set(KnobKind::kBufferRows, place, node.buffer_rows, made.buffer,
          "what hand-overs and the variance of its rows need");
    }
    if (knobs.ByteSizeLong() > 0) {
      (*choice.knobs.mutable_nodes())[measured.id] = std::move(knobs);
    }
  }
  plan::Knob* output = choice.knobs.mutable_output_rows();
  output->set_value(draft.output_rows);
  output->set_chosen_by(model.resources.is_output_pinned ? plan::USER
                                                         : plan::TUNER);
  set(KnobKind::kOutputRows, -1, model.resources.output_rows, draft.output_rows,
      "what the variance of the consumer needs");
}

void WriteCache(const CacheCandidate& candidate, Choice& choice) {
  const CacheAfter& cache = *candidate.cache;
  plan::CacheKnob* knob =
      (*choice.knobs.mutable_nodes())[cache.node].mutable_cache();
  knob->set_tier(cache.tier);
  knob->set_fraction(cache.fraction);
  knob->set_chosen_by(plan::TUNER);
  // A little more than is expected: rows are not the same size, and the last
  // of them should not stay out.
  knob->set_max_bytes(
      static_cast<int64_t>(1.02 * cache.fraction * cache.size_bytes + 1e6));
  choice.settings.push_back(
      {KnobKind::kCache, candidate.node, 0, 1,
       absl::StrFormat("%.0f %% of %.3g GB%s", 100 * cache.fraction,
                       cache.size_bytes / 1e9,
                       cache.tier == plan::DISK ? ", on disk" : ""),
       false});
}

// What would be chosen of the user's own knobs, if it were ours to choose.
void Advise(const Model& model, double memory, Choice& choice) {
  for (size_t i = 0; i < model.nodes.size(); ++i) {
    const Measured& measured = (*model.measured)[i];
    const NodeModel& node = model.nodes[i];
    const int place = static_cast<int>(i);
    if (IsUsers(measured.knobs.buffer_rows())) {
      const int64_t need = std::max(
          BufferRows(0.95, node.service_cv, model.resources.consumer_cv),
          int64_t{2});
      const double bytes =
          static_cast<double>(node.buffer_rows) * measured.row_bytes;
      if (node.buffer_rows > 4 * need && bytes > 0.05 * memory) {
        choice.settings.push_back(
            {KnobKind::kBufferRows, place, node.buffer_rows, need,
             absl::StrFormat("%d rows of %.3g MB hold %.3g GB; %d are enough",
                             node.buffer_rows, measured.row_bytes / 1e6,
                             bytes / 1e9, need),
             true});
      }
    }
    if (node.is_pinned && !node.is_sequential && node.busy.value > 0) {
      const auto most = static_cast<int64_t>(std::max(
          1.0, std::min(model.resources.cores / node.cores_per_task, 1e6)));
      if (node.parallelism > most) {
        choice.settings.push_back(
            {KnobKind::kParallelism, place, node.parallelism, most,
             absl::StrFormat("%.3g cores keep %d tasks busy",
                             model.resources.cores, most),
             true});
      }
    }
  }
}

}  // namespace

const char* KnobName(KnobKind kind) {
  switch (kind) {
    case KnobKind::kParallelism:
      return "parallelism";
    case KnobKind::kReorderRows:
      return "reorder_rows";
    case KnobKind::kBufferRows:
      return "buffer_rows";
    case KnobKind::kReadDepth:
      return "read_depth";
    case KnobKind::kReadBytes:
      return "read_bytes";
    case KnobKind::kOutputRows:
      return "output_rows";
    case KnobKind::kCache:
      return "cache";
  }
  return "";
}

absl::StatusOr<Choice> Choose(const Model& measured, const Budget& budget) {
  Model model = measured;
  Resources& resources = model.resources;
  if (budget.cores) {
    if (!(*budget.cores > 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("budget: cores must be over 0; got ", *budget.cores));
    }
    resources.cores = std::min(resources.cores, *budget.cores);
  }
  if (budget.memory_bytes) {
    resources.memory_bytes =
        std::min(resources.memory_bytes.value_or(*budget.memory_bytes),
                 std::max(0.0, *budget.memory_bytes));
  }
  const bool has_limit = resources.memory_bytes.has_value();
  const double memory = resources.memory_bytes.value_or(kUnknownMemory);
  // The engine holds more than rows; what rows hold now is part of it.
  const Chooser before(model, memory);
  const double held = before.MemoryOf(before.Now());
  const double others =
      has_limit ? std::max(0.0, model.resident_bytes - held) : 0;
  const double for_rows = std::max(0.0, memory - others);

  Choice choice;
  Draft draft = before.Make();
  choice.is_over_memory = !before.Shrink(draft, for_rows);
  if (budget.may_cache && has_limit && !choice.is_over_memory) {
    CacheRoom room;
    // Where there is a directory for rows, its disk has been measured.
    const double free = resources.disk_free_bytes.value_or(0);
    const double offered = resources.kept_bytes_per_second ? free : 0;
    room.disk_bytes = std::min(budget.disk_bytes.value_or(offered), free);
    const auto place_beside = [&](const Draft& others) {
      if (budget.may_cache_in_memory) {
        const double rest = std::max(before.MemoryOf(others), held) +
                            kMarginBesideCache * memory;
        room.memory_bytes = std::max(0.0, for_rows - rest);
      }
      return PlaceCache(model, room);
    };
    CachePlan plan = place_beside(draft);
    if (plan.best && plan.best->cache->tier == plan::MEMORY &&
        plan.best->cache->fraction < 1) {
      // Rows that are ready save waits, rows that are kept save work.
      Draft least = draft;
      before.ShrinkBuffers(least);
      const double more = before.MemoryOf(draft) - before.MemoryOf(least);
      if (more > kWorthBuffers * plan.best->size_bytes) {
        plan = place_beside(least);
      }
    }
    choice.cache = std::move(plan.best);
    choice.second_cache = std::move(plan.second);
    choice.candidates = std::move(plan.candidates);
  }
  Model cached = model;
  if (choice.cache) {
    std::vector<Change> caches = {*choice.cache->cache};
    if (choice.second_cache) caches.push_back(*choice.second_cache->cache);
    PENSTOCK_ASSIGN_OR_RETURN(cached, Apply(model, caches));
    const Chooser after(cached, memory);
    Draft later = after.Make();
    // What the cache makes idle still fills it, in the first epoch.
    for (size_t i = 0; i < later.nodes.size(); ++i) {
      const bool is_filling = cached.nodes[i].is_cached ||
                              (static_cast<int>(i) == choice.cache->node &&
                               choice.cache->cache->fraction == 1);
      if (is_filling) later.nodes[i] = draft.nodes[i];
    }
    draft = std::move(later);
    // A faster pipeline has more under way; what the cache took is taken.
    choice.is_over_memory =
        !after.Shrink(draft, for_rows - cached.cache_memory_bytes);
  }
  PENSTOCK_RETURN_IF_ERROR(
      Spread(cached, for_rows - cached.cache_memory_bytes, memory, draft));
  const Chooser last(cached, memory);
  choice.memory_bytes = last.MemoryOf(draft) + cached.cache_memory_bytes;
  PENSTOCK_ASSIGN_OR_RETURN(const Model chosen,
                            Apply(cached, ChangesOf(cached, draft)));
  choice.bound = FindBound(chosen, KnobsAre::kInForce);
  choice.cores = CoresAt(chosen, choice.bound.rate.middle);
  Report(cached, draft, choice);
  for (const auto* chosen : {&choice.cache, &choice.second_cache}) {
    if (chosen->has_value()) WriteCache(**chosen, choice);
  }
  Advise(model, memory, choice);
  return choice;
}

}  // namespace penstock::tuner

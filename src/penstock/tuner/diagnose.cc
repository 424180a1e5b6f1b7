#include "penstock/tuner/diagnose.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "penstock/base/status.h"
#include "penstock/tuner/buffers.h"
#include "penstock/tuner/histogram.h"
#include "penstock/tuner/legality.h"
#include "penstock/tuner/number_text.h"
#include "penstock/tuner/read_back.h"
#include "penstock/tuner/what_if.h"

namespace penstock::tuner {
namespace {

// A consumer that waits less than this is not kept waiting.
constexpr double kWaits = 0.05;
constexpr double kWorthDoing = 1.03;
// Of the cores: all are taken, and some by others.
constexpr double kAllTaken = 0.85;
constexpr double kSomeTaken = 0.1;
// What others take is in the way if it would be so many times as fast without.
constexpr double kHeldUp = 1.15;
// Of a core, that a call of a Python function uses if it mostly waits.
constexpr double kMostlyWaits = 0.3;
// For a core, as many as a pool may have.
constexpr double kMostProcesses = 16;
constexpr size_t kMaxFixes = 8;
constexpr size_t kMaxNodes = 64;

class Doctor final {
 public:
  Doctor(const Model& model, const Budget& budget)
      : model_(model), budget_(budget), measured_(*model.measured) {}

  absl::StatusOr<Diagnosis> Look() {
    bound_ = FindBound(model_, KnobsAre::kInForce);
    out_.possible = bound_.rate;
    out_.measured = model_.rate.value;
    // What was seen is possible, whatever the model says.
    out_.possible.middle = std::max(out_.possible.middle, out_.measured);
    out_.possible.high = std::max(out_.possible.high, out_.possible.middle);
    PENSTOCK_ASSIGN_OR_RETURN(out_.choice, Choose(model_, budget_));
    FindWalls();
    AddEvidence();
    AddNodes();
    AddFixes();
    AddNotes();
    out_.sentence = Sentence();
    return std::move(out_);
  }

 private:
  std::string NameOf(int place) const {
    return place >= 0 ? measured_[place].name : "";
  }

  // With the user's line, where it is known.
  std::string WhereOf(int place) const {
    if (place < 0) return "";
    const plan::Location& at = measured_[place].made_at;
    if (at.file().empty()) return NameOf(place);
    return absl::StrCat(NameOf(place), " (", at.file(), ":", at.line(), ")");
  }

  void FindWalls() {
    const std::optional<double> waits = model_.consumer_wait_share;
    // Without a consumer's word, the model's.
    out_.is_input_bound =
        waits ? *waits >= kWaits : bound_.wall().wall != Wall::kConsumer;
    std::vector<const Limit*> walls;
    for (const Limit& limit : bound_.limits) {
      const bool is_consumer = limit.wall == Wall::kConsumer;
      // Who waits is not the limit, whatever the means of both say.
      if (is_consumer && out_.is_input_bound) continue;
      walls.push_back(&limit);
    }
    if (!out_.is_input_bound) {
      std::stable_sort(
          walls.begin(), walls.end(), [](const Limit* a, const Limit* b) {
            return (a->wall == Wall::kConsumer) > (b->wall == Wall::kConsumer);
          });
    }
    if (!walls.empty()) out_.wall = *walls[0];
    if (out_.is_input_bound) {
      out_.read_back = CacheReadBack(model_, out_.wall);
    }
    if (walls.size() > 1) out_.next_wall = *walls[1];
    out_.next_wall_gain =
        walls.size() > 1 && walls[0]->rate > 0
            ? std::max(0.0, walls[1]->rate / walls[0]->rate - 1)
            : 0;
  }

  void AddEvidence() {
    for (const Limit& limit : bound_.limits) {
      const std::string name = NameOf(limit.node);
      out_.evidence.push_back(
          {name.empty() ? WallName(limit.wall)
                        : absl::StrCat(name, ": ", WallName(limit.wall)),
           std::min(limit.demand * model_.rate.value, limit.capacity),
           limit.capacity, std::max(limit.rate, model_.rate.value)});
    }
  }

  double AllCpu() const {
    double cpu = model_.unattributed.value;
    for (const NodeModel& node : model_.nodes) cpu += node.cpu.value;
    return cpu;
  }

  void AddNodes() {
    const double all = AllCpu();
    if (all > 0) out_.unattributed_share = model_.unattributed.value / all;
    for (size_t i = 0; i < model_.nodes.size(); ++i) {
      const NodeModel& node = model_.nodes[i];
      const Measured& measured = measured_[i];
      NodeEvidence line;
      line.node = static_cast<int>(i);
      if (all > 0) line.cpu_share = node.cpu.value / all;
      if (node.cpu.value > 0) {
        line.rate_per_core = std::min(1 / node.cpu.value, kUnlimitedRate);
        line.cpu_error = node.cpu.error / node.cpu.value;
      }
      line.visits = node.visits;
      line.row_bytes = measured.row_bytes;
      line.tasks_useful = measured.active_tasks;
      if (measured.is_python) {
        // Calls that wait for a process count as if they were in one.
        line.tasks_useful =
            std::min(line.tasks_useful, static_cast<double>(node.parallelism));
      }
      line.tasks = node.parallelism;
      line.service_p50_ns = Quantile(measured.service_ns, 0.5);
      line.service_p99_ns = Quantile(measured.service_ns, 0.99);
      out_.nodes.push_back(line);
    }
    std::stable_sort(out_.nodes.begin(), out_.nodes.end(),
                     [](const NodeEvidence& a, const NodeEvidence& b) {
                       return a.cpu_share > b.cpu_share;
                     });
    if (out_.nodes.size() > kMaxNodes) out_.nodes.resize(kMaxNodes);
  }

  std::string TextOf(const Setting& setting) const {
    return absl::StrCat("set ", KnobName(setting.kind), " of ",
                        setting.node < 0 ? "the output" : NameOf(setting.node),
                        " to ", setting.to);
  }

  void AddFix(Fix fix) {
    // Against what the model says of now: both err alike.
    const bool is_faster =
        fix.expected.middle > bound_.rate.middle * kWorthDoing;
    if (is_faster) out_.fixes.push_back(std::move(fix));
  }

  void AddFixes() {
    AddTuning();
    AddCacheFix();
    if (out_.is_input_bound) {
      AddPythonFixes();
      AddSequentialFix();
      AddMoreFiles();
      AddMoreWorkers();
      AddFusion();
      AddHardware();
    }
    std::stable_sort(out_.fixes.begin(), out_.fixes.end(),
                     [](const Fix& a, const Fix& b) {
                       return a.expected.middle > b.expected.middle;
                     });
    // What needs nobody comes first where it does about as much.
    std::stable_sort(out_.fixes.begin(), out_.fixes.end(),
                     [&](const Fix& a, const Fix& b) {
                       return !a.needs_the_user && b.needs_the_user;
                     });
    if (out_.fixes.size() > kMaxFixes) out_.fixes.resize(kMaxFixes);
    AddAdvice();
  }

  void AddTuning() {
    absl::StatusOr<Choice> choice = out_.choice;
    if (out_.choice.cache) {
      Budget budget = budget_;
      budget.may_cache = false;
      choice = Choose(model_, budget);
    }
    if (!choice.ok()) return;
    Fix fix;
    fix.expected = choice->bound.rate;
    fix.knobs = choice->knobs;
    std::vector<std::string> titles;
    for (const Setting& setting : choice->settings) {
      if (setting.is_pinned) continue;
      fix.settings.push_back(setting);
      if (titles.size() < 3) titles.push_back(TextOf(setting));
    }
    if (fix.settings.empty()) return;
    if (fix.settings.size() > titles.size()) titles.push_back("…");
    fix.title = absl::StrJoin(titles, ", ");
    fix.why = absl::StrFormat("%.2g of %.3g cores would be used", choice->cores,
                              model_.resources.cores);
    AddFix(std::move(fix));
  }

  void AddCacheFix() {
    if (!out_.choice.cache) return;
    const CacheAfter& cache = *out_.choice.cache->cache;
    Fix fix;
    fix.title = absl::StrFormat(
        "keep %.0f %% of %s's rows in %s", 100 * cache.fraction,
        NameOf(out_.choice.cache->node),
        cache.tier == plan::DISK ? "a cache on disk" : "memory");
    fix.why = absl::StrFormat(
        "all of them have at most %.3g GB; from the second epoch on",
        cache.size_bytes / 1e9);
    if (out_.choice.second_cache) {
      const CacheAfter& second = *out_.choice.second_cache->cache;
      absl::StrAppend(&fix.title,
                      absl::StrFormat(", and %.0f %% of %s's on disk",
                                      100 * second.fraction,
                                      NameOf(out_.choice.second_cache->node)));
    }
    fix.expected = out_.choice.bound.rate;
    fix.knobs = out_.choice.knobs;
    fix.settings = out_.choice.settings;
    AddFix(std::move(fix));
  }

  // `most` is what X cannot exceed, whatever the model says of the changes.
  void Try(std::string title, std::string why,
           const std::vector<Change>& changes, double most = kUnlimitedRate) {
    const absl::StatusOr<Bound> bound =
        WhatIf(model_, changes, KnobsAre::kFree);
    if (bound.ok()) AddUsersFix(std::move(title), std::move(why), *bound, most);
  }

  void AddUsersFix(std::string title, std::string why, const Bound& bound,
                   double most = kUnlimitedRate) {
    Fix fix;
    fix.title = std::move(title);
    fix.why = std::move(why);
    fix.expected = bound.rate;
    if (fix.expected.middle > most) {
      const double share = most / fix.expected.middle;
      fix.expected.middle *= share;
      fix.expected.high *= share;
    }
    fix.expected.low = std::min(fix.expected.low, bound_.rate.low);
    fix.needs_the_user = true;
    AddFix(std::move(fix));
  }

  void AddPythonFixes() {
    for (size_t i = 0; i < model_.nodes.size(); ++i) {
      const NodeModel& node = model_.nodes[i];
      const int place = static_cast<int>(i);
      if (node.is_serialized) {
        Try(absl::StrCat("write ", WhereOf(place),
                         " with native functions, or give it processes of its "
                         "own"),
            absl::StrFormat("%d tasks use %.2f cores: they wait for one lock",
                            node.parallelism,
                            node.cpu.value * model_.rate.value),
            {ScaleCost{measured_[i].id, 0.25}});
      } else if (measured_[i].is_python && out_.wall.node == place) {
        AddProcesses(place);
        Try(absl::StrCat("write ", WhereOf(place), " with native functions"),
            "it calls Python for each element",
            {ScaleCost{measured_[i].id, 0.25}});
      }
    }
  }

  // A function that mostly waits for something else needs more processes than
  // there are cores.
  void AddProcesses(int place) {
    const double cores = model_.resources.cores;
    const double used = model_.nodes[place].cores_per_task;
    if (used > kMostlyWaits) return;
    const auto processes = static_cast<int64_t>(
        std::min(kMostProcesses, 1 / std::max(used, 1e-3)) * cores);
    Model model = model_;
    NodeModel& node = model.nodes[place];
    node.parallelism = node.max_parallelism = processes;
    AddUsersFix(
        absl::StrFormat("set num_parallel_calls=%d of %s, with "
                        "Options(python=PythonOptions(processes=%d))",
                        processes, WhereOf(place), processes),
        absl::StrFormat("a call of it uses %.2g of a core: it waits for "
                        "something else, and many can wait at once",
                        used),
        FindBound(model, KnobsAre::kInForce));
  }

  void AddSequentialFix() {
    if (out_.wall.wall != Wall::kSequential && out_.wall.wall != Wall::kStage) {
      return;
    }
    // Of what is in a function already, that node's tasks are the number; and
    // what is not sequential needs no shards for a second task.
    const NodeModel& node = model_.nodes[out_.wall.node];
    if (node.inside >= 0 || !node.is_sequential) return;
    double cores = kUnlimitedRate;
    for (const Limit& limit : bound_.limits) {
      if (limit.wall == Wall::kCores) cores = limit.rate;
    }
    Try(absl::StrCat("read several shards at once (interleave over shards), "
                     "so that each has a ",
                     NameOf(out_.wall.node), " of its own"),
        absl::StrCat(WhereOf(out_.wall.node),
                     " has one task, whatever the number of threads"),
        {ScaleCost{measured_[out_.wall.node].id,
                   1 / std::max(1.0, model_.resources.cores)}},
        cores);
  }

  // Small files that are read whole: more reads at once are more files at once.
  void AddMoreFiles() {
    if (out_.wall.wall != Wall::kReadLatency) return;
    const NodeModel& node = model_.nodes[out_.wall.node];
    if (node.read_depth < node.read_sources * node.reads_of_file) return;
    Model model = model_;
    model.nodes[out_.wall.node].read_sources *= 2;
    model.nodes[out_.wall.node].read_depth *= 2;
    const std::string files = Counted(node.read_sources, "file");
    AddUsersFix(
        node.inside >= 0
            ? absl::StrFormat("set cycle_length=%d of %s, so that twice as "
                              "many files are read at once",
                              2 * node.read_sources, WhereOf(node.inside))
            : absl::StrCat("read several files at once (interleave with a "
                           "cycle_length), where ",
                           files, " is read now"),
        absl::StrCat(files, " at once, each of ",
                     Counted(node.reads_of_file, "read"),
                     ", keep no more reads under way"),
        FindBound(model, KnobsAre::kFree));
  }

  void AddMoreWorkers() {
    if (out_.wall.wall != Wall::kWorkers) return;
    Model model = model_;
    model.nodes[out_.wall.node].workers_time.value /= 2;
    AddUsersFix(
        "have twice as many workers (penstock worker), on machines with cores "
        "to spare",
        absl::StrFormat(
            "%s waits %.0f %% of the time for those that there are",
            WhereOf(out_.wall.node),
            100 * std::min(1.0, measured_[out_.wall.node].wait_input_share)),
        FindBound(model, KnobsAre::kFree));
  }

  // Hand-overs that cost a good part of all CPU.
  void AddFusion() {
    std::vector<Change> changes;
    std::vector<std::string> names;
    double handed = 0;
    for (size_t i = 0; i < model_.nodes.size(); ++i) {
      const NodeModel& node = model_.nodes[i];
      if (node.inputs.size() != 1) continue;
      const NodeModel& input = model_.nodes[node.inputs[0]];
      if (!input.hands_over || input.is_sequential) continue;
      const double handing = HandOverCpu(input, model_.resources);
      if (handing < input.busy.value) continue;
      handed += handing;
      changes.push_back(Fuse{measured_[i].id});
      if (names.size() < 3) names.push_back(NameOf(node.inputs[0]));
    }
    if (changes.empty() || handed < 0.1 * AllCpu()) return;
    Try(absl::StrCat("batch before ", absl::StrJoin(names, ", "),
                     ", or map once with all of them"),
        "handing their rows to other threads costs more than their work",
        changes);
  }

  bool AreCoresUsed() const {
    return model_.used_cores >= kAllTaken * model_.resources.cores;
  }

  // Other processes have the cores that it could use.
  bool IsCrowded() const {
    const double cores = model_.resources.cores;
    return model_.other_cores >= kSomeTaken * cores &&
           model_.used_cores + model_.other_cores >= kAllTaken * cores &&
           bound_.rate.middle >= kHeldUp * model_.rate.value;
  }

  void AddHardware() {
    const double cores = model_.resources.cores;
    if (IsCrowded()) {
      Fix fix;
      fix.title =
          absl::StrFormat("let it have the %.1f cores that other processes use",
                          model_.other_cores);
      fix.why = "tasks that wait for a core are not helped by more tasks";
      fix.expected = bound_.rate;
      fix.needs_the_user = true;
      out_.fixes.push_back(std::move(fix));
    } else if (out_.wall.wall == Wall::kCores && AreCoresUsed()) {
      Try(absl::StrFormat("give it %.3g cores instead of %.3g", 2 * cores,
                          cores),
          "all cores are in use", {SetCores{2 * cores}});
    }
    if (out_.wall.wall == Wall::kDiskBytes ||
        out_.wall.wall == Wall::kDiskSeeks ||
        out_.wall.wall == Wall::kDiskOps) {
      const int cache = out_.read_back;
      Try(cache < 0 ? "use a disk that is twice as fast, or smaller files"
                    : absl::StrCat("put the file of ", WhereOf(cache),
                                   " on a disk that is twice as fast"),
          "the disk gives no more", {ScaleDisk{2}});
    }
  }

  // Of the user's own knobs: not faster by the model, but better.
  void AddAdvice() {
    for (const Setting& setting : out_.choice.settings) {
      if (!setting.is_pinned) continue;
      Fix fix;
      fix.title = TextOf(setting);
      fix.why = setting.why;
      fix.expected = bound_.rate;
      fix.settings = {setting};
      fix.needs_the_user = true;
      out_.fixes.push_back(std::move(fix));
    }
  }

  void AddNotes() {
    for (std::string& fault : FindCacheFaults(model_)) {
      out_.notes.push_back(std::move(fault));
    }
    // The first of each reason: why caches are not where they would help.
    std::vector<std::string> said;
    for (const CacheCandidate& candidate : out_.choice.candidates) {
      if (candidate.why_not.empty() || candidate.cache) continue;
      if (std::find(said.begin(), said.end(), candidate.why_not) !=
          said.end()) {
        continue;
      }
      said.push_back(candidate.why_not);
      if (said.size() > 3) break;
      out_.notes.push_back(absl::StrCat(
          "no cache after ", NameOf(candidate.node), ": ", candidate.why_not));
    }
    AddWhyNotOnDisk();
    const double cores = model_.resources.cores;
    if (budget_.cores && *budget_.cores > cores) {
      out_.notes.push_back(
          absl::StrFormat("cpu is %.6g, and there are %.3g cores: %.3g are "
                          "reckoned with",
                          *budget_.cores, cores, cores));
    }
    for (size_t i = 0; i < measured_.size(); ++i) {
      if (measured_[i].has_cache && !measured_[i].is_cache_complete &&
          !model_.nodes[i].is_cached) {
        out_.notes.push_back(absl::StrCat(
            measured_[i].name,
            " is being filled: what is said here is of the first epoch"));
      }
    }
    if (out_.unattributed_share > 0.1) {
      out_.notes.push_back(
          absl::StrFormat("%.0f %% of the CPU was charged to no node",
                          100 * out_.unattributed_share));
    }
    const bool is_waited_for = out_.is_input_bound;
    if (is_waited_for && !IsCrowded() &&
        bound_.rate.low > 1.4 * model_.rate.value) {
      out_.notes.push_back(absl::StrFormat(
          "by what was measured %s/s were possible, and %s/s were seen: "
          "something is at work that is not in the model",
          NumberText(bound_.rate.middle), NumberText(model_.rate.value)));
    }
    if (out_.choice.is_over_memory) {
      out_.notes.push_back(
          "one chunk of each node and what the user pinned need more than the "
          "memory limit");
    }
  }

  // Of the rows that would save most: why they are not kept on a disk that is
  // there for that.
  void AddWhyNotOnDisk() {
    const std::optional<double>& speed = model_.resources.kept_bytes_per_second;
    if (!speed) return;
    const std::vector<CacheCandidate>& candidates = out_.choice.candidates;
    const auto found = std::find_if(
        candidates.begin(), candidates.end(),
        [](const CacheCandidate& each) { return each.rate_on_disk; });
    if (found == candidates.end()) return;
    const std::optional<CacheCandidate>& kept = out_.choice.cache;
    if (kept && kept->node == found->node) return;
    const double without = out_.choice.bound.rate.middle;
    if (*found->rate_on_disk >= without) return;
    out_.notes.push_back(absl::StrFormat(
        "rows of %s are not kept on disk: read back at %.3g MB/s they would "
        "allow %s/s; without that, %s/s are expected",
        NameOf(found->node), *speed / 1e6, NumberText(*found->rate_on_disk),
        NumberText(without)));
  }

  static std::string Counted(int64_t count, absl::string_view noun) {
    return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
  }

  // How much of the wall's bytes a second was used.
  std::string SeenText(const Limit& wall) const {
    return absl::StrFormat(", and %.3g are used",
                           wall.demand * model_.rate.value / 1e6);
  }

  std::string LatencyText(const Limit& wall) const {
    const NodeModel& node = model_.nodes[wall.node];
    std::string text =
        absl::StrCat(WhereOf(wall.node), " waits for storage, with ",
                     Counted(node.read_depth, "read"), " under way");
    if (const std::optional<DiskLaw>& disk = model_.resources.disk;
        disk && node.read_bytes > 0) {
      const auto sources = static_cast<double>(node.read_sources);
      absl::StrAppend(
          &text, absl::StrFormat(
                     " of %.3g ms; the disk gives %.3g MB/s to %.0f",
                     1e3 * ReadTime(*disk, node.read_bytes),
                     MostBytesPerSecond(*disk, node.read_bytes, sources) / 1e6,
                     std::ceil(KneeOf(*disk, node.read_bytes, sources))));
    }
    return text;
  }

  std::string CoresText() const {
    const int costliest = out_.nodes.empty() ? -1 : out_.nodes[0].node;
    const double share = out_.nodes.empty() ? 0 : 100 * out_.nodes[0].cpu_share;
    if (!AreCoresUsed()) {
      return absl::StrFormat(
          "nothing that was measured is the limit; most CPU, %.0f %%, is %s's",
          share, WhereOf(costliest));
    }
    return absl::StrFormat("all cores are in use, %.0f %% of them by %s", share,
                           WhereOf(costliest));
  }

  std::string WallText() const {
    if (out_.read_back < 0 || IsCrowded()) return PlainWallText();
    return absl::StrCat(
        WhereOf(out_.read_back),
        " reads its rows back from its file: ", PlainWallText());
  }

  std::string PlainWallText() const {
    const Limit& wall = out_.wall;
    if (IsCrowded()) {
      return absl::StrFormat(
          "other processes use %.1f of %.3g cores; without them %s/s were "
          "possible",
          model_.other_cores, model_.resources.cores,
          NumberText(bound_.rate.middle));
    }
    const std::string where = WhereOf(wall.node);
    switch (wall.wall) {
      case Wall::kNothing:
        return "nothing that was measured is the limit";
      case Wall::kWorkers:
        return absl::StrCat(where,
                            " waits for the workers of its service, which "
                            "give no more");
      case Wall::kCores:
        return CoresText();
      case Wall::kTasks:
        return absl::StrCat(
            where, " is kept busy, and has ",
            Counted(model_.nodes[wall.node].parallelism, "task"));
      case Wall::kSequential:
        if (const int around = model_.nodes[wall.node].inside; around >= 0) {
          return absl::StrCat(where, " is run by ",
                              Counted(model_.nodes[around].parallelism, "task"),
                              " of ", NameOf(around));
        }
        return absl::StrFormat("%s is sequential, and more threads do not help",
                               where);
      case Wall::kSerialized:
        return absl::StrFormat("the %d tasks of %s use one core between them",
                               model_.nodes[wall.node].parallelism, where);
      case Wall::kStage:
        return absl::StrFormat("one task runs %s and what is inline with it",
                               where);
      case Wall::kReorder:
        return absl::StrFormat("slow rows hold up the ordered window of %s",
                               where);
      case Wall::kHandOver:
        return absl::StrFormat(
            "%s holds %s, and two threads wait for each other after those",
            where, Counted(model_.nodes[wall.node].buffer_rows, "row"));
      case Wall::kReadLatency:
        return LatencyText(wall);
      case Wall::kDiskBytes:
        return absl::StrFormat("the disk gives %.3g MB/s%s",
                               wall.capacity / 1e6, SeenText(wall));
      case Wall::kDiskSeeks:
        return absl::StrFormat(
            "the disk goes from one file to another, which takes %.3g ms: it "
            "gives %.3g MB/s, and %.3g MB/s of one file%s",
            1e3 * model_.resources.disk->seek, wall.capacity / 1e6,
            model_.resources.disk->peak / 1e6, SeenText(wall));
      case Wall::kDiskOps:
        return absl::StrFormat("the disk does %.3g operations a second",
                               wall.capacity);
      case Wall::kKeptBytes:
        return absl::StrFormat("the disk with kept rows gives %.3g MB/s",
                               wall.capacity / 1e6);
      case Wall::kMemoryBytes:
        return absl::StrFormat("memory copies %.3g GB/s", wall.capacity / 1e9);
      case Wall::kNetworkBytes:
        return absl::StrFormat("the network gives %.3g MB/s",
                               wall.capacity / 1e6);
      case Wall::kConsumer:
        return "the consumer is the limit";
      case Wall::kNoOverlap:
        return "nothing is kept ready for the consumer";
    }
    return "";
  }

  std::string Sentence() const {
    const double cores = model_.resources.cores;
    const std::string use =
        absl::StrFormat("%.1f of %.3g cores used", model_.used_cores, cores);
    if (!out_.is_input_bound) {
      double producer = kUnlimitedRate;
      for (const Limit& limit : bound_.limits) {
        if (limit.wall != Wall::kConsumer && limit.wall != Wall::kNoOverlap) {
          producer = std::min(producer, limit.rate);
        }
      }
      return absl::StrFormat(
          "consumer-bound: the pipeline keeps up, and could give %s times as "
          "much; %.2g cores are enough; %s",
          NumberText(
              std::max(1.0, producer / std::max(model_.rate.value, 1e-12))),
          out_.choice.cores, use);
    }
    if (model_.consumer_wait_share) {
      return absl::StrFormat(
          "input-bound: the consumer waits %.0f %% of its time; %s; %s",
          100 * *model_.consumer_wait_share, WallText(), use);
    }
    return absl::StrCat("input-bound: ", WallText(), "; ", use);
  }

  const Model& model_;
  const Budget& budget_;
  const std::vector<Measured>& measured_;
  Bound bound_;
  Diagnosis out_;
};

}  // namespace

absl::StatusOr<Diagnosis> Diagnose(const Model& model, const Budget& budget) {
  return Doctor(model, budget).Look();
}

}  // namespace penstock::tuner

#include "penstock/engine/pipeline.h"

#include <algorithm>
#include <functional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "penstock/base/hash.h"
#include "penstock/base/status.h"
#include "penstock/engine/build.h"
#include "penstock/engine/ops/keep.h"
#include "penstock/engine/ops/part.h"
#include "penstock/engine/receiver.h"
#include "penstock/functions/function.h"
#include "penstock/io/crc32c.h"
#include "penstock/plan/convert.h"
#include "penstock/plan/fingerprint.h"
#include "penstock/plan/infer.h"
#include "penstock/plan/keepable.h"
#include "penstock/plan/print.h"
#include "penstock/plan/snapshot.h"

namespace penstock::engine {
namespace {

constexpr uint64_t kStateVersion = 2;

// Whether every random call of the function was given a seed of its own: then
// the node needs none that is drawn.
bool HasOwnSeeds(const plan::Function& function) {
  if (function.has_python() && function.python().is_random()) {
    return function.python().has_seed();
  }
  for (const plan::Function::Step& step : function.steps()) {
    if (!step.has_call()) continue;
    const functions::Function* called =
        functions::FindFunction(step.call().function());
    if (called == nullptr || !called->is_random) continue;
    const auto seed = step.call().attrs().find("seed");
    if (seed == step.call().attrs().end() || !seed->second.has_integer()) {
      return false;
    }
  }
  return true;
}

std::optional<uint64_t> SeedOf(const plan::Node& node) {
  const std::vector<const plan::Function*> functions = plan::FunctionsOf(node);
  if (!functions.empty()) {
    const bool is_given = std::all_of(
        functions.begin(), functions.end(),
        [](const auto* function) { return HasOwnSeeds(*function); });
    return is_given ? std::optional<uint64_t>(0) : std::nullopt;
  }
  if (node.has_shuffle() && node.shuffle().has_seed()) {
    return node.shuffle().seed();
  }
  if (node.has_random() && node.random().has_seed())
    return node.random().seed();
  if (node.has_sample_from_datasets() &&
      node.sample_from_datasets().has_seed()) {
    return node.sample_from_datasets().seed();
  }
  if (node.has_list_files() && node.list_files().has_seed()) {
    return node.list_files().seed();
  }
  return std::nullopt;
}

// `op`, whose streams name it where they cannot start: a parameter that comes
// with the data may be wrong.
OperatorPtr Located(OperatorPtr op, const OpInfo* info) {
  return MakeOperator([op = std::move(op), info](const Scope& scope) {
    StreamOr stream = op->Start(scope);
    if (stream.ok() || stream.status().message().find("\n  at node \"") !=
                           absl::string_view::npos) {
      return stream;
    }
    return StreamOr(info->Located(stream.status()));
  });
}

}  // namespace

// Walks a plan and its sub-plans; gives every node an id.
class Builder final {
  // Where Keep stands in the plan, and what is below it there.
  class KeepPlaces final {
   public:
    KeepPlaces(const plan::Plan& plan, bool is_ordered)
        : plan_(plan),
          keepable_(plan::FindKeepable(plan, is_ordered)),
          fingerprints_(plan::NodeFingerprints(plan)),
          below_(plan.nodes_size()) {}

    void HandOn(int i, int input) { below_[i] = below_[input]; }

    // `op`, the node `i` made last, with a Keep after it if rows may be kept.
    OperatorPtr After(int i, OperatorPtr op, const OpInfo& info,
                      Pipeline& pipeline) {
      Below& below = below_[i];
      for (uint32_t input : plan_.nodes(i).inputs()) {
        below.keys = Combine(below.keys, below_[input].keys);
        below.files.insert(below_[input].files.begin(),
                           below_[input].files.end());
      }
      // Its own, and those in its functions, which have come since.
      for (auto id = static_cast<size_t>(info.id); id < pipeline.infos_.size();
           ++id) {
        below.keys = Combine(below.keys, pipeline.infos_[id].key);
      }
      const std::vector<int>& files = pipeline.file_ops_;
      below.files.insert(std::lower_bound(files.begin(), files.end(), info.id),
                         files.end());
      const plan::Keepable& keepable = keepable_[i];
      std::string& why_not = pipeline.why_not_kept_[info.id];
      why_not = keepable.why_not;
      if (why_not.empty() && !keepable.is_worthwhile) {
        why_not = absl::StrCat(info.name, " costs next to nothing");
      }
      if (!why_not.empty()) return op;
      KeepSpec spec;
      spec.fingerprint =
          absl::StrFormat("%s%016x", fingerprints_[i], keepable.functions);
      spec.keys = below.keys;
      spec.file_ops.assign(below.files.begin(), below.files.end());
      spec.is_storable = !keepable.has_python;
      return MakeKeep(std::move(spec), std::move(op), info);
    }

   private:
    struct Below {
      uint64_t keys = 0;
      std::set<int> files;
    };

    const plan::Plan& plan_;
    const std::vector<plan::Keepable> keepable_;
    const std::vector<std::string> fingerprints_;
    std::vector<Below> below_;
  };

 public:
  Builder(Pipeline* pipeline, RowSources* sources, bool is_ordered)
      : pipeline_(pipeline), sources_(sources), is_ordered_(is_ordered) {}

  OperatorOr Build(const plan::Plan& plan, const std::string& prefix) {
    PENSTOCK_ASSIGN_OR_RETURN(const std::vector<bool> is_used, Used(plan));
    std::vector<TensorSpec> bound;
    for (const plan::TensorSpec& proto : plan.bound()) {
      PENSTOCK_ASSIGN_OR_RETURN(TensorSpec spec, plan::FromProto(proto));
      bound.push_back(std::move(spec));
    }
    std::vector<OperatorPtr> operators(plan.nodes_size());
    std::vector<const OpInfo*> infos(plan.nodes_size());
    // Rows are kept after nodes of the plan itself alone.
    std::optional<KeepPlaces> keep;
    if (prefix.empty()) keep.emplace(plan, is_ordered_);
    for (int i = 0; i < plan.nodes_size(); ++i) {
      if (!is_used[i]) continue;
      const plan::Node& node = plan.nodes(i);
      Note(node, !prefix.empty());
      if (node.has_with_options()) {  // no operator: Note() has read them
        operators[i] = operators[node.inputs(0)];
        infos[i] = infos[node.inputs(0)];
        if (keep.has_value()) keep->HandOn(i, node.inputs(0));
        continue;
      }
      PENSTOCK_ASSIGN_OR_RETURN(infos[i], AddInfo(plan, i, prefix, infos));

      OpContext context;
      context.info = infos[i];
      context.bound = bound;
      context.sources = sources_;
      std::vector<OperatorPtr> inputs;
      std::optional<int64_t> input_rows;
      for (uint32_t input : node.inputs()) {
        inputs.push_back(operators[input]);
        PENSTOCK_ASSIGN_OR_RETURN(context.input_specs.emplace_back(),
                                  plan::FromProto(plan.nodes(input).output()));
        context.input_leaves.push_back(infos[input]->leaves);
        const plan::Cardinality& rows = plan.nodes(input).cardinality();
        if (rows.has_finite()) input_rows = rows.finite();
      }
      context.build_subplan = [&](const plan::Plan& subplan) {
        const int outer = std::exchange(inside_, infos[i]->id);
        OperatorOr built = Build(subplan, infos[i]->name + "/");
        inside_ = outer;
        return built;
      };
      PENSTOCK_ASSIGN_OR_RETURN(
          operators[i],
          BuildOperator(node, std::move(inputs), input_rows, context));
      operators[i] = Located(operators[i], infos[i]);
      if (prefix.empty() && !node.has_read_files()) {
        operators[i] = MakePart(operators[i], *infos[i]);
      }
      if (keep.has_value()) {
        operators[i] = keep->After(i, operators[i], *infos[i], *pipeline_);
      }
    }
    if (operators.empty()) {
      return absl::InvalidArgumentError("a plan must have a node; got none");
    }
    if (prefix.empty()) {
      pipeline_->root_info_ = infos.back();
      for (const OpInfo* info : infos) {
        pipeline_->op_of_node_.push_back(info == nullptr ? -1 : info->id);
      }
    }
    return operators.back();
  }

  // Whether rows may be seen being computed.
  bool is_seen() const { return is_seen_; }
  bool says_how_far() const { return says_how_far_; }

 private:
  static absl::StatusOr<std::vector<bool>> Used(const plan::Plan& plan) {
    std::vector<bool> used(plan.nodes_size(), false);
    if (!used.empty()) used.back() = true;
    for (int i = plan.nodes_size() - 1; i >= 0; --i) {
      if (!used[i]) continue;
      for (uint32_t input : plan.nodes(i).inputs()) {
        if (input >= static_cast<uint32_t>(i)) {
          return absl::InvalidArgumentError(
              "a node's input must come before it");
        }
        used[input] = true;
      }
    }
    return used;
  }

  absl::StatusOr<const OpInfo*> AddInfo(const plan::Plan& plan, int index,
                                        const std::string& prefix,
                                        const std::vector<const OpInfo*>& all) {
    const plan::Node& node = plan.nodes(index);
    OpInfo info;
    info.id = static_cast<int>(pipeline_->infos_.size());
    info.is_transparent = node.has_prefetch();
    // A key of its own counts for those in its function, too: they go on from
    // it, as they did where it was given.
    if (node.has_key()) {
      num_keys_ = node.key();
    } else if (!info.is_transparent) {
      ++num_keys_;
    }
    info.key = num_keys_;
    info.name = absl::StrCat(prefix, plan::NodeName(plan, index));
    info.made_at = node.made_at();
    info.instance = node.instance();
    PENSTOCK_ASSIGN_OR_RETURN(const ElementSpec spec,
                              plan::FromProto(node.output()));
    info.leaves = spec.Flatten();
    for (uint32_t input : node.inputs()) info.inputs.push_back(all[input]->id);
    Describe(plan, index, info);
    pipeline_->infos_.push_back(std::move(info));
    pipeline_->seeds_.push_back(SeedOf(node));
    pipeline_->why_not_kept_.push_back(
        absl::StrCat(pipeline_->infos_.back().name, " is inside a function"));
    if (node.has_list_files() || node.has_read_files()) {
      pipeline_->file_ops_.push_back(pipeline_->infos_.back().id);
    }
    return &pipeline_->infos_.back();
  }

  // What a snapshot says of the node in every run.
  void Describe(const plan::Plan& plan, int index, OpInfo& info) const {
    plan::Snapshot::Node& out = info.described;
    plan::Describe(plan, index, out);
    out.set_name(info.name);
    out.set_node(info.id);
    for (int input : info.inputs) out.add_inputs(input);
    if (inside_ >= 0) out.set_inside(inside_);
    const plan::Node& node = plan.nodes(index);
    const bool is_parallel =
        (node.has_map() && !node.map().function().has_dataset()) ||
        (node.has_filter() && out.is_python()) || node.has_interleave();
    out.set_is_sequential(!is_parallel);
    const auto pin = [](int64_t value, plan::Knob& knob) {
      knob.set_value(value);
      knob.set_chosen_by(plan::USER);
    };
    if (node.has_map() && node.map().has_parallelism()) {
      pin(node.map().parallelism(), *info.pinned.mutable_parallelism());
    }
    if (node.has_interleave() && node.interleave().has_parallelism()) {
      pin(node.interleave().parallelism(), *info.pinned.mutable_parallelism());
    }
    if (node.has_prefetch() && node.prefetch().has_buffer_size()) {
      pin(node.prefetch().buffer_size(), *info.pinned.mutable_buffer_rows());
    }
    if (node.has_read_files() && node.read_files().has_buffer_bytes()) {
      pin(node.read_files().buffer_bytes(), *info.pinned.mutable_read_bytes());
    }
  }

  // What the node means for the run as a whole.
  void Note(const plan::Node& node, bool is_inside) {
    if (node.has_generator()) is_seen_ = true;
    if (node.has_prefetch() && node.prefetch().has_buffer_size()) {
      says_how_far_ = true;
    }
    if (node.has_with_options()) {
      pipeline_->options_.MergeFrom(node.with_options().options());
      if (node.with_options().options().has_run_ahead()) says_how_far_ = true;
    }
    const std::vector<const plan::Function*> functions =
        plan::FunctionsOf(node);
    for (const plan::Function* function : functions) {
      if (plan::IsPython(*function)) is_seen_ = true;
    }
    // Of a map: something random in its function, keyed by lineage. In a
    // sub-plan, anything with an instance is told apart by the outer row's.
    const bool is_function = !functions.empty();
    if (node.has_instance() && (is_function || is_inside)) {
      pipeline_->needs_lineage_ = true;
    }
  }

  Pipeline* const pipeline_;
  RowSources* const sources_;
  const bool is_ordered_;
  uint64_t num_keys_ = 0;
  bool is_seen_ = false;
  bool says_how_far_ = false;
  int inside_ = -1;  // id of the node whose function is being built
};

namespace {

// What the plan's options say of the order, those of functions' datasets too:
// the last of them counts, as it does for the run.
void FindOrder(const plan::Plan& plan, bool& is_ordered) {
  for (const plan::Node& node : plan.nodes()) {
    if (node.has_with_options() &&
        node.with_options().options().has_deterministic()) {
      is_ordered = node.with_options().options().deterministic();
    }
    for (const plan::Function* function : plan::FunctionsOf(node)) {
      if (function->has_dataset()) FindOrder(function->dataset(), is_ordered);
    }
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Pipeline>> Pipeline::Build(
    const plan::Plan& plan, const plan::Options& defaults,
    RowSources* sources) {
  std::shared_ptr<Pipeline> pipeline(new Pipeline());
  pipeline->options_ = defaults;
  bool is_ordered = !defaults.has_deterministic() || defaults.deterministic();
  FindOrder(plan, is_ordered);
  Builder builder(pipeline.get(), sources, is_ordered);
  PENSTOCK_ASSIGN_OR_RETURN(pipeline->root_, builder.Build(plan, ""));
  pipeline->fingerprint_ = plan::Fingerprint(plan);
  pipeline->is_row_exact_ =
      builder.is_seen() && (builder.says_how_far() || defaults.has_run_ahead());
  return pipeline;
}

RandomState Instances::Next(uint64_t instance,
                            std::optional<uint64_t> given_seed) {
  MutexLock lock(&mutex_);
  auto [it, is_first] = states_.try_emplace(instance);
  if (is_first) {
    it->second.seed = given_seed.has_value() ? *given_seed : random_();
    return it->second;
  }
  ++it->second.epoch;
  return it->second;
}

void Instances::Resume(uint64_t instance, const RandomState& state,
                       bool is_recovery) {
  MutexLock lock(&mutex_);
  auto [it, is_first] = states_.try_emplace(instance, state);
  if (is_recovery && it->second.epoch > state.epoch) return;
  it->second = state;
}

void Instances::Drop(uint64_t instance) {
  MutexLock lock(&mutex_);
  states_.erase(instance);
}

namespace {

absl::StatusOr<int> OpOf(const Pipeline& pipeline, std::optional<int> node) {
  if (!node.has_value()) return -1;
  if (*node >= 0 && *node < pipeline.num_nodes() &&
      pipeline.OpOfNode(*node) >= 0) {
    return pipeline.OpOfNode(*node);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("a part must be of a node of the plan, which has ",
                   pipeline.num_nodes(), "; got number ", *node));
}

absl::Status SetPart(const Pipeline& pipeline, const RunPart& part, Run& run) {
  if (part.begin < 0 || part.end < part.begin) {
    return absl::InvalidArgumentError(
        absl::StrCat("a part must have rows [begin, end) with 0 <= begin <= "
                     "end; got [",
                     part.begin, ", ", part.end, ")"));
  }
  if (part.stride < 1 || part.pieces < 1 || part.piece < 0 ||
      part.piece >= part.pieces ||
      (part.pieces > 1 && part.end - part.begin > 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a part must be every 1st row or more, or one piece of one row; got "
        "every ",
        part.stride, " of ", part.end - part.begin, ", piece ", part.piece,
        " of ", part.pieces));
  }
  PENSTOCK_ASSIGN_OR_RETURN(run.part_ops.source, OpOf(pipeline, part.node));
  PENSTOCK_ASSIGN_OR_RETURN(run.part_ops.opener, OpOf(pipeline, part.opener));
  PENSTOCK_ASSIGN_OR_RETURN(run.part_ops.repeat, OpOf(pipeline, part.repeat));
  PENSTOCK_ASSIGN_OR_RETURN(run.part_ops.stitch, OpOf(pipeline, part.stitch));
  run.options.part = part;
  run.options.needs_lineage |= part.gives_lineage;
  // Positions among its rows have a meaning for others.
  run.options.is_deterministic = true;
  return absl::OkStatus();
}

// What states of a run fit.
std::string StateName(const Pipeline& pipeline, const Run& run) {
  if (!run.options.part.has_value()) return pipeline.fingerprint();
  const RunPart& part = *run.options.part;
  return absl::StrCat(pipeline.fingerprint(), ", rows ", part.begin, " to ",
                      part.end, " of pass ", part.pass, ".", part.iteration,
                      ", every ", part.stride, ", piece ", part.piece, " of ",
                      part.pieces, part.is_received ? ", received" : "");
}

absl::StatusOr<std::shared_ptr<Run>> MakeRun(
    const std::shared_ptr<const Pipeline>& shared_pipeline,
    const Environment& environment, const std::optional<RunPart>& part) {
  const Pipeline& pipeline = *shared_pipeline;
  auto run = std::make_shared<Run>();
  run->pipeline = shared_pipeline;
  run->environment = environment;
  run->options.is_row_exact = pipeline.is_row_exact();
  run->options.needs_lineage = pipeline.needs_lineage();
  const plan::Options& options = pipeline.options();
  if (options.has_deterministic()) {
    run->options.is_deterministic = options.deterministic();
  }
  run->options.python = options.python();
  if (options.has_max_element_bytes()) {
    run->options.max_element_bytes = options.max_element_bytes();
  }
  run->stats.resize(pipeline.ops().size());
  run->knobs.resize(pipeline.ops().size());
  for (NodeStats& stats : run->stats) {
    stats.is_counting = environment.has_counters;
    stats.padding.AddTo(environment.padding);
  }
  run->random.resize(pipeline.ops().size());
  run->knobs.resize(pipeline.ops().size());
  run->kept.resize(pipeline.ops().size());
  for (int id : pipeline.file_ops()) {
    run->file_logs[id] = std::make_shared<FileLog>(environment.files);
  }
  for (const OpInfo& info : pipeline.ops()) {
    if (info.instance != 0) run->instances.push_back(info.instance);
  }
  if (part.has_value()) {
    PENSTOCK_RETURN_IF_ERROR(SetPart(pipeline, *part, *run));
  }
  return run;
}

// Nodes that have a random state in what Save() writes.
uint64_t NumKeys(const Pipeline& pipeline) {
  return static_cast<uint64_t>(
      std::count_if(pipeline.ops().begin(), pipeline.ops().end(),
                    [](const OpInfo& info) { return !info.is_transparent; }));
}

}  // namespace

absl::StatusOr<Pull> Iterator::Next(const Request& request) {
  if (!failure_.ok()) return failure_;
  absl::StatusOr<Pull> pull = root_->Next(request);
  if (!pull.ok()) failure_ = pull.status();
  return pull;
}

absl::Status Iterator::Open() {
  Scope scope;
  scope.run = run_;
  if (run_->options.part.has_value()) {
    scope.iteration = run_->options.part->iteration;
  }
  PENSTOCK_ASSIGN_OR_RETURN(root_, pipeline_->root().Start(scope));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Iterator>> Iterator::Start(
    std::shared_ptr<const Pipeline> pipeline, const Environment& environment,
    Instances& instances, std::optional<uint64_t> epoch,
    std::optional<uint64_t> seed, const std::optional<RunPart>& part) {
  PENSTOCK_ASSIGN_OR_RETURN(std::shared_ptr<Run> run,
                            MakeRun(pipeline, environment, part));
  for (const OpInfo& info : pipeline->ops()) {
    RandomState& state = run->random[info.id];
    if (info.instance == 0) continue;
    const std::optional<uint64_t> given = pipeline->GivenSeed(info.id);
    if (seed.has_value()) {
      state.seed = given.has_value() ? *given : Combine(*seed, info.key);
    } else {
      state = instances.Next(info.instance, given);
    }
    if (epoch.has_value()) state.epoch = *epoch;
  }
  std::unique_ptr<Iterator> iterator(
      new Iterator(std::move(pipeline), std::move(run)));
  PENSTOCK_RETURN_IF_ERROR(iterator->Open());
  return iterator;
}

std::string Iterator::Save() const {
  WireWriter writer;
  writer.Varint(kStateVersion);
  writer.Bytes(StateName(*pipeline_, *run_));
  writer.Varint(NumKeys(*pipeline_));
  for (const OpInfo& info : pipeline_->ops()) {
    if (info.is_transparent) continue;
    writer.Varint(run_->random[info.id].seed);
    writer.Varint(run_->random[info.id].epoch);
  }
  WireWriter streams;
  root_->Save(streams);
  if (run_->environment.receiver != nullptr) {
    streams.Bytes(run_->environment.receiver->Mark());
  }
  writer.Bytes(streams.bytes());
  const uint64_t checksum = io::Crc32c(writer.bytes());
  writer.Varint(checksum);
  return writer.Take();
}

Iterator::Sealed Iterator::Seal(std::string state) const {
  Receiver* receiver = run_->environment.receiver.get();
  if (receiver == nullptr || state.empty()) return {std::move(state), 0};
  const Receiver::Seal seal = receiver->SealState(state);
  WireWriter writer;
  writer.Raw(state);
  writer.Bytes(seal.journal);
  writer.Varint(io::Crc32c(seal.journal));
  return {writer.Take(), seal.ticket};
}

absl::StatusOr<Iterator::Parts> Iterator::TakeApart(std::string_view sealed) {
  WireReader reader(sealed);
  PENSTOCK_RETURN_IF_ERROR(reader.Varint().status());  // version
  PENSTOCK_RETURN_IF_ERROR(reader.Bytes().status());   // name
  PENSTOCK_ASSIGN_OR_RETURN(const uint64_t count, reader.Varint());
  for (uint64_t i = 0; i < count; ++i) {
    PENSTOCK_RETURN_IF_ERROR(reader.Varint().status());
    PENSTOCK_RETURN_IF_ERROR(reader.Varint().status());
  }
  PENSTOCK_ASSIGN_OR_RETURN(const std::string_view streams, reader.Bytes());
  const auto covered =
      static_cast<size_t>(streams.data() + streams.size() - sealed.data());
  PENSTOCK_ASSIGN_OR_RETURN(const uint64_t checksum, reader.Varint());
  bool is_whole = checksum == io::Crc32c(sealed.substr(0, covered));
  Parts parts;
  parts.state = sealed.substr(0, sealed.size() - reader.rest().size());
  if (!reader.is_at_end()) {
    PENSTOCK_ASSIGN_OR_RETURN(parts.journal, reader.Bytes());
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t of_journal, reader.Varint());
    is_whole &= of_journal == io::Crc32c(parts.journal) && reader.is_at_end();
  }
  if (is_whole) return parts;
  return absl::DataLossError(
      "damaged state: its checksum does not match\n  Use an earlier "
      "checkpoint.");
}

absl::StatusOr<std::unique_ptr<Iterator>> Iterator::Resume(
    std::shared_ptr<const Pipeline> pipeline, const Environment& environment,
    Instances& instances, std::string_view state, int64_t skip_rows,
    bool is_recovery, const std::optional<RunPart>& part) {
  WireReader reader(state);
  PENSTOCK_ASSIGN_OR_RETURN(const uint64_t version, reader.Varint());
  if (version != kStateVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a state of version ", kStateVersion, "; got ",
                     version, "\n  It was saved by another version."));
  }
  PENSTOCK_ASSIGN_OR_RETURN(const std::string_view fingerprint, reader.Bytes());
  PENSTOCK_ASSIGN_OR_RETURN(const uint64_t count, reader.Varint());
  PENSTOCK_ASSIGN_OR_RETURN(std::shared_ptr<Run> run,
                            MakeRun(pipeline, environment, part));
  const std::string expected = StateName(*pipeline, *run);
  const bool is_other = fingerprint != expected;
  if (!is_other && count != NumKeys(*pipeline)) {
    return absl::DataLossError("damaged state: it has another number of nodes");
  }
  std::vector<RandomState> random;
  for (uint64_t i = 0; i < count; ++i) {
    RandomState node;
    PENSTOCK_ASSIGN_OR_RETURN(node.seed, reader.Varint());
    PENSTOCK_ASSIGN_OR_RETURN(node.epoch, reader.Varint());
    random.push_back(node);
  }
  PENSTOCK_ASSIGN_OR_RETURN(const std::string_view streams, reader.Bytes());
  PENSTOCK_ASSIGN_OR_RETURN(const Parts parts, TakeApart(state));
  if (is_other) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a state of this pipeline (", expected,
                     "); got one of pipeline ", std::string(fingerprint),
                     "\n  States fit the pipeline they were saved from: same "
                     "transformations, same parameters, same order."));
  }
  auto next = random.begin();
  for (const OpInfo& info : pipeline->ops()) {
    if (!info.is_transparent) run->random[info.id] = *next++;
  }
  if (environment.receiver != nullptr) {
    PENSTOCK_RETURN_IF_ERROR(
        environment.receiver->Restore(parts.journal, is_recovery));
  }
  std::unique_ptr<Iterator> iterator(
      new Iterator(std::move(pipeline), std::move(run)));
  PENSTOCK_RETURN_IF_ERROR(iterator->Open());
  WireReader stream_reader(streams);
  PENSTOCK_RETURN_IF_ERROR(iterator->root_->Restore(stream_reader));
  iterator->root_->SkipRows(skip_rows);
  if (environment.receiver != nullptr) environment.receiver->OnRestored();
  for (const OpInfo& info : iterator->pipeline_->ops()) {
    if (info.instance == 0) continue;
    instances.Resume(info.instance, iterator->run_->random[info.id],
                     is_recovery);
  }
  return iterator;
}

}  // namespace penstock::engine

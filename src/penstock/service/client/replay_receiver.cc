#include "penstock/service/client/replay_receiver.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/data/builder.h"
#include "penstock/plan/convert.h"
#include "penstock/plan/infer.h"
#include "penstock/service/client/pass.h"

namespace penstock::service {
namespace {

// Passes that are begun anew, one after another, without a row between them.
constexpr int kMaxLostPasses = 5;

std::string JobOf(const plan::Distribution& distribution,
                  const std::string& name) {
  const std::string& job = distribution.job();
  return absl::StrCat(job.empty() ? "inner" : job, "/", name);
}

// Who reads the outer job would take the code for that of its own service, and
// wait.
absl::Status Named(const absl::Status& status,
                   const plan::Distribution& distribution) {
  absl::StatusCode code = status.code();
  switch (code) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kDataLoss:
      code = absl::StatusCode::kFailedPrecondition;
      break;
    default:
      break;
  }
  return absl::Status(
      code, absl::StrCat(
                "reading job '",
                distribution.job().empty() ? "(no name)" : distribution.job(),
                "' of the service at ", distribution.address(),
                " for this one: ", status.message()));
}

// The service has forgotten the run, or believes its reader gone.
bool IsLost(const absl::Status& status) {
  return absl::IsAborted(status) || absl::IsNotFound(status);
}

bool HasPython(const plan::Plan& plan) {
  for (const plan::Node& node : plan.nodes()) {
    for (const plan::Function* function : plan::FunctionsOf(node)) {
      if (function->has_python() ||
          (function->has_dataset() && HasPython(function->dataset()))) {
        return true;
      }
    }
  }
  return false;
}

class ReplayStream final : public engine::Stream {
 public:
  using Begin = std::function<std::shared_ptr<Pass>()>;

  ReplayStream(const engine::Scope& scope, const engine::OpInfo& info,
               Begin begin, plan::Distribution distribution)
      : Stream(engine::StatsOf(scope, info), Counts::kTime),
        run_(scope.run.get()),
        gives_loose_(scope.run->part_ops.stitch == info.id),
        begin_(std::move(begin)),
        distribution_(std::move(distribution)),
        pass_(begin_()) {}
  ~ReplayStream() override { End(); }

 protected:
  absl::StatusOr<engine::Pull> DoNext(const engine::Request& request) override {
    while (true) {
      absl::StatusOr<engine::Pull> pull = pass_->Next(request);
      if (!pull.ok()) {
        if (!IsLost(pull.status()) || ++lost_ > kMaxLostPasses) {
          return Named(pull.status(), distribution_);
        }
        const uint64_t row = pass_->row();
        End();
        pass_ = begin_();
        pass_->SeekTo(row);
        continue;
      }
      if (pull->has_rows()) {
        lost_ = 0;
        pass_->OnDelivered(pass_->row());
      }
      if (pull->is_end()) {
        if (gives_loose_) SetLoose();
        pass_->OnDelivered(pass_->row());
      }
      return pull;
    }
  }

  void DoSave(WireWriter& writer) const override {
    writer.Varint(pass_->row());
  }
  absl::Status DoRestore(WireReader& reader) override {
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t row, reader.Varint());
    pass_->SeekTo(row);
    return absl::OkStatus();
  }

 private:
  void End() {
    pass_->ForgetReader();
    pass_->Leave();
    pass_->Close();
  }

  void SetLoose() {
    ChunkBuilder builder;
    for (const Chunk& chunk : pass_->loose()) {
      builder.Append(chunk, 0, chunk.rows);
    }
    run_->loose.Set(builder.rows() > 0 ? builder.Build() : Chunk());
  }

  engine::Run* const run_;
  const bool gives_loose_;
  const Begin begin_;
  const plan::Distribution distribution_;  // for people
  std::shared_ptr<Pass> pass_;
  int lost_ = 0;
};

}  // namespace

absl::StatusOr<ReceivedSource> ReceivedSources::Get(
    const plan::Distribution& distribution) {
  const uint64_t hash = HashOf(distribution);
  MutexLock lock(&mutex_);
  const auto it = known_.find(hash);
  if (it != known_.end()) return it->second;
  PENSTOCK_ASSIGN_OR_RETURN(ReceivedSource made,
                            ReceivedSource::Make(distribution, settings_));
  known_[hash] = made;
  return made;
}

engine::StreamOr ReplayReceiver::Start(const plan::Received& spec,
                                       const engine::Scope& scope,
                                       const engine::OpInfo& info) {
  const plan::Distribution& distribution = spec.distribution();
  absl::StatusOr<ReceivedSource> source = options_.sources->Get(distribution);
  if (!source.ok()) return Named(source.status(), distribution);
  const auto found =
      std::ranges::find(options_.found, HashOf(distribution),
                        [](const auto& each) { return each.source(); });
  if (found == options_.found.end()) {
    return absl::InternalError(
        "the epoch's manifest must have what its plan reads of other jobs; got "
        "one without");
  }
  Pass::Selection selection;
  selection.manifest = found->manifest();
  if (!found->is_endless()) selection.bundles = found->bundles();
  const engine::RunPart* part =
      scope.run->options.part ? &*scope.run->options.part : nullptr;
  if (part != nullptr && part->is_received &&
      scope.run->part_ops.source == info.id) {
    selection.begin = static_cast<uint64_t>(part->begin);
    selection.end = static_cast<uint64_t>(part->end);
  }
  const engine::RandomState& random = scope.run->random[info.id];
  Pass::Options options;
  options.link = source->link;
  options.distribution = distribution;
  options.distribution.clear_plan();
  options.distribution.set_is_ordered(true);
  options.distribution.set_reader(0);
  options.distribution.set_readers(1);
  options.distribution.set_on_existing(plan::Distribution::ERROR);
  options.division = source->division;
  options.defaults = options_.sources->settings().defaults;
  options.environment = scope.run->environment;
  options.environment.receiver.reset();
  options.environment.frames.reset();
  options.environment.warn = options_.warn;
  options.keep = scope.run->pipeline;
  options.consumer = options_.random;
  options.seed = random.seed;
  options.epoch = random.epoch;
  options.iteration = scope.iteration;
  options.selection = selection;
  options.budget_bytes = options_.budget_bytes;
  if (scope.run->part_ops.stitch == info.id) {
    options.loose = HasPython(source->division->stitch->after)
                        ? Pass::Loose::kAll
                        : Pass::Loose::kRest;
  }
  plan::Distribution named = options.distribution;
  // The receiver lives as long as the run, which outlives its streams.
  auto begin = [this, options = std::move(options)] {
    Pass::Options these = options;
    these.job = JobOf(options.distribution,
                      absl::StrCat(options_.name, ".", passes_.fetch_add(1)));
    return std::make_shared<Pass>(std::move(these));
  };
  return std::make_unique<ReplayStream>(scope, info, std::move(begin),
                                        std::move(named));
}

absl::StatusOr<Manifest::Received> SurveyReceived(
    ReceivedSources& sources, const plan::Distribution& distribution,
    const std::string& name, uint64_t random,
    const std::function<bool()>& is_wanted) {
  const auto found = [&]() -> absl::StatusOr<Manifest::Received> {
    PENSTOCK_ASSIGN_OR_RETURN(const ReceivedSource source,
                              sources.Get(distribution));
    PENSTOCK_ASSIGN_OR_RETURN(
        const OpenReply opened,
        OpenOnce(*source.link, distribution, JobOf(distribution, name), random,
                 is_wanted));
    Manifest::Received received;
    received.set_source(HashOf(distribution));
    received.set_manifest(opened.manifest());
    uint64_t bundles = opened.bundles_in_pass();
    if (const auto& passes = source.division->passes) {
      received.set_is_endless(!passes->count.has_value() && bundles > 0);
      bundles *= static_cast<uint64_t>(
          std::max<int64_t>(0, passes->count.value_or(0)));
    }
    received.set_bundles(bundles);
    return received;
  }();
  if (!found.ok()) return Named(found.status(), distribution);
  return found;
}

}  // namespace penstock::service

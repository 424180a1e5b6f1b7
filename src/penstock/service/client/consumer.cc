#include "penstock/service/client/consumer.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/base/hash.h"
#include "penstock/base/status.h"
#include "penstock/service/client/places.h"
#include "penstock/service/client/registry.h"
#include "penstock/service/client/rounds.h"

namespace penstock::service {
namespace {

// The rows of a pass.
class PassStream final : public engine::Stream {
 public:
  PassStream(engine::NodeStats* stats, Consumer* consumer, uint64_t stream,
             std::shared_ptr<Pass> pass)
      : Stream(stats, Counts::kTime),
        consumer_(consumer),
        stream_(stream),
        pass_(std::move(pass)) {}
  ~PassStream() override {
    pass_->ForgetReader();
    consumer_->OnStreamEnd(stream_);
  }

 protected:
  absl::StatusOr<engine::Pull> DoNext(const engine::Request& request) override {
    return pass_->Next(request);
  }
  void DoSave(WireWriter& writer) const override {
    writer.Bytes(ToBytes({stream_, pass_->row()}));
  }
  absl::Status DoRestore(WireReader& reader) override {
    PENSTOCK_ASSIGN_OR_RETURN(const std::string_view bytes, reader.Bytes());
    const std::optional<Place> place = ReadPlace(bytes);
    if (!place || place->stream != stream_) {
      return absl::DataLossError("a state's place in its journal is damaged");
    }
    pass_->SeekTo(place->row);
    return absl::OkStatus();
  }

 private:
  Consumer* const consumer_;
  const uint64_t stream_;
  const std::shared_ptr<Pass> pass_;
};

}  // namespace

Consumer::Consumer(Options options)
    : options_(std::move(options)), consumer_(options_.random) {}

Consumer::~Consumer() {
  MutexLock lock(&mutex_);
  for (auto& [stream, known] : passes_) known.pass->Close();
}

absl::StatusOr<ConsumerState> Consumer::StateOf(std::string_view sealed,
                                                uint64_t rows) {
  PENSTOCK_ASSIGN_OR_RETURN(const engine::Iterator::Parts parts,
                            engine::Iterator::TakeApart(sealed));
  Journal journal;
  if (!journal.ParseFromArray(parts.journal.data(),
                              static_cast<int>(parts.journal.size()))) {
    return absl::DataLossError("a state's journal is damaged");
  }
  const std::map<uint64_t, uint64_t> places = FindPlaces(parts.state);
  if (journal.passes_size() != 1 || journal.passes(0).base().job().empty()) {
    return absl::InvalidArgumentError(
        "the states of several readers must be of readers that have begun; got "
        "one that has not\n  Save states after the first element.");
  }
  RowLog log(journal.passes(0));
  const auto place = places.find(journal.passes(0).stream());
  const uint64_t row =
      (place == places.end() ? log.begin() : place->second) + rows;
  log.TrimTo(row);
  if (log.begin() != row) {
    return absl::InvalidArgumentError(
        "a state of several readers must lie between batches; got one among "
        "the elements that one batch was made into\n  Save it elsewhere.");
  }
  ConsumerState state = log.base();
  state.set_origin(log.origin());
  state.set_row(row);
  return state;
}

void Consumer::RestoreFrom(std::vector<ConsumerState> states) {
  MutexLock lock(&mutex_);
  states_ = std::move(states);
}

absl::StatusOr<ReceivedSource> Consumer::SourceOf(
    const plan::Distribution& distribution, const engine::Run& run, int node) {
  if (const auto it = sources_.find(node); it != sources_.end()) {
    return it->second;
  }
  ReceivedSource::Settings settings;
  settings.directory = options_.directory;
  settings.defaults = options_.defaults;
  settings.credentials = CredentialsOf(distribution);
  settings.captures = run.environment.sources;
  settings.frames = run.environment.frames;
  settings.needs_lineage = run.options.needs_lineage;
  PENSTOCK_ASSIGN_OR_RETURN(const ReceivedSource source,
                            ReceivedSource::Make(distribution, settings));
  sources_[node] = source;
  return source;
}

engine::StreamOr Consumer::Start(const plan::Received& spec,
                                 const engine::Scope& scope,
                                 const engine::OpInfo& info) {
  MutexLock lock(&mutex_);
  const plan::Distribution& distribution = spec.distribution();
  PENSTOCK_ASSIGN_OR_RETURN(const ReceivedSource source,
                            SourceOf(distribution, *scope.run, info.id));
  const engine::RandomState& random = scope.run->random[info.id];
  const uint64_t stream =
      Combine(Combine(info.key, scope.iteration), scope.binding) | 1;
  const auto restored = restored_.find(stream);
  Pass::Options options;
  options.link = source.link;
  options.distribution = distribution;
  options.distribution.clear_plan();
  options.division = source.division;
  options.defaults = options_.defaults;
  options.environment = scope.run->environment;
  options.environment.receiver.reset();
  options.job = distribution.job();
  if (options.job.empty()) {
    // One of its own, but for a state's, which goes on with that.
    options.job = absl::StrCat("reader-", absl::Hex(options_.random));
    if (restored != restored_.end())
      options.job = restored->second.base().job();
  }
  if (distribution.consumers() > 0) options.job = JobOfLane(distribution);
  if (!states_.empty()) {
    if (distribution.job().empty()) options.job = states_[0].job();
    options.states = states_;
    if (distribution.consumers() > 0 && options_.may_resize &&
        states_[0].lanes() != distribution.consumers()) {
      options.states.clear();
      PENSTOCK_ASSIGN_OR_RETURN(options.resized_from, StateOfRound(states_));
    } else if (distribution.consumers() > 0) {
      PENSTOCK_ASSIGN_OR_RETURN(options.states,
                                OwnStates(states_, options.job));
    }
  }
  // One state alone is a journal, and says the same.
  if (distribution.consumers() > 0 && restored != restored_.end() &&
      !is_recovery_ && !restored->second.base().job().empty()) {
    PENSTOCK_RETURN_IF_ERROR(
        OwnStates({restored->second.base()}, options.job).status());
  }
  options.consumer = consumer_;
  options.seed = random.seed;
  options.epoch = random.epoch;
  options.iteration = scope.iteration;
  options.budget_bytes = options_.budget_bytes;
  auto pass = std::make_shared<Pass>(std::move(options));
  if (restored != restored_.end()) {
    // Else nothing of it had come when the state was made.
    if (restored->second.base().epoch().run() != 0) {
      pass->Resume(RowLog(restored->second), is_recovery_);
    }
    restored_.erase(restored);
  }
  passes_[stream] = {pass, std::nullopt};
  return std::make_unique<PassStream>(engine::StatsOf(scope, info), this,
                                      stream, std::move(pass));
}

std::string Consumer::Mark() {
  MutexLock lock(&mutex_);
  return ToBytes({0, ++num_states_});
}

Consumer::Seal Consumer::SealState(std::string_view state) {
  MutexLock lock(&mutex_);
  Ticket ticket;
  ticket.rows = FindPlaces(state);
  if (const auto mark = ticket.rows.find(0); mark != ticket.rows.end()) {
    ticket.state = mark->second;
    ticket.rows.erase(mark);
  }
  Journal journal;
  journal.set_consumer(consumer_);
  for (const auto& [stream, known] : passes_) {
    if (ticket.IsOver(stream, known)) continue;
    Journal::Pass* pass = journal.add_passes();
    *pass = known.pass->ToProto();
    pass->set_stream(stream);
  }
  const uint64_t number = next_ticket_++;
  tickets_[number] = std::move(ticket);
  return {journal.SerializeAsString(), number};
}

absl::Status Consumer::Restore(std::string_view bytes, bool is_recovery) {
  Journal journal;
  if (!journal.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::DataLossError("a state's journal is damaged");
  }
  MutexLock lock(&mutex_);
  is_recovery_ = is_recovery;
  if (is_recovery && journal.consumer() != 0) consumer_ = journal.consumer();
  for (Journal::Pass& pass : *journal.mutable_passes()) {
    const uint64_t stream = pass.stream();
    restored_[stream] = std::move(pass);
  }
  return absl::OkStatus();
}

void Consumer::OnRestored() {
  MutexLock lock(&mutex_);
  for (auto& [stream, known] : passes_) known.pass->OpenIfResumed();
}

void Consumer::Deliver(const Ticket& ticket) {
  for (auto it = passes_.begin(); it != passes_.end();) {
    Known& known = it->second;
    const auto row = ticket.rows.find(it->first);
    if (row != ticket.rows.end()) {
      known.pass->OnDelivered(row->second);
    } else if (ticket.IsOver(it->first, known)) {
      // No state will name it any more.
      known.pass->OnDelivered(known.pass->row());
      known.pass->Close();
      offers_ = known.pass->offers();
      it = passes_.erase(it);
      continue;
    }
    ++it;
  }
}

void Consumer::OnTaken(uint64_t number) {
  MutexLock lock(&mutex_);
  const auto it = tickets_.find(number);
  if (it == tickets_.end()) return;
  Deliver(it->second);
  // This one may be needed again, when the reader leaves.
  tickets_.erase(tickets_.begin(), it);
}

void Consumer::OnStreamEnd(uint64_t stream) {
  MutexLock lock(&mutex_);
  const auto it = passes_.find(stream);
  if (it != passes_.end()) it->second.states_before_end = num_states_;
}

void Consumer::OnEnded() {
  MutexLock lock(&mutex_);
  for (auto& [stream, known] : passes_) {
    known.pass->OnDelivered(known.pass->row());
    known.pass->Leave();
  }
}

std::vector<plan::Offer> Consumer::Offers() {
  MutexLock lock(&mutex_);
  std::vector<plan::Offer> offers;
  for (const auto& [stream, known] : passes_) {
    for (plan::Offer& offer : known.pass->offers()) {
      offers.push_back(std::move(offer));
    }
  }
  return passes_.empty() ? offers_ : offers;
}

void Consumer::OnLeft(uint64_t number, uint64_t rows) {
  MutexLock lock(&mutex_);
  const auto it = tickets_.find(number);
  if (it != tickets_.end()) {
    Ticket ticket = it->second;
    if (options_.is_plain) {
      for (auto& [stream, row] : ticket.rows) row += rows;
    }
    Deliver(ticket);
  }
  for (auto& [stream, known] : passes_) known.pass->Leave();
}

}  // namespace penstock::service

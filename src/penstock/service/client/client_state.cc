#include "penstock/service/client/client_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::service {

ClientState::ClientState(const Settings& settings, const OpenReply& opened,
                         const std::optional<ConsumerState>& resumed)
    : settings_(settings),
      epoch_(opened.epoch()),
      manifest_(opened.manifest()),
      inherited_(Inherited(opened)),
      done_(opened.done()),
      term_(opened.term()),
      next_to_take_(settings.slot),
      seed_(opened.seed()),
      splits_(opened.splits().begin(), opened.splits().end()),
      resized_at_(opened.resized_at()) {
  if (!resumed || !IsSame(resumed->epoch(), epoch_)) return;
  given_ = BundleSet(resumed->done());
  for (const Cursor& cursor : resumed->open()) {
    if (done_.Has(cursor.bundle())) {
      given_.Add(cursor.bundle());
      continue;
    }
    Bundle& bundle = bundles_[cursor.bundle()];
    bundle.from = bundle.end = cursor.position();
    bundle.received = bundle.taken = cursor.position();
    bundle.given = bundle.delivered = cursor.position();
  }
  finished_ = given_;
}

ClientState::Bundle& ClientState::Opened(uint64_t bundle, uint64_t from) {
  const auto [it, is_new] = bundles_.try_emplace(bundle);
  if (is_new) {
    it->second.from = it->second.end = from;
    it->second.received = it->second.taken = from;
    it->second.given = it->second.delivered = from;
  }
  return it->second;
}

ClientBeat ClientState::MakeBeat() const {
  ClientBeat beat;
  *beat.mutable_epoch() = epoch_;
  beat.set_slot(settings_.slot);
  *beat.mutable_opener() = settings_.opener;
  beat.set_term(term_);
  for (const auto& [number, finished] : to_report_) {
    *beat.add_finished() = finished;
  }
  uint32_t want = settings_.max_open;
  uint32_t passed_on = 0;
  bool waits_for_next = false;
  if (const std::optional<uint64_t> next = NextToTake();
      next && !bundles_.contains(*next)) {
    beat.add_open(*next);
    waits_for_next = true;
  }
  for (const auto& [number, bundle] : bundles_) {
    // All of it is here: it takes nobody's place.
    if (bundle.items) {
      ++want;
      beat.add_complete(number);
      if (IsTaken(bundle)) ++passed_on;
    } else {
      beat.add_open(number);
    }
    if (bundle.bad == 0) continue;
    ClientBeat::Bad* bad = beat.add_bad();
    bad->set_bundle(number);
    bad->set_attempt(bundle.bad);
    bad->set_why(bundle.why);
    bad->set_is_unread(bundle.received == 0);
  }
  for (const uint64_t number : awaited_) {
    if (!bundles_.contains(number) && !given_.Has(number)) {
      beat.add_open(number);
    }
  }
  if (is_full_ && !waits_for_next) want = 0;
  beat.set_want(want);
  beat.set_passed_on(passed_on);
  beat.set_missed(missed_);
  return beat;
}

ClientState::Actions ClientState::OnReply(const ClientReply& reply) {
  Actions actions;
  // Of a dispatcher that has been replaced.
  if (reply.term() < term_) return actions;
  term_ = reply.term();
  if (reply.phase() == ClientReply::FENCED ||
      reply.phase() == ClientReply::FAILED) {
    failure_ =
        absl::Status(reply.phase() == ClientReply::FENCED
                         ? absl::StatusCode::kAborted
                         : static_cast<absl::StatusCode>(reply.error_code()),
                     reply.error());
    for (const auto& [number, bundle] : bundles_) {
      if (bundle.attempt != 0) actions.stop.push_back(number);
    }
    return actions;
  }
  low_ = std::max(low_, reply.low());
  told_missed_items_ = std::max(told_missed_items_, reply.missed_items());
  told_missed_bundles_ = std::max(told_missed_bundles_, reply.missed_bundles());
  for (uint64_t at = given_.NextAbsent(0); at < reply.skipped_to();
       at = given_.NextAbsent(at + 1)) {
    const auto begun = bundles_.lower_bound(at);
    const uint64_t end = begun == bundles_.end()
                             ? reply.skipped_to()
                             : std::min(reply.skipped_to(), begun->first);
    given_.AddRun(at, end);
    actions.skipped.AddRun(at, end);
    at = end;  // which is its own, or not skipped
  }
  for (const uint64_t number : reply.taken()) to_report_.erase(number);
  for (const uint64_t number : reply.dropped()) {
    const auto it = bundles_.find(number);
    if (it == bundles_.end()) {
      given_.Add(number);
      actions.skipped.Add(number);
      continue;
    }
    if (it->second.items) continue;
    it->second.items = it->second.received;
    it->second.attempt = 0;
    actions.dropped.emplace_back().set_bundle(number);
    actions.dropped.back().set_items(it->second.end);
    if (it->second.given >= *it->second.items) given_.Add(number);
    actions.stop.push_back(number);
  }
  has_nothing_left_ = reply.phase() == ClientReply::NOTHING_LEFT;
  for (const ClientReply::Assigned& assigned : reply.assigned()) {
    const uint64_t number = assigned.bundle();
    if (finished_.Has(number)) {
      to_report_[number].set_bundle(number);  // a restart has forgotten that
      continue;
    }
    Bundle& bundle = Opened(number, assigned.from());
    if (bundle.items && bundle.received >= *bundle.items) continue;
    if (bundle.attempt == assigned.attempt()) continue;
    if (bundle.bad == assigned.attempt()) continue;  // not heard of yet
    bundle.attempt = assigned.attempt();
    bundle.bad = 0;
    actions.start.push_back({number, assigned.attempt(), assigned.address(),
                             bundle.received, assigned.local_socket(),
                             assigned.frame_port()});
  }
  return actions;
}

ClientState::Taken ClientState::OnFrame(const FrameHead& head) {
  Taken taken;
  taken.end = head.position + head.items;
  if (!IsSame(head.epoch, epoch_)) return taken;
  const auto it = bundles_.find(head.bundle);
  if (it == bundles_.end()) return taken;
  Bundle& bundle = it->second;
  if (settings_.may_skip) taken.end = bundle.end;
  if (bundle.items) return taken;  // all of it is here
  if (head.position > bundle.received) {
    if (!settings_.may_skip) {
      taken.is_out_of_step = true;
      return taken;
    }
    // They count as had: a state made now goes on after them.
    const uint64_t gap = head.position - bundle.received;
    // Else it was not there yet; or it may have had them, before it was
    // restored.
    if (has_come_ && !awaited_.contains(head.bundle)) missed_ += gap;
    bundle.received += gap;
    bundle.taken += gap;
    bundle.given += gap;
  }
  const uint64_t end = head.position + head.items;
  if (end > bundle.received) {
    taken.skip = bundle.received - head.position;
    taken.take = end - bundle.received;
    bundle.received = bundle.end = end;
    has_come_ = true;
  }
  if (settings_.may_skip) taken.end = bundle.end;
  if (head.is_end) {
    // One that is gone ends nowhere; what has come of it is to be given.
    bundle.items = std::max(end, bundle.received);
    bundle.digest = head.digest;
    bundle.is_gone = head.is_gone && bundle.received == 0;
    bundle.attempt = 0;
  }
  // One without items, or whose items were all given before it was known that
  // there are no more.
  if (bundle.items && bundle.given >= *bundle.items) given_.Add(head.bundle);
  return taken;
}

void ClientState::OnBroken(uint64_t bundle, uint64_t attempt,
                           const std::string& why) {
  const auto it = bundles_.find(bundle);
  if (it == bundles_.end() || it->second.attempt != attempt) return;
  it->second.attempt = 0;
  it->second.bad = attempt;
  it->second.why = why;
}

std::optional<uint64_t> ClientState::NextToTake() const {
  if (!settings_.is_ordered) return std::nullopt;
  const auto is_over = [&](uint64_t number) {
    if (given_.Has(number) || done_.Has(number)) return true;
    const auto it = bundles_.find(number);
    return it != bundles_.end() && IsTaken(it->second);
  };
  while (is_over(next_to_take_)) next_to_take_ += settings_.slots;
  return next_to_take_;
}

uint64_t ClientState::low() const {
  uint64_t low = low_;
  for (const auto& [number, bundle] : bundles_) {
    if (given_.Has(number) || IsTaken(bundle)) continue;
    low = std::min(low, number);
  }
  return low;
}

void ClientState::Take(uint64_t number, uint64_t items) {
  bundles_.at(number).taken += items;
}

void ClientState::Give(uint64_t number, uint64_t items) {
  Bundle& bundle = bundles_.at(number);
  bundle.given += items;
  if (bundle.items && bundle.given >= *bundle.items) given_.Add(number);
}

ConsumerState ClientState::Save() const {
  ConsumerState state;
  *state.mutable_epoch() = epoch_;
  state.set_job(settings_.job);
  state.set_plan(settings_.plan);
  state.set_manifest(manifest_);
  state.set_slot(settings_.slot);
  state.set_slots(settings_.slots);
  state.set_epoch_number(settings_.epoch_number);
  state.set_iteration(settings_.iteration);
  state.set_seed(seed_);
  state.set_lanes(settings_.lanes);
  state.mutable_splits()->Add(splits_.begin(), splits_.end());
  state.set_resized_at(resized_at_);
  SetInherited(inherited_, state);
  *state.mutable_done() = given_.ToRuns();
  for (const auto& [number, bundle] : bundles_) {
    if (given_.Has(number)) continue;
    Cursor* cursor = state.add_open();
    cursor->set_bundle(number);
    cursor->set_position(bundle.given);
  }
  return state;
}

bool ClientState::OnDelivered(const ConsumerState& state) {
  if (!IsSame(state.epoch(), epoch_)) return false;
  bool is_news = false;
  for (const Cursor& cursor : state.open()) {
    const auto it = bundles_.find(cursor.bundle());
    if (it == bundles_.end()) continue;
    it->second.delivered = std::max(it->second.delivered, cursor.position());
  }
  const BundleSet done(state.done());
  for (auto it = bundles_.begin(); it != bundles_.end();) {
    const auto& [number, bundle] = *it;
    if (!done.Has(number) || !bundle.items) {
      ++it;
      continue;
    }
    finished_.Add(number);
    Finished& finished = to_report_[number];
    finished.set_bundle(number);
    finished.set_items(*bundle.items);
    finished.set_digest(bundle.digest);
    finished.set_is_gone(bundle.is_gone);
    it = bundles_.erase(it);
    is_news = true;
  }
  return is_news;
}

bool ClientState::has_ended() const {
  return has_nothing_left_ &&
         std::ranges::all_of(bundles_, [&](const auto& entry) {
           return given_.Has(entry.first);
         });
}

bool ClientState::is_all_taken() const {
  return has_nothing_left_ &&
         std::ranges::all_of(bundles_, [&](const auto& entry) {
           return given_.Has(entry.first) || IsTaken(entry.second);
         });
}

uint64_t ClientState::from(uint64_t bundle) const {
  const auto it = bundles_.find(bundle);
  return it == bundles_.end() ? 0 : it->second.from;
}

bool ClientState::is_over(uint64_t bundle) const {
  const auto it = bundles_.find(bundle);
  return it == bundles_.end() ? given_.Has(bundle)
                              : it->second.items.has_value();
}

bool ClientState::is_wanted(uint64_t bundle) const {
  const auto it = bundles_.find(bundle);
  return it != bundles_.end() && !it->second.items;
}

ReleaseRequest ClientState::MakeRelease() const {
  ReleaseRequest release;
  *release.mutable_epoch() = epoch_;
  release.set_slot(settings_.slot);
  *release.mutable_opener() = settings_.opener;
  *release.mutable_done() = finished_.ToRuns();
  for (const auto& [number, bundle] : bundles_) {
    Cursor* cursor = release.add_open();
    cursor->set_bundle(number);
    cursor->set_position(bundle.delivered);
  }
  return release;
}

}  // namespace penstock::service

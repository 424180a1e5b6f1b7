// What would spare workers what they compute again.
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "penstock/service/dispatcher/dispatcher_state.h"
#include "penstock/tuner/offer.h"

namespace penstock::service {
namespace {

// As of the places that `is_again` says.
template <typename IsAgain>
tuner::PassWork WorkOf(const Work& from, IsAgain is_again) {
  tuner::PassWork work;
  work.bundles = from.bundles();
  work.bundles_in_pass = from.bundles_in_pass();
  work.cpu_ns = static_cast<double>(from.cpu_ns());
  for (const Work::Place& each : from.places()) {
    if (!is_again(each)) continue;
    tuner::KeptPlace place;
    place.node = each.node();
    place.file = each.file();
    place.line = each.line();
    place.cpu_ns = static_cast<double>(each.cpu_ns());
    place.bytes = static_cast<double>(each.bytes());
    place.bytes_squared = each.bytes_squared();
    place.is_in_shares = each.is_in_shares();
    place.is_last = each.is_last();
    work.places.push_back(std::move(place));
  }
  return work;
}

std::set<std::string> PlacesOf(const std::map<WorkTable::Pass, Work>& passes) {
  std::set<std::string> places;
  for (const auto& [pass, work] : passes) {
    if (work.bundles() == 0) continue;
    for (const Work::Place& place : work.places()) {
      places.insert(place.fingerprint());
    }
  }
  return places;
}

}  // namespace

void DispatcherState::TakeWork(const WorkerBeat& beat, int64_t now_ms) {
  std::set<uint64_t> changed;
  for (const Work& work : beat.work()) {
    work_.Take(beat.worker(), work);
    changed.insert(work.run());
  }
  for (const uint64_t number : changed) {
    if (Run* run = FindRun(number)) FindOffers(*run, now_ms);
  }
}

void DispatcherState::FindOffers(Run& run, int64_t now_ms) {
  const uint64_t number = run.record.run();
  const std::map<WorkTable::Pass, Work> passes = work_.Of(number);
  // The pass of which most was seen, and how many there were.
  const Work* most = nullptr;
  int begun = 0;
  for (const auto& [pass, work] : passes) {
    if (work.bundles() == 0) continue;
    ++begun;
    if (most == nullptr || work.bundles() >= most->bundles()) most = &work;
  }
  if (most == nullptr) return;
  std::vector<plan::Offer> offers;
  const auto add = [&](std::optional<plan::Offer> offer) {
    if (offer) offers.push_back(*std::move(offer));
  };
  if (begun > 1) {
    add(tuner::OfferToKeep(
        WorkOf(*most, [](const Work::Place&) { return true; }),
        absl::StrCat("job '", run.record.job(), "' has its workers compute in ",
                     "each of its passes what they have computed before")));
  }
  for (const uint64_t other : work_.runs()) {
    if (other == number) continue;
    const Run* running = FindRun(other);
    if (IsOneGroup(run, running)) continue;
    const std::set<std::string> places = PlacesOf(work_.Of(other));
    const auto is_again = [&](const Work::Place& place) {
      return places.contains(place.fingerprint());
    };
    const std::string name =
        running == nullptr ? "a job that is over"
                           : absl::StrCat("job '", running->record.job(), "'");
    if (offers.empty()) {
      add(tuner::OfferToKeep(
          WorkOf(*most, is_again),
          absl::StrCat("job '", run.record.job(), "' has its workers compute ",
                       "what they have computed for ", name)));
    }
    const bool may_share = running != nullptr && !run.record.has_group() &&
                           !running->record.has_group() &&
                           running->record.plan() == run.record.plan() &&
                           IsLive(*running, now_ms) && IsLive(run, now_ms);
    if (may_share) {
      add(tuner::OfferToShare(WorkOf(*most, is_again),
                              absl::StrCat("job '", run.record.job(), "' and ",
                                           name, " read equal pipelines now")));
      break;
    }
  }
  if (run.offers.empty() && !offers.empty()) {
    Say("offer",
        {{"job", run.record.job()},
         {"why", offers[0].why()},
         {"advice", offers[0].advice()},
         {"cpu_seconds", absl::StrFormat("%.1f", offers[0].cpu_seconds())},
         {"cpu_share", absl::StrFormat("%.2f", offers[0].cpu_share())},
         {"bytes", absl::StrFormat("%.0f", offers[0].bytes_high())}});
  }
  run.offers = std::move(offers);
}

bool DispatcherState::IsOneGroup(const Run& run, const Run* other) {
  return other != nullptr && run.record.has_group() &&
         other->record.has_group() &&
         run.record.group().name() == other->record.group().name();
}

void DispatcherState::DescribeWork(const Run& run, State::Job& job) const {
  for (const plan::Offer& offer : run.offers) *job.add_offers() = offer;
  for (const auto& [pass, work] : work_.Of(run.record.run())) {
    if (work.has_padding()) {
      Padding& all = *job.mutable_padding();
      const Padding& its = work.padding();
      all.set_batches(all.batches() + its.batches());
      all.set_items(all.items() + its.items());
      all.set_padded_items(all.padded_items() + its.padded_items());
      all.set_shapes(std::max(all.shapes(), its.shapes()));
    }
    for (State::Epoch& out : *job.mutable_epochs()) {
      const auto epoch = run.epochs.find(out.epoch().epoch());
      if (epoch == run.epochs.end() ||
          epoch->second.pass.number != pass.epoch ||
          epoch->second.pass.iteration != pass.iteration) {
        continue;
      }
      out.set_cpu_seconds(out.cpu_seconds() +
                          static_cast<double>(work.cpu_ns()) / 1e9);
    }
  }
}

}  // namespace penstock::service

#include "penstock/service/worker/work_ledger.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_format.h"
#include "penstock/base/clock.h"
#include "penstock/plan/fingerprint.h"
#include "penstock/plan/keepable.h"

namespace penstock::service {
namespace {

auto NameOf(const Work& work) {
  return std::tuple(work.run(), work.epoch(), work.iteration(), work.pass());
}

uint64_t CpuNanos(const engine::NodeStats& stats) {
  return static_cast<uint64_t>(static_cast<double>(stats.cpu_ticks.load()) *
                               NanosPerTick()) +
         stats.python_nanos.load();
}

}  // namespace

std::vector<WorkPlace> FindWorkPlaces(const plan::Division& division,
                                      const engine::Pipeline& pipeline) {
  const plan::Plan& remote = division.remote;
  const std::vector<plan::Keepable> keepable =
      plan::FindKeepable(remote, /*is_ordered=*/true);
  const std::vector<std::string> fingerprints = plan::NodeFingerprints(remote);
  const std::vector<int> in_shares = plan::PlacesInShares(division);
  std::vector<WorkPlace> places;
  for (int node = division.source; node < remote.nodes_size(); ++node) {
    const int op = pipeline.OpOfNode(node);
    const bool is_last = node + 1 == remote.nodes_size();
    if (op < 0 || !keepable[node].why_not.empty()) continue;
    if (!keepable[node].is_worthwhile && !is_last) continue;
    WorkPlace place;
    place.op = op;
    place.end = static_cast<int>(pipeline.ops().size());
    for (int next = node + 1; next < remote.nodes_size(); ++next) {
      if (pipeline.OpOfNode(next) > op) {
        place.end = pipeline.OpOfNode(next);
        break;
      }
    }
    place.described.set_fingerprint(absl::StrFormat(
        "%s%016x", fingerprints[node], keepable[node].functions));
    place.described.set_node(pipeline.ops()[op].name);
    place.described.set_file(pipeline.ops()[op].made_at.file());
    place.described.set_line(pipeline.ops()[op].made_at.line());
    place.described.set_is_in_shares(
        std::find(in_shares.begin(), in_shares.end(), node) != in_shares.end());
    place.described.set_is_last(is_last);
    places.push_back(std::move(place));
  }
  return places;
}

void WorkLedger::Account::Add(const std::vector<WorkPlace>& places,
                              const engine::Run& run, bool is_whole) {
  std::vector<uint64_t> before(run.stats.size() + 1);
  for (size_t op = 0; op < run.stats.size(); ++op) {
    before[op + 1] = before[op] + CpuNanos(run.stats[op]);
  }
  MutexLock lock(&mutex_);
  work_.set_cpu_ns(work_.cpu_ns() + before.back());
  if (!is_whole) return;
  work_.set_bundles(work_.bundles() + 1);
  for (size_t i = 0; i < places.size(); ++i) {
    if (work_.places_size() <= static_cast<int>(i)) {
      *work_.add_places() = places[i].described;
    }
    Work::Place& place = *work_.mutable_places(static_cast<int>(i));
    const uint64_t bytes = run.stats[places[i].op].bytes;
    place.set_cpu_ns(place.cpu_ns() + before[places[i].end]);
    place.set_bytes(place.bytes() + bytes);
    place.set_bytes_squared(place.bytes_squared() +
                            static_cast<double>(bytes) *
                                static_cast<double>(bytes));
  }
}

Work WorkLedger::Account::Get() const {
  Work work;
  {
    MutexLock lock(&mutex_);
    work = work_;
  }
  const engine::PaddingStats::Counts counts = padding_->Get();
  if (counts.batches == 0) return work;
  Padding* padding = work.mutable_padding();
  padding->set_batches(counts.batches);
  padding->set_items(counts.items);
  padding->set_padded_items(counts.padded_items);
  padding->set_shapes(counts.shapes);
  return work;
}

std::shared_ptr<WorkLedger::Account> WorkLedger::Open(const Work& named) {
  MutexLock lock(&mutex_);
  for (auto it = passes_.begin(); it != passes_.end(); ++it) {
    if (NameOf((*it)->Get()) != NameOf(named)) continue;
    passes_.splice(passes_.begin(), passes_, it);
    return passes_.front();
  }
  passes_.push_front(std::shared_ptr<Account>(new Account(named, padding_)));
  if (passes_.size() > kMaxPasses) passes_.pop_back();
  return passes_.front();
}

std::vector<Work> WorkLedger::Report() const {
  MutexLock lock(&mutex_);
  std::vector<Work> work;
  for (const auto& pass : passes_) work.push_back(pass->Get());
  return work;
}

}  // namespace penstock::service

#include "penstock/session/tunings.h"

#include <algorithm>
#include <utility>

namespace penstock::session {
namespace {

constexpr size_t kMaxPipelines = 64;
constexpr size_t kMaxLines = 200;

}  // namespace

void Tuning::Note(std::string line) {
  log.push_back(std::move(line));
  if (log.size() > kMaxLines) log.pop_front();
}

std::shared_ptr<Tuning> Tunings::Begin(const std::string& fingerprint,
                                       const tuner::OnlineOptions& options) {
  Entry& entry = entries_[fingerprint];
  if (entry.tuning == nullptr) {
    entry.tuning = std::make_shared<Tuning>(options);
  } else if (entry.tuning.use_count() > 1) {
    return nullptr;
  }
  entry.used = ++uses_;
  std::shared_ptr<Tuning> tuning = entry.tuning;
  if (entries_.size() > kMaxPipelines) {
    const auto oldest = std::min_element(entries_.begin(), entries_.end(),
                                         [](const auto& a, const auto& b) {
                                           return a.second.used < b.second.used;
                                         });
    entries_.erase(oldest);
  }
  return tuning;
}

const Tuning* Tunings::Find(const std::string& fingerprint) const {
  const auto it = entries_.find(fingerprint);
  return it == entries_.end() ? nullptr : it->second.tuning.get();
}

}  // namespace penstock::session

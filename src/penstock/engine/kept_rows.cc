#include "penstock/engine/kept_rows.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace penstock::engine {

struct KeptRows::Entry {
  Parts parts;
  int64_t rows = 0;
  int64_t bytes = 0;
  std::optional<int64_t> end;
  FileManifest manifest;

  // The instances of each pipeline that has it; one of them without any stays.
  std::set<std::vector<uint64_t>> pipelines;
  int users = 0;
  uint64_t last_used = 0;
  uint64_t losses = 0;
  bool is_dropped = false;

  // Takes a part out, to be destroyed without the lock.
  Part Remove(Parts::iterator part) {
    rows -= part->second.chunk.rows;
    bytes -= part->second.reservation->bytes();
    Part out = std::move(part->second);
    parts.erase(part);
    return out;
  }

  Parts RemoveAll() {
    rows = 0;
    bytes = 0;
    end.reset();
    ++losses;
    return std::exchange(parts, {});
  }
};

KeptRows::KeptRows() = default;
KeptRows::~KeptRows() = default;

KeptRows::Use::~Use() {
  std::shared_ptr<Entry> last;  // goes after the lock
  MutexLock lock(&store_->mutex_);
  entry_->last_used = ++store_->time_;
  if (--entry_->users > 0 || entry_->is_dropped) return;
  if (!entry_->parts.empty() && !entry_->pipelines.empty()) return;
  entry_->is_dropped = true;
  last = entry_;
  store_->entries_.erase(key_);
}

KeptRows::Found KeptRows::Use::Find(int64_t row, int64_t max_rows) const {
  MutexLock lock(&store_->mutex_);
  const Parts& parts = entry_->parts;
  const auto after = parts.upper_bound(row);
  Found found;
  if (after != parts.begin()) {
    const auto part = std::prev(after);
    const Chunk& chunk = part->second.chunk;
    const int64_t begin = row - part->first;
    if (begin < chunk.rows) {
      found.kind = Found::Kind::kRows;
      found.chunk = Slice(chunk, begin, std::min(max_rows, chunk.rows - begin));
      return found;
    }
  }
  if (entry_->end.has_value() && row >= *entry_->end) {
    found.kind = Found::Kind::kEnd;
    return found;
  }
  found.hole_rows = after != parts.end() ? after->first - row
                                         : std::numeric_limits<int64_t>::max();
  return found;
}

bool KeptRows::Use::Add(int64_t first, Chunk chunk,
                        std::unique_ptr<Reservation> reservation) {
  MutexLock lock(&store_->mutex_);
  if (entry_->is_dropped) return false;
  Parts& parts = entry_->parts;
  const auto after = parts.lower_bound(first);
  if (after != parts.end() && after->first < first + chunk.rows) return false;
  if (after != parts.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second.chunk.rows > first) return false;
  }
  entry_->rows += chunk.rows;
  entry_->bytes += reservation->bytes();
  parts.emplace_hint(after, first,
                     Part{std::move(chunk), std::move(reservation)});
  return true;
}

void KeptRows::Use::SetEnd(int64_t rows) {
  Parts gone;  // goes after the lock
  MutexLock lock(&store_->mutex_);
  const Parts& parts = entry_->parts;
  const bool has_more =
      !parts.empty() &&
      parts.rbegin()->first + parts.rbegin()->second.chunk.rows > rows;
  // Two passes that differ: what was kept is not to be relied on.
  if (has_more || entry_->end.value_or(rows) != rows) {
    gone = entry_->RemoveAll();
  }
  entry_->end = rows;
}

FileManifest KeptRows::Use::manifest() const {
  MutexLock lock(&store_->mutex_);
  return entry_->manifest;
}

bool KeptRows::Use::AddFiles(const std::vector<FileLog::Record>& records) {
  Parts gone;  // goes after the lock
  MutexLock lock(&store_->mutex_);
  for (const auto& [name, stamp] : records) {
    const auto [at, is_new] = entry_->manifest.try_emplace(name, stamp);
    if (is_new || at->second == stamp) continue;
    at->second = stamp;
    gone.merge(entry_->RemoveAll());
  }
  return entry_->manifest.size() <= FileLog::kMaxNames;
}

void KeptRows::Use::Drop() {
  Parts gone;  // goes after the lock
  MutexLock lock(&store_->mutex_);
  if (entry_->is_dropped) return;
  entry_->is_dropped = true;
  gone = entry_->RemoveAll();
  store_->entries_.erase(key_);
}

int64_t KeptRows::Use::bytes() const {
  MutexLock lock(&store_->mutex_);
  return entry_->bytes;
}

bool KeptRows::Use::is_complete() const {
  MutexLock lock(&store_->mutex_);
  return entry_->end == entry_->rows;
}

uint64_t KeptRows::Use::losses() const {
  MutexLock lock(&store_->mutex_);
  return entry_->losses;
}

std::unique_ptr<KeptRows::Use> KeptRows::Open(
    const std::string& key, const std::vector<uint64_t>& instances,
    const std::shared_ptr<MemoryBudget>& budget) {
  std::vector<std::shared_ptr<Entry>> gone;  // go after the lock
  std::shared_ptr<Entry> entry;
  {
    MutexLock lock(&mutex_);
    std::shared_ptr<Entry>& found = entries_[key];
    if (found == nullptr) found = std::make_shared<Entry>();
    entry = found;
    entry->pipelines.insert(instances);
    entry->last_used = ++time_;
    ++entry->users;
    gone = TakeOutForgotten(*budget);
  }
  ChargeTo(budget, *entry);
  return std::unique_ptr<Use>(
      new Use(shared_from_this(), key, std::move(entry)));
}

void KeptRows::ChargeTo(const std::shared_ptr<MemoryBudget>& budget,
                        Entry& entry) {
  std::vector<std::pair<int64_t, int64_t>> others;  // first row, bytes
  {
    MutexLock lock(&mutex_);
    for (const auto& [first, part] : entry.parts) {
      if (&part.reservation->budget() == budget.get()) continue;
      others.emplace_back(first, part.reservation->bytes());
    }
  }
  // Without the lock: what is asked for may ask others to give way.
  bool has_room = true;
  for (const auto& [first, bytes] : others) {
    auto reservation = std::make_unique<Reservation>(budget);
    has_room = has_room && reservation->TryGrow(bytes);
    Part gone;  // goes after the lock
    MutexLock lock(&mutex_);
    const auto part = entry.parts.find(first);
    if (part == entry.parts.end() ||
        part->second.reservation->bytes() != bytes) {
      continue;
    }
    if (has_room) {
      part->second.reservation.swap(reservation);
      gone.reservation = std::move(reservation);
    } else if (entry.users == 1) {
      gone = entry.Remove(part);
    }
  }
}

std::vector<std::shared_ptr<KeptRows::Entry>> KeptRows::TakeOutForgotten(
    const MemoryBudget& budget) {
  using Iterator = decltype(entries_)::iterator;
  std::vector<Iterator> idle;
  int64_t bytes = 0;
  for (auto at = entries_.begin(); at != entries_.end(); ++at) {
    const Entry& entry = *at->second;
    // All parts of an entry were charged to one budget when it was last opened.
    if (entry.users > 0 || entry.parts.empty() ||
        &entry.parts.begin()->second.reservation->budget() == &budget) {
      continue;
    }
    bytes += entry.bytes;
    idle.push_back(at);
  }
  std::sort(idle.begin(), idle.end(), [](const Iterator& a, const Iterator& b) {
    return a->second->last_used < b->second->last_used;
  });
  std::vector<std::shared_ptr<Entry>> gone;
  for (const Iterator& at : idle) {
    if (bytes <= budget.limit()) break;
    bytes -= at->second->bytes;
    gone.push_back(at->second);
    entries_.erase(at);
  }
  return gone;
}

void KeptRows::DropInstance(uint64_t instance) {
  std::vector<std::shared_ptr<Entry>> gone;  // go after the lock
  MutexLock lock(&mutex_);
  for (auto at = entries_.begin(); at != entries_.end();) {
    Entry& entry = *at->second;
    std::erase_if(entry.pipelines, [&](const std::vector<uint64_t>& each) {
      return std::find(each.begin(), each.end(), instance) != each.end();
    });
    // One in use goes when its last user does.
    if (entry.pipelines.empty() && entry.users == 0) {
      gone.push_back(at->second);
      at = entries_.erase(at);
    } else {
      ++at;
    }
  }
}

void KeptRows::GiveWay(const MemoryBudget& budget, int64_t bytes,
                       MemoryBudget::Which which) {
  std::vector<Part> gone;  // go after the lock
  MutexLock lock(&mutex_);
  std::vector<Entry*> entries;
  for (const auto& [key, entry] : entries_) {
    if (which == MemoryBudget::Which::kAll || entry->users == 0) {
      entries.push_back(entry.get());
    }
  }
  std::sort(entries.begin(), entries.end(), [](const Entry* a, const Entry* b) {
    return std::make_pair(a->users > 0, a->last_used) <
           std::make_pair(b->users > 0, b->last_used);
  });
  for (Entry* entry : entries) {
    const size_t before = gone.size();
    for (auto at = entry->parts.end();
         bytes > 0 && at != entry->parts.begin();) {
      const auto part = std::prev(at);
      if (&part->second.reservation->budget() != &budget) {
        at = part;
        continue;
      }
      bytes -= part->second.reservation->bytes();
      gone.push_back(entry->Remove(part));
    }
    if (gone.size() > before) ++entry->losses;
    if (bytes <= 0) break;
  }
  std::erase_if(entries_, [](const auto& each) {
    return each.second->users == 0 && each.second->parts.empty();
  });
}

MemoryBudget::Reclaim KeptRows::ReclaimFrom(
    const std::shared_ptr<KeptRows>& store) {
  return [weak = std::weak_ptr<KeptRows>(store)](
             MemoryBudget& budget, int64_t bytes, MemoryBudget::Which which) {
    if (const auto alive = weak.lock()) alive->GiveWay(budget, bytes, which);
  };
}

int64_t KeptRows::bytes() const {
  MutexLock lock(&mutex_);
  int64_t bytes = 0;
  for (const auto& [key, entry] : entries_) bytes += entry->bytes;
  return bytes;
}

}  // namespace penstock::engine

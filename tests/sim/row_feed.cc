#include "sim/row_feed.h"

#include <algorithm>

namespace penstock::sim {

using service::RowLog;

RowFeed::RowFeed(const Groups& groups, service::ClientState& client,
                 std::optional<RowLog> resumed, uint64_t begin,
                 uint64_t first_row)
    : groups_(groups), client_(client), next_row_(first_row) {
  uint64_t row = begin;
  if (resumed) {
    row = resumed->begin();
    script_ = resumed->entries();
    for (const RowLog::Entry& entry : script_) {
      for (const RowLog::Part& part : entry.parts) client_.Await(part.bundle);
    }
  }
  log_ = RowLog(client_.Save(), row);
}

void RowFeed::OnItems(uint64_t bundle, uint64_t first, const Row& items,
                      uint64_t loose_from) {
  if (items.empty()) return;
  Arrived& arrived = arrived_[bundle];
  arrived.loose_from = loose_from;
  for (const Item& item : items) arrived.items.push_back({first++, item});
  waiting_ += items.size();
}

void RowFeed::OnEnd(uint64_t bundle, uint64_t items) {
  service::Finished finished;
  finished.set_bundle(bundle);
  finished.set_items(items);
  log_.OnSize(finished, client_.from(bundle));
}

void RowFeed::OnDelivered(uint64_t row) {
  log_.TrimTo(row);
  client_.OnDelivered(log_.base());
}

std::optional<Row> RowFeed::Next() {
  while (true) {
    std::optional<Row> row = Take();
    if (!row) return std::nullopt;
    // Given before, in the middle of what was put together.
    if (log_.end() <= next_row_) continue;
    ++next_row_;
    return row;
  }
}

std::optional<Row> RowFeed::Take() {
  while (true) {
    if (!group_.empty() && group_rows_.empty()) EndGroup();  // no round
    if (!group_.empty()) return TakeOfGroup();
    if (!script_.empty()) {
      const size_t left = script_.size();
      std::optional<Row> row = FollowScript();
      if (row || script_.size() == left) return row;
      continue;
    }
    if (BeginGroup()) continue;
    std::optional<uint64_t> bundle = client_.NextToTake();
    if (bundle) {
      if (!arrived_.contains(*bundle)) break;
    } else if (current_ && arrived_.contains(*current_)) {
      bundle = current_;
    } else if (!arrived_.empty()) {
      bundle = arrived_.begin()->first;
    } else {
      break;
    }
    current_ = bundle;
    const Arrived& arrived = arrived_[*bundle];
    if (arrived.items.front().position < arrived.loose_from) {
      return Give(*bundle);
    }
    PoolOne(*bundle);
  }
  if (client_.has_ended()) has_ended_ = true;
  return std::nullopt;
}

RowFeed::Arrival RowFeed::TakeOne(uint64_t bundle) {
  const auto it = arrived_.find(bundle);
  const Arrival taken = it->second.items.front();
  it->second.items.pop_front();
  if (it->second.items.empty()) arrived_.erase(it);
  --waiting_;
  client_.Take(bundle, 1);
  return taken;
}

Row RowFeed::Give(uint64_t bundle) {
  const Arrival taken = TakeOne(bundle);
  client_.Give(bundle, 1);
  log_.Add({bundle, taken.position, 1});
  return {taken.item};
}

void RowFeed::PoolOne(uint64_t bundle) {
  const Arrival taken = TakeOne(bundle);
  pool_.parts.push_back({bundle, taken.position, 1});
  pool_.items.push_back(taken.item);
}

bool RowFeed::BeginGroup() {
  if (pool_.items.empty()) return false;
  if (pool_.items.size() < GroupSize() && !client_.is_all_taken()) return false;
  SetGroup(std::exchange(pool_, Pool()));
  return true;
}

void RowFeed::SetGroup(Pool pool) {
  log_.BeginStitched(0, pool.parts);
  group_ = std::move(pool.parts);
  const Row& all = pool.items;
  if (groups_.lanes > 0) {
    if (all.size() >= groups_.lanes) group_rows_.push_back({all[groups_.lane]});
    return;
  }
  // The first rows have an item each, the last one the rest.
  const uint64_t rows = std::min<uint64_t>(groups_.rows, all.size());
  for (uint64_t i = 0; i + 1 < rows; ++i) group_rows_.push_back({all[i]});
  group_rows_.emplace_back(all.begin() + static_cast<int64_t>(rows) - 1,
                           all.end());
}

Row RowFeed::TakeOfGroup() {
  Row row = std::move(group_rows_.front());
  group_rows_.pop_front();
  log_.AddStitchedRows(1);
  if (group_rows_.empty()) EndGroup();
  return row;
}

void RowFeed::EndGroup() {
  log_.EndStitched();
  for (const RowLog::Part& part : group_) {
    client_.Give(part.bundle, part.items);
  }
  group_.clear();
}

void RowFeed::DropBefore(uint64_t bundle, uint64_t position) {
  while (arrived_.contains(bundle) &&
         arrived_[bundle].items.front().position < position) {
    TakeOne(bundle);
    client_.Give(bundle, 1);
  }
}

bool RowFeed::ClipToArrived(std::vector<RowLog::Part>& parts) const {
  for (RowLog::Part& part : parts) {
    const uint64_t end = part.position + part.items;
    uint64_t here = 0;
    uint64_t begin = part.position;
    if (const auto it = arrived_.find(part.bundle); it != arrived_.end()) {
      for (const Arrival& each : it->second.items) {
        if (each.position < part.position || each.position >= end) continue;
        if (here++ == 0) begin = each.position;
      }
    }
    if (here < part.items && !client_.is_over(part.bundle)) return false;
    part.position = begin;
    part.items = here;
  }
  std::erase_if(parts,
                [](const RowLog::Part& part) { return part.items == 0; });
  return true;
}

// Rows come as they came before; at most once, some may be lost.
std::optional<Row> RowFeed::FollowScript() {
  RowLog::Entry& entry = script_.front();
  if (!entry.is_stitched) {
    RowLog::Part& part = entry.parts[0];
    const uint64_t bundle = part.bundle;
    DropBefore(bundle, part.position);
    if (!arrived_.contains(bundle)) {
      if (client_.is_over(bundle)) script_.pop_front();
      return std::nullopt;
    }
    const uint64_t end = part.position + part.items;
    const uint64_t at = arrived_[bundle].items.front().position;
    if (at >= end) {
      script_.pop_front();
      return std::nullopt;
    }
    part.position = at + 1;
    part.items = end - part.position;
    if (part.items == 0) script_.pop_front();
    return Give(bundle);
  }
  Pool pool;
  pool.parts = entry.parts;
  if (!ClipToArrived(pool.parts)) return std::nullopt;
  for (const RowLog::Part& part : pool.parts) {
    DropBefore(part.bundle, part.position);
    for (uint64_t i = 0; i < part.items; ++i) {
      pool.items.push_back(TakeOne(part.bundle).item);
    }
  }
  script_.pop_front();
  if (!pool.parts.empty()) SetGroup(std::move(pool));
  return std::nullopt;
}

std::optional<service::ConsumerState> StateOf(const Saved& saved) {
  RowLog log(saved.journal);
  const uint64_t row = saved.place + saved.since.size();
  log.TrimTo(row);
  if (log.begin() != row) return std::nullopt;
  service::ConsumerState state = log.base();
  state.set_origin(log.origin());
  state.set_row(row);
  return state;
}

}  // namespace penstock::sim

#include "penstock/service/client/row_log.h"

#include <algorithm>
#include <utility>

#include "penstock/base/hash.h"

namespace penstock::service {

RowLog::RowLog(const Journal::Pass& pass)
    : origin_(HashBytes(pass.SerializeAsString())) {
  SetBase(pass.base());
  begin_ = end_ = pass.row();
  for (const Finished& finished : pass.finished()) {
    sizes_[finished.bundle()] = finished;
  }
  for (const Journal::Entry& from : pass.entries()) {
    Entry& entry = entries_.emplace_back();
    entry.rows = from.rows();
    entry.is_stitched = from.is_stitched();
    entry.pass = from.pass();
    entry.is_whole = !from.is_open();
    for (const Journal::Entry::Part& part : from.parts()) {
      entry.parts.push_back({part.bundle(), part.position(), part.items()});
    }
    end_ += entry.rows;
  }
}

void RowLog::SetBase(const ConsumerState& base) {
  fixed_ = base;
  fixed_.clear_done();
  fixed_.clear_open();
  fixed_.clear_kept();
  fixed_.clear_origin();
  done_ = BundleSet(base.done());
  open_.clear();
  for (const Cursor& cursor : base.open()) {
    open_[cursor.bundle()] = cursor.position();
  }
}

void RowLog::Add(const Part& part) {
  end_ += part.items;
  if (!entries_.empty() && !entries_.back().is_stitched) {
    Part& last = entries_.back().parts[0];
    if (last.bundle == part.bundle &&
        last.position + last.items == part.position) {
      last.items += part.items;
      entries_.back().rows += part.items;
      return;
    }
  }
  Entry& entry = entries_.emplace_back();
  entry.rows = part.items;
  entry.parts.push_back(part);
}

void RowLog::BeginStitched(uint64_t pass, std::vector<Part> parts) {
  Entry& entry = entries_.emplace_back();
  entry.parts = std::move(parts);
  entry.is_stitched = true;
  entry.pass = pass;
  entry.is_whole = false;
}

void RowLog::AddStitchedRows(uint64_t rows) {
  entries_.back().rows += rows;
  end_ += rows;
}

void RowLog::OnSize(const Finished& finished, uint64_t from) {
  const uint64_t bundle = finished.bundle();
  sizes_[bundle] = finished;
  // Nothing of it comes here, so no entry will say that it is done.
  if (from >= finished.items()) open_.try_emplace(bundle, from);
  FinishIfWhole(bundle);
}

void RowLog::FinishIfWhole(uint64_t bundle) {
  const auto size = sizes_.find(bundle);
  const auto open = open_.find(bundle);
  if (size == sizes_.end() || open == open_.end()) return;
  if (open->second < size->second.items()) return;
  done_.Add(bundle);
  open_.erase(open);
  sizes_.erase(size);
}

void RowLog::Fold(const Part& part) {
  open_[part.bundle] = part.position + part.items;
  FinishIfWhole(part.bundle);
}

void RowLog::TrimTo(uint64_t row) {
  while (!entries_.empty() && entries_.front().is_whole) {
    Entry& entry = entries_.front();
    if (begin_ + entry.rows > row) {
      if (entry.is_stitched || begin_ >= row) return;
      // Some of its rows.
      Part& part = entry.parts[0];
      const uint64_t rows = row - begin_;
      Fold({part.bundle, part.position, rows});
      part.position += rows;
      part.items -= rows;
      entry.rows -= rows;
      begin_ = row;
      return;
    }
    for (const Part& part : entry.parts) Fold(part);
    begin_ += entry.rows;
    entries_.pop_front();
  }
}

ConsumerState RowLog::base() const {
  ConsumerState state = fixed_;
  *state.mutable_done() = done_.ToRuns();
  for (const auto& [bundle, position] : open_) {
    Cursor* cursor = state.add_open();
    cursor->set_bundle(bundle);
    cursor->set_position(position);
  }
  return state;
}

ConsumerState RowLog::Wanted() const {
  std::map<uint64_t, uint64_t> named;  // bundle -> where it is first named
  for (const Entry& entry : entries_) {
    for (const Part& part : entry.parts) {
      named.try_emplace(part.bundle, part.position);
    }
  }
  ConsumerState state = base();
  state.set_origin(origin_);
  for (const auto& [bundle, position] : named) {
    state.add_kept(bundle);
    if (open_.contains(bundle)) continue;
    Cursor* cursor = state.add_open();
    cursor->set_bundle(bundle);
    cursor->set_position(position);
  }
  return state;
}

Journal::Pass RowLog::ToProto() const {
  Journal::Pass pass;
  *pass.mutable_base() = base();
  pass.set_row(begin_);
  for (const auto& [bundle, finished] : sizes_) *pass.add_finished() = finished;
  for (const Entry& entry : entries_) {
    Journal::Entry* out = pass.add_entries();
    out->set_rows(entry.rows);
    out->set_is_stitched(entry.is_stitched);
    out->set_pass(entry.pass);
    out->set_is_open(!entry.is_whole);
    for (const Part& part : entry.parts) {
      Journal::Entry::Part* to = out->add_parts();
      to->set_bundle(part.bundle);
      to->set_position(part.position);
      to->set_items(part.items);
    }
  }
  return pass;
}

}  // namespace penstock::service

// What a reader has given, row by row: which items they were, and so where it
// is before any of them. A value without lock or clock.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "penstock/service.pb.h"
#include "penstock/service/protocol/bundle_set.h"

namespace penstock::service {

// Rows are counted from the beginning of the pass. The log goes from row
// begin(), where base() is, to row end(). Not thread-safe.
class RowLog final {
 public:
  struct Part {
    uint64_t bundle = 0;
    uint64_t position = 0;  // of the first of `items`
    uint64_t items = 0;
  };
  struct Entry {
    uint64_t rows = 0;
    // One part, of as many items as rows; or, stitched, loose rows that were
    // put together, of which came `rows` rows.
    std::vector<Part> parts;
    bool is_stitched = false;
    uint64_t pass = 0;
    bool is_whole = true;  // no more rows come of it
  };

  RowLog() = default;
  // At `row`, which is where `base` is.
  explicit RowLog(const ConsumerState& base, uint64_t row = 0)
      : begin_(row), end_(row) {
    SetBase(base);
  }
  explicit RowLog(const Journal::Pass& pass);

  // Items of one bundle went out, as they are.
  void Add(const Part& part);
  // Loose rows are put together; rows that come of it follow, until
  // EndStitched.
  void BeginStitched(uint64_t pass, std::vector<Part> parts);
  void AddStitchedRows(uint64_t rows);
  void EndStitched() { entries_.back().is_whole = true; }
  // The bundle ends after `items` items; this reader had it from `from` on.
  void OnSize(const Finished& finished, uint64_t from);

  // Nothing of these ever comes.
  void OnSkipped(const BundleSet& bundles) { done_.AddAll(bundles); }

  uint64_t begin() const { return begin_; }
  uint64_t end() const { return end_; }
  const std::deque<Entry>& entries() const { return entries_; }

  // Forgets what was before `row`, as far as it can be: begin() may stay before
  // it, where rows were put together.
  void TrimTo(uint64_t row);
  // Where the reader is at begin().
  ConsumerState base() const;
  // base(), and every bundle that entries name as one to be kept: what whoever
  // is to give the same rows again asks for.
  ConsumerState Wanted() const;

  Journal::Pass ToProto() const;
  // ConsumerState.origin of states of it.
  uint64_t origin() const { return origin_; }

 private:
  void SetBase(const ConsumerState& base);
  void Fold(const Part& part);
  void FinishIfWhole(uint64_t bundle);

  ConsumerState fixed_;  // all of it but what follows
  BundleSet done_;
  std::map<uint64_t, uint64_t> open_;  // bundle -> next position
  std::map<uint64_t, Finished> sizes_;
  uint64_t origin_ = 0;
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
  std::deque<Entry> entries_;
};

}  // namespace penstock::service

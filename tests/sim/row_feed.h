// What a reader makes of items that come: rows, in an order of their own, and
// the journal that goes on with them. As service/client/pass does it, with the
// same ClientState and RowLog, and with numbers for rows.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "penstock/service/client/client_state.h"
#include "penstock/service/client/row_log.h"

namespace penstock::sim {

// Bundle and number of an item in it. In rounds, readers have items at
// positions that are other numbers.
using Item = std::pair<uint64_t, uint64_t>;
// The items that it was made of.
using Row = std::vector<Item>;

// What a trainer keeps: where it is after some rows of a frame.
struct Saved {
  service::Journal::Pass journal;  // as it was when the frame went out
  uint64_t place = 0;              // the row that the frame's state names
  std::vector<Row> since;          // rows that the trainer has had from there
};

class RowFeed final {
 public:
  // Loose items wait for those of other bundles, and each group of so many is
  // given as some rows.
  struct Groups {
    uint64_t size = 1;
    uint64_t rows = 1;  // at most `size`
    // In rounds of so many, this one's is number `lane`; 0: there are none.
    uint64_t lanes = 0;
    uint64_t lane = 0;
  };
  // `client` outlives it. `resumed`: the journal that it goes on with; without
  // one, its rows are numbered from `begin` on. None before `first_row` is
  // given.
  RowFeed(const Groups& groups, service::ClientState& client,
          std::optional<service::RowLog> resumed, uint64_t begin,
          uint64_t first_row);

  // New items of a bundle, at positions from `first` on. Those at `loose_from`
  // and after it are loose.
  void OnItems(uint64_t bundle, uint64_t first, const Row& items,
               uint64_t loose_from);
  void OnEnd(uint64_t bundle, uint64_t items);
  void OnSkipped(const service::BundleSet& bundles) { log_.OnSkipped(bundles); }

  // Unset: it is not here yet, or all have been given.
  std::optional<Row> Next();
  bool has_ended() const { return has_ended_; }
  // That Next() gives next.
  uint64_t row() const { return next_row_; }
  uint64_t waiting() const { return waiting_; }  // items that came

  service::Journal::Pass Seal() const { return log_.ToProto(); }
  void AddPlace(service::ClientBeat& beat) const {
    *beat.mutable_place() = log_.base();
    beat.set_row(log_.begin());
  }
  // The trainer has had all rows before this one.
  void OnDelivered(uint64_t row);

 private:
  struct Pool {
    std::vector<service::RowLog::Part> parts;
    Row items;
  };
  struct Arrival {
    uint64_t position;
    Item item;
  };
  struct Arrived {
    std::deque<Arrival> items;
    uint64_t loose_from = 0;
  };
  std::optional<Row> Take();
  std::optional<Row> FollowScript();
  bool ClipToArrived(std::vector<service::RowLog::Part>& parts) const;
  void DropBefore(uint64_t bundle, uint64_t position);
  Arrival TakeOne(uint64_t bundle);
  Row Give(uint64_t bundle);
  void PoolOne(uint64_t bundle);
  bool BeginGroup();
  void SetGroup(Pool pool);
  Row TakeOfGroup();
  void EndGroup();
  // How many items of the bundles are put together.
  uint64_t GroupSize() const {
    return groups_.lanes > 0 ? groups_.lanes : groups_.size;
  }

  const Groups groups_;
  service::ClientState& client_;
  std::deque<service::RowLog::Entry> script_;
  service::RowLog log_;
  uint64_t next_row_;
  std::map<uint64_t, Arrived> arrived_;  // by bundle; none is empty
  uint64_t waiting_ = 0;
  std::optional<uint64_t> current_;
  Pool pool_;
  std::vector<service::RowLog::Part> group_;  // being given; empty: none
  std::deque<Row> group_rows_;
  bool has_ended_ = false;
};

// Where the reader was, exactly; unset inside a group.
std::optional<service::ConsumerState> StateOf(const Saved& saved);

}  // namespace penstock::sim

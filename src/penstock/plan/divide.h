// How a pipeline can be run in parts: what several engines, each with a share
// of the source's rows, make of it, and what is left for the one that puts
// their rows together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/plan.pb.h"

namespace penstock::plan {

// A plan in two: `remote` is run share by share, `local` over what comes of all
// shares. No row is lost, doubled or changed by it: what comes of the shares is
// what the undivided plan gives there, in another order, and where rows are
// mixed or gathered (`windows`, `stitch`), mixed and gathered within a share.
struct Division {
  // The repeat whose passes are passes over the shares.
  struct Passes {
    int node;                      // of `remote`
    std::optional<int64_t> count;  // unset: for ever
  };
  // A batch, or the like. What is left of a share once full groups were made
  // travels as loose rows; grouped with those of other shares, they go through
  // what follows. Of a Received: what is left there of the other job's shares,
  // which goes on as it is.
  struct Stitch {
    int node;  // of `remote`
    int64_t size;
    // Received loose rows, grouped, and all that follows in `remote`.
    Plan after;
    // Of `after`: the repeat of `passes`. Then groups do not reach from one
    // pass into the next: each pass is a run of `after`.
    std::optional<int> repeat;
  };
  // A node that is not run in shares.
  struct Moved {
    std::string name;
    Location made_at;
    std::string why;  // as a sentence for people
    // Which rows it gives depends on the order in which they arrive: they are
    // those of the undivided plan only if shares arrive one after another, and
    // all in one place.
    bool needs_order = false;
  };
  // A node that mixes or gathers rows, within a share.
  struct Window {
    std::string name;
    Location made_at;
    std::optional<int64_t> rows;  // unset: all that there are
  };

  // The node of `remote` whose rows, counted from 0, are shared out. Of one
  // that reads a list of files, these files.
  int source = 0;
  // How many there are. Unset: as many as files are found.
  std::optional<int64_t> rows;
  // Each is a file, or its name.
  bool is_files = false;
  // Each is a bundle of the job that `source`, a Received, reads: how many
  // there are is found out when that job is opened.
  bool is_received = false;
  // `source` joins datasets of which some are received. There is one share, and
  // it has all rows.
  bool is_whole = false;
  // Such files are of records whose places are known: a share may be some
  // records of one file.
  struct Records {
    // The node of `remote` whose function opens the files; unset: `source`.
    std::optional<int> opener;
    ReadFiles reader;
  };
  std::optional<Records> records;
  std::optional<Passes> passes;
  Plan remote;
  // Begins with Received; possibly nothing but that.
  Plan local;
  std::vector<Moved> moved;
  std::optional<Stitch> stitch;
  std::vector<Window> windows;
  // A share should have as many rows of the source: four times the largest
  // window, a dataset for each place of an interleave. At least 1, at most
  // `rows`.
  int64_t least_rows = 1;
  // Where it is not known how many rows come of one of the source: as many
  // should come of a share.
  int64_t least_elements = 0;
  // Something random comes after the shares: their rows' lineages (and those of
  // loose rows) are needed there.
  bool needs_lineage = false;
  // A node of `remote` keeps shares in files (Cache.in_shares).
  bool is_kept = false;

  // Instead of shares, which any worker may have: each worker runs all of
  // `remote` (divide_by_worker.h).
  struct ByWorker {
    // Of n workers that know each other, each runs it with every n-th row of
    // one of these nodes alone. Of `files`, which is `source`, each row is a
    // file; both: of that if there are enough files.
    std::optional<int> files;
    std::optional<int> rows;
  };
  std::optional<ByWorker> by_worker;

  bool needs_order() const;
};

// Rows that are in the trainer's memory are sent to all who run a share, up to
// this size.
inline constexpr int64_t kMaxSharedBytes = int64_t{64} << 20;

// InvalidArgument, located, if the plan cannot be divided: says what stands in
// the way and what to do. REQUIRES: the plan is valid, and no sub-plan.
// `in_rounds`: each reader has an element of every round of them, so what makes
// batches is run in shares, though it leaves out rows at the end of each; they
// are larger then.
absl::StatusOr<Division> Divide(const Plan& plan, bool in_rounds = false);

// The nodes of `remote` after which a cache could keep shares
// (Cache.in_shares), as far as that is for the division to say; none if there
// is one.
std::vector<int> PlacesInShares(const Division& division);

}  // namespace penstock::plan

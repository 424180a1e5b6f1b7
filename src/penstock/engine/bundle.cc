#include "penstock/engine/bundle.h"

#include <algorithm>
#include <utility>

#include "penstock/base/status.h"
#include "penstock/base/wire.h"
#include "penstock/io/crc32c.h"

namespace penstock::engine {
namespace {

// Pulls that are left out before others get their turn.
constexpr int kMaxSkippedPulls = 64;

}  // namespace

RunPart PartOf(const plan::Division& division, int64_t begin, int64_t end,
               uint64_t pass, uint64_t iteration) {
  RunPart part;
  if (!division.is_whole) part.node = division.source;
  part.is_received = division.is_received;
  part.begin = begin;
  part.end = end;
  if (division.passes.has_value()) {
    part.repeat = division.passes->node;
    part.pass = pass;
  }
  if (division.stitch.has_value()) part.stitch = division.stitch->node;
  part.iteration = iteration;
  part.gives_lineage = division.needs_lineage;
  return part;
}

absl::StatusOr<std::unique_ptr<Bundle>> Bundle::Start(
    std::shared_ptr<const Pipeline> pipeline, const Environment& environment,
    Instances& instances, uint64_t epoch, uint64_t seed, const RunPart& part,
    int64_t position) {
  PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<Iterator> iterator,
                            Iterator::Start(std::move(pipeline), environment,
                                            instances, epoch, seed, part));
  std::unique_ptr<Bundle> bundle(new Bundle(std::move(iterator), 0, 0));
  bundle->Skip(position);
  return bundle;
}

absl::StatusOr<std::unique_ptr<Bundle>> Bundle::Resume(
    std::shared_ptr<const Pipeline> pipeline, const Environment& environment,
    Instances& instances, std::string_view state, const RunPart& part,
    int64_t skip_items) {
  WireReader reader(state);
  PENSTOCK_ASSIGN_OR_RETURN(const uint64_t position, reader.Varint());
  PENSTOCK_ASSIGN_OR_RETURN(const uint64_t loose_given, reader.Varint());
  PENSTOCK_ASSIGN_OR_RETURN(const uint64_t to_skip, reader.Varint());
  PENSTOCK_ASSIGN_OR_RETURN(const std::string_view inside, reader.Bytes());
  const auto covered =
      static_cast<size_t>(inside.data() + inside.size() - state.data());
  PENSTOCK_ASSIGN_OR_RETURN(const uint64_t checksum, reader.Varint());
  if (checksum != io::Crc32c(state.substr(0, covered)) || !reader.is_at_end()) {
    return absl::DataLossError(
        "damaged state: its checksum does not match\n  Run the share from its "
        "beginning.");
  }
  PENSTOCK_ASSIGN_OR_RETURN(
      std::unique_ptr<Iterator> iterator,
      Iterator::Resume(std::move(pipeline), environment, instances, inside, 0,
                       false, part));
  std::unique_ptr<Bundle> bundle(new Bundle(std::move(iterator),
                                            static_cast<int64_t>(position),
                                            static_cast<int64_t>(loose_given)));
  bundle->to_skip_ = static_cast<int64_t>(to_skip);
  bundle->Skip(skip_items);
  return bundle;
}

// Where loose rows may follow it must be known how many there were before them:
// a plan that leaves rows out uncomputed does not say how many it had.
void Bundle::Skip(int64_t items) {
  if (items <= 0) return;
  if (run()->part_ops.stitch >= 0 || to_skip_ > 0) {
    to_skip_ += items;
  } else {
    iterator_->SkipRows(items);
    position_ += items;
  }
}

absl::StatusOr<Bundle::Items> Bundle::Next(const Request& request) {
  for (int pulls = 0; pulls < kMaxSkippedPulls; ++pulls) {
    Items items;
    const int64_t wanted =
        to_skip_ > 0 ? std::min(to_skip_, kMaxChunkRows) : request.max_rows;
    if (!has_ended_) {
      const Group group = to_skip_ > 0 ? Group() : request.group;
      PENSTOCK_ASSIGN_OR_RETURN(
          items.pull, iterator_->Next({wanted, request.waker, group}));
      has_ended_ = items.pull.is_end();
    }
    if (has_ended_) {
      const Chunk loose = run()->loose.Get();
      const int64_t rows = std::min(wanted, loose.rows - loose_given_);
      if (rows <= 0) return Items{Pull::End()};
      items = {Pull::Rows(Slice(loose, loose_given_, rows)), true};
      loose_given_ += rows;
    }
    position_ += items.pull.chunk.rows;
    if (to_skip_ == 0 || !items.pull.has_rows()) return items;
    to_skip_ -= items.pull.chunk.rows;
  }
  request.waker->Wake();  // more to leave out; others first
  return Items{Pull::Blocked()};
}

std::string Bundle::Save() const {
  WireWriter writer;
  writer.Varint(static_cast<uint64_t>(position_));
  writer.Varint(static_cast<uint64_t>(loose_given_));
  writer.Varint(static_cast<uint64_t>(to_skip_));
  writer.Bytes(iterator_->Save());
  const uint64_t checksum = io::Crc32c(writer.bytes());
  writer.Varint(checksum);
  return writer.Take();
}

}  // namespace penstock::engine

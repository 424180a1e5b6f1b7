#include "penstock/data/builder.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace penstock {
namespace {

void AddPins(const Column& column, Pins& pins) {
  pins.insert(pins.end(), column.pins().begin(), column.pins().end());
}

}  // namespace

bool ChunkBuilder::Fits(const Chunk& chunk) const {
  if (sources_.empty()) return true;
  const Chunk& first = sources_.front();
  if (first.columns.size() != chunk.columns.size()) return false;
  for (size_t c = 0; c < chunk.columns.size(); ++c) {
    if (first.columns[c].dtype() != chunk.columns[c].dtype()) return false;
    if (first.columns[c].rank() != chunk.columns[c].rank()) return false;
  }
  return first.has_lineage() == chunk.has_lineage();
}

int ChunkBuilder::AddSource(const Chunk& chunk) {
  sources_.push_back(chunk);
  return static_cast<int>(sources_.size()) - 1;
}

void ChunkBuilder::Append(int source, int64_t begin, int64_t count) {
  if (count == 0) return;
  rows_ += count;
  if (!runs_.empty()) {
    Run& last = runs_.back();
    if (last.source == source && last.begin + last.count == begin) {
      last.count += count;
      return;
    }
  }
  runs_.push_back({source, begin, count});
}

std::optional<Buffer> ChunkBuilder::Joined(size_t index) const {
  const Column& first = sources_[runs_[0].source].columns[index];
  const std::byte* const begin = first.RowData(runs_[0].begin);
  const std::byte* end = begin;
  for (const Run& run : runs_) {
    const Column& column = sources_[run.source].columns[index];
    if (column.values().owner() != first.values().owner() ||
        column.RowData(run.begin) != end) {
      return std::nullopt;
    }
    end += run.count * column.row_bytes();
  }
  return Buffer(first.values().owner(), begin, end - begin);
}

bool ChunkBuilder::IsDense(size_t index) const {
  const Column& first = sources_[0].columns[index];
  return std::ranges::all_of(sources_, [&](const Chunk& source) {
    const Column& column = source.columns[index];
    return column.is_dense() && column.shape() == first.shape();
  });
}

std::vector<Buffer> ChunkBuilder::Reserve(FrameMemory& frames) const {
  std::vector<size_t> sizes;
  size_t total = 0;
  for (size_t c = 0; c < sources_[0].columns.size(); ++c) {
    const Column& first = sources_[0].columns[c];
    const bool is_copied =
        first.dtype() != DType::kString && IsDense(c) && !Joined(c).has_value();
    sizes.push_back(is_copied ? rows_ * first.row_bytes() : 0);
    total += sizes.back();
  }
  if (total < kMinReservedBytes) return {};
  return frames.Reserve(sizes);
}

Column ChunkBuilder::BuildColumn(size_t index, Buffer room) const {
  const Column& first = sources_[0].columns[index];
  Pins pins;
  for (const Chunk& source : sources_) AddPins(source.columns[index], pins);

  if (IsDense(index)) {
    const int64_t row_bytes = first.row_bytes();
    if (std::optional<Buffer> whole = Joined(index)) {
      return Column::Dense(first.dtype(), first.shape(), rows_,
                           *std::move(whole), std::move(pins));
    }
    Buffer values =
        room.size() > 0 ? std::move(room) : Buffer::Allocate(rows_ * row_bytes);
    std::byte* to = values.MutableAs<std::byte>();
    for (const Run& run : runs_) {
      const size_t bytes = run.count * row_bytes;
      if (bytes == 0) continue;
      std::memcpy(to, sources_[run.source].columns[index].RowData(run.begin),
                  bytes);
      to += bytes;
    }
    return Column::Dense(first.dtype(), first.shape(), rows_, std::move(values),
                         std::move(pins));
  }

  for (const Chunk& source : sources_) {
    pins.push_back(source.columns[index].values().owner());
  }
  const int rank = first.rank();
  Buffer data = Buffer::Allocate(rows_ * sizeof(void*));
  Buffer dims = Buffer::Allocate(rows_ * rank * sizeof(int64_t));
  const std::byte** pointer = data.MutableAs<const std::byte*>();
  int64_t* dim = dims.MutableAs<int64_t>();
  for (const Run& run : runs_) {
    const Column& column = sources_[run.source].columns[index];
    for (int64_t row = run.begin; row < run.begin + run.count; ++row) {
      *pointer++ = column.RowData(row);
      dim = std::copy_n(column.RowShape(row).begin(), rank, dim);
    }
  }
  return Column::Ragged(first.dtype(), rank, rows_, std::move(data),
                        std::move(dims), std::move(pins));
}

Chunk ChunkBuilder::Build(FrameMemory* frames) {
  Chunk out;
  if (runs_.size() == 1) {
    out = Slice(sources_[runs_[0].source], runs_[0].begin, runs_[0].count);
  } else if (!runs_.empty()) {
    out.rows = rows_;
    std::vector<Buffer> room;
    if (frames != nullptr) room = Reserve(*frames);
    room.resize(sources_[0].columns.size());
    for (size_t c = 0; c < room.size(); ++c) {
      out.columns.push_back(BuildColumn(c, std::move(room[c])));
    }
    const bool has_lineage = sources_[0].has_lineage();
    if (has_lineage) out.lineage = Buffer::Allocate(rows_ * sizeof(uint64_t));
    int64_t row = 0;
    for (const Run& run : runs_) {
      const Chunk& source = sources_[run.source];
      if (has_lineage) {
        std::memcpy(out.lineage.MutableAs<uint64_t>() + row,
                    source.lineage.As<uint64_t>() + run.begin,
                    run.count * sizeof(uint64_t));
      }
      for (const RowError& error : source.errors) {
        if (error.row >= run.begin && error.row < run.begin + run.count) {
          out.errors.push_back({row + error.row - run.begin, error.status});
        }
      }
      row += run.count;
    }
  }
  rows_ = 0;
  sources_.clear();
  runs_.clear();
  return out;
}

}  // namespace penstock

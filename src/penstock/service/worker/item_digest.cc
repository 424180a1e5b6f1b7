#include "penstock/service/worker/item_digest.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "penstock/base/hash.h"
#include "penstock/data/dtype.h"
#include "penstock/io/crc32c.h"

namespace penstock::service {
namespace {

uint64_t HashOf(std::string_view bytes) {
  if (bytes.size() <= sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), bytes.size());
    return word ^ uint64_t { bytes.size() } << 56;
  }
  return io::Crc32c(bytes) | uint64_t{bytes.size()} << 32;
}

uint64_t HashOfBlocks(std::string_view bytes, BlockSums* sums) {
  uint64_t hash = 0;
  while (!bytes.empty()) {
    const std::string_view block = bytes.substr(0, kSumBlockBytes);
    const uint32_t crc = io::Crc32c(block);
    hash = Combine(hash, crc | uint64_t{block.size()} << 32);
    if (sums != nullptr) {
      (*sums)[reinterpret_cast<const std::byte*>(block.data())] = {block.size(),
                                                                   crc};
    }
    bytes.remove_prefix(block.size());
  }
  return hash;
}

uint64_t HashOfRow(const Column& column, int64_t row, BlockSums* sums) {
  const int64_t items = column.RowItems(row);
  uint64_t hash = 0;
  if (!column.is_dense()) {
    for (const int64_t size : column.RowShape(row)) {
      hash = Combine(hash, static_cast<uint64_t>(size));
    }
  }
  if (column.dtype() == DType::kString) {
    const auto* strings = column.Row<StringRef>(row);
    for (int64_t i = 0; i < items; ++i) {
      hash = Combine(hash, HashOf(strings[i].view()));
    }
    return hash;
  }
  const std::string_view bytes(
      reinterpret_cast<const char*>(column.RowData(row)),
      static_cast<size_t>(items) * ItemSize(column.dtype()));
  return hash ^ (bytes.size() < kSumBlockBytes ? HashOf(bytes)
                                               : HashOfBlocks(bytes, sums));
}

}  // namespace

void ItemDigest::BeginAt(uint64_t position) {
  if (position <= end_) return;
  is_whole_ = false;
  end_ = position;
}

void ItemDigest::Add(const Chunk& chunk, uint64_t position, BlockSums* sums) {
  BeginAt(position);
  const uint64_t end = position + static_cast<uint64_t>(chunk.rows);
  auto error = chunk.errors.begin();
  for (; end_ < end; ++end_) {
    const auto row = static_cast<int64_t>(end_ - position);
    while (error != chunk.errors.end() && error->row < row) ++error;
    uint64_t hash = Mix(end_);
    if (error != chunk.errors.end() && error->row == row) {
      hash = Combine(hash, static_cast<uint64_t>(error->status.code()));
    } else {
      for (const Column& column : chunk.columns) {
        hash = Mix(hash ^ HashOfRow(column, row, sums));
      }
    }
    sum_ += hash;
  }
}

uint64_t ItemDigest::Get() const {
  if (!is_whole_) return 0;
  return std::max<uint64_t>(1, Mix(sum_ ^ end_));
}

}  // namespace penstock::service

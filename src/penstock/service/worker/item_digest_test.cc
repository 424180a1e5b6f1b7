#include "penstock/service/worker/item_digest.h"

#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "penstock/data/chunk_testing.h"

namespace penstock::service {
namespace {

Chunk Sample() {
  const std::vector<int64_t> numbers = {1, 2, 3, 4, 5, 6};
  const std::vector<std::string_view> words = {"", "a", "bb", "a long word",
                                               "", "f"};
  return ChunkOf({MakeColumn<int64_t>(numbers), MakeStringColumn(words),
                  RaggedInts({{}, {1}, {2, 3}, {}, {4}, {5, 6, 7, 8}})},
                 {{2, absl::DataLossError("lost")}});
}

uint64_t DigestOf(const Chunk& chunk) {
  ItemDigest digest;
  digest.Add(chunk, 0);
  return digest.Get();
}

TEST(ItemDigestTest, DoesNotDependOnHowFramesAreCut) {
  const Chunk chunk = Sample();
  for (int64_t size = 1; size < chunk.rows; ++size) {
    ItemDigest digest;
    for (int64_t at = 0; at < chunk.rows; at += size) {
      digest.Add(Slice(chunk, at, std::min(size, chunk.rows - at)),
                 static_cast<uint64_t>(at));
    }
    EXPECT_EQ(digest.Get(), DigestOf(chunk)) << size;
    EXPECT_EQ(digest.items(), 6);
  }
}

TEST(ItemDigestTest, WhatIsComputedAgainCountsOnce) {
  const Chunk chunk = Sample();
  ItemDigest digest;
  digest.Add(Slice(chunk, 0, 4), 0);
  digest.Add(Slice(chunk, 1, 2), 1);
  digest.Add(Slice(chunk, 3, 3), 3);
  EXPECT_EQ(digest.Get(), DigestOf(chunk));
}

TEST(ItemDigestTest, SeesEveryChange) {
  const Chunk chunk = Sample();
  Chunk other = chunk;
  other.columns[0] =
      MakeColumn<int64_t>(std::vector<int64_t>{1, 2, 3, 4, 5, 7});
  EXPECT_NE(DigestOf(other), DigestOf(chunk));
  other = chunk;
  other.columns[2] = RaggedInts({{}, {1}, {2, 3}, {}, {4}, {5, 6, 7, 9}});
  EXPECT_NE(DigestOf(other), DigestOf(chunk));
  other = chunk;
  other.errors.clear();
  EXPECT_NE(DigestOf(other), DigestOf(chunk));
  other.errors = {{2, absl::InternalError("lost")}};
  EXPECT_NE(DigestOf(other), DigestOf(chunk));
  EXPECT_NE(DigestOf(Slice(chunk, 0, 5)), DigestOf(chunk));
}

TEST(ItemDigestTest, IsUnknownWhereTheFirstItemsAre) {
  ItemDigest digest;
  digest.BeginAt(2);
  digest.Add(Slice(Sample(), 2, 4), 2);
  EXPECT_EQ(digest.Get(), 0);
  EXPECT_NE(ItemDigest().Get(), 0) << "of no items, nothing is missing";
}

}  // namespace
}  // namespace penstock::service

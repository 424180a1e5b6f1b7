#include "penstock/data/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/data/chunk_testing.h"

namespace penstock {
namespace {

using testing::ElementsAre;

Chunk Ints(std::vector<int64_t> values) {
  return ChunkOf({MakeColumn<int64_t>(values)});
}

TEST(ChunkBuilderTest, PutsRunsTogether) {
  ChunkBuilder builder;
  builder.Append(Ints({0, 1, 2}), 1, 2);
  builder.Append(Ints({5, 6}), 0, 1);
  EXPECT_EQ(builder.rows(), 3);
  const Chunk chunk = builder.Build();
  EXPECT_THAT(ToText(chunk), ElementsAre("1", "2", "5"));
  EXPECT_TRUE(chunk.columns[0].is_dense());
  EXPECT_EQ(builder.rows(), 0);
  EXPECT_EQ(builder.Build().rows, 0);
}

TEST(ChunkBuilderTest, RowsOfOneSourceAreNotCopied) {
  ChunkBuilder builder;
  const Chunk source = Ints({0, 1, 2, 3});
  const int number = builder.AddSource(source);
  builder.Append(number, 1, 1);
  builder.Append(number, 2, 2);
  const Chunk chunk = builder.Build();
  EXPECT_EQ(chunk.columns[0].RowData(0), source.columns[0].RowData(1));
}

TEST(ChunkBuilderTest, CopiesToWhereAFrameIsMade) {
  const auto memory = FrameMemory::Make(64 << 20);
  const std::vector<int64_t> many(kMinReservedBytes / sizeof(int64_t), 7);
  ChunkBuilder builder;
  builder.Append(Ints(many), 0, static_cast<int64_t>(many.size()));
  builder.Append(Ints({8}), 0, 1);
  const Chunk chunk = builder.Build(memory.get());
  EXPECT_EQ(chunk.columns[0].values().As<int64_t>()[0], 7);
  EXPECT_EQ(chunk.columns[0].values().As<int64_t>()[chunk.rows - 1], 8);
  const size_t used = memory->arena().used_bytes();
  EXPECT_GT(used, kMinReservedBytes);
  ASSERT_TRUE(memory->Make(chunk, "", false).ok());
  EXPECT_EQ(memory->arena().used_bytes(), used) << "the frame is a copy";
}

TEST(ChunkBuilderTest, CopiesElsewhereWhereThereIsNoRoomForAFrame) {
  const auto memory = FrameMemory::Make(4096);
  const std::vector<int64_t> many(kMinReservedBytes / sizeof(int64_t), 7);
  ChunkBuilder builder;
  builder.Append(Ints({8}), 0, 1);
  builder.Append(Ints(many), 0, static_cast<int64_t>(many.size()));
  const Chunk chunk = builder.Build(memory.get());
  EXPECT_EQ(chunk.rows, static_cast<int64_t>(many.size()) + 1);
  EXPECT_EQ(chunk.columns[0].values().As<int64_t>()[0], 8);
}

TEST(ChunkBuilderTest, DifferentSizesBecomeRagged) {
  ChunkBuilder builder;
  builder.Append(ChunkOf({ZeroColumn(DType::kInt64, {2}, 2)}), 0, 2);
  builder.Append(ChunkOf({ZeroColumn(DType::kInt64, {0}, 1)}), 0, 1);
  builder.Append(ChunkOf({RaggedInts({{1}, {2, 3, 4}})}), 0, 2);
  EXPECT_THAT(ToText(builder.Build()),
              ElementsAre("[0 0]", "[0 0]", "[]", "[1]", "[2 3 4]"));
}

TEST(ChunkBuilderTest, CarriesErrorsAndLineage) {
  Chunk first = Ints({0, 1});
  first.errors = {{1, absl::DataLossError("bad")}};
  first.lineage = MakeColumn<uint64_t>(std::vector<uint64_t>{5, 6}).values();
  Chunk second = Ints({2, 3});
  second.errors = {{0, absl::AbortedError("bad")}};
  second.lineage = MakeColumn<uint64_t>(std::vector<uint64_t>{7, 8}).values();
  ChunkBuilder builder;
  builder.Append(first, 1, 1);
  builder.Append(second, 0, 2);
  const Chunk chunk = builder.Build();
  EXPECT_THAT(ToText(chunk), ElementsAre("!DATA_LOSS", "!ABORTED", "3"));
  EXPECT_EQ(chunk.lineage.As<uint64_t>()[2], 8);
}

TEST(ChunkBuilderTest, SaysWhatFits) {
  ChunkBuilder builder;
  EXPECT_TRUE(builder.Fits(Ints({1})));
  builder.Append(Ints({1}), 0, 1);
  EXPECT_TRUE(builder.Fits(Ints({2})));
  EXPECT_FALSE(builder.Fits(ChunkOf({RaggedInts({{1}})})));
  EXPECT_FALSE(builder.Fits(ChunkOf({ZeroColumn(DType::kInt32, {}, 1)})));
  EXPECT_FALSE(builder.Fits(ChunkOf({})));
}

// Rows keep what they point to.
TEST(ChunkBuilderTest, KeepsStringsAlive) {
  Chunk chunk;
  {
    ChunkBuilder builder;
    builder.Append(ChunkOf({RaggedStrings({{"a string of some length"}})}), 0,
                   1);
    builder.Append(ChunkOf({RaggedStrings({{"b", "c"}})}), 0, 1);
    chunk = builder.Build();
  }
  EXPECT_THAT(ToText(chunk),
              ElementsAre("[\"a string of some length\"]", "[\"b\" \"c\"]"));
}

}  // namespace
}  // namespace penstock

#include "penstock/data/chunk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/data/chunk_testing.h"

namespace penstock {
namespace {

using testing::ElementsAre;

Chunk Sample() {
  const std::vector<int64_t> ints = {0, 1, 2, 3};
  const std::vector<std::string_view> words = {"a", "", "cc", "d"};
  Chunk chunk = ChunkOf({MakeColumn<int64_t>(ints), MakeStringColumn(words),
                         RaggedInts({{}, {7}, {8, 9}, {5}})},
                        {{2, absl::DataLossError("bad")}});
  chunk.lineage =
      MakeColumn<uint64_t>(std::vector<uint64_t>{10, 11, 12, 13}).values();
  return chunk;
}

TEST(SliceTest, TakesRowsErrorsAndLineage) {
  EXPECT_THAT(ToText(Slice(Sample(), 1, 3)),
              ElementsAre("(1, \"\", [7])", "!DATA_LOSS", "(3, \"d\", [5])"));
  EXPECT_THAT(ToText(Slice(Sample(), 0, 1)), ElementsAre("(0, \"a\", [])"));
  EXPECT_EQ(Slice(Sample(), 2, 2).lineage.As<uint64_t>()[1], 13);
  EXPECT_EQ(Slice(Sample(), 4, 0).rows, 0);
}

TEST(GatherTest, TakesRowsInOrder) {
  const std::vector<int32_t> rows = {3, 2, 1, 2};
  const Chunk gathered = Gather(Sample(), rows);
  EXPECT_THAT(ToText(gathered), ElementsAre("(3, \"d\", [5])", "!DATA_LOSS",
                                            "(1, \"\", [7])", "!DATA_LOSS"));
  EXPECT_EQ(gathered.lineage.As<uint64_t>()[2], 11);
}

// Rows of every size: those that are copied by words, by bytes, and those that
// become pointers, which must then keep their memory.
TEST(GatherTest, TakesRowsOfAnySize) {
  for (int64_t items : {0, 1, 2, 3, 4, 8, 16, 17, 600}) {
    const std::vector<int32_t> rows = {1, 0, 1};
    Chunk gathered;
    {
      Column column = ZeroColumn(DType::kUint8, {items}, 2);
      Buffer bytes = column.values();
      for (int64_t i = 0; i < 2 * items; ++i) {
        bytes.MutableAs<uint8_t>()[i] = static_cast<uint8_t>(1 + i / items);
      }
      gathered = Gather(ChunkOf({std::move(column)}), rows);
    }
    for (int64_t row = 0; row < 3; ++row) {
      for (int64_t i = 0; i < items; ++i) {
        ASSERT_EQ(gathered.columns[0].Row<uint8_t>(row)[i], rows[row] + 1);
      }
    }
  }
}

TEST(ErrorAtTest, FindsErrors) {
  const Chunk chunk = Sample();
  EXPECT_EQ(ErrorAt(chunk, 1), nullptr);
  ASSERT_NE(ErrorAt(chunk, 2), nullptr);
  EXPECT_EQ(ErrorAt(chunk, 2)->code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ErrorAt(chunk, 3), nullptr);
}

TEST(ColumnTest, CountsBytes) {
  EXPECT_EQ(ZeroColumn(DType::kInt32, {2, 3}, 4).NumBytes(), 96);
  EXPECT_EQ(RaggedInts({{1, 2}, {}, {3}}).NumBytes(), 24);
  const std::vector<std::string_view> words = {"abc", ""};
  EXPECT_EQ(MakeStringColumn(words).NumBytes(),
            3 + 2 * static_cast<int64_t>(sizeof(StringRef)));
}

TEST(ColumnTest, RowOfKeepsItsMemory) {
  Column row;
  {
    row = RowOf(RaggedStrings({{"x"}, {"longer than a small string", "b"}}), 1);
  }
  EXPECT_THAT(ToText(row),
              ElementsAre("[\"longer than a small string\" \"b\"]"));
}

TEST(ColumnTest, ReshapesWithoutACopy) {
  const Column column = ZeroColumn(DType::kInt64, {}, 6);
  const Column batches = column.Reshape(2, {3});
  EXPECT_EQ(batches.values().data(), column.values().data());
  EXPECT_THAT(ToText(batches), ElementsAre("[0 0 0]", "[0 0 0]"));
}

}  // namespace
}  // namespace penstock

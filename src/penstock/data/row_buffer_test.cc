#include "penstock/data/row_buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/data/chunk_testing.h"

namespace penstock {
namespace {

using testing::ElementsAre;

TEST(RowBufferTest, GathersRows) {
  RowBuffer buffer;
  const std::vector<int64_t> numbers = {7, 8, 9};
  const Chunk chunk =
      ChunkOf({MakeColumn<int64_t>(numbers), RaggedInts({{1}, {2, 3}, {4}}),
               RaggedStrings({{"a"}, {"b"}, {"cc", ""}})});
  buffer.Append(chunk, {0, 2});
  buffer.Append(chunk, {1});
  EXPECT_EQ(buffer.rows(), 3);
  EXPECT_GT(buffer.num_bytes(), 0);
  const Chunk rows = buffer.Take();
  EXPECT_TRUE(rows.columns[0].is_dense());
  EXPECT_THAT(ToText(rows),
              ElementsAre("(7, [1], [\"a\"])", "(9, [4], [\"cc\" \"\"])",
                          "(8, [2 3], [\"b\"])"));
  EXPECT_EQ(buffer.rows(), 0);
  buffer.Append(chunk, {1});
  EXPECT_THAT(ToText(buffer.Take()), ElementsAre("(8, [2 3], [\"b\"])"));
}

TEST(RowBufferTest, RanksThatDiffer) {
  RowBuffer buffer;
  const std::vector<int64_t> numbers = {7};
  buffer.Append(ChunkOf({MakeColumn<int64_t>(numbers)}), {0});
  buffer.Append(ChunkOf({RaggedInts({{1}})}), {0});
  EXPECT_EQ(buffer.rows(), 2);
  EXPECT_FALSE(buffer.is_uniform());
  EXPECT_EQ(buffer.Take().rows, 0);
  EXPECT_TRUE(buffer.is_uniform());
}

}  // namespace
}  // namespace penstock

#include "penstock/data/nested.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/data/chunk_testing.h"

namespace penstock {
namespace {

using testing::ElementsAre;

TEST(NestedTest, ComesBack) {
  const Chunk first = ChunkOf({RaggedInts({{1}, {2, 3}, {}})});
  const Chunk second = ChunkOf({RaggedStrings({{"a", "bb"}})});
  const Column rows = EncodeNested({first, second});
  ASSERT_EQ(rows.rows(), 2);
  EXPECT_THAT(ToText(*DecodeNested(rows.Slice(0, 1))),
              ElementsAre("[1]", "[2 3]", "[]"));
  EXPECT_THAT(ToText(*DecodeNested(rows.Slice(1, 1))),
              ElementsAre("[\"a\" \"bb\"]"));
}

TEST(NestedTest, EqualRowsAreEqualStrings) {
  const Chunk chunk = ChunkOf({RaggedInts({{1}, {2, 3}})});
  const Column rows = EncodeNested({chunk, chunk});
  EXPECT_EQ(rows.Row<StringRef>(0)->view(), rows.Row<StringRef>(1)->view());
}

TEST(NestedTest, UnalignedAndDamaged) {
  const Column rows = EncodeNested({ChunkOf({RaggedInts({{1}})})});
  std::string text = "x" + std::string(rows.Row<StringRef>(0)->view());
  const std::string_view unaligned = std::string_view(text).substr(1);
  const std::vector<StringRef> refs = {{unaligned.data(), unaligned.size()}};
  EXPECT_THAT(ToText(*DecodeNested(MakeColumn<StringRef>(refs))),
              ElementsAre("[1]"));
  text[1] ^= 1;
  EXPECT_EQ(DecodeNested(MakeColumn<StringRef>(refs)).status().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_FALSE(DecodeNested(MakeColumn<int64_t>({1})).ok());
}

}  // namespace
}  // namespace penstock

#include "penstock/data/composite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/data/chunk_testing.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ElementSpec Leaf(DType dtype, PartialShape::Dims dims) {
  return ElementSpec::Tensor({dtype, PartialShape(std::move(dims))});
}

ElementSpec Ragged(ElementSpec values) {
  return RaggedOf(std::move(values), DType::kInt64, std::nullopt);
}

ElementSpec Sparse(int64_t rank) { return SparseOf(DType::kInt64, rank); }

TEST(CompositeSpec, GrowsAndShrinks) {
  const ElementSpec vector = Leaf(DType::kInt64, {std::nullopt});
  const ElementSpec one = Ragged(vector);
  const ElementSpec two = Batched(one, std::nullopt);
  EXPECT_TRUE(IsRagged(two));
  EXPECT_EQ(two.Flatten().size(), 3);
  EXPECT_EQ(*Unbatched(two), one);
  EXPECT_EQ(*Unbatched(one), vector);
  EXPECT_EQ(Batched(one, 4).Flatten()[2].ToString(), "int64(5,)");

  const ElementSpec sparse = Sparse(2);
  EXPECT_EQ(Batched(sparse, 3), Sparse(3));
  EXPECT_EQ(*Unbatched(Sparse(3)), sparse);
  EXPECT_FALSE(Unbatched(Leaf(DType::kInt64, {})).ok());

  const std::vector<Part> parts =
      PartsOf(ElementSpec::Tuple({vector, two, sparse}));
  ASSERT_EQ(parts.size(), 3);
  EXPECT_EQ(parts[1].first, 1);
  EXPECT_EQ(parts[1].columns, 3);
  EXPECT_EQ(parts[2].first, 4);
  EXPECT_TRUE(parts[2].kind == Part::Kind::kSparse);
}

TEST(CompositeSpec, RowsOfBatches) {
  const ElementSpec one = Ragged(Leaf(DType::kInt64, {std::nullopt}));
  EXPECT_EQ(*Rebatched(one, std::nullopt), one);
  const ElementSpec two = Ragged(one);
  EXPECT_EQ(*Rebatched(two, std::nullopt), two);
  EXPECT_EQ(*Rebatched(Sparse(2), 3), Sparse(2));
  const std::vector<Part> parts =
      RowPartsOf(ElementSpec::Tuple({one, two, Sparse(2)}));
  ASSERT_EQ(parts.size(), 3);
  EXPECT_TRUE(parts[0].kind == Part::Kind::kRaggedRow);
  EXPECT_EQ(parts[1].first, 1);
  EXPECT_EQ(parts[1].columns, 2);
  EXPECT_EQ(parts[2].first, 3);
}

TEST(CompositeTest, RaggedThereAndBack) {
  const std::vector<Part> one = PartsOf(Ragged(Leaf(DType::kInt64, {1})));
  const Chunk rows = ChunkOf({RaggedInts({{1, 2, 3}, {}, {4}}),
                              RaggedInts({{0, 1, 3}, {0}, {0, 0, 1}})});
  const absl::StatusOr<Chunk> batch = StackRows(one, rows);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_THAT(ToText(*batch),
              ElementsAre("([1 2 3 4], [0 1 3 3 4], [0 2 2 4])"));
  const std::vector<Part> two =
      PartsOf(Ragged(Ragged(Leaf(DType::kInt64, {1}))));
  EXPECT_EQ(*BatchSizeOf(two, *batch, 0), 3);
  EXPECT_EQ(ToText(*SplitRow(two, *batch, 0, 3)), ToText(rows));
  // One level less: plain vectors.
  EXPECT_THAT(ToText(*SplitRow(one, Slice(rows, 0, 1), 0, 2)),
              ElementsAre("[1]", "[2 3]"));
}

TEST(CompositeTest, BadSplits) {
  const std::vector<Part> parts = PartsOf(Ragged(Leaf(DType::kInt64, {1})));
  for (const std::vector<int64_t>& splits : std::vector<std::vector<int64_t>>{
           {}, {0}, {0, 3}, {1, 2}, {0, 2, 1, 2}, {-1, 2}}) {
    const Chunk rows = ChunkOf({RaggedInts({{1, 2}}), RaggedInts({splits})});
    EXPECT_FALSE(StackRows(parts, rows).ok());
    const absl::StatusOr<int64_t> size = BatchSizeOf(parts, rows, 0);
    if (size.ok()) {
      EXPECT_FALSE(SplitRow(parts, rows, 0, *size).ok());
    }
  }
}

TEST(CompositeTest, SparseThereAndBack) {
  Column indices = RaggedInts({{0, 2}, {1}});
  Buffer dims = Buffer::Allocate(4 * sizeof(int64_t));
  const std::vector<int64_t> sizes = {2, 1, 1, 1};
  std::copy(sizes.begin(), sizes.end(), dims.MutableAs<int64_t>());
  indices = Column::Ragged(DType::kInt64, 2, 2, indices.values(), dims,
                           indices.pins());
  const Chunk rows =
      ChunkOf({indices, RaggedInts({{7, 8}, {9}}), RaggedInts({{3}, {4}})});
  const std::vector<Part> one = PartsOf(Sparse(1));
  const absl::StatusOr<Chunk> batch = StackRows(one, rows);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_THAT(ToText(*batch),
              ElementsAre("([[0 0] [0 2] [1 1]], [7 8 9], [2 4])"));
  EXPECT_EQ(*BatchSizeOf(PartsOf(Sparse(2)), *batch, 0), 2);
  EXPECT_THAT(ToText(*SplitRow(PartsOf(Sparse(2)), *batch, 0, 2)),
              ElementsAre("([[0] [2]], [7 8], [4])", "([[1]], [9], [4])"));
}

TEST(CompositeTest, DenseToRagged) {
  const Column rows = RaggedInts({{1}, {}, {2, 3}});
  EXPECT_THAT(ToText(ChunkOf(*StackRagged(rows, 1, DType::kInt64))),
              ElementsAre("([1 2 3], [0 1 1 3])"));
  // Two levels: a table of 2 x 1 and one of 1 x 2.
  Buffer dims = Buffer::Allocate(4 * sizeof(int64_t));
  const std::vector<int64_t> sizes = {2, 1, 1, 2};
  std::copy(sizes.begin(), sizes.end(), dims.MutableAs<int64_t>());
  const Column flat = RaggedInts({{1, 2}, {3, 4}});
  const Column tables =
      Column::Ragged(DType::kInt64, 2, 2, flat.values(), dims, flat.pins());
  EXPECT_THAT(ToText(ChunkOf(*StackRagged(tables, 2, DType::kInt64))),
              ElementsAre("([1 2 3 4], [0 1 2 4], [0 2 3])"));
}

TEST(CompositeTest, DenseToSparse) {
  const Column rows = RaggedInts({{1}, {2, 3}});
  EXPECT_THAT(ToText(ChunkOf(*StackSparse(
                  rows, PartialShape(PartialShape::Dims{std::nullopt})))),
              ElementsAre("([[0 0] [1 0] [1 1]], [1 2 3], [2 2])"));
  EXPECT_THAT(
      ToText(ChunkOf(*StackSparse(rows, PartialShape(PartialShape::Dims{5})))),
      ElementsAre("([[0 0] [1 0] [1 1]], [1 2 3], [2 5])"));
  EXPECT_EQ(
      StackSparse(rows, PartialShape(PartialShape::Dims{1})).status().code(),
      absl::StatusCode::kDataLoss);
  EXPECT_EQ(StackSparse(rows, PartialShape()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace penstock

#include "penstock/data/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/data/chunk_testing.h"

namespace penstock {
namespace {

using Dims = PartialShape::Dims;

PartialShape Of(Dims dims) { return PartialShape(std::move(dims)); }

TEST(PartialShapeTest, Accepts) {
  const PartialShape shape = Of({2, std::nullopt});
  EXPECT_TRUE(shape.Accepts(Shape{2, 7}));
  EXPECT_FALSE(shape.Accepts(Shape{3, 7}));
  EXPECT_FALSE(shape.Accepts(Shape{2}));
  EXPECT_TRUE(PartialShape::UnknownRank().Accepts(Shape{2}));
  EXPECT_TRUE(shape.Accepts(Of({2, 5})));
  EXPECT_FALSE(Of({2, 5}).Accepts(shape));
  EXPECT_FALSE(shape.Accepts(PartialShape::UnknownRank()));
}

TEST(PartialShapeTest, Relaxes) {
  EXPECT_EQ(Relax(Of({2, 3}), Of({2, 4})), Of({2, std::nullopt}));
  EXPECT_EQ(Relax(Of({2}), Of({2})), Of({2}));
  EXPECT_EQ(Relax(Of({2}), Of({std::nullopt})), Of({std::nullopt}));
  EXPECT_EQ(Relax(Of({2}), Of({})), PartialShape::UnknownRank());
}

TEST(PartialShapeTest, GainsAndLosesADimension) {
  EXPECT_EQ(Of({3}).Prepend(std::nullopt), Of({std::nullopt, 3}));
  EXPECT_EQ(Of({2, 3}).DropFirst(), Of({3}));
  EXPECT_EQ(PartialShape::UnknownRank().Prepend(2),
            PartialShape::UnknownRank());
}

TEST(PartialShapeTest, Prints) {
  EXPECT_EQ(Of({}).ToString(), "()");
  EXPECT_EQ(Of({2}).ToString(), "(2,)");
  EXPECT_EQ(Of({std::nullopt, 3}).ToString(), "(None, 3)");
}

TEST(ElementSpecTest, FlattensAndPutsBack) {
  const ElementSpec pair = ElementSpec::Tuple(
      {ElementSpec::Tensor({DType::kInt64, {}}),
       ElementSpec::Tuple({ElementSpec::Tensor({DType::kString, Of({2})})})});
  EXPECT_EQ(pair.ToString(), "(int64(), (string(2,),))");
  std::vector<TensorSpec> leaves = pair.Flatten();
  ASSERT_EQ(leaves.size(), 2);
  leaves[1].dtype = DType::kBool;
  const ElementSpec other = pair.WithLeaves(leaves);
  EXPECT_TRUE(SameStructure(pair, other));
  EXPECT_FALSE(pair == other);
}

struct CheckCase {
  std::string name;
  Chunk chunk;
  PartialShape shape;
  bool is_ok;
};

class CheckColumnsTest : public testing::TestWithParam<CheckCase> {};

TEST_P(CheckColumnsTest, LooksAtEveryRowThatIsNoError) {
  const CheckCase& c = GetParam();
  const std::vector<TensorSpec> leaves = {{DType::kInt64, c.shape}};
  EXPECT_EQ(CheckColumns(c.chunk, leaves).ok(), c.is_ok);
}

const RowError kFirst{0, absl::DataLossError("bad")};   // NOLINT
const RowError kSecond{1, absl::DataLossError("bad")};  // NOLINT

INSTANTIATE_TEST_SUITE_P(
    Chunks, CheckColumnsTest,
    testing::ValuesIn<CheckCase>({
        {"Fits", ChunkOf({ZeroColumn(DType::kInt64, {2}, 2)}), Of({2}), true},
        {"AnotherShape", ChunkOf({ZeroColumn(DType::kInt64, {3}, 2)}), Of({2}),
         false},
        {"AnotherType", ChunkOf({ZeroColumn(DType::kInt32, {2}, 2)}), Of({2}),
         false},
        {"TooFewColumns", ChunkOf({}), Of({2}), false},
        {"RaggedRow", ChunkOf({RaggedInts({{1, 2}, {1}})}), Of({2}), false},
        {"RaggedErrorRow", ChunkOf({RaggedInts({{1, 2}, {1}})}, {kSecond}),
         Of({2}), true},
        {"FirstIsAnError",
         ChunkOf({ZeroColumn(DType::kInt64, {3}, 2)}, {kFirst}), Of({2}),
         false},
        {"AllAreErrors",
         ChunkOf({ZeroColumn(DType::kInt64, {3}, 2)}, {kFirst, kSecond}),
         Of({2}), true},
    }),
    [](const auto& info) { return info.param.name; });

TEST(DatasetSpecTest, IsOneLeaf) {
  const ElementSpec number = ElementSpec::Tensor(TensorSpec());
  const ElementSpec pair = ElementSpec::Tuple(
      {number, ElementSpec::Dataset(ElementSpec::Tuple({number, number}))});
  EXPECT_EQ(pair.ToString(), "(int64(), Dataset((int64(), int64())))");
  ASSERT_EQ(pair.Flatten().size(), 2);
  EXPECT_EQ(pair.Flatten()[1].ToString(), "string()");
  EXPECT_EQ(pair.WithLeaves(pair.Flatten()), pair);
  EXPECT_TRUE(pair.has_dataset());
  EXPECT_FALSE(number.has_dataset());
  // What is inside counts.
  EXPECT_FALSE(
      SameStructure(ElementSpec::Dataset(number), ElementSpec::Dataset(pair)));
}

TEST(PlaceholderTest, FitsItsSpecs) {
  const std::vector<TensorSpec> leaves = {
      {DType::kInt64, Of({2, 3})},
      {DType::kString, Of({})},
      {DType::kFloat32, Of({std::nullopt})}};
  Chunk chunk = ChunkOf(PlaceholderColumns(leaves, 2));
  EXPECT_EQ(chunk.rows, 2);
  EXPECT_TRUE(CheckColumns(chunk, leaves).ok());
}

}  // namespace
}  // namespace penstock

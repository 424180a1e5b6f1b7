#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/engine/contract_testing.h"
#include "penstock/engine/samples_testing.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::engine_testing {
namespace {

using namespace plan_testing;  // NOLINT: the language of these tests
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAreArray;

plan::Plan Rerandomized(std::optional<uint64_t> seed, bool rerandomize) {
  Node node;
  if (seed.has_value()) node.mutable_random()->set_seed(*seed);
  node.mutable_random()->set_rerandomize_each_iteration(rerandomize);
  return AppendOrDie({}, std::move(node));
}

TEST(RandomTest, SeedDecides) {
  const plan::Plan plan = Take(Random(7), 20);
  EXPECT_EQ(Drain(plan), Drain(Take(Random(7), 20)));
  EXPECT_NE(Drain(plan), Drain(Take(Random(8), 20)));
  EXPECT_NE(Drain(Take(Random(0), 20)), Drain(Take(Random(1), 20)));
}

TEST(RandomTest, IsNotNegative) {
  for (const std::string& row : DrainFirst(Random(1), 1000)) {
    EXPECT_NE(row[0], '-');
  }
}

// Whether repetitions and iterators differ.
TEST(RandomTest, RerandomizesIfAsked) {
  for (bool rerandomize : {false, true}) {
    TestEngine engine;
    const auto pipeline =
        BuildOrDie(Repeat(Take(Rerandomized(3, rerandomize), 5), 2));
    const Rows first = Reader(engine, pipeline, std::nullopt).Drain();
    const Rows second = Reader(engine, pipeline, std::nullopt).Drain();
    const Rows begin(first.begin(), first.begin() + 5);
    const Rows end(first.begin() + 5, first.end());
    EXPECT_EQ(begin != end, rerandomize);
    EXPECT_EQ(first != second, rerandomize);
  }
}

TEST(RandomContract, Holds) { CheckContract(Random(5)); }

}  // namespace
}  // namespace penstock::engine_testing

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

struct ShardCase {
  std::string name;
  int64_t rows;
  int64_t num_shards;
  int64_t index;
  Rows want;
};

class ShardTest : public testing::TestWithParam<ShardCase> {};

TEST_P(ShardTest, TakesEveryNth) {
  const ShardCase& c = GetParam();
  const plan::Plan plan = Shard(Range(c.rows), c.num_shards, c.index);
  EXPECT_EQ(Drain(plan), c.want);
  EXPECT_EQ(Drain(plan, {1}), c.want);
}

INSTANTIATE_TEST_SUITE_P(Shards, ShardTest,
                         testing::ValuesIn<ShardCase>({
                             {"First", 7, 3, 0, {"0", "3", "6"}},
                             {"Last", 7, 3, 2, {"2", "5"}},
                             {"One", 3, 1, 0, {"0", "1", "2"}},
                             {"MoreShardsThanRows", 2, 5, 4, {}},
                             {"HugeCount", 2, INT64_MAX, 1, {"1"}},
                             {"OfNothing", 0, 2, 1, {}},
                         }),
                         [](const auto& info) { return info.param.name; });

TEST(ShardContract, Holds) {
  CheckContract(Shard(Range(200), 5, 3));
  CheckContract(Shard(Map(Range(50), FailsWhere(6, 1)), 2, 1));
  CheckContract(Shard(Words(50), 2, 1));
  CheckContract(Shard(Map(Range(20), UpTo()), 2, 1));
}

}  // namespace
}  // namespace penstock::engine_testing

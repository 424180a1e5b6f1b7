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

struct TakeCase {
  std::string name;
  int64_t rows;
  std::optional<int64_t> count;
  Rows taken;
  Rows skipped;
};

class TakeTest : public testing::TestWithParam<TakeCase> {};

TEST_P(TakeTest, SplitsAtTheCount) {
  const TakeCase& c = GetParam();
  EXPECT_EQ(Drain(Take(Range(c.rows), c.count)), c.taken);
  EXPECT_EQ(Drain(Skip(Range(c.rows), c.count)), c.skipped);
}

INSTANTIATE_TEST_SUITE_P(Counts, TakeTest,
                         testing::ValuesIn<TakeCase>({
                             {"Some", 3, 2, {"0", "1"}, {"2"}},
                             {"None", 3, 0, {}, {"0", "1", "2"}},
                             {"All", 3, 3, {"0", "1", "2"}, {}},
                             {"More", 3, 9, {"0", "1", "2"}, {}},
                             {"OfNothing", 0, 2, {}, {}},
                             {"Unset", 3, {}, {"0", "1", "2"}, {}},
                         }),
                         [](const auto& info) { return info.param.name; });

TEST(TakeTest, ErrorsAreElements) {
  const plan::Plan input = Map(Range(4), FailsWhere(4, 1));
  EXPECT_THAT(Drain(Take(input, 2)), ElementsAre("0", FailureText()));
  EXPECT_THAT(Drain(Skip(input, 2)), ElementsAre("2", "3"));
}

TEST(SkipTest, SkipsFar) {
  EXPECT_THAT(DrainFirst(Skip(Counter(), 5'000'000), 1),
              ElementsAre("5000000"));
}

// A long skip lets go now and then, so that an end can come through.
TEST(SkipTest, YieldsOnTheWay) {
  TestEngine engine;
  Reader reader(engine,
                Skip(Filter(Counter(), IsMultipleOf(1)), int64_t{1} << 60));
  const absl::StatusOr<engine::Pull> pull = reader.Try(1);
  ASSERT_TRUE(pull.ok());
  EXPECT_TRUE(pull->is_blocked());
}

// Where rows need not be computed, it takes no time.
TEST(SkipTest, LeavesOutWhatNobodySees) {
  EXPECT_EQ(DrainFirst(Skip(Counter(), int64_t{1} << 60), 1),
            Numbers({int64_t{1} << 60}));
}

TEST(TakeContract, Holds) {
  CheckContract(Take(Range(50), 20));
  CheckContract(Take(Map(Range(50), FailsWhere(7, 2)), 20));
  CheckContract(Skip(Range(50), 20));
  CheckContract(Skip(Map(Range(50), FailsWhere(7, 2)), 20));
  CheckContract(Skip(Take(Range(50), 5), 20));
  CheckContract(Skip(Range(5), {}));
}

}  // namespace
}  // namespace penstock::engine_testing

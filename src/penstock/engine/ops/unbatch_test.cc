#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/engine/contract_testing.h"
#include "penstock/engine/samples_testing.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::engine_testing {
namespace {

using namespace plan_testing;  // NOLINT: the language of these tests

using testing::ElementsAre;
using testing::IsEmpty;

struct UnbatchCase {
  std::string name;
  plan::Plan plan;
  Rows want;
};

class UnbatchTest : public testing::TestWithParam<UnbatchCase> {};

TEST_P(UnbatchTest, SplitsTheFirstDimension) {
  EXPECT_EQ(Drain(GetParam().plan), GetParam().want);
  EXPECT_EQ(Drain(GetParam().plan, {1}), GetParam().want);
}

INSTANTIATE_TEST_SUITE_P(
    Elements, UnbatchTest,
    testing::ValuesIn<UnbatchCase>({
        {"Batches", Unbatch(Batch(Range(5), 2)), Numbers(0, 5)},
        {"DifferentSizes",
         Unbatch(Map(Ints({2, 0, 1, 3}), UpTo())),
         {"0", "1", "0", "0", "1", "2"}},
        {"NoRows", Unbatch(Map(Ints({0, 0, 0}), UpTo())), {}},
        {"Strings",
         Unbatch(Batch(Strings({"a", "b", "c"}), 2)),
         {"\"a\"", "\"b\"", "\"c\""}},
        {"Nested", Unbatch(Batch(Batch(Range(4), 2), 2)), {"[0 1]", "[2 3]"}},
        {"Components",
         Unbatch(Batch(Zip({Range(3), Words(3)}), 2)),
         {"(0, \"\")", "(1, \"1\")", "(2, \"22\")"}},
        {"FirstDimensionsDiffer",
         Unbatch(Zip({Map(Ints({1, 2, 1}), UpTo()),
                      Map(Ints({1, 1, 1}), UpTo())})),
         {"(0, 0)", "!INVALID_ARGUMENT", "(0, 0)"}},
        {"AfterAnError",
         Unbatch(Map(Map(Ints({1, 7, 2}), FailsWhere(8, 7)), UpTo())),
         {"0", FailureText(), "0", "1"}},
    }),
    [](const auto& info) { return info.param.name; });

// Long runs of empty elements end.
TEST(UnbatchTest, SearchesFar) {
  EXPECT_THAT(Drain(Unbatch(Map(Map(Range(5000), MultiplyBy(0)), UpTo())), {1}),
              IsEmpty());
}

TEST(UnbatchContract, Holds) {
  CheckContract(Unbatch(Batch(Range(50), 7)));
  CheckContract(Unbatch(Map(Map(Range(30), Mod(4)), UpTo())));
  CheckContract(Unbatch(Batch(Words(40), 3)));
  CheckContract(
      Unbatch(Map(Map(Map(Range(20), FailsWhere(6, 2)), Mod(5)), UpTo())));
}

}  // namespace
}  // namespace penstock::engine_testing

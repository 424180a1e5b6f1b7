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

struct ZipCase {
  std::string name;
  std::vector<plan::Plan> inputs;
  Rows want;
};

class ZipTest : public testing::TestWithParam<ZipCase> {};

TEST_P(ZipTest, GoesAsFarAsTheShortest) {
  EXPECT_EQ(Drain(Zip(GetParam().inputs)), GetParam().want);
}

INSTANTIATE_TEST_SUITE_P(
    Inputs, ZipTest,
    testing::ValuesIn<ZipCase>({
        {"Equal", {Range(2), Range(5, 7)}, {"(0, 5)", "(1, 6)"}},
        {"FirstIsShorter", {Range(1), Range(9)}, {"(0, 0)"}},
        {"SecondIsShorter", {Range(9), Range(1)}, {"(0, 0)"}},
        {"OneIsEmpty", {Range(9), Range(0)}, {}},
        {"WithInfinite", {Counter(), Range(2)}, {"(0, 0)", "(1, 1)"}},
        {"Three",
         {Range(2), Strings({"a", "b"}), Range(3)},
         {"(0, \"a\", 0)", "(1, \"b\", 1)"}},
        {"ErrorsOfBoth",
         {Map(Range(4), FailsWhere(4, 1)), Map(Range(4), FailsWhere(4, 2))},
         {"(0, 0)", FailureText(), FailureText(), "(3, 3)"}},
        {"ErrorsAtOneRow",
         {Map(Range(2), FailsWhere(4, 0)), Map(Range(2), FailsWhere(4, 0))},
         {FailureText(), "(1, 1)"}},
    }),
    [](const auto& info) { return info.param.name; });

TEST(ZipContract, Holds) {
  CheckContract(Zip({Range(40), Words(30)}));
  CheckContract(Zip({Filter(Range(90), IsMultipleOf(3)), Range(40)}));
  CheckContract(Zip({Batch(Range(70), 2), Unbatch(Batch(Range(70), 3))}));
  CheckContract(Zip({Map(Range(20), FailsWhere(5, 1)), Prefetch(Range(30))}));
  CheckContract(Zip({Range(0), Range(3)}));
}

}  // namespace
}  // namespace penstock::engine_testing

#include "penstock/engine/ops/unique.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/engine/contract_testing.h"
#include "penstock/engine/reader_testing.h"
#include "penstock/engine/samples_testing.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::engine_testing {
namespace {

using namespace plan_testing;  // NOLINT: the language of these tests
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::IsEmpty;

TEST(UniqueTest, FirstOccurrencesInOrder) {
  EXPECT_THAT(Drain(Unique(Ints({3, 1, 3, 2, 1, 3}))),
              ElementsAre("3", "1", "2"));
  EXPECT_THAT(Drain(Unique(Strings({"b", "", "b", "a", ""}))),
              ElementsAre("\"b\"", "\"\"", "\"a\""));
  EXPECT_THAT(Drain(Unique(Map(Ints({2, 1, 2}), UpTo()))),
              ElementsAre("[0 1]", "[0]"));
  EXPECT_THAT(Drain(Unique(Range(0))), IsEmpty());
}

TEST(UniqueTest, ErrorsStay) {
  EXPECT_THAT(Drain(Unique(Map(Ints({1, 0, 1, 0, 2}), FailsWhere(5, 0)))),
              ElementsAre("1", FailureText(), FailureText(), "2"));
}

TEST(UniqueTest, SearchesFar) {
  EXPECT_THAT(DrainFirst(Unique(Map(Counter(), Mod(3))), 3),
              ElementsAre("0", "1", "2"));
}

TEST(UniqueContract, Holds) {
  CheckContract(Unique(Map(Range(90), Mod(40))));
  CheckContract(Unique(Map(Map(Range(50), Mod(20)), FailsWhere(7, 2))));
  CheckContract(Unique(Words(30)));
}

}  // namespace
}  // namespace penstock::engine_testing

// Operators whose functions run as Python, without Python: what is the
// engine's part of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "penstock/engine/contract_testing.h"
#include "penstock/engine/python_testing.h"
#include "penstock/engine/samples_testing.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::engine_testing {
namespace {

using namespace plan_testing;  // NOLINT: the language of these tests
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kRaised[] = "!INVALID_ARGUMENT";

TEST(PythonMapTest, KeepsOrderAndErrorsAtTheirRows) {
  const Rows rows = Drain(Map(Range(5), PythonDouble()));
  EXPECT_THAT(rows, ElementsAre("0", "2", "4", HasSubstr(kRaised), "8"));
}

// Adds the numbers of elements that the errors of the next `rows` rows name.
void ReadNumbers(Reader& reader, int64_t rows, std::vector<int>& numbers) {
  while (rows > 0) {
    const absl::StatusOr<engine::Pull> pull =
        reader.Next(std::min<int64_t>(rows, 3));
    if (!pull.ok() || pull->is_end()) return;
    rows -= pull->chunk.rows;
    for (const RowError& error : pull->chunk.errors) {
      const std::string message(error.status.message());
      const size_t at = message.find(", for element ");
      ASSERT_NE(at, std::string::npos) << message;
      numbers.push_back(std::atoi(message.c_str() + at + 14));
    }
  }
}

TEST(PythonErrorsTest, NameTheElementWhereverARunBegins) {
  for (const plan::Plan& plan :
       {Map(Range(2, 52), PythonDouble()),
        Unordered(Map(Range(2, 52), PythonDouble(), 3)),
        Scan(Range(2, 52), 0, PythonRunningSum())}) {
    TestEngine engine;
    const auto pipeline = BuildOrDie(plan);
    for (const int64_t given : {0, 1, 2, 9, 30, 49}) {
      std::vector<int> numbers;
      Reader reader(engine, pipeline);
      ReadNumbers(reader, given, numbers);
      Reader resumed = Reader::Resume(engine, pipeline, reader.Save());
      ReadNumbers(resumed, 50, numbers);
      std::sort(numbers.begin(), numbers.end());
      EXPECT_THAT(numbers, ElementsAre(1, 8, 15, 22, 29, 36, 43)) << given;
    }
  }
}

TEST(PythonMapContract, Holds) {
  CheckContract(Map(Range(50), PythonDouble()));
  CheckContract(Map(Range(0), PythonDouble()));
  CheckContract(Map(Map(Range(50), FailsWhere(5, 2)), PythonDouble(), 3));
  CheckContract(Unordered(Map(Range(50), PythonDouble(), 3)),
                {.is_ordered = false});
}

TEST(PythonFilterContract, Holds) {
  CheckContract(Filter(Range(50), PythonIsEven()));
  CheckContract(TakeWhile(Range(0, 50, 2), PythonIsEven()));
}

TEST(PythonScanTest, PassesItsStateOn) {
  EXPECT_THAT(Drain(Scan(Range(4, 8), 10, PythonRunningSum())),
              ElementsAre("14", "19", "25", "32"));
  EXPECT_THAT(Drain(Scan(Range(5), 0, PythonRunningSum())),
              ElementsAre("0", "1", "3", HasSubstr(kRaised), "7"));
  EXPECT_EQ(Drain(Scan(Range(3000), 0, PythonRunningSum()), {1}),
            Drain(Scan(Range(3000), 0, PythonRunningSum())));
}

TEST(PythonScanTest, ErrorsNameFunctionAndNode) {
  TestEngine engine;
  Reader reader(engine, Scan(Range(3, 4), 0, PythonRunningSum()));
  const absl::StatusOr<engine::Pull> pull = reader.Next(1);
  const std::string message(pull->chunk.errors[0].status.message());
  EXPECT_THAT(message,
              HasSubstr("in running_sum, for element 0 (from 0): raised"));
  EXPECT_THAT(message, HasSubstr("at node \"scan_1\""));
}

TEST(PythonReduceTest, GivesTheLastStateOrTheFirstError) {
  EXPECT_THAT(Drain(Reduce(Range(4, 9), 10, PythonSum())), ElementsAre("40"));
  EXPECT_THAT(Drain(Reduce(Range(0), 10, PythonSum())), ElementsAre("10"));
  EXPECT_THAT(Drain(Reduce(Range(90), 10, PythonSum())),
              ElementsAre(HasSubstr(kRaised)));
}

// A saved state of another structure is refused, not believed.
TEST(PythonScanTest, ADamagedStateIsRefused) {
  TestEngine engine;
  const auto scan = BuildOrDie(Scan(Range(9), 0, PythonRunningSum()));
  Reader reader(engine, scan);
  reader.Read(4);
  std::string state = reader.Save();
  state[state.size() / 2] ^= 1;
  EXPECT_FALSE(engine::Iterator::Resume(scan, engine.environment(),
                                        engine.instances(), state, 0)
                   .ok());
}

TEST(PythonScanContract, Holds) {
  CheckContract(Scan(Range(50), 3, PythonRunningSum()));
  CheckContract(Scan(Map(Range(50), FailsWhere(5, 2)), 3, PythonRunningSum()));
  CheckContract(Scan(Range(0), 3, PythonRunningSum()));
  CheckContract(Scan(Map(Range(40), PythonDouble()), 3, PythonRunningSum()));
  CheckContract(Reduce(Range(4, 10), 3, PythonSum()));
  CheckContract(Reduce(Range(60), 3, PythonSum()));
  CheckContract(Reduce(Range(0), 3, PythonSum()));
}

TEST(PythonScanContract, HoldsWhereNothingRunsAhead) {
  plan::Options options;
  options.set_run_ahead(0);
  CheckContract(WithOptions(Scan(Range(50), 3, PythonRunningSum()), options));
}

Plan BySize(Function key, Function size) {
  Node node;
  plan::GroupByWindow* op = node.mutable_group_by_window();
  *op->mutable_key() = std::move(key);
  *op->mutable_reduce() = ToBatches(9, 1);
  *op->mutable_window_size_function() = std::move(size);
  return AppendOrDie({Range(20)}, node);
}

TEST(PythonKeysTest, GroupAsNativeOnesDo) {
  EXPECT_THAT(Drain(GroupByWindow(Range(4, 10), PythonMod(2), 2)),
              ElementsAre("[4 6]", "[5 7]", "[8]", "[9]"));
  EXPECT_THAT(Drain(GroupByWindow(Range(2, 5), PythonMod(2), 2)),
              ElementsAre(HasSubstr(kRaised), "[2 4]"));
}

// Sizes are 2 * key: none of key 0.
TEST(PythonKeysTest, SizesByKey) {
  const Rows native = Drain(BySize(Mod(3), MultiplyBy(2)));
  EXPECT_THAT(native, testing::Contains("[1 4]"));
  EXPECT_EQ(Drain(BySize(Mod(3), PythonDouble())), native);
  EXPECT_THAT(Drain(BySize(PythonMod(3), PythonDouble())),
              testing::Contains("[1 4]"));
}

TEST(PythonKeysContract, Holds) {
  CheckContract(GroupByWindow(Range(50), PythonMod(3), 4));
  CheckContract(
      GroupByWindow(Map(Range(50), FailsWhere(5, 2)), PythonMod(2), 4));
  CheckContract(BySize(PythonMod(3), PythonDouble()));
  CheckContract(BySize(Mod(3), PythonDouble()));
}

TEST(PythonRowsContract, Holds) {
  const Plan datasets = Map(Range(9), PythonUpTo());
  EXPECT_THAT(
      Drain(FlatMap(Take(datasets, 5), ToRows())),
      ElementsAre("0", "0", "1", HasSubstr(kRaised), "0", "1", "2", "3"));
  CheckContract(FlatMap(datasets, ToRows()));
  CheckContract(Interleave(datasets, ToRows(), 3, 2));
}

// ---- Native functions that make datasets.

TEST(DatasetMapTest, ElementsAreDatasets) {
  EXPECT_EQ(Drain(FlatMap(Map(Range(6), ToRange()), ToRows())),
            Drain(FlatMap(Range(6), ToRange())));
  EXPECT_THAT(
      Drain(FlatMap(Map(Map(Range(4), FailsWhere(4, 2)), ToRange()), ToRows())),
      ElementsAre("0", FailureText(), "0", "1", "2"));
}

TEST(DatasetMapTest, ErrorsInsideStayInside) {
  FunctionBuilder f;
  const Plan inner = Map(Range(4), FailsWhere(4, 1));
  EXPECT_THAT(Drain(FlatMap(Map(Range(1), ToDataset(inner)), ToRows())),
              ElementsAre("0", FailureText(), "2", "3"));
}

TEST(DatasetMapTest, TooLargeIsAnErrorOfItsElement) {
  plan::Options options;
  options.set_max_element_bytes(100'000);
  const Plan endless = Map(Range(2), ToDataset(Counter()));
  TestEngine engine;
  Reader reader(engine, WithOptions(endless, options));
  for (int i = 0; i < 2; ++i) {
    const absl::StatusOr<engine::Pull> pull = reader.Next(1);
    ASSERT_TRUE(pull.ok()) << pull.status();
    EXPECT_THAT(std::string(pull->chunk.errors[0].status.message()),
                HasSubstr("max_element_bytes"));
  }
  EXPECT_TRUE(reader.Next(1)->is_end());
}

TEST(DatasetMapContract, Holds) {
  CheckContract(Map(Range(20), ToRange()));
  CheckContract(Map(Map(Range(20), FailsWhere(7, 2)), ToRange()));
  CheckContract(FlatMap(Map(Range(9), ToRange()), ToRows()));
}

}  // namespace
}  // namespace penstock::engine_testing

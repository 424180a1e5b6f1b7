#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "penstock/engine/contract_testing.h"
#include "penstock/engine/samples_testing.h"
#include "penstock/io/fake_files.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::engine_testing {
namespace {

using namespace plan_testing;  // NOLINT: the language of these tests

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// The rule, as its own small program: places are filled in order; one that ends
// gives its turn away and is filled again when its turn comes round.
std::vector<int64_t> Reference(const std::vector<int64_t>& sizes,
                               int64_t cycle_length, int64_t block_length) {
  struct Place {
    bool is_open = false;
    int64_t next = 0;
    int64_t size = 0;
  };
  std::vector<int64_t> out;
  std::vector<Place> places(cycle_length);
  size_t next_input = 0;
  int64_t num_open = 0;
  while (num_open > 0 || next_input < sizes.size()) {
    for (Place& place : places) {
      if (!place.is_open) {
        if (next_input == sizes.size()) continue;
        place = {true, 0, sizes[next_input++]};
        ++num_open;
      }
      for (int64_t i = 0; i < block_length; ++i) {
        if (place.next == place.size) {
          place.is_open = false;
          --num_open;
          break;
        }
        out.push_back(place.next++);
      }
    }
  }
  return out;
}

struct InterleaveCase {
  std::string name;
  std::vector<int64_t> sizes;
};

class InterleaveTest : public testing::TestWithParam<InterleaveCase> {};

TEST_P(InterleaveTest, FollowsTheReference) {
  const std::vector<int64_t>& sizes = GetParam().sizes;
  for (int64_t cycle : {1, 2, 3, 7, 40}) {
    for (int64_t block : {1, 2, 3, 100}) {
      for (int64_t parallelism : {1, 3}) {
        const plan::Plan plan =
            Interleave(Ints(sizes), ToRange(), cycle, block, parallelism);
        const Rows want = Numbers(Reference(sizes, cycle, block));
        for (int64_t demand : {1, 4, 1000}) {
          ASSERT_EQ(Drain(plan, {demand}), want)
              << "cycle " << cycle << " block " << block << " demand " << demand
              << " parallelism " << parallelism;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, InterleaveTest,
                         testing::ValuesIn<InterleaveCase>({
                             {"Plain", {4, 5, 6}},
                             {"Growing", {0, 1, 2, 3, 4, 5, 6, 7, 8}},
                             {"AllEmpty", {0, 0, 0, 0, 0}},
                             {"EmptyAround", {0, 0, 3, 0, 2, 0, 0}},
                             {"OneLong", {30, 1, 1, 1, 1}},
                             {"None", {}},
                         }),
                         [](const auto& info) { return info.param.name; });

TEST(InterleaveTest, WithoutOrderGivesTheSameRows) {
  const std::vector<int64_t> sizes = {5, 0, 3000, 7, 1, 20};
  Rows rows = Drain(Unordered(Interleave(Ints(sizes), ToRange(), 3, 2, 3)));
  Rows want = Numbers(Reference(sizes, 3, 2));
  std::sort(rows.begin(), rows.end());
  std::sort(want.begin(), want.end());
  EXPECT_EQ(rows, want);
}

TEST(InterleaveTest, ErrorsComeAtTheirPlaces) {
  const std::string bad = FailureText();
  // Of the input: one element, and its place is filled by the next.
  EXPECT_THAT(
      Drain(Interleave(Map(Ints({2, 5, 2}), FailsWhere(5, 0)), ToRange(), 2)),
      ElementsAre("0", bad, "0", "1", "1"));
  // Of the datasets: an element like any other.
  EXPECT_THAT(Drain(Interleave(Range(2),
                               ToDataset(Map(Range(3), FailsWhere(3, 1))), 2)),
              ElementsAre("0", "0", bad, bad, "2", "2"));
}

plan::Plan Lines(const std::string& file) {
  Node node;
  *node.mutable_read_files()->mutable_files() = Constant(Texts({file}));
  node.mutable_read_files()->mutable_text();
  return AppendOrDie({}, std::move(node));
}

// Places that are empty get their datasets while another's is being opened.
TEST(InterleaveTest, FilesAreOpenedTogether) {
  for (int64_t parallelism : {1, 3}) {
    io::FakeFiles files;
    files.contents["f"] = "a\nb\n";
    const auto gate = std::make_shared<io::Gate>();
    files.settings.open_gate = gate;
    TestEngine engine({.files = &files});
    Reader reader(
        engine, Interleave(Range(5), ToDataset(Lines("f")), 3, 1, parallelism));
    EXPECT_TRUE(reader.Try(1)->is_blocked());
    gate->AwaitArrivals(3);
    gate->Open();
    EXPECT_THAT(reader.Drain(),
                ElementsAre("\"a\"", "\"a\"", "\"a\"", "\"b\"", "\"b\"",
                            "\"b\"", "\"a\"", "\"a\"", "\"b\"", "\"b\""));
  }
}

// Of small files the next ones are read while there is no place for them yet:
// they are not part of the state.
TEST(InterleaveTest, SmallFilesThatWaitForAPlaceAreReadAgain) {
  io::FakeFiles files;
  files.contents["f"] = "a\nb\n";
  files.contents["g"] = "c\nd\ne\n";
  TestEngine engine({.files = &files});
  for (const std::string name : {"f", "g"}) {
    const plan::Plan plan = Interleave(Range(9), ToDataset(Lines(name)), 2, 1);
    const Rows all = Reader(engine, plan).Drain();
    EXPECT_THAT(all, SizeIs(name == "f" ? 18 : 27));
    for (size_t taken = 0; taken <= all.size(); ++taken) {
      Reader reader(engine, plan);
      reader.Read(static_cast<int64_t>(taken));
      const std::string state = reader.Save();
      const Rows rest(all.begin() + static_cast<int64_t>(taken), all.end());
      EXPECT_EQ(reader.Drain(), rest);
      EXPECT_EQ(Reader::Resume(engine, reader.pipeline(), state).Drain(), rest);
    }
  }
}

TEST(FlatMapTest, GivesOneAfterAnother) {
  EXPECT_THAT(Drain(FlatMap(Ints({2, 0, 3}), ToRange())),
              ElementsAre("0", "1", "0", "1", "2"));
  EXPECT_THAT(Drain(FlatMap(Range(0), ToRange())), IsEmpty());
  EXPECT_THAT(Drain(FlatMap(Ints({0, 0}), ToRange())), IsEmpty());
  EXPECT_THAT(Drain(FlatMap(FlatMap(Range(4), ToRange()), ToRange())),
              ElementsAre("0", "0", "0", "1"));
  EXPECT_THAT(Drain(FlatMap(Range(300), ToDataset(Range(300)))),
              SizeIs(90'000));
}

// A value that a dataset refuses is an error at its element.
TEST(FlatMapTest, GoesOnAfterADatasetThatCannotStart) {
  FunctionBuilder f;
  const auto x = f.Arg(0);
  Node node;
  *node.mutable_batch()->mutable_size() = Bound(0);
  const plan::Plan batches =
      AppendOrDie({Range(2)}, node, {LeafOf(plan::INT64)});
  EXPECT_THAT(Drain(FlatMap(Ints({1, 0, 2}), f.ReturnDataset(batches, {x}))),
              ElementsAre("[0]", "[1]", "!INVALID_ARGUMENT", "[0 1]"));
}

TEST(InterleaveContract, Holds) {
  CheckContract(Interleave(Ints({3, 0, 5, 2, 4, 1}), ToRange(), 3, 2));
  CheckContract(Interleave(Map(Range(8), FailsWhere(4, 2)), ToRange(), 2, 1));
  CheckContract(
      Interleave(Range(9), ToDataset(Map(Range(5), FailsWhere(5, 1))), 4, 2));
  CheckContract(Interleave(Range(6), ToDataset(Words(9)), 6, 1));
  CheckContract(Interleave(Range(6), ToDataset(Map(Range(4), UpTo())), 3, 2));
  CheckContract(FlatMap(Range(10), ToRange()));
  CheckContract(FlatMap(Range(3), ToDataset(Batch(Range(10), 3))));
  CheckContract(Interleave(Range(0), ToRange(), 2));
}

TEST(InterleaveContract, HoldsInParallel) {
  CheckContract(Interleave(Ints({3, 0, 5, 2, 4, 1}), ToRange(), 3, 2, 3));
  CheckContract(
      Interleave(Map(Range(8), FailsWhere(4, 2)), ToRange(), 2, 1, 2));
  CheckContract(Unordered(Interleave(Ints({3, 0, 5, 2}), ToRange(), 3, 2, 3)),
                {.is_ordered = false});
}

TEST(InterleaveContract, HoldsWithManyOpen) {
  CheckContract(Interleave(Range(40), ToDataset(Range(3)), 32, 1),
                {.max_rows = 150, .max_state_bytes = 2000});
  CheckContract(
      Interleave(Shuffle(Range(30), 8, 1, false), ToDataset(Range(3)), 16, 2),
      {.max_rows = 100, .max_state_bytes = 3000});
}

TEST(InterleaveContract, StateFitsAnyParallelism) {
  TestEngine engine;
  const std::vector<int64_t> sizes = {7, 3, 9, 4};
  const Rows want = Numbers(Reference(sizes, 3, 2));
  const auto one = BuildOrDie(Interleave(Ints(sizes), ToRange(), 3, 2));
  const auto four = BuildOrDie(Interleave(Ints(sizes), ToRange(), 3, 2, 4));
  Reader reader(engine, one);
  Rows rows = reader.Read(9);
  const Rows rest = Reader::Resume(engine, four, reader.Save()).Drain();
  rows.insert(rows.end(), rest.begin(), rest.end());
  EXPECT_EQ(rows, want);
}

}  // namespace
}  // namespace penstock::engine_testing

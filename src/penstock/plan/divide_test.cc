#include "penstock/plan/divide.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "penstock/plan/plan_testing.h"
#include "penstock/plan/print.h"
#include "penstock/plan/rewrite/draft.h"
#include "penstock/plan/validate.h"

namespace penstock::plan_testing {
namespace {

using plan::Divide;
using plan::Division;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

Division DivideOrDie(const Plan& plan) {
  absl::StatusOr<Division> division = Divide(plan);
  if (!division.ok()) {
    ADD_FAILURE() << division.status();
    return {};
  }
  for (const Plan* each : {&division->remote, &division->local}) {
    EXPECT_TRUE(plan::Validate(*each).ok()) << plan::Validate(*each);
  }
  if (division->stitch.has_value()) {
    const absl::Status status = plan::Validate(division->stitch->after);
    EXPECT_TRUE(status.ok()) << status;
  }
  return *std::move(division);
}

// The nodes' names, from the first to the root.
std::string Names(const Plan& plan) {
  std::vector<std::string> names;
  for (int i = 0; i < plan.nodes_size(); ++i) {
    names.push_back(plan::NodeName(plan, i));
  }
  return absl::StrJoin(names, " ");
}

Function RandomNumber() {
  FunctionBuilder f;
  const auto shape = f.Constant(Vector({}));
  return f.Return(f.Call("random_int", {shape, f.Int(0), f.Int(9)}));
}

// name -> the lines of that file
Function ToLines() {
  Node node;
  *node.mutable_read_files()->mutable_files() = Bound(0);
  node.mutable_read_files()->mutable_text();
  FunctionBuilder f;
  return f.ReturnDataset(
      AppendOrDie({}, std::move(node), {LeafOf(plan::STRING)}), {f.Arg(0)});
}

// Rows of the trainer's memory.
Plan Captured(int64_t rows, int64_t items) {
  Node node;
  node.mutable_rows()->set_capture("array");
  node.mutable_rows()->set_rows(rows);
  node.mutable_rows()->set_kind("from_tensor_slices");
  *node.mutable_rows()->mutable_spec() = TensorOf(plan::INT64, {items});
  return AppendOrDie({}, std::move(node));
}

Plan Numbers() { return Map(Range(100'000), Identity()); }

struct DivideCase {
  std::string name;
  Plan plan;
  std::string source;
  std::optional<int64_t> rows;
  std::string remote;
  std::string local;
};

class DivideTest : public testing::TestWithParam<DivideCase> {};

TEST_P(DivideTest, InTwo) {
  const DivideCase& c = GetParam();
  const Division division = DivideOrDie(c.plan);
  ASSERT_LT(division.source, division.remote.nodes_size());
  EXPECT_EQ(plan::NodeName(division.remote, division.source), c.source);
  EXPECT_EQ(division.rows, c.rows);
  EXPECT_EQ(Names(division.remote), c.remote);
  EXPECT_EQ(Names(division.local), c.local);
}

INSTANTIATE_TEST_SUITE_P(
    Plans, DivideTest,
    testing::ValuesIn<DivideCase>({
        {"Source", Range(5), "range_0", 5, "range_0", "received_0"},
        {"RowWise", FlatMap(Filter(Numbers(), IsMultipleOf(2)), ToRange()),
         "range_0", 100'000, "range_0 map_1 filter_2 flat_map_3", "received_0"},
        {"Windows", Interleave(Shuffle(Numbers(), 10), ToRange(), 3), "range_0",
         100'000, "range_0 map_1 shuffle_2 interleave_3", "received_0"},
        {"Batch", Map(Batch(Numbers(), 10), Identity()), "range_0", 100'000,
         "range_0 map_1 batch_2 map_3", "received_0"},
        {"Slices", Map(Ints({1, 2, 3}), Identity()), "rows_0", 3,
         "rows_0 map_1", "received_0"},
        {"FoundFiles", Interleave(ListFiles("*"), ToLines(), 4), "list_files_0",
         std::nullopt, "list_files_0 interleave_1", "received_0"},
        {"ListedFiles", Map(TextLines({"a", "b"}), Identity()),
         "TextLineDataset_0", 2, "TextLineDataset_0 map_1", "received_0"},
        {"FirstFiles", FlatMap(Take(ListFiles("*"), 3), ToLines()), "take_1",
         std::nullopt, "list_files_0 take_1 flat_map_2", "received_0"},
        {"ShuffledFiles", FlatMap(Shuffle(Strings({"a", "b"}), 9), ToLines()),
         "shuffle_1", 2, "rows_0 shuffle_1 flat_map_2", "received_0"},
        {"ShardedSource", Map(Shard(Range(10), 3, 1), Identity()), "shard_1", 3,
         "range_0 shard_1 map_2", "received_0"},
        {"NumberedRows", Batch(Enumerate(Map(Range(100'000), Identity())), 10),
         "enumerate_2", 100'000, "range_0 map_1 enumerate_2 batch_3",
         "received_0"},
        {"ZippedSources", Map(Zip({Range(9), Ints({1, 2})}), Identity()),
         "zip_2", 2, "range_0 rows_1 zip_2 map_3", "received_0"},
        {"AnEndOfItsOwn", Map(Take(Counter(), 7), Identity()), "take_1", 7,
         "counter_0 take_1 map_2", "received_0"},
        {"Repeat", Batch(Repeat(Numbers()), 10), "range_0", 100'000,
         "range_0 map_1 repeat_2 batch_3", "received_0"},
        {"TakeAfterFilter", Take(Filter(Numbers(), IsMultipleOf(2)), 5),
         "range_0", 100'000, "range_0 map_1 filter_2", "received_0 take_3"},
        {"MapMovesBeforeTake",
         Batch(Map(Take(Filter(Numbers(), IsMultipleOf(2)), 5), Identity()), 2),
         "range_0", 100'000, "range_0 map_1 filter_2 map_4",
         "received_0 take_3 batch_5"},
        {"FilterDoesNot",
         Filter(Take(Filter(Numbers(), IsMultipleOf(2)), 5), IsMultipleOf(3)),
         "range_0", 100'000, "range_0 map_1 filter_2",
         "received_0 take_3 filter_4"},
        {"NorAfterWhatRemembers",
         Map(Scan(Filter(Numbers(), IsMultipleOf(2)), 0, RunningSum()),
             Identity()),
         "range_0", 100'000, "range_0 map_1 filter_2",
         "received_0 scan_3 map_4"},
        {"Cache", Batch(Shuffle(Cache(Numbers()), 10), 10), "range_0", 100'000,
         "range_0 map_1", "received_0 cache_2 shuffle_3 batch_4"},
        {"SecondBatch", Batch(Unbatch(Batch(Numbers(), 10)), 4), "range_0",
         100'000, "range_0 map_1 batch_2 unbatch_3", "received_0 batch_4"},
        {"Rebatch", Rebatch(Batch(Numbers(), 10), {3, 4}), "range_0", 100'000,
         "range_0 map_1 batch_2", "received_0 rebatch_3"},
        {"SecondRepeat", Repeat(Map(Repeat(Range(9), 2), Identity()), 3),
         "range_0", 9, "range_0 repeat_1 map_2", "received_0 repeat_3"},
        {"PlainWindow", Window(Numbers(), 10), "range_0", 100'000,
         "range_0 map_1 window_2", "received_0"},
        {"SlidingWindow", Window(Numbers(), 10, 1), "range_0", 100'000,
         "range_0 map_1", "received_0 window_2"},
        {"InsideGenerator",
         FlatMap(Numbers(), ToDataset(Generator(TensorOf(plan::INT64)))),
         "range_0", 100'000, "range_0 map_1", "received_0 flat_map_2"},
    }),
    [](const auto& info) { return info.param.name; });

TEST(DivisionTest, SaysWhatWasMovedAndWhy) {
  Plan plan = Filter(Numbers(), IsMultipleOf(2));
  plan = Map(Shuffle(Take(plan, 5), 10), Identity());
  const Division division = DivideOrDie(plan);
  ASSERT_THAT(division.moved, SizeIs(3));
  EXPECT_EQ(division.moved[0].name, "take_3");
  EXPECT_EQ(division.moved[0].why, "counts the rows before it");
  EXPECT_EQ(division.moved[2].why, "comes after take_3");
  EXPECT_TRUE(division.moved[0].needs_order);
  EXPECT_TRUE(division.needs_order());
  EXPECT_FALSE(DivideOrDie(Cache(Numbers())).needs_order());
}

TEST(DivisionTest, Files) {
  EXPECT_TRUE(DivideOrDie(ListFiles("*")).is_files);
  EXPECT_TRUE(DivideOrDie(TextLines({"a"})).is_files);
  EXPECT_TRUE(DivideOrDie(FlatMap(Strings({"a"}), ToLines())).is_files);
  EXPECT_TRUE(DivideOrDie(FlatMap(Repeat(Strings({"a"})), ToLines())).is_files);
  EXPECT_FALSE(DivideOrDie(Strings({"a"})).is_files);
}

TEST(DivisionTest, Passes) {
  const Division twice = DivideOrDie(Repeat(Numbers(), 2));
  ASSERT_TRUE(twice.passes.has_value());
  EXPECT_EQ(twice.passes->count, 2);
  EXPECT_EQ(plan::NodeName(twice.remote, twice.passes->node), "repeat_2");
  EXPECT_EQ(DivideOrDie(Repeat(Numbers())).passes->count, std::nullopt);
  EXPECT_TRUE(
      DivideOrDie(Repeat(Numbers())).local.nodes(0).received().infinite());
}

TEST(DivisionTest, LooseRowsGoThroughWhatFollows) {
  const Division division =
      DivideOrDie(Map(Batch(Repeat(Numbers(), 2), 10, true), Identity()));
  ASSERT_TRUE(division.stitch.has_value());
  EXPECT_EQ(plan::NodeName(division.remote, division.stitch->node), "batch_3");
  EXPECT_EQ(division.stitch->size, 10);
  EXPECT_EQ(Names(division.stitch->after), "received_0 batch_3 map_4");
  EXPECT_EQ(division.stitch->repeat, std::nullopt);

  // Groups do not reach from one pass into the next.
  const Division by_pass =
      DivideOrDie(Map(Repeat(Batch(Numbers(), 10), 2), Identity()));
  EXPECT_EQ(Names(by_pass.stitch->after), "received_0 batch_2 repeat_3 map_4");
  EXPECT_EQ(by_pass.stitch->repeat, 2);
}

Plan Distributed(Plan input) {
  Node node;
  auto& asked = *node.mutable_received()->mutable_distribution();
  asked.set_address("localhost:5050");
  asked.set_readers(1);
  return AppendOrDie({std::move(input)}, std::move(node));
}

TEST(DivisionTest, BundlesOfAnotherJobAreSharedOut) {
  const Division division =
      DivideOrDie(Filter(Distributed(Numbers()), IsMultipleOf(2)));
  EXPECT_TRUE(division.is_received);
  EXPECT_EQ(division.source, 0);
  EXPECT_EQ(division.rows, std::nullopt);
  EXPECT_EQ(Names(division.remote), "distribute_2 filter_1");
  EXPECT_EQ(Names(division.local), "received_0");
}

TEST(DivisionTest, LooseRowsOfAnotherJobGoThroughBothPlans) {
  const Plan inner = Distributed(Map(Batch(Numbers(), 10), Identity()));
  const Division division =
      DivideOrDie(Batch(Take(Map(inner, Identity()), 7), 3));
  ASSERT_TRUE(division.stitch.has_value());
  EXPECT_EQ(division.stitch->node, division.source);
  EXPECT_EQ(division.stitch->size, 10);
  EXPECT_EQ(Names(division.stitch->after), "received_0 batch_2 map_3 map_1");
  EXPECT_EQ(Names(division.local), "received_0 take_2 batch_3");
  // A second batch is for the one reader.
  EXPECT_EQ(Names(DivideOrDie(Batch(inner, 3)).local), "received_0 batch_1");
}

TEST(DivisionTest, WhatJoinsOtherJobsIsOneShare) {
  const Plan both =
      AppendOrDie({Distributed(Numbers()), Distributed(Numbers())}, [] {
        Node node;
        node.mutable_concatenate();
        return node;
      }());
  const Division division = DivideOrDie(Map(both, Identity()));
  EXPECT_TRUE(division.is_whole);
  EXPECT_EQ(division.rows, 1);
  EXPECT_EQ(Names(division.remote),
            "distribute_2 distribute_2 concatenate_2 map_3");
}

// Random values are keyed by them.
TEST(DivisionTest, NodesKeepTheirKeys) {
  Plan plan = Filter(Numbers(), IsMultipleOf(2));
  plan = Map(Cache(Map(plan, RandomNumber())), RandomNumber());
  const std::vector<uint64_t> keys = plan::KeysOf(plan, 0);
  const Division division = DivideOrDie(plan);
  EXPECT_EQ(plan::KeysOf(division.remote, 0)[3], keys[3]);
  EXPECT_EQ(plan::KeysOf(division.local, 0)[2], keys[5]);
  EXPECT_TRUE(division.needs_lineage);
  EXPECT_FALSE(DivideOrDie(Map(Numbers(), RandomNumber())).needs_lineage);
}

TEST(DivisionTest, OptionsHoldForBoth) {
  plan::Options options;
  options.set_max_element_bytes(77);
  options.set_deterministic(false);
  const Division division = DivideOrDie(WithOptions(Cache(Numbers()), options));
  EXPECT_EQ(Names(division.remote), "range_0 map_1 with_options_3");
  EXPECT_EQ(Names(division.local), "received_0 with_options_1 cache_2");
  // But in a share rows come in order.
  EXPECT_TRUE(
      division.remote.nodes(2).with_options().options().deterministic());
}

TEST(DivisionTest, SharesHoldFourWindows) {
  const struct {
    std::string name;
    Plan plan;
    int64_t rows;
    int64_t elements;
  } cases[] = {
      {"none", Numbers(), 1, 0},
      {"shuffle", Shuffle(Numbers(), 100), 400, 0},
      {"shuffle of batches", Shuffle(Batch(Numbers(), 10), 100), 4000, 0},
      {"batch", Batch(Numbers(), 10), 10, 0},
      {"after a filter", Shuffle(Filter(Numbers(), IsMultipleOf(2)), 100), 1,
       400},
      {"interleave", Interleave(Numbers(), ToRange(), 7), 7, 0},
      {"of files", Shuffle(Interleave(ListFiles("*"), ToLines(), 7), 100), 7,
       400},
      {"more than there are", Shuffle(Map(Range(50), Identity()), 100), 50, 0},
      {"huge", Shuffle(Numbers(), INT64_MAX), 100'000, 0},
      {"all", Shuffle(Numbers(), std::nullopt), 1, 0},
  };
  for (const auto& each : cases) {
    const Division division = DivideOrDie(each.plan);
    EXPECT_EQ(division.least_rows, each.rows) << each.name;
    EXPECT_EQ(division.least_elements, each.elements) << each.name;
  }
  const Division all = DivideOrDie(Shuffle(Numbers(), std::nullopt));
  ASSERT_THAT(all.windows, SizeIs(1));
  EXPECT_EQ(all.windows[0].rows, std::nullopt);
}

TEST(DivideTest, TokensComeTogetherInAShare) {
  const auto tokens = [](bool drop_remainder) {
    Node node;
    plan::BatchByTokens* op = node.mutable_batch_by_tokens();
    *op->mutable_length() = Identity();
    op->set_max_tokens(100);
    op->set_window(10);
    op->set_drop_remainder(drop_remainder);
    return AppendOrDie({Map(Range(500), Identity())}, std::move(node));
  };
  const Division division = DivideOrDie(tokens(false));
  EXPECT_THAT(Names(division.remote), HasSubstr("batch_by_tokens"));
  ASSERT_THAT(division.windows, SizeIs(1));
  EXPECT_EQ(division.windows[0].rows, 10);
  EXPECT_EQ(division.least_rows, 40);
  const Division dropping = DivideOrDie(tokens(true));
  ASSERT_THAT(dropping.moved, SizeIs(1));
  EXPECT_THAT(dropping.moved[0].why, HasSubstr("is to happen once"));
}

TEST(DivideTest, SaysWhatStandsInTheWay) {
  const struct {
    std::string name;
    Plan plan;
    std::string found;
    std::string advice;
  } cases[] = {
      {"no end", Map(Counter(), Identity()), "got counter_0, which has none",
       "each_worker"},
      {"random", Filter(Random(), IsMultipleOf(2)),
       "got random_0, which has none", "take()"},
      {"generator", Batch(Generator(TensorOf(plan::INT64)), 2),
       "got from_generator_0, whose rows come from this process",
       "Save them to files"},
      {"joined", Zip({Filter(Range(9), IsMultipleOf(2)), Range(9)}),
       "got zip_3, which joins 2 datasets", "move zip() behind distribute()"},
      {"joined end to end",
       Concatenate(Range(int64_t{1} << 40), Range(int64_t{1} << 40)),
       "got concatenate_2", "move concatenate() behind"},
      {"sampled", SampleFrom({Range(9), Range(9)}), "got sample_from_datasets",
       "move sample_from_datasets() behind"},
      {"in memory", Map(Captured(1 << 20, 100), Identity()),
       "1048576 rows of 800 bytes", "files that workers can read"},
      {"no work", Map(Cache(Range(9)), Identity()),
       "got cache_1 right after the source, which keeps all rows",
       "Move cache() behind distribute()"},
  };
  for (const auto& each : cases) {
    const absl::Status status = Divide(each.plan).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << each.name;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(each.found), HasSubstr(each.advice),
                      HasSubstr("at node \"")))
        << each.name;
  }
  EXPECT_TRUE(Divide(Captured(1 << 10, 100)).ok());
}

TEST(DivideTest, NamesTheLine) {
  Plan plan = Map(Counter(), Identity());
  plan.mutable_nodes(0)->mutable_made_at()->set_file("train.py");
  plan.mutable_nodes(0)->mutable_made_at()->set_line(7);
  EXPECT_THAT(std::string(Divide(plan).status().message()),
              HasSubstr("at node \"counter_0\", made at train.py:7"));
}

}  // namespace
}  // namespace penstock::plan_testing

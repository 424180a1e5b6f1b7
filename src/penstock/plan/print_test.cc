#include "penstock/plan/print.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::plan_testing {
namespace {

using ::testing::HasSubstr;

Plan MadeAt(Plan plan, const std::string& file, int line) {
  plan::Location* made_at =
      plan.mutable_nodes(plan.nodes_size() - 1)->mutable_made_at();
  made_at->set_file(file);
  made_at->set_line(line);
  return plan;
}

TEST(Print, AChain) {
  Plan plan = MadeAt(Range(5), "train.py", 10);
  plan = MadeAt(Map(plan, AddConstant(1)), "train.py", 11);
  plan = MadeAt(Batch(plan, 2, true), "train.py", 12);
  EXPECT_EQ(
      plan::Print(plan),
      "batch_2(size=2, drop_remainder)  -> int64(2,)  [2]  train.py:12\n"
      "  map_1(add_constant)            -> int64()    [5]  train.py:11\n"
      "    range_0(5)                   -> int64()    [5]  train.py:10\n");
}

TEST(Print, ATreeWithAFunctionsDataset) {
  EXPECT_EQ(
      plan::Print(Zip({FlatMap(Range(5), ToRange()), Repeat(Range(1, 3))})),
      "zip_4                               -> (int64(), int64())  [?]\n"
      "  flat_map_1(to_range)              -> int64()             [?]\n"
      "      flat_map_1/range_0(bound[0])  -> int64()             [?]\n"
      "    range_0(5)                      -> int64()             [5]\n"
      "  repeat_3                          -> int64()             [infinite]\n"
      "    range_2(1, 3)                   -> int64()             [2]\n");
}

TEST(Print, ASharedNodeOnce) {
  Plan plan = Zip({Range(5), Range(5)});
  plan.mutable_nodes(2)->set_inputs(1, 0);
  EXPECT_EQ(plan::Print(plan),
            "zip_2              -> (int64(), int64())  [5]\n"
            "  range_0(5)       -> int64()             [5]\n"
            "  range_0 (above)\n");
}

// A long cell reaches into the next column; the one after it is in its place.
TEST(Print, LongCells) {
  std::vector<ElementSpec> items(9, TensorOf(plan::INT64));
  Function f = AddConstant(1);
  f.set_name(std::string(42, 'f'));
  EXPECT_EQ(
      plan::Print(Batch(Map(Range(5), f), 2)),
      absl::StrCat(
          "batch_2(size=2)                                   -> int64(None,)  "
          "[3]\n  map_1(",
          std::string(42, 'f'), ")  -> int64()    [5]\n",
          "    range_0(5)                                    -> int64()       "
          "[5]\n"));
  const std::string text = plan::Print(Take(Generator(TupleOf(items)), 1));
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  EXPECT_EQ(lines[0].find('['), lines[1].find('[')) << text;
  EXPECT_THAT(text, HasSubstr("…"));
}

TEST(Print, AnythingAtAll) {
  EXPECT_EQ(plan::Print(Plan()), "");
  Plan plan;
  plan.add_nodes()->add_inputs(3);
  EXPECT_EQ(plan::Print(plan), "nothing_0  -> ?  [?]\n");
}

struct DetailCase {
  std::string name;
  Plan plan;
  std::string want;  // name and detail of the root
};

class DetailTest : public ::testing::TestWithParam<DetailCase> {};

TEST_P(DetailTest, InAFewWords) {
  const Plan& plan = GetParam().plan;
  const Node& root = plan.nodes(plan.nodes_size() - 1);
  EXPECT_EQ(plan::OpName(root) + "(" + plan::Detail(root) + ")",
            GetParam().want);
}

plan::Options Some() {
  plan::Options options;
  options.set_deterministic(false);
  options.set_run_ahead(4);
  return options;
}

INSTANTIATE_TEST_SUITE_P(
    All, DetailTest,
    ::testing::ValuesIn<DetailCase>({
        {"Range", Range(5), "range(5)"},
        {"RangeStep", Range(0, 5, 2), "range(0, 5, 2)"},
        {"FloatRange", FloatRange(0, 1.5, 0.5),
         "range(0, 1.5, 0.5, dtype=float64)"},
        {"Counter", Counter(2), "counter(2, 1)"},
        {"Random", Random(4), "random(seed=4)"},
        {"Rows", Ints({1, 2}), "rows()"},
        {"Generator", Generator(TensorOf(plan::INT64)), "from_generator()"},
        {"ListFiles", ListFiles("a/*.txt", true, 3),
         "list_files('a/*.txt', shuffle, seed=3)"},
        {"LongPattern", ListFiles(std::string(50, 'a')),
         "list_files('" + std::string(40, 'a') + "…')"},
        {"Files", TfRecords({"a", "b", "c", "d"}),
         "TFRecordDataset(['a', 'b', 'c', … 4 in all])"},
        {"Text", TextLines({"a\n"}), "TextLineDataset(['a\\n'])"},
        {"Map", Map(Range(5), Identity(), 4), "map(identity, parallelism=4)"},
        {"Filter", Filter(Range(5), IsLessThan(3)), "filter(is_less_than)"},
        {"Interleave", Interleave(Range(5), ToRange(), 2, 3),
         "interleave(to_range, cycle_length=2, block_length=3)"},
        {"Rebatch", Rebatch(Batch(Range(5), 2), {1, 2, 3, 4}, true),
         "rebatch(sizes=[1, 2, 3, … 4 in all], drop_remainder)"},
        {"Shuffle", Shuffle(Range(5), 3, 7, false), "shuffle(3, seed=7)"},
        {"ShuffleAll", Shuffle(Range(5), {}),
         "shuffle(the whole input, reshuffle_each_iteration)"},
        {"Take", Take(Range(5), 3), "take(count=3)"},
        {"Repeat", Repeat(Range(5)), "repeat()"},
        {"Shard", Shard(Range(5), 3, 1), "shard(num_shards=3, index=1)"},
        {"Enumerate", Enumerate(Range(5), 3), "enumerate(start=3)"},
        {"Prefetch", Prefetch(Range(5), 3), "prefetch(3)"},
        {"Options", WithOptions(Range(5), Some()),
         "with_options(deterministic=False, run_ahead=4)"},
    }),
    [](const auto& info) { return info.param.name; });

TEST(Located, KeepsCodeAndPayloads) {
  absl::Status status = absl::NotFoundError("a.txt must exist; got nothing");
  status.SetPayload("key", absl::Cord("value"));
  const Plan plan = MadeAt(Batch(Range(5), 2), "train.py", 31);
  const absl::Status located = plan::Located(status, plan, 1);
  EXPECT_EQ(located.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(located.message(),
            "a.txt must exist; got nothing\n"
            "  at node \"batch_1\", made at train.py:31");
  EXPECT_EQ(located.GetPayload("key"), absl::Cord("value"));
  EXPECT_TRUE(plan::Located(absl::OkStatus(), plan, 1).ok());
}

}  // namespace
}  // namespace penstock::plan_testing

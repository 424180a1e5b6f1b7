#include "penstock/engine/ops/keep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "penstock/engine/contract_testing.h"
#include "penstock/engine/samples_testing.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::engine_testing {
namespace {

using namespace plan_testing;  // NOLINT: the language of these tests

using testing::ElementsAre;
using testing::SizeIs;

constexpr int64_t kAll = int64_t{1} << 40;

int IdOf(const Reader& reader, const std::string& node) {
  for (const engine::OpInfo& info : reader.pipeline()->ops()) {
    if (info.name == node) return info.id;
  }
  return -1;
}

// Rows that the node has computed in the streams that are over.
uint64_t Computed(const Reader& reader, const std::string& node) {
  return reader.run()->stats[IdOf(reader, node)].rows;
}

uint64_t Hits(const Reader& reader, const std::string& node) {
  return reader.run()->kept[IdOf(reader, node)].hits;
}

Rows Times(const Rows& rows, int count) {
  Rows all;
  for (int i = 0; i < count; ++i)
    all.insert(all.end(), rows.begin(), rows.end());
  return all;
}

class KeepTest : public testing::Test {
 protected:
  TestEngine engine_;
};

TEST_F(KeepTest, LaterPassesComputeNothing) {
  const auto pipeline = BuildOrDie(Repeat(Map(Range(100), AddConstant(1)), 3));
  Reader reader(engine_, pipeline);
  reader.Keep("map_1", kAll);
  EXPECT_EQ(reader.Drain({7}), Times(Numbers(1, 101), 3));
  EXPECT_EQ(Computed(reader, "map_1"), 100);
  EXPECT_EQ(Hits(reader, "map_1"), 200);
  const engine::KeptCounts& counts = reader.run()->kept[IdOf(reader, "map_1")];
  EXPECT_EQ(counts.misses, 100);
  EXPECT_TRUE(counts.is_complete);
  EXPECT_EQ(counts.held_bytes, engine_.kept().bytes());
  EXPECT_EQ(engine_.memory().used(), engine_.kept().bytes());

  Reader next(engine_, pipeline, 1);
  next.Keep("map_1", kAll);
  EXPECT_EQ(next.Drain(), Times(Numbers(1, 101), 3));
  EXPECT_EQ(Computed(next, "map_1"), 0);
}

TEST_F(KeepTest, WithoutTheKnobDoesNothing) {
  const auto pipeline = BuildOrDie(Repeat(Map(Range(10), AddConstant(1)), 2));
  Reader first(engine_, pipeline);
  first.Keep("map_1", kAll);
  first.Drain();
  Reader second(engine_, pipeline);
  EXPECT_EQ(second.Drain(), Times(Numbers(1, 11), 2));
  EXPECT_EQ(Computed(second, "map_1"), 20);
}

TEST_F(KeepTest, SetInMidPassKeepsTheRest) {
  Reader reader(engine_, Repeat(Map(Range(100), AddConstant(1)), 4));
  Rows rows = reader.Read(30);
  reader.Keep("map_1", kAll);
  for (int64_t demand : {70, 100, 100, 100}) {
    for (std::string& row : reader.Read(demand, 9)) rows.push_back(row);
  }
  EXPECT_EQ(rows, Times(Numbers(1, 101), 4));
  EXPECT_EQ(reader.Read(1), Rows());
  EXPECT_EQ(Computed(reader, "map_1"), 130);
  EXPECT_EQ(Hits(reader, "map_1"), 270);
}

TEST_F(KeepTest, UnsetInMidPassFinishesIt) {
  Reader reader(engine_, Repeat(Map(Range(100), AddConstant(1)), 3));
  reader.Keep("map_1", kAll);
  Rows rows = reader.Read(140);
  reader.Keep("map_1", 0);
  for (std::string& row : reader.Drain()) rows.push_back(row);
  EXPECT_EQ(rows, Times(Numbers(1, 101), 3));
  EXPECT_EQ(Computed(reader, "map_1"), 200);
  EXPECT_EQ(Hits(reader, "map_1"), 100);
}

TEST_F(KeepTest, KeepsNoMoreThanTheKnobSays) {
  Reader reader(engine_, Repeat(Map(Range(9000), AddConstant(1)), 3));
  reader.Keep("map_1", 40'000);
  EXPECT_EQ(reader.Drain(), Times(Numbers(1, 9001), 3));
  EXPECT_GT(engine_.kept().bytes(), 10'000);
  EXPECT_LE(engine_.kept().bytes(), 40'000);
  EXPECT_GT(Hits(reader, "map_1"), 2'000);
}

// Memory that was refused is no error, and what a cache needs comes first.
TEST_F(KeepTest, GivesWayToWhatIsNeeded) {
  TestEngine engine({.memory_bytes = 300'000});
  Reader reader(engine, Repeat(Map(Range(20'000), AddConstant(1)), 3));
  reader.Keep("map_1", kAll);
  EXPECT_EQ(reader.Read(20'000), Numbers(1, 20'001));
  EXPECT_EQ(reader.Read(15'000), Numbers(1, 15'001));
  const int64_t before = engine.kept().bytes();
  EXPECT_GT(before, 150'000);
  EXPECT_EQ(Reader(engine, Cache(Range(25'000))).Drain(), Numbers(0, 25'000));
  EXPECT_LT(engine.kept().bytes(), 100'000);
  EXPECT_EQ(reader.Read(5'000), Numbers(15'001, 20'001));
  EXPECT_EQ(reader.Drain(), Numbers(1, 20'001));
  EXPECT_LE(engine.memory().used(), 300'000);
}

TEST_F(KeepTest, StopsWhereMemoryEnds) {
  TestEngine engine({.memory_bytes = 100'000});
  Reader reader(engine, Repeat(Map(Range(20'000), AddConstant(1)), 3));
  reader.Keep("map_1", kAll);
  EXPECT_EQ(reader.Drain(), Times(Numbers(1, 20'001), 3));
  EXPECT_GT(Hits(reader, "map_1"), 10'000);
}

// What nobody asks for goes first, and makes room for what is.
TEST_F(KeepTest, IdleRowsMakeRoom) {
  TestEngine engine({.memory_bytes = 200'000});
  {
    Reader reader(engine, Map(Range(20'000), AddConstant(1)));
    reader.Keep("map_1", kAll);
    reader.Drain();
  }
  EXPECT_GT(engine.kept().bytes(), 150'000);
  Reader reader(engine, Repeat(Map(Range(20'000), AddConstant(2)), 2));
  reader.Keep("map_1", kAll);
  EXPECT_EQ(reader.Drain(), Times(Numbers(2, 20'002), 2));
  EXPECT_EQ(Hits(reader, "map_1"), 20'000);
}

TEST_F(KeepTest, TwoIteratorsShare) {
  const auto pipeline = BuildOrDie(Repeat(Map(Range(5000), AddConstant(1)), 2));
  Reader first(engine_, pipeline);
  Reader second(engine_, pipeline);
  first.Keep("map_1", kAll);
  second.Keep("map_1", kAll);
  Rows of_first;
  Rows of_second;
  while (of_first.size() < 10'000) {
    for (std::string& row : first.Read(700)) of_first.push_back(row);
    for (std::string& row : second.Read(300)) of_second.push_back(row);
  }
  for (std::string& row : second.Drain()) of_second.push_back(row);
  EXPECT_EQ(of_first, Times(Numbers(1, 5001), 2));
  EXPECT_EQ(of_second, of_first);
  EXPECT_LT(Computed(first, "map_1") + Computed(second, "map_1"), 10'000);
}

TEST_F(KeepTest, ErrorRowsAreComputedAgain) {
  const plan::Plan plan = Repeat(Map(Range(100), FailsWhere(10, 3)), 3);
  Reader reader(engine_, plan);
  reader.Keep("map_1", kAll);
  EXPECT_EQ(reader.Drain({30}), Drain(plan));
  EXPECT_EQ(Hits(reader, "map_1"), 180);
}

TEST_F(KeepTest, PassesThatEndEarlyKeepWhatTheySaw) {
  Reader reader(engine_, Repeat(Take(Map(Range(100), AddConstant(1)), 10), 3));
  reader.Keep("map_1", kAll);
  EXPECT_EQ(reader.Drain(), Times(Numbers(1, 11), 3));
  EXPECT_EQ(Computed(reader, "map_1"), 10);
}

TEST_F(KeepTest, DataSetsAreNotMixedUp) {
  const auto keep = [&](const plan::Plan& plan) {
    Reader reader(engine_, plan);
    reader.Keep("map_1", kAll);
    return reader.Drain();
  };
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(keep(Map(Range(5), AddConstant(1))), Numbers(1, 6));
    EXPECT_EQ(keep(Map(Range(6), AddConstant(1))), Numbers(1, 7));
    EXPECT_EQ(keep(Map(Range(5), AddConstant(2))), Numbers(2, 7));
    EXPECT_EQ(keep(Map(Ints({4, 2}), AddConstant(1))), Numbers({5, 3}));
  }
}

TEST_F(KeepTest, RowsGoWithTheirDataset) {
  const plan::Plan plan = Shuffle(Map(Range(50), AddConstant(1)), 5);
  {
    Reader reader(engine_, plan);
    reader.Keep("map_1", kAll);
    reader.Drain();
  }
  EXPECT_GT(engine_.kept().bytes(), 0);
  engine_.kept().DropInstance(plan.nodes(plan.nodes_size() - 1).instance());
  EXPECT_EQ(engine_.kept().bytes(), 0);
  EXPECT_EQ(engine_.memory().used(), 0);
}

// What is below, or may be: with rows kept everywhere, nobody can tell.
struct SeenCase {
  std::string name;
  plan::Plan plan;
};

class KeepSeenTest : public testing::TestWithParam<SeenCase> {};

TEST_P(KeepSeenTest, RowsAreThoseOfARunWithout) {
  TestEngine engine({.keep_bytes = kAll});
  const auto pipeline = BuildOrDie(Repeat(GetParam().plan, 2));
  for (uint64_t epoch : {0, 1, 2}) {
    TestEngine plain;
    EXPECT_EQ(Reader(engine, pipeline, epoch).Drain({5}),
              Reader(plain, pipeline, epoch).Drain())
        << "epoch " << epoch;
  }
}

// At every row, both ways, in engines that have the rows and that do not.
TEST_P(KeepSeenTest, StatesFitRunsWithout) {
  TestEngine filled({.keep_bytes = kAll});
  TestEngine plain;
  const auto pipeline = BuildOrDie(Repeat(GetParam().plan, 2));
  const Rows want = Reader(plain, pipeline).Drain();
  Reader(filled, pipeline).Drain();
  for (size_t at = 0; at <= want.size(); at += 3) {
    const Rows rest(want.begin() + static_cast<std::ptrdiff_t>(at), want.end());
    Reader kept(filled, pipeline);
    kept.Read(static_cast<int64_t>(at));
    Reader without(plain, pipeline);
    without.Read(static_cast<int64_t>(at));
    TestEngine empty({.keep_bytes = kAll});
    for (const std::string& state : {kept.Save(), without.Save()}) {
      EXPECT_EQ(Reader::Resume(plain, pipeline, state).Drain(), rest) << at;
      EXPECT_EQ(Reader::Resume(filled, pipeline, state).Drain({3}), rest) << at;
      Reader twice = Reader::Resume(empty, pipeline, state);
      EXPECT_EQ(Reader::Resume(plain, pipeline, twice.Save()).Drain(), rest);
      EXPECT_EQ(twice.Drain(), rest) << at;
    }
    if (testing::Test::HasFailure()) return;
  }
}

plan::Plan Plus(plan::Plan input) {
  return Map(std::move(input), AddConstant(1));
}

INSTANTIATE_TEST_SUITE_P(
    Below, KeepSeenTest,
    testing::ValuesIn<SeenCase>({
        {"Random", Map(Plus(Range(30)), RandomNumber())},
        {"RandomAfterFlatMap",
         Map(FlatMap(Range(6), ToRange()), RandomNumber())},
        {"RandomAfterInterleave",
         Map(Plus(Interleave(Range(7), ToRange(), 3, 2)), RandomNumber())},
        {"RandomAfterConcatenate",
         Map(Concatenate(Plus(Range(8)), Plus(Range(8))), RandomNumber())},
        {"RandomAfterZip",
         Map(Zip({Plus(Range(9)), Plus(Plus(Range(9)))}), RandomNumber())},
        {"RandomInside",
         FlatMap(Plus(Range(3)), ToDataset(Map(Range(4), RandomNumber())))},
        {"Batch", Batch(Plus(Range(30)), 4)},
        {"Shuffle", Shuffle(Plus(Range(30)), 7)},
        {"ShuffleAll", Shuffle(Map(Words(30), Identity()), {})},
        {"Errors", Batch(Map(Range(30), FailsWhere(7, 2)), 3)},
        {"Ragged", Map(Map(Range(9), UpTo()), Identity())},
        {"Prefetch", Prefetch(Plus(Prefetch(Plus(Range(30)), 3)), 2)},
        {"Parallel",
         Map(Map(Range(30), FailsWhere(9, 4), 3), RandomNumber(), 2)},
        {"Filter", Map(Filter(Range(40), IsMultipleOf(3)), RandomNumber())},
        {"Unbatch", Unbatch(Batch(Plus(Range(30)), 4))},
        {"Scan", Scan(Plus(Range(20)), 0, RunningSum())},
        {"Window", FlatMap(Window(Plus(Range(12)), 3), ToRows())},
        {"Pack", Pack(Map(Range(7), UpTo()), 5)},
    }),
    [](const auto& info) { return info.param.name; });

// Files that change are read again.
class KeepFilesTest : public testing::Test {
 protected:
  KeepFilesTest() {
    directory_ = testing::TempDir() + "/keep_" +
                 testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    Write("a.txt", "one\ntwo\n");
    Write("b.txt", "three\n");
  }
  ~KeepFilesTest() override { std::filesystem::remove_all(directory_); }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(directory_ + "/" + name) << text;
  }

  plan::Plan Lines() {
    FunctionBuilder f;
    const auto path = f.Arg(0);
    Node node;
    *node.mutable_read_files()->mutable_files() = Bound(0);
    node.mutable_read_files()->mutable_text();
    const plan::Plan lines = AppendOrDie({}, node, {LeafOf(plan::STRING)});
    return FlatMap(ListFiles(directory_ + "/*.txt"),
                   f.ReturnDataset(lines, {path}));
  }

  Rows Read() {
    Reader reader(engine_, Map(Lines(), Identity()));
    reader.Keep("map_2", kAll);
    Rows rows = reader.Drain();
    last_hits_ = Hits(reader, "map_2");
    return rows;
  }

  std::string directory_;
  TestEngine engine_;
  uint64_t last_hits_ = 0;
};

TEST_F(KeepFilesTest, AreReadOnce) {
  EXPECT_THAT(Read(), ElementsAre("\"one\"", "\"two\"", "\"three\""));
  EXPECT_EQ(last_hits_, 0);
  EXPECT_THAT(Read(), ElementsAre("\"one\"", "\"two\"", "\"three\""));
  EXPECT_EQ(last_hits_, 3);
}

TEST_F(KeepFilesTest, AChangedFileIsReadAgain) {
  Read();
  Write("a.txt", "uno\n");
  EXPECT_THAT(Read(), ElementsAre("\"uno\"", "\"three\""));
  EXPECT_EQ(last_hits_, 0);
  EXPECT_THAT(Read(), ElementsAre("\"uno\"", "\"three\""));
  EXPECT_EQ(last_hits_, 2);
}

TEST_F(KeepFilesTest, ANewFileIsSeen) {
  Read();
  Write("c.txt", "four\n");
  EXPECT_THAT(Read(),
              ElementsAre("\"one\"", "\"two\"", "\"three\"", "\"four\""));
  std::filesystem::remove(directory_ + "/a.txt");
  EXPECT_THAT(Read(), ElementsAre("\"three\"", "\"four\""));
  EXPECT_THAT(Read(), ElementsAre("\"three\"", "\"four\""));
  EXPECT_EQ(last_hits_, 2);
}

// Between two passes of one iterator.
TEST_F(KeepFilesTest, AreCheckedBeforeEveryPass) {
  Reader reader(engine_, Repeat(Map(Lines(), Identity()), 4));
  reader.Keep("map_2", kAll);
  EXPECT_THAT(reader.Read(6), SizeIs(6));
  Write("b.txt", "3\n");
  EXPECT_THAT(reader.Read(6), ElementsAre("\"one\"", "\"two\"", "\"3\"",
                                          "\"one\"", "\"two\"", "\"3\""));
  EXPECT_EQ(Hits(reader, "map_2"), 6);
}

// Passes that follow each other quickly need not look again; another run does.
TEST_F(KeepFilesTest, AreNotCheckedBeforeEveryShortPass) {
  TestEngine engine({.min_check_nanos = INT64_MAX / 2});
  const plan::Plan plan = Repeat(Map(Lines(), Identity()), 4);
  {
    Reader reader(engine, plan);
    reader.Keep("map_2", kAll);
    EXPECT_THAT(reader.Read(7), SizeIs(7));
    Write("b.txt", "3\n");
    EXPECT_THAT(reader.Read(3), ElementsAre("\"two\"", "\"three\"", "\"one\""));
  }
  Reader reader(engine, plan);
  reader.Keep("map_2", kAll);
  EXPECT_THAT(reader.Read(3), ElementsAre("\"one\"", "\"two\"", "\"3\""));
}

TEST(KeepContract, Holds) {
  const TestEngine::Settings on = {.keep_bytes = kAll};
  CheckContract(Take(Plus(Range(40)), 30), {.settings = on});
  CheckContract(Skip(Plus(Range(40)), 9), {.settings = on});
  CheckContract(Map(Words(40), Identity()), {.settings = on});
  CheckContract(Map(Range(12), UpTo()), {.settings = on});
  CheckContract(Map(Range(20), FailsWhere(6, 1)), {.settings = on});
  CheckContract(Batch(Map(Range(30), FailsWhere(6, 1), 3), 4),
                {.settings = on});
  CheckContract(Prefetch(Batch(FlatMap(Range(8), ToRange()), 3), 2),
                {.settings = on});
  CheckContract(
      Map(Shuffle(Plus(Range(30)), 6, 1), RandomNumber()),
      {.repeats_itself = false, .max_state_bytes = 3000, .settings = on});
  // Of some rows there is room alone.
  CheckContract(Take(Plus(Range(40)), 30), {.settings = {.keep_bytes = 900}});
}

}  // namespace
}  // namespace penstock::engine_testing

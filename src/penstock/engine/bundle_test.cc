// A pipeline run share by share: what comes of all shares is what comes of the
// whole, and a share that is run again gives the same.
#include "penstock/engine/bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "penstock/engine/bundle_for_test.h"
#include "penstock/engine/contract_testing.h"
#include "penstock/engine/samples_testing.h"
#include "penstock/io/file_system.h"
#include "penstock/io/tfrecord_writer.h"
#include "penstock/plan/divide.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::engine_testing {
namespace {

using namespace plan_testing;  // NOLINT: the language of these tests
using testing::HasSubstr;
using testing::SizeIs;

// A folder of files f0, f1, …, with as many records as their number.
const std::string& Folder() {
  static const std::string* const folder = [] {
    std::string name = testing::TempDir() + "/bundle_XXXXXX";
    auto* made = new std::string(mkdtemp(name.data()));
    for (int f = 0; f < kFiles; ++f) {
      auto writer = io::CreateTfRecordWriter(io::LocalFileSystem(),
                                             absl::StrCat(*made, "/f", f));
      for (int i = 0; i < f; ++i) {
        EXPECT_TRUE((*writer)->Write(absl::StrCat(f, "-", i)).ok());
      }
      EXPECT_TRUE((*writer)->Close().ok());
    }
    return made;
  }();
  return *folder;
}

class BundleEnvironment final : public testing::Environment {
 public:
  void TearDown() override { std::filesystem::remove_all(Folder()); }
};
[[maybe_unused]] auto* const kEnvironment =
    testing::AddGlobalTestEnvironment(new BundleEnvironment);

std::vector<std::string> Files() {
  std::vector<std::string> files;
  for (int f = 0; f < kFiles; ++f) {
    files.push_back(absl::StrCat(Folder(), "/f", f));
  }
  return files;
}

Plan Listed(bool shuffle = false) {
  return ListFiles(Folder() + "/f*", shuffle);
}

// name -> the records of that file
Function ToRecords() {
  Node node;
  *node.mutable_read_files()->mutable_files() = Bound(0);
  node.mutable_read_files()->mutable_tf_record();
  FunctionBuilder f;
  return f.ReturnDataset(
      AppendOrDie({}, std::move(node), {LeafOf(plan::STRING)}), {f.Arg(0)});
}

// any element -> (its first component, a random number)
Function WithRandom() {
  FunctionBuilder f;
  return f.ReturnTuple(
      {f.Arg(0), f.Call("random_int", {f.Constant(Vector({})), f.Int(0),
                                       f.Int(int64_t{1} << 40)})});
}

Plan Numbers(int64_t count = 23) { return Map(Range(count), Identity()); }
Plan Drawn(int64_t count = 23) { return Map(Range(count), WithRandom()); }

enum class Same {
  kRows,   // one by one, in the order of shares
  kBag,    // in any order
  kItems,  // what batches are made of, in any order, and how many there are
};

struct BundleCase {
  std::string name;
  std::function<plan::Plan()> plan;
  Same same = Same::kRows;
};

class BundleTest : public testing::TestWithParam<BundleCase> {
 protected:
  static Rows Sorted(Rows rows) {
    std::sort(rows.begin(), rows.end());
    return rows;
  }
  // The numbers that batches are made of, and their sizes.
  static Rows ItemsOf(const Rows& rows) {
    Rows items;
    for (const std::string& row : rows) {
      std::vector<std::string> parts =
          absl::StrSplit(row, absl::ByAnyChar("[] "), absl::SkipWhitespace());
      items.push_back(absl::StrCat("of ", parts.size()));
      items.insert(items.end(), parts.begin(), parts.end());
    }
    return Sorted(items);
  }

  TestEngine engine_;
};

TEST_P(BundleTest, SharesAreTheWhole) {
  const plan::Plan plan = GetParam().plan();
  Divided divided(engine_, plan);
  const Reader::PipelinePtr pipeline = BuildOrDie(plan);
  Reader whole(engine_, pipeline, kEpoch, kSeed);
  // Of one without end, as much as three passes have.
  const Rows got = divided.Drain(1000);
  const Rows want =
      whole.Read(plan.nodes(plan.nodes_size() - 1).cardinality().infinite()
                     ? static_cast<int64_t>(got.size())
                     : 1'000'000);
  EXPECT_GT(want.size(), 2);
  for (int64_t size : {1, 2, 3, 7, 1000}) {
    const Rows rows = size == 1000 ? got : divided.Drain(size);
    const std::string how = absl::StrCat("shares of ", size);
    switch (GetParam().same) {
      case Same::kRows:
        EXPECT_EQ(rows, want) << how;
        break;
      case Same::kBag:
        EXPECT_EQ(Sorted(rows), Sorted(want)) << how;
        break;
      case Same::kItems:
        EXPECT_EQ(ItemsOf(rows), ItemsOf(want)) << how;
        break;
    }
  }
}

TEST_P(BundleTest, AgainGivesTheSame) {
  Divided divided(engine_, GetParam().plan());
  for (uint64_t pass : {uint64_t{0}, divided.num_passes() - 1}) {
    for (const RunPart& part : divided.Parts(9, pass)) {
      const Items items = ReadItems(*divided.Start(part), 1'000'000);
      EXPECT_EQ(ReadItems(*divided.Start(part), 1'000'000, 1), items);
      auto steps = divided.Start(part);
      for (size_t p = 0; p <= items.size(); ++p) {
        const Items rest(items.begin() + static_cast<std::ptrdiff_t>(p),
                         items.end());
        const std::string where = absl::StrCat("at item ", p);
        auto skipped = divided.Start(part, static_cast<int64_t>(p));
        EXPECT_EQ(skipped->position(), static_cast<int64_t>(p));
        EXPECT_EQ(ReadItems(*skipped, 1'000'000), rest) << where;
        const std::string state = steps->Save();
        EXPECT_LT(state.size(), 1500) << where;
        EXPECT_EQ(ReadItems(*divided.Resume(part, state), 1'000'000), rest)
            << where;
        if (!rest.empty()) {
          auto later = divided.Resume(part, state, 1);
          const std::string again = later->Save();
          EXPECT_EQ(ReadItems(*later, 1'000'000),
                    Items(rest.begin() + 1, rest.end()))
              << where << ", one skipped";
          EXPECT_EQ(ReadItems(*divided.Resume(part, again), 1'000'000),
                    Items(rest.begin() + 1, rest.end()))
              << where << ", one skipped, and saved";
        }
        EXPECT_EQ(steps->position(), static_cast<int64_t>(p));
        ReadItems(*steps, 1);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Plans, BundleTest,
    testing::ValuesIn<BundleCase>({
        {"Range", [] { return Range(3, 40, 2); }},
        {"Slices", [] { return Map(Words(20), Identity()); }},
        {"Map", [] { return Numbers(); }},
        {"ParallelMap", [] { return Map(Range(23), WithRandom(), 3); }},
        {"UnorderedMap",
         [] { return Unordered(Map(Range(23), WithRandom(), 3)); }, Same::kBag},
        {"Random", [] { return Drawn(); }},
        {"RandomTwice", [] { return Map(Drawn(), WithRandom()); }},
        {"Filter", [] { return Filter(Numbers(60), IsMultipleOf(7)); }},
        {"Errors", [] { return Map(Range(23), FailsWhere(5, 1)); }},
        {"IgnoredErrors",
         [] { return IgnoreErrors(Map(Range(23), FailsWhere(5, 1))); }},
        {"FlatMap", [] { return FlatMap(Numbers(8), ToRange()); }},
        {"RandomInside", [] { return FlatMap(Range(8), ToDataset(Drawn(3))); }},
        {"ShuffledInside",
         [] { return FlatMap(Range(8), ToDataset(Shuffle(Range(5), 3))); }},
        {"Interleave", [] { return Interleave(Numbers(8), ToRange(), 3, 2); },
         Same::kBag},
        {"ParallelInterleave",
         [] { return Interleave(Range(8), ToDataset(Drawn(3)), 3, 2, 2); },
         Same::kBag},
        {"Shuffle", [] { return Shuffle(Drawn(), 5); }, Same::kBag},
        {"ShuffledSource", [] { return Shuffle(Range(23), 5); }},
        {"ShuffledAfterFilter",
         [] { return Shuffle(Filter(Numbers(60), IsMultipleOf(7)), 3, 9); },
         Same::kBag},
        {"Unbatch", [] { return Unbatch(Map(Numbers(8), UpTo())); }},
        {"Records", [] { return Map(TfRecords(Files()), WithRandom()); }},
        {"ListedRecords",
         [] { return Map(FlatMap(Listed(), ToRecords()), WithRandom()); }},
        {"ShuffledFiles", [] { return FlatMap(Listed(true), ToRecords()); }},
        {"InterleavedFiles",
         [] { return Interleave(Shuffle(Listed(), 4), ToRecords(), 2); },
         Same::kBag},
        {"SomeFiles",
         [] { return FlatMap(Take(Skip(Listed(), 1), 3), ToRecords()); }},
        {"NamedFiles", [] { return FlatMap(Strings(Files()), ToRecords()); }},
        {"Take", [] { return Map(Take(Range(40), 9), WithRandom()); }},
        {"Skip", [] { return Map(Skip(Range(40), 9), WithRandom()); }},
        {"Shard", [] { return Map(Shard(Range(40), 3, 1), WithRandom()); }},
        {"Enumerate", [] { return Enumerate(Drawn()); }},
        {"Zip",
         [] {
           return Zip({Numbers(9), Shard(Range(40), 3, 1)});
         }},
        {"Concatenate",
         [] { return Map(Concatenate(Range(9), Range(7)), WithRandom()); }},
        {"Repeat", [] { return Map(Repeat(Drawn(), 3), WithRandom()); }},
        {"RepeatForEver", [] { return Map(Repeat(Drawn()), WithRandom()); }},
        {"RepeatOfFiles",
         [] { return FlatMap(Repeat(Listed(true), 2), ToRecords()); }},
        {"RepeatedShuffle", [] { return Repeat(Shuffle(Numbers(), 5), 2); },
         Same::kBag},
        {"Prefetch", [] { return Prefetch(Drawn(), 3); }},
        {"Batch", [] { return Batch(Numbers(), 4); }, Same::kItems},
        {"BatchOfSource", [] { return Batch(Range(24), 4); }, Same::kItems},
        {"BatchAndMap", [] { return Map(Batch(Numbers(), 4), AddConstant(5)); },
         Same::kItems},
        {"BatchAndFlat", [] { return Unbatch(Batch(Drawn(), 4)); }, Same::kBag},
        {"BatchAndShuffle", [] { return Shuffle(Batch(Numbers(), 4), 3); },
         Same::kItems},
        {"BatchOfErrors",
         [] {
           return Unbatch(
               IgnoreErrors(Batch(Map(Range(23), FailsWhere(5, 1)), 4)));
         },
         Same::kBag},
        {"PaddedBatch", [] { return PaddedBatch(Numbers(), 4); }, Same::kItems},
        {"WindowAndFlat",
         [] { return FlatMap(Window(Numbers(), 4), ToRows()); }, Same::kBag},
        {"GroupByWindow",
         [] { return Unbatch(GroupByWindow(Numbers(), Mod(3), 4)); },
         Same::kBag},
        {"SparseBatch", [] { return SparseBatch(Numbers(), 4, {}); },
         Same::kItems},
        {"Python", [] { return Map(Range(23), PythonDouble()); }},
        {"PythonAndBatch",
         [] {
           return Unbatch(
               Batch(IgnoreErrors(Map(Range(23), PythonDouble())), 4));
         },
         Same::kBag},
        {"BatchOfRepeat", [] { return Batch(Repeat(Numbers(), 3), 4); },
         Same::kItems},
        {"RepeatOfBatch",
         [] { return Map(Repeat(Batch(Numbers(), 4), 3), AddConstant(1)); },
         Same::kItems},
        {"TakeAfterFilter",
         [] { return Take(Filter(Numbers(60), IsMultipleOf(3)), 7); }},
        {"TakeBeforeMap",
         [] {
           return Map(Skip(Filter(Numbers(60), IsMultipleOf(3)), 2),
                      WithRandom());
         }},
        {"ScanAfterFilter",
         [] {
           return Scan(Filter(Numbers(60), IsMultipleOf(3)), 0, RunningSum());
         }},
        {"Unique", [] { return Unique(Map(Range(23), Mod(5))); }},
        {"Cache", [] { return Map(Repeat(Cache(Drawn()), 2), WithRandom()); }},
        {"SecondBatch", [] { return Batch(Unbatch(Batch(Numbers(), 4)), 3); },
         Same::kItems},
        {"RepeatOfTaken",
         [] {
           const Plan some = Filter(Drawn(60), [] {
             FunctionBuilder f;
             return f.Return(f.Call(
                 "equal", {f.Call("mod", {f.Arg(0), f.Int(3)}), f.Int(0)}));
           }());
           return Map(Repeat(Take(some, 7), 2), WithRandom());
         }},
    }),
    [](const auto& info) { return info.param.name; });

// Full batches only, and at most size - 1 rows are dropped in all.
TEST(BundleDropTest, DropsOncePerRunAndNotPerShare) {
  TestEngine engine;
  Divided divided(engine, Batch(Numbers(23), 4, true));
  for (int64_t size : {1, 3, 5, 1000}) {
    const Rows rows = divided.Drain(size);
    EXPECT_THAT(rows, SizeIs(5)) << size;
    for (const std::string& row : rows) {
      EXPECT_EQ(std::count(row.begin(), row.end(), ' '), 3) << row;
    }
  }
}

// Shares are shuffled each in its own way, and another epoch in another.
TEST(BundleShuffleTest, IsKeyedByFirstRow) {
  TestEngine engine;
  const plan::Plan plan = Shuffle(Map(Range(80), Mod(40)), 40);
  Divided divided(engine, plan);
  const Items first =
      ReadItems(*divided.Start(PartOf(divided.division(), 0, 40)), 100);
  const Items second =
      ReadItems(*divided.Start(PartOf(divided.division(), 40, 80)), 100);
  EXPECT_THAT(first, SizeIs(40));
  EXPECT_NE(first, second);
}

// A share in the middle costs no more than one at the beginning.
TEST(BundleSeekTest, LeavesOutWhatComesBefore) {
  TestEngine engine;
  const int64_t many = int64_t{1} << 50;
  for (const plan::Plan& plan :
       {Map(Range(many), Identity()), Map(Take(Counter(), many), Identity()),
        Map(Skip(Range(many + 9), 9), Identity()),
        Map(Shard(Range(many), 1, 0), Identity()),
        Enumerate(Map(Range(many), Identity())),
        Zip({Numbers(many), Range(many)})}) {
    Divided divided(engine, plan);
    auto bundle = divided.Start(PartOf(divided.division(), many - 7, many - 3));
    EXPECT_THAT(ReadItems(*bundle, 100), SizeIs(4));
  }
}

TEST(BundleStateTest, FitsItsShareOnly) {
  TestEngine engine;
  const plan::Plan plan = Batch(Numbers(), 4);
  Divided divided(engine, plan);
  const Division& division = divided.division();
  auto bundle = divided.Start(PartOf(division, 0, 9));
  ReadItems(*bundle, 1);
  const std::string state = bundle->Save();
  const auto resume = [&](const std::string& bytes, const RunPart& part) {
    return Bundle::Resume(BuildOrDie(division.remote), engine.environment(),
                          engine.instances(), bytes, part)
        .status();
  };
  EXPECT_TRUE(resume(state, PartOf(division, 0, 9)).ok());
  const absl::Status other = resume(state, PartOf(division, 9, 18));
  EXPECT_EQ(other.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(other.message()), HasSubstr("rows 9 to 18"));
  for (size_t i = 0; i < state.size(); ++i) {
    std::string damaged = state;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    EXPECT_FALSE(resume(damaged, PartOf(division, 0, 9)).ok()) << i;
    EXPECT_FALSE(resume(state.substr(0, i), PartOf(division, 0, 9)).ok());
  }
}

// What knobs keep of a share is given for that share alone.
TEST(BundleKeepTest, KeptRowsAreOfTheirShare) {
  TestEngine engine({.keep_bytes = int64_t{1} << 20});
  const plan::Plan plan =
      Filter(Map(Numbers(60), AddConstant(1)), IsMultipleOf(3));
  Divided divided(engine, plan);
  const Rows want = Drain(plan);
  for (int64_t size : {7, 7, 20, 1000, 7}) {
    EXPECT_EQ(divided.Drain(size), want) << size;
  }
}

TEST(BundlePartTest, RefusesWhatIsNoPart) {
  TestEngine engine;
  const auto start = [&](int node, int64_t begin, int64_t end) {
    RunPart part;
    part.node = node;
    part.begin = begin;
    part.end = end;
    return engine::Iterator::Start(BuildOrDie(Numbers()), engine.environment(),
                                   engine.instances(), 0, 0, part)
        .status()
        .code();
  };
  EXPECT_EQ(start(0, 2, 5), absl::StatusCode::kOk);
  EXPECT_EQ(start(0, 500, 900), absl::StatusCode::kOk);
  EXPECT_EQ(start(7, 0, 1), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(start(-1, 0, 1), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(start(0, 2, 1), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(start(0, -2, 1), absl::StatusCode::kInvalidArgument);
}

TEST(ReceivedTest, NeedsAReceiver) {
  const absl::StatusOr<Division> division = plan::Divide(Numbers());
  const absl::Status failure = FailureOf(division->local);
  EXPECT_EQ(failure.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(failure.message()), HasSubstr("received_0"));
}

// Rows that are not what the plan says are an end, not a crash.
TEST(ReceivedTest, LooksAtWhatComes) {
  TestEngine engine;
  const absl::StatusOr<Division> division =
      plan::Divide(Map(Unique(Numbers()), RandomNumber()));
  ASSERT_TRUE(division->needs_lineage);
  const auto failure = [&](Chunk chunk) {
    FakeReceiver receiver([&](uint64_t) { return std::vector<Chunk>{chunk}; });
    engine::Environment environment = engine.environment();
    environment.receiver = Borrowed(receiver);
    auto iterator = engine::Iterator::Start(BuildOrDie(division->local),
                                            environment, engine.instances(), 0);
    const engine::Waker waker = std::make_shared<Bell>();
    return (*iterator)->Next({5, waker}).status();
  };
  EXPECT_FALSE(failure(ChunkOf({MakeColumn<float>({1})})).ok());
  const absl::Status bare = failure(ChunkOf({MakeColumn<int64_t>({1})}));
  EXPECT_EQ(bare.code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace penstock::engine_testing

#include "penstock/engine/ops/file_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "penstock/engine/contract_testing.h"
#include "penstock/engine/reader_testing.h"
#include "penstock/engine/samples_testing.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::engine_testing {
namespace {

using namespace plan_testing;  // NOLINT: the language of these tests
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::SizeIs;

// A name that no other test has.
std::string NewFile() {
  static int number = 0;
  return absl::StrCat(testing::TempDir(), "/file_cache_", getpid(), "_",
                      ++number);
}

Plan FileCache(Plan input, const std::string& filename) {
  Node node;
  node.mutable_cache()->set_filename(filename);
  return AppendOrDie({std::move(input)}, std::move(node));
}

bool IsThere(const std::string& path) {
  return *io::LocalFileSystem().Exists(path);
}

TEST(FileCacheTest, ReplaysWhateverTheInputIsNow) {
  const std::string file = NewFile();
  EXPECT_THAT(Drain(FileCache(Range(5000), file)),
              ElementsAreArray(Numbers(0, 5000)));
  EXPECT_TRUE(IsThere(file + ".penstock"));
  EXPECT_FALSE(IsThere(file + ".lock"));
  EXPECT_FALSE(IsThere(file + ".partial"));
  EXPECT_THAT(Drain(FileCache(Range(0), file)),
              ElementsAreArray(Numbers(0, 5000)));
  EXPECT_THAT(Drain(Repeat(FileCache(Words(9), NewFile()), 2)), SizeIs(18));
}

TEST(FileCacheTest, CountsWhatItKeepsAndWhatItReadsBack) {
  const std::string file = NewFile();
  TestEngine engine;
  const auto counted = [&] {
    Reader reader(engine, FileCache(Range(5000), file));
    reader.Drain();
    const engine::NodeStats& stats =
        reader.run()->stats[reader.pipeline()->root_info().id];
    return std::pair(stats.cache_misses.load(), stats.cache_hits.load());
  };
  EXPECT_EQ(counted(), std::pair(uint64_t{5000}, uint64_t{0}));
  EXPECT_EQ(counted(), std::pair(uint64_t{0}, uint64_t{5000}));
}

TEST(FileCacheTest, OneWriterAtATime) {
  const std::string file = NewFile();
  TestEngine engine;
  Reader first(engine, FileCache(Range(5000), file));
  EXPECT_THAT(first.Read(1, 1), ElementsAre("0"));
  EXPECT_EQ(FailureOf(FileCache(Range(5000), file)).code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(first.Drain(), SizeIs(4999));
  EXPECT_THAT(Reader(engine, FileCache(Range(0), file)).Drain(), SizeIs(5000));
}

TEST(FileCacheTest, AnUnfinishedPassIsDiscarded) {
  const std::string file = NewFile();
  TestEngine engine;
  const Plan plan = FileCache(Filter(Range(50), IsLessThan(40)), file);
  Reader(engine, plan).Read(3, 1);
  EXPECT_THAT(engine.warnings(), ElementsAre(HasSubstr("discarded")));
  EXPECT_FALSE(IsThere(file + ".penstock"));
  EXPECT_FALSE(IsThere(file + ".partial"));
  EXPECT_THAT(Reader(engine, plan).Drain(), SizeIs(40));
}

// A known cardinality needs no end to be seen.
TEST(FileCacheTest, FinishesWithTheLastElement) {
  const std::string file = NewFile();
  TestEngine engine;
  const Plan plan = Take(FileCache(Range(5), file), 5);
  EXPECT_THAT(Reader(engine, plan).Drain({1}), SizeIs(5));
  while (!IsThere(file + ".penstock")) usleep(1000);
  EXPECT_THAT(Reader(engine, plan).Drain({1}), SizeIs(5));
}

TEST(FileCacheTest, ErrorsAreNotKept) {
  const std::string file = NewFile();
  EXPECT_THAT(Drain(FileCache(Map(Range(4), FailsWhere(4, 1)), file)),
              ElementsAre("0", FailureText(), "2", "3"));
  EXPECT_FALSE(IsThere(file + ".penstock"));
}

TEST(FileCacheTest, DamageIsAnError) {
  const std::string file = NewFile();
  Drain(FileCache(Range(5), file));
  std::string bytes = *io::ReadFile(io::LocalFileSystem(), file + ".penstock");
  bytes[bytes.size() / 2] ^= 1;
  ASSERT_TRUE(
      io::WriteFile(io::LocalFileSystem(), file + ".penstock", bytes).ok());
  EXPECT_THAT(Drain(FileCache(Range(5), file)), ElementsAre("!DATA_LOSS"));
  // Of other elements.
  const std::string other = NewFile();
  Drain(FileCache(Words(3), other));
  EXPECT_THAT(Drain(FileCache(Range(3), other)),
              ElementsAre("!INVALID_ARGUMENT"));
}

TEST(FileCacheTest, NoSuchDirectory) {
  EXPECT_EQ(FailureOf(FileCache(Range(3), "/nonexistent/x")).code(),
            absl::StatusCode::kNotFound);
}

TEST(FileCacheContract, HoldsOnceWritten) {
  const std::string file = NewFile();
  const Plan plan = FileCache(Range(50), file);
  Drain(plan);
  CheckContract(plan);
}

TEST(FileCacheState, OfAnUnfinishedPass) {
  const std::string file = NewFile();
  const Plan plan = FileCache(Range(50), file);
  TestEngine engine;
  std::string state;
  {
    Reader reader(engine, plan);
    reader.Read(7, 2);
    state = reader.Save();
  }
  Reader resumed = Reader::Resume(engine, BuildOrDie(plan), state);
  EXPECT_THAT(resumed.Drain(), ElementsAreArray(Numbers(7, 50)));
  EXPECT_TRUE(IsThere(file + ".penstock"));
  Reader again = Reader::Resume(engine, BuildOrDie(plan), state);
  EXPECT_THAT(again.Drain(), ElementsAreArray(Numbers(7, 50)));
}

}  // namespace
}  // namespace penstock::engine_testing

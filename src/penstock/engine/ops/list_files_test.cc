#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "penstock/engine/contract_testing.h"
#include "penstock/engine/samples_testing.h"
#include "penstock/io/file_system.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::engine_testing {
namespace {

using namespace plan_testing;  // NOLINT: the language of these tests

using testing::ElementsAre;
using testing::SizeIs;
using testing::UnorderedElementsAreArray;

// A folder of its own with files a0 … a9 and b.
class ListFilesTest : public testing::Test {
 protected:
  ListFilesTest() {
    std::string name = testing::TempDir() + "/list_files_XXXXXX";
    folder_ = mkdtemp(name.data());
    for (int i = 9; i >= 0; --i) Write("a" + std::to_string(i));
    Write("b");
    for (int i = 0; i < 10; ++i) sorted_.push_back(Quoted(i));
  }
  ~ListFilesTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name) {
    EXPECT_TRUE(
        io::WriteFile(io::LocalFileSystem(), folder_ + "/" + name, "x").ok());
  }
  std::string Quoted(int i) const {
    return "\"" + folder_ + "/a" + std::to_string(i) + "\"";
  }
  std::string Pattern() const { return folder_ + "/a*"; }

  std::string folder_;
  Rows sorted_;
};

TEST_F(ListFilesTest, SortsByName) {
  EXPECT_EQ(Drain(ListFiles(Pattern())), sorted_);
  EXPECT_THAT(Drain(Repeat(ListFiles(Pattern()), 2)), SizeIs(20));
}

TEST_F(ListFilesTest, ShufflesBySeed) {
  const Rows first = Drain(ListFiles(Pattern(), true, 1));
  EXPECT_THAT(first, UnorderedElementsAreArray(sorted_));
  EXPECT_NE(first, sorted_);
  EXPECT_EQ(first, Drain(ListFiles(Pattern(), true, 1)));
  EXPECT_NE(first, Drain(ListFiles(Pattern(), true, 2)));
  // Another order in each pass.
  const Rows twice = Drain(Repeat(ListFiles(Pattern(), true, 1), 2));
  EXPECT_NE(Rows(twice.begin(), twice.begin() + 10),
            Rows(twice.begin() + 10, twice.end()));
}

TEST_F(ListFilesTest, NoMatchIsAnError) {
  EXPECT_THAT(Drain(ListFiles(folder_ + "/none*")), ElementsAre("!NOT_FOUND"));
}

TEST_F(ListFilesTest, StateOfOtherFilesIsRefused) {
  TestEngine engine;
  const auto pipeline = BuildOrDie(ListFiles(Pattern()));
  Reader reader(engine, pipeline);
  reader.Read(3);
  const std::string state = reader.Save();
  Write("a55");
  EXPECT_THAT(Reader::Resume(engine, pipeline, state).Drain(),
              ElementsAre("!!FAILED_PRECONDITION"));
}

TEST_F(ListFilesTest, ContractHolds) {
  CheckContract(ListFiles(Pattern()));
  CheckContract(ListFiles(Pattern(), true, 1), {.repeats_itself = false});
  CheckContract(ListFiles(folder_ + "/none*"));
}

}  // namespace
}  // namespace penstock::engine_testing

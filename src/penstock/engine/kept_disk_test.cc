#include "penstock/engine/kept_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "penstock/engine/contract_testing.h"
#include "penstock/engine/samples_testing.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::engine_testing {
namespace {

using namespace plan_testing;  // NOLINT: the language of these tests
namespace fs = std::filesystem;

using engine::KeptDisk;
using testing::ElementsAre;

constexpr int64_t kAll = int64_t{1} << 40;

Chunk NumbersFrom(int64_t first, int64_t rows) {
  Buffer buffer = Buffer::Allocate(rows * sizeof(int64_t));
  for (int64_t i = 0; i < rows; ++i) {
    buffer.MutableAs<int64_t>()[i] = first + i;
  }
  Chunk chunk;
  chunk.rows = rows;
  chunk.columns.push_back(
      Column::Dense(DType::kInt64, {}, rows, std::move(buffer)));
  return chunk;
}

class KeptDiskTest : public testing::Test {
 protected:
  KeptDiskTest() {
    directory_ = testing::TempDir() + "/kept_" +
                 testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(directory_);
  }
  ~KeptDiskTest() override { fs::remove_all(directory_); }

  TestEngine::Settings Settings() const {
    return {.keep_bytes = kAll, .kept_directory = directory_};
  }

  // All rows, by a process that has just started; and how many were kept.
  std::pair<Rows, uint64_t> Run(const plan::Plan& plan) {
    TestEngine engine(Settings());
    Reader reader(engine, plan);
    std::pair<Rows, uint64_t> result = {reader.Drain({7}), 0};
    for (const engine::KeptCounts& counts : reader.run()->kept) {
      result.second += counts.hits;
    }
    return result;
  }

  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    for (const auto& each : fs::recursive_directory_iterator(directory_)) {
      if (each.is_regular_file()) files.push_back(each.path().string());
    }
    std::sort(files.begin(), files.end());
    return files;
  }

  int64_t Bytes() const {
    int64_t bytes = 0;
    for (const std::string& file : Files()) {
      bytes += static_cast<int64_t>(fs::file_size(file));
    }
    return bytes;
  }

  std::string directory_;
};

TEST_F(KeptDiskTest, ANewProcessStartsWarm) {
  const plan::Plan plan = Map(Range(100), AddConstant(1));
  EXPECT_EQ(Run(plan), std::make_pair(Numbers(1, 101), uint64_t{0}));
  EXPECT_EQ(Run(plan), std::make_pair(Numbers(1, 101), uint64_t{100}));
  struct stat info;
  ASSERT_EQ(stat(directory_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700);
}

TEST_F(KeptDiskTest, LaterPassesComputeNothing) {
  TestEngine engine(Settings());
  Reader reader(engine, Repeat(Map(Range(3000), AddConstant(1)), 3));
  Rows want = Numbers(1, 3001);
  EXPECT_EQ(reader.Read(3000), want);
  EXPECT_EQ(reader.Read(3000), want);
  EXPECT_EQ(reader.Drain(), want);
  EXPECT_EQ(reader.run()->stats[1].rows, 3000);
  EXPECT_EQ(engine.kept().bytes(), 0) << "not in memory as well";
}

// Rows of all kinds, with lineage, errors between them, in many segments.
TEST_F(KeptDiskTest, RowsAreThoseOfARunWithout) {
  const plan::Plan plans[] = {
      Map(Map(Words(40), Identity()), RandomNumber()),
      Batch(Map(Range(40), FailsWhere(9, 2)), 3),
      Map(Map(Range(12), UpTo()), Identity()),
      Shuffle(Map(Range(40), AddConstant(1)), 9, 3),
      Zip({Map(Range(20), AddConstant(1)), Map(Words(20), Identity())}),
  };
  for (const plan::Plan& plan : plans) {
    TestEngine plain;
    const Rows want = Reader(plain, plan).Drain();
    EXPECT_EQ(Run(plan).first, want);
    const auto [rows, hits] = Run(plan);
    EXPECT_EQ(rows, want);
    EXPECT_GT(hits, 0);
  }
}

TEST_F(KeptDiskTest, PassesThatEndEarlyKeepWhatTheySaw) {
  const plan::Plan plan = Take(Map(Range(100), AddConstant(1)), 10);
  {
    TestEngine engine(Settings());
    Reader(engine, plan).Drain();
  }  // and what it began to write
  EXPECT_EQ(Run(plan).first, Numbers(1, 11));
}

// A byte that is another, in any file and at any place, changes no row.
TEST_F(KeptDiskTest, DamageIsComputedAgain) {
  const plan::Plan plan = Map(Words(12), Identity());
  const Rows want = Run(plan).first;
  ASSERT_EQ(Run(plan).second, want.size());
  for (const std::string& file : Files()) {
    const auto size = static_cast<int64_t>(fs::file_size(file));
    for (int64_t at = 0; at<size; at += size> 200 ? 13 : 1) {
      char byte = 0;
      {
        std::fstream stream(file, std::ios::in | std::ios::out);
        stream.seekg(at);
        stream.get(byte);
        stream.seekp(at);
        stream.put(static_cast<char>(byte ^ 0x10));
      }
      const auto [rows, hits] = Run(plan);
      ASSERT_EQ(rows, want) << file << " at " << at;
      ASSERT_EQ(hits, 0) << file << " at " << at;
      ASSERT_EQ(Run(plan), std::make_pair(want, uint64_t{want.size()}))
          << "written again: " << file << " at " << at;
    }
  }
}

TEST_F(KeptDiskTest, FilesThatAreCutOrGoneAreComputedAgain) {
  const plan::Plan plan = Map(Range(50), AddConstant(1));
  const Rows want = Run(plan).first;
  for (size_t i = 0; i < Files().size(); ++i) {
    fs::resize_file(Files()[i], fs::file_size(Files()[i]) / 2);
    EXPECT_EQ(Run(plan), std::make_pair(want, uint64_t{0}));
    fs::remove(Files()[i]);
    EXPECT_EQ(Run(plan), std::make_pair(want, uint64_t{0}));
    fs::resize_file(Files()[i], 0);
    EXPECT_EQ(Run(plan), std::make_pair(want, uint64_t{0}));
    EXPECT_EQ(Run(plan), std::make_pair(want, uint64_t{50}));
  }
}

TEST_F(KeptDiskTest, AChangedSourceDropsTheRows) {
  const std::string file = directory_ + ".txt";
  std::ofstream(file) << "one\ntwo\n";
  const plan::Plan plan = Map(TextLines({file}), Identity());
  EXPECT_THAT(Run(plan).first, ElementsAre("\"one\"", "\"two\""));
  EXPECT_EQ(Run(plan).second, 2);
  std::ofstream(file) << "uno\n";
  EXPECT_THAT(Run(plan).first, ElementsAre("\"uno\""));
  EXPECT_EQ(Run(plan).second, 1);
  fs::remove(file);
  EXPECT_THAT(Run(plan).first, ElementsAre("!NOT_FOUND"));
}

// What a writer that is killed at any time leaves can be read, or is not seen.
TEST_F(KeptDiskTest, AKilledWriterLeavesNothingDamaged) {
  for (size_t segments : {1, 5, 23}) {
    fs::remove_all(directory_);
    const pid_t writer = fork();
    if (writer == 0) {
      KeptDisk disk(directory_, kAll);
      KeptDisk::Index index;
      for (int64_t i = 0;; ++i) {
        const auto segment =
            disk.WriteSegment("key", i * 1000, {NumbersFrom(i * 1000, 1000)});
        if (!segment.ok()) _exit(1);
        index.segments[i * 1000] = *segment;
        if (!disk.WriteIndex("key", index).ok()) _exit(1);
      }
    }
    KeptDisk disk(directory_, kAll);
    while (disk.ReadIndex("key").segments.size() < segments) {
    }
    kill(writer, SIGKILL);
    waitpid(writer, nullptr, 0);
    const KeptDisk::Index index = disk.ReadIndex("key");
    EXPECT_GE(index.segments.size(), segments);
    for (const auto& [first, segment] : index.segments) {
      const auto chunks = disk.ReadSegment("key", segment);
      ASSERT_TRUE(chunks.ok()) << chunks.status();
      EXPECT_EQ(ToText(chunks->begin()->second).back(),
                std::to_string(first + 999));
    }
  }
}

TEST_F(KeptDiskTest, TwoMayWriteAndReadAtOnce) {
  const plan::Plan plan = Map(Range(9000), AddConstant(1));
  TestEngine one(Settings());
  TestEngine two(Settings());
  Reader first(one, plan);
  Reader second(two, plan);
  Rows of_first;
  Rows of_second;
  while (of_first.size() < 9000) {
    for (std::string& row : first.Read(1000)) of_first.push_back(row);
    for (std::string& row : second.Read(700)) of_second.push_back(row);
  }
  for (std::string& row : second.Drain()) of_second.push_back(row);
  EXPECT_EQ(first.Drain(), Rows());
  EXPECT_EQ(of_first, Numbers(1, 9001));
  EXPECT_EQ(of_second, of_first);
  EXPECT_EQ(Run(plan), std::make_pair(of_first, uint64_t{9000}));
}

TEST_F(KeptDiskTest, TheLongestUnusedGoFirst) {
  KeptDisk disk(directory_, 30'000);
  const auto write = [&](const std::string& key) {
    KeptDisk::Index index;
    index.segments[0] = *disk.WriteSegment(key, 0, {NumbersFrom(0, 1000)});
    EXPECT_TRUE(disk.WriteIndex(key, index).ok());
  };
  const auto use = [&](const std::string& key, int hours_ago) {
    fs::last_write_time(
        directory_ + "/" + key + "/index",
        fs::file_time_type::clock::now() - std::chrono::hours(hours_ago));
  };
  write("a");
  write("b");
  write("c");
  use("a", 1);
  use("b", 3);
  use("c", 2);
  write("d");
  EXPECT_EQ(disk.ReadIndex("b").segments.size(), 0);
  EXPECT_EQ(disk.ReadIndex("a").segments.size(), 1);
  EXPECT_EQ(disk.ReadIndex("c").segments.size(), 1);
  EXPECT_EQ(disk.ReadIndex("d").segments.size(), 1);
  EXPECT_LE(Bytes(), 30'000);
}

// One that alone is too large is not kept.
TEST_F(KeptDiskTest, KeepsNoMoreThanThereIsRoomFor) {
  TestEngine::Settings settings = Settings();
  settings.max_kept_disk_bytes = 20'000;
  TestEngine engine(settings);
  Reader reader(engine, Repeat(Map(Range(9000), AddConstant(1)), 2));
  const Rows once = Numbers(1, 9001);
  EXPECT_EQ(reader.Read(9000), once);
  EXPECT_EQ(reader.Drain(), once);
  EXPECT_LE(Bytes(), 20'000);
}

TEST_F(KeptDiskTest, ContractHolds) {
  CheckContract(Take(Map(Range(40), AddConstant(1)), 30),
                {.settings = Settings()});
  CheckContract(Map(Words(40), Identity()), {.settings = Settings()});
  CheckContract(Map(Range(20), FailsWhere(6, 1)), {.settings = Settings()});
  CheckContract(Prefetch(Batch(FlatMap(Range(8), ToRange()), 3), 2),
                {.settings = Settings()});
}

}  // namespace
}  // namespace penstock::engine_testing

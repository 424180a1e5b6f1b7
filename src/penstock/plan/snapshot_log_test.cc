#include "penstock/plan/snapshot_log.h"

#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::plan {
namespace {

using testing::HasSubstr;

Snapshot At(uint64_t time_ns) {
  Snapshot snapshot;
  snapshot.set_version(1);
  snapshot.set_time_ns(time_ns);
  snapshot.add_nodes()->set_name("map_1");
  return snapshot;
}

std::string LogOf(int snapshots) {
  std::string log;
  for (int i = 0; i < snapshots; ++i) {
    EXPECT_TRUE(AppendSnapshot(At(i + 1), log).ok());
  }
  return log;
}

TEST(SnapshotLog, GivesBackWhatWasAppended) {
  const SnapshotLog log = ParseSnapshotLog(LogOf(3));
  ASSERT_TRUE(log.status.ok()) << log.status;
  ASSERT_EQ(log.snapshots.size(), 3);
  EXPECT_EQ(log.snapshots[2].time_ns(), 3);
  EXPECT_EQ(log.snapshots[2].nodes(0).name(), "map_1");
}

TEST(SnapshotLog, OfNothingIsEmpty) {
  EXPECT_TRUE(ParseSnapshotLog("").status.ok());
  EXPECT_TRUE(ParseSnapshotLog("").snapshots.empty());
}

TEST(SnapshotLog, CutAnywhereGivesWhatIsWhole) {
  const std::string whole = LogOf(3);
  const size_t record = (whole.size() - 8) / 3;
  for (size_t size = 1; size < whole.size(); ++size) {
    const SnapshotLog log = ParseSnapshotLog(whole.substr(0, size));
    const size_t want = size < 8 ? 0 : (size - 8) / record;
    EXPECT_EQ(log.snapshots.size(), want) << size;
    EXPECT_EQ(log.status.ok(), size >= 8 && (size - 8) % record == 0) << size;
  }
}

TEST(SnapshotLog, DamageAnywhereIsFound) {
  const std::string whole = LogOf(2);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    const SnapshotLog log = ParseSnapshotLog(damaged);
    EXPECT_EQ(log.status.code(), absl::StatusCode::kDataLoss) << at;
    EXPECT_LT(log.snapshots.size(), 2) << at;
  }
}

TEST(SnapshotLog, SaysWhereTheDamageIs) {
  std::string log = LogOf(2);
  log.pop_back();
  EXPECT_THAT(std::string(ParseSnapshotLog(log).status.message()),
              HasSubstr("snapshot file: cut at byte"));
}

TEST(SnapshotLog, RefusesLengthsBeforeMemory) {
  std::string log = LogOf(1).substr(0, 8);
  log.append(12, '\xff');
  EXPECT_THAT(std::string(ParseSnapshotLog(log).status.message()),
              HasSubstr("a length of 4294967295"));
}

TEST(SnapshotLog, RefusesOneThatIsTooLarge) {
  Snapshot snapshot = At(1);
  snapshot.mutable_nodes(0)->set_name(std::string(kMaxSnapshotBytes, 'x'));
  std::string log = "kept";
  EXPECT_EQ(AppendSnapshot(snapshot, log).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(log, "kept");
}

TEST(SnapshotFile, IsWrittenAndRead) {
  const std::string path = testing::TempDir() + "/snapshots";
  ASSERT_TRUE(WriteSnapshotFile(path, {At(1), At(2)}).ok());
  const SnapshotLog log = ReadSnapshotFile(path);
  EXPECT_TRUE(log.status.ok()) << log.status;
  EXPECT_EQ(log.snapshots.size(), 2);
  std::remove(path.c_str());
  EXPECT_EQ(ReadSnapshotFile(path).status.code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(WriteSnapshotFile("/nowhere/at/all", {At(1)}).ok());
}

}  // namespace
}  // namespace penstock::plan

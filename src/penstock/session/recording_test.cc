#include "penstock/session/recording.h"

#include <cstdio>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/plan/snapshot_log.h"

namespace penstock::session {
namespace {

plan::Snapshot At(int64_t time_ns) {
  plan::Snapshot snapshot;
  snapshot.set_version(1);
  snapshot.set_time_ns(static_cast<uint64_t>(time_ns));
  return snapshot;
}

TEST(Recording, ThinsOutWhatIsOld) {
  Recording recording(100);
  for (int64_t i = 0; i < 5000; ++i) {
    ASSERT_TRUE(recording.Add(At(i), i).ok());
    EXPECT_EQ(recording.next_ns(), i + 100);
    ASSERT_LE(recording.snapshots().size(), 512u);
  }
  const auto& kept = recording.snapshots();
  EXPECT_EQ(kept.front().time_ns(), 0u);
  EXPECT_EQ(kept.back().time_ns(), 4999u);
  for (size_t i = 1; i < kept.size(); ++i) {
    EXPECT_LT(kept[i - 1].time_ns(), kept[i].time_ns());
  }
  // The newest are all there.
  EXPECT_EQ(kept[kept.size() - 100].time_ns(), 4900u);
}

TEST(Recording, AFileHasThemAll) {
  const std::string path = testing::TempDir() + "/recording.bin";
  {
    Recording recording(100);
    ASSERT_TRUE(recording.Open(path).ok());
    for (int64_t i = 0; i < 1000; ++i) {
      ASSERT_TRUE(recording.Add(At(i), i).ok());
    }
  }
  const plan::SnapshotLog log = plan::ReadSnapshotFile(path);
  EXPECT_TRUE(log.status.ok()) << log.status;
  ASSERT_EQ(log.snapshots.size(), 1000u);
  EXPECT_EQ(log.snapshots[999].time_ns(), 999u);
  std::remove(path.c_str());
}

TEST(Recording, AFileThatCannotBeWrittenIsGivenUp) {
  Recording recording(100);
  EXPECT_TRUE(absl::IsNotFound(recording.Open("/nowhere/at/all.bin")));
  ASSERT_TRUE(recording.Open("/dev/full").ok());
  const absl::Status status = recording.Add(At(1), 1);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("/dev/full"));
  EXPECT_TRUE(recording.Add(At(2), 2).ok()) << "it goes on without";
  EXPECT_EQ(recording.snapshots().size(), 2u);
}

}  // namespace
}  // namespace penstock::session

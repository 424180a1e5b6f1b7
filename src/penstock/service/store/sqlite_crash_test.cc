// A store on SQLite after its process, its disk or its power went: what was
// acknowledged is there, and what is there is a prefix of what was written.
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "penstock/service/store/failing_vfs_testing.h"
#include "penstock/service/store/sqlite_store.h"
#include "penstock/service/store/store_directory_testing.h"

namespace penstock::store {
namespace {

std::string Key(int i) { return absl::StrFormat("step/%06d", i); }

// Step `i` of a history: two records that must come together.
WriteBatch Step(int i) {
  return {{Key(i), std::string(100 + i * 37 % 3000, 'x')},
          {"last", absl::StrCat(i)}};
}

// The last step that the store in `directory` holds, 0 if none; fails the test
// if it is no prefix of the history.
int LastStep(const std::string& directory) {
  const auto store = OpenSqliteStore(directory);
  EXPECT_TRUE(store.ok()) << store.status();
  if (!store.ok()) return -1;
  const auto last = (*store)->Scan("last");
  const auto steps = (*store)->Scan("step/");
  if (!last.ok() || !steps.ok()) {
    ADD_FAILURE() << last.status() << steps.status();
    return -1;
  }
  int step = 0;
  if (!last->empty()) {
    EXPECT_TRUE(absl::SimpleAtoi((*last)[0].value, &step));
  }
  EXPECT_EQ(steps->size(), step);
  for (int i = 1; i <= step && i <= static_cast<int>(steps->size()); ++i) {
    EXPECT_EQ((*steps)[i - 1].key, Key(i));
    EXPECT_EQ((*steps)[i - 1].value, *Step(i)[0].value);
  }
  return step;
}

TEST(SqliteCrash, KeepsWhatWasAcknowledgedBeforeAKill) {
  const ScratchDirectory scratch;
  const std::string directory = scratch.path() + "/store";
  std::mt19937 random(3);
  int first = 1;
  for (int round = 0; round < 12; ++round) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const auto store = OpenSqliteStore(directory);
      if (!store.ok()) _exit(1);
      const auto term = (*store)->Campaign("child");
      if (!term.ok()) _exit(1);
      for (int i = first;; ++i) {
        if (!(*store)->Commit(Step(i), *term).ok()) _exit(1);
        if (write(ends[1], &i, sizeof(i)) != sizeof(i)) _exit(1);
      }
    }
    close(ends[1]);
    const int num_steps = 1 + static_cast<int>(random() % 80);
    int acknowledged = first - 1;
    while (acknowledged < first + num_steps) {
      ASSERT_EQ(read(ends[0], &acknowledged, sizeof(int)), sizeof(int));
    }
    // Somewhere inside a commit, each time elsewhere.
    for (unsigned i = random() % 500; i > 0; --i) sched_yield();
    kill(child, SIGKILL);
    int step;
    while (read(ends[0], &step, sizeof(step)) == sizeof(step)) {
      acknowledged = step;
    }
    close(ends[0]);
    int status;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    const int found = LastStep(directory);
    EXPECT_GE(found, acknowledged) << "round " << round;
    EXPECT_LE(found, acknowledged + 1) << "round " << round;
    first = found + 1;
  }
}

// Opens, writes and closes a store three times, until something fails. Returns
// the last step that was acknowledged.
int RunHistory(const std::string& directory, const std::string& vfs,
               int checkpoint_pages) {
  SqliteOptions options;
  options.vfs = vfs;
  options.reserve_bytes = 4096;
  options.checkpoint_pages = checkpoint_pages;
  int step = 0;
  for (int round = 0; round < 3; ++round) {
    const auto store = OpenSqliteStore(directory, options);
    if (!store.ok()) return step;
    const auto term = (*store)->Campaign("history");
    if (!term.ok()) return step;
    for (int i = 0; i < 4; ++i) {
      if (!(*store)->Commit(Step(step + 1), *term).ok()) {
        // Nothing is written after an error that leaves open what was.
        EXPECT_FALSE((*store)->Commit(Step(step + 1), *term).ok());
        EXPECT_FALSE((*store)->Campaign("history").ok());
        return step;
      }
      ++step;
    }
  }
  return step;
}

struct FaultCase {
  std::string name;
  VfsFault fault;
  bool is_last;
  bool loses_power;
  int checkpoint_pages = 1000;  // few: the log is copied and begun anew often
};

class SqliteFaultTest : public testing::TestWithParam<FaultCase> {};

TEST_P(SqliteFaultTest, KeepsWhatWasAcknowledgedBeforeEveryFault) {
  const FaultCase& c = GetParam();
  std::mt19937 random(11);
  int num_lossy = 0;
  for (int n = 1;; ++n) {
    SCOPED_TRACE(absl::StrCat("operation ", n));
    const ScratchDirectory scratch(FastParent());
    const std::string directory = scratch.path() + "/store";
    FailingVfs vfs("failing");
    vfs.FailNth(n, c.fault, c.is_last);
    const int acknowledged =
        RunHistory(directory, vfs.name(), c.checkpoint_pages);
    if (c.loses_power) {
      const size_t num_kept = random() % 4;
      num_lossy += vfs.LosePower(num_kept) > num_kept ? 1 : 0;
    }
    const int found = LastStep(directory);
    EXPECT_GE(found, acknowledged);
    EXPECT_LE(found, acknowledged + 1);
    if (!vfs.has_failed()) {
      EXPECT_EQ(acknowledged, 12);
      EXPECT_GT(n, 50) << "expected more operations in a history";
      break;
    }
    ASSERT_FALSE(HasFailure());
  }
  if (c.loses_power) {
    EXPECT_GT(num_lossy, 10);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Faults, SqliteFaultTest,
    testing::ValuesIn<FaultCase>({
        {"ErrorOnce", VfsFault::kError, false, false},
        {"ErrorForEver", VfsFault::kError, true, false},
        {"TornOnce", VfsFault::kTear, false, false},
        {"TornForEver", VfsFault::kTear, true, false},
        {"PowerLoss", VfsFault::kError, true, true},
        {"TornPowerLoss", VfsFault::kTear, true, true},
        {"ErrorWithCheckpoints", VfsFault::kError, false, false, 5},
        {"TornWithCheckpoints", VfsFault::kTear, true, false, 5},
        {"PowerLossWithCheckpoints", VfsFault::kError, true, true, 5},
        {"TornPowerLossWithCheckpoints", VfsFault::kTear, true, true, 5},
    }),
    [](const auto& info) { return info.param.name; });

TEST(SqliteCrash, AFullDiskAtAnyWriteCostsOnlyThatCommit) {
  for (int n = 1;; ++n) {
    SCOPED_TRACE(absl::StrCat("operation ", n));
    const ScratchDirectory scratch(FastParent());
    const std::string directory = scratch.path() + "/store";
    FailingVfs vfs("filling");
    SqliteOptions options;
    options.vfs = vfs.name();
    options.reserve_bytes = 4096;
    int step = 0;
    int num_full = 0;
    {
      const auto store = OpenSqliteStore(directory, options);
      ASSERT_TRUE(store.ok()) << store.status();
      const auto term = (*store)->Campaign("full");
      ASSERT_TRUE(term.ok()) << term.status();
      vfs.FailNth(n, VfsFault::kFull, /*is_last=*/false);
      while (step < 8) {
        const absl::Status status = (*store)->Commit(Step(step + 1), *term);
        if (status.ok()) {
          ++step;
        } else if (absl::IsResourceExhausted(status)) {
          ++num_full;
        } else {
          // It was a sync: whether it was written is unknown.
          ASSERT_TRUE(absl::IsInternal(status)) << status;
          break;
        }
      }
      ASSERT_LE(num_full, 1);
    }
    const int found = LastStep(directory);
    EXPECT_GE(found, step);
    EXPECT_LE(found, step == 8 ? step : step + 1);
    if (!vfs.has_failed()) break;
    ASSERT_FALSE(HasFailure());
  }
}

}  // namespace
}  // namespace penstock::store

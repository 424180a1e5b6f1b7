#include "penstock/service/store/group_commit.h"

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/service/store/memory_store.h"
#include "penstock/service/store/store_directory_testing.h"

namespace penstock::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kMillisecond = 1'000'000;

class FakeClock final : public Clock {
 public:
  int64_t NowNanos() const override { return now_ns_; }
  void Advance(int64_t ns) { now_ns_ += ns; }

 private:
  std::atomic<int64_t> now_ns_ = 1000 * kMillisecond;
};

class GroupCommitTest : public testing::Test {
 protected:
  GroupCommitTest() : store_(disk_) {
    term_ = *store_.Campaign("a test");
    Make({});
  }

  void Make(const GroupCommitOptions& options) {
    queue_ = std::make_unique<GroupCommit>(store_, clock_, options);
  }

  // What the callback of `name` hears goes to heard_.
  GroupCommit::Callback Hear(const std::string& name) {
    return [this, name](const absl::Status& status) {
      heard_.push_back(absl::StrCat(
          name, status.ok() ? "" : " ",
          status.ok() ? "" : absl::StatusCodeToString(status.code())));
    };
  }
  void Put(const std::string& key) {
    queue_->Commit({{key, "v"}}, term_, Hear(key));
  }
  void PutLazily(const std::string& key) {
    queue_->CommitLazily({{key, "v"}}, term_, Hear(key));
  }
  void Delete(const std::string& key) {
    queue_->Commit({{key, std::nullopt}}, term_, Hear("-" + key));
  }

  // Groups that were written, the campaign aside.
  uint64_t num_groups() const { return disk_->num_commits() - 1; }
  std::vector<std::string> Keys() {
    std::vector<std::string> keys;
    MemoryStore store(disk_);
    const std::vector<Record> records = AllRecords(store);
    for (const Record& record : records) {
      keys.push_back(record.key);
    }
    return keys;
  }
  // Makes the queue expect `n` batches: as many were under way of late.
  void Expect(int n) {
    for (int i = 0; i < n; ++i) Put(absl::StrCat("warm", i));
    EXPECT_TRUE(queue_->Flush().ok());
    heard_.clear();
  }

  FakeClock clock_;
  const std::shared_ptr<MemoryDisk> disk_ = std::make_shared<MemoryDisk>();
  MemoryStore store_;
  uint64_t term_ = 0;
  std::vector<std::string> heard_;
  std::unique_ptr<GroupCommit> queue_;
};

TEST_F(GroupCommitTest, HasNothingToDoAtFirst) {
  EXPECT_FALSE(queue_->Poll());
  EXPECT_EQ(queue_->DueNanos(), std::nullopt);
  EXPECT_TRUE(queue_->Flush().ok());
}

TEST_F(GroupCommitTest, ALonelyBatchDoesNotWait) {
  Put("a");
  EXPECT_EQ(queue_->DueNanos(), clock_.NowNanos());
  EXPECT_THAT(heard_, IsEmpty());
  EXPECT_TRUE(queue_->Poll());
  EXPECT_THAT(heard_, ElementsAre("a"));
  EXPECT_THAT(Keys(), ElementsAre("a"));
}

TEST_F(GroupCommitTest, WaitsForAsManyAsCameOfLate) {
  Expect(3);
  const uint64_t before = num_groups();
  Put("a");
  EXPECT_EQ(queue_->DueNanos(), clock_.NowNanos() + 2 * kMillisecond);
  clock_.Advance(kMillisecond);
  Put("b");
  EXPECT_FALSE(queue_->Poll());
  Put("c");
  EXPECT_TRUE(queue_->Poll());
  EXPECT_THAT(heard_, ElementsAre("a", "b", "c"));
  EXPECT_EQ(num_groups(), before + 1);
}

TEST_F(GroupCommitTest, WaitsNoLongerThanItsLimit) {
  Expect(3);
  Put("a");
  clock_.Advance(2 * kMillisecond - 1);
  EXPECT_FALSE(queue_->Poll());
  clock_.Advance(1);
  EXPECT_TRUE(queue_->Poll());
  EXPECT_THAT(heard_, ElementsAre("a"));
  // It expects one from now on.
  Put("b");
  EXPECT_TRUE(queue_->Poll());
}

TEST_F(GroupCommitTest, AGroupHasALimit) {
  Make({.max_group_batches = 4});
  for (int i = 0; i < 10; ++i) Put(absl::StrCat(i));
  EXPECT_TRUE(queue_->Poll());
  EXPECT_THAT(heard_, SizeIs(4));
  EXPECT_TRUE(queue_->Poll());
  EXPECT_THAT(heard_, SizeIs(8));
  clock_.Advance(2 * kMillisecond);
  EXPECT_TRUE(queue_->Poll());
  EXPECT_THAT(heard_, SizeIs(10));
  EXPECT_EQ(num_groups(), 3);
}

TEST_F(GroupCommitTest, AGroupHasALimitOfBytes) {
  Make({.max_group_bytes = 100});
  for (const std::string key : {"a", "b", "c"}) {
    queue_->Commit({{key, std::string(60, 'v')}}, term_, Hear(key));
  }
  queue_->Commit({{"large", std::string(1000, 'v')}}, term_, Hear("large"));
  EXPECT_TRUE(queue_->Flush().ok());
  EXPECT_THAT(heard_, ElementsAre("a", "b", "c", "large"));
  EXPECT_EQ(num_groups(), 4);
}

TEST_F(GroupCommitTest, TheQueueHasALimitOfBytes) {
  Make({.max_queued_bytes = 100});
  queue_->Commit({{"a", std::string(90, 'v')}}, term_, Hear("a"));
  queue_->Commit({{"b", std::string(90, 'v')}}, term_, Hear("b"));
  EXPECT_THAT(heard_, ElementsAre("b RESOURCE_EXHAUSTED"));
  EXPECT_TRUE(queue_->Flush().ok());
  Put("c");
  EXPECT_TRUE(queue_->Flush().ok());
  EXPECT_THAT(Keys(), ElementsAre("a", "c"));
}

TEST_F(GroupCommitTest, LazyBatchesWaitLonger) {
  PutLazily("a");
  clock_.Advance(50 * kMillisecond);
  PutLazily("b");
  EXPECT_FALSE(queue_->Poll());
  EXPECT_EQ(queue_->DueNanos(), clock_.NowNanos() + 50 * kMillisecond);
  clock_.Advance(50 * kMillisecond);
  EXPECT_TRUE(queue_->Poll());
  EXPECT_THAT(heard_, ElementsAre("a", "b"));
  EXPECT_EQ(num_groups(), 1);
}

TEST_F(GroupCommitTest, LazyBatchesRideAlongInOrder) {
  PutLazily("a");
  Put("b");
  PutLazily("c");
  EXPECT_TRUE(queue_->Poll());
  EXPECT_THAT(heard_, ElementsAre("a", "b", "c"));
  EXPECT_EQ(num_groups(), 1);
}

TEST_F(GroupCommitTest, LazyBatchesAreNotExpectedAgain) {
  for (int i = 0; i < 5; ++i) PutLazily(absl::StrCat(i));
  Put("a");
  EXPECT_TRUE(queue_->Poll());
  Put("b");
  EXPECT_TRUE(queue_->Poll());
}

TEST_F(GroupCommitTest, FlushWritesAll) {
  PutLazily("a");
  Put("b");
  EXPECT_TRUE(queue_->Flush().ok());
  EXPECT_THAT(heard_, ElementsAre("a", "b"));
  EXPECT_EQ(queue_->DueNanos(), std::nullopt);
}

TEST_F(GroupCommitTest, ACallbackMayQueueMore) {
  queue_->Commit({{"a", "v"}}, term_, [this](const absl::Status&) {
    heard_.push_back("a");
    Put("b");
  });
  EXPECT_TRUE(queue_->Poll());
  EXPECT_THAT(heard_, ElementsAre("a"));
  EXPECT_TRUE(queue_->Poll());
  EXPECT_THAT(heard_, ElementsAre("a", "b"));
}

TEST_F(GroupCommitTest, TermsAreNotMixed) {
  Put("a");
  const uint64_t old = term_;
  term_ = *store_.Campaign("next");
  Put("b");
  EXPECT_TRUE(absl::IsAborted(queue_->Flush()));
  EXPECT_THAT(heard_, ElementsAre("a ABORTED", "b ABORTED"));
  EXPECT_THAT(Keys(), IsEmpty());
  EXPECT_LT(old, term_);
}

TEST_F(GroupCommitTest, OneBadBatchFailsAlone) {
  Put("a");
  queue_->Commit({{"", "no key"}}, term_, Hear("bad"));
  Put("b");
  EXPECT_TRUE(queue_->Flush().ok());
  EXPECT_THAT(heard_, ElementsAre("a", "bad INVALID_ARGUMENT", "b"));
  EXPECT_THAT(Keys(), ElementsAre("a", "b"));
}

TEST_F(GroupCommitTest, DeletesPassOnAFullDisk) {
  Put("a");
  ASSERT_TRUE(queue_->Flush().ok());
  disk_->SetFull(true);
  Put("b");
  Delete("a");
  Put("c");
  EXPECT_TRUE(queue_->Flush().ok());
  EXPECT_THAT(heard_, ElementsAre("a", "b RESOURCE_EXHAUSTED", "-a",
                                  "c RESOURCE_EXHAUSTED"));
  disk_->SetFull(false);
  Put("d");
  EXPECT_TRUE(queue_->Flush().ok());
  EXPECT_THAT(Keys(), ElementsAre("d"));
}

struct FatalCase {
  std::string name;
  Fault fault;
  std::vector<std::string> want_keys;
};

class GroupCommitFatalTest : public GroupCommitTest,
                             public testing::WithParamInterface<FatalCase> {};

TEST_P(GroupCommitFatalTest, NothingIsWrittenAfterIt) {
  Make({.max_group_batches = 2});
  disk_->FailCommit(2, GetParam().fault);
  for (const std::string key : {"a", "b", "c", "d", "e"}) Put(key);
  EXPECT_FALSE(queue_->Flush().ok());
  ASSERT_THAT(heard_, SizeIs(5));
  EXPECT_EQ(heard_[1], "b");
  for (const int i : {2, 3, 4}) EXPECT_THAT(heard_[i], SizeIs(testing::Gt(1)));
  Put("f");
  EXPECT_THAT(heard_, SizeIs(6));
  EXPECT_FALSE(queue_->Poll());
  EXPECT_FALSE(queue_->Flush().ok());
  EXPECT_THAT(Keys(), testing::ElementsAreArray(GetParam().want_keys));
}

INSTANTIATE_TEST_SUITE_P(
    Faults, GroupCommitFatalTest,
    testing::ValuesIn<FatalCase>({
        {"ErrorBefore", Fault::kErrorBefore, {"a", "b"}},
        {"ErrorAfter", Fault::kErrorAfter, {"a", "b", "c", "d"}},
        {"CrashBefore", Fault::kCrashBefore, {"a", "b"}},
        {"CrashAfter", Fault::kCrashAfter, {"a", "b", "c", "d"}},
    }),
    [](const auto& info) { return info.param.name; });

TEST_F(GroupCommitTest, WhatIsQueuedAtTheEndIsCancelled) {
  Put("a");
  PutLazily("b");
  queue_.reset();
  EXPECT_THAT(heard_, ElementsAre("a CANCELLED", "b CANCELLED"));
  EXPECT_THAT(Keys(), IsEmpty());
}

// With the thread and the machine's own clock.
TEST(GroupCommitThread, WritesWhatManyThreadsQueue) {
  auto disk = std::make_shared<MemoryDisk>();
  MemoryStore store(disk);
  const uint64_t term = *store.Campaign("a test");
  GroupCommit queue(store, SteadyClock());
  queue.Start();
  std::atomic<int> num_lazy = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        auto done = std::make_shared<std::promise<absl::Status>>();
        queue.CommitLazily({{absl::StrCat("lazy/", t, "/", i), "v"}}, term,
                           [&num_lazy](const absl::Status& status) {
                             num_lazy += status.ok() ? 1 : 0;
                           });
        queue.Commit(
            {{absl::StrCat("eager/", t, "/", i), "v"}}, term,
            [done](const absl::Status& status) { done->set_value(status); });
        EXPECT_TRUE(done->get_future().get().ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(queue.Flush().ok());
  EXPECT_EQ(num_lazy, 800);
  EXPECT_EQ(store.Scan("")->size(), 1600);
  EXPECT_LT(disk->num_commits(), 1600);
}

TEST(GroupCommitThread, LazyBatchesAreWrittenByThemselves) {
  auto disk = std::make_shared<MemoryDisk>();
  MemoryStore store(disk);
  const uint64_t term = *store.Campaign("a test");
  GroupCommit queue(store, SteadyClock(), {.max_lazy_wait_ns = kMillisecond});
  queue.Start();
  std::promise<absl::Status> done;
  queue.CommitLazily({{"a", "v"}}, term, [&](const absl::Status& status) {
    done.set_value(status);
  });
  EXPECT_TRUE(done.get_future().get().ok());
  EXPECT_EQ(store.Scan("")->size(), 1);
}

}  // namespace
}  // namespace penstock::store

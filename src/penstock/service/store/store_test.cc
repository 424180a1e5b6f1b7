// What every store does: one suite for all of them.
#include <unistd.h>

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/service/store/memory_store.h"
#include "penstock/service/store/meta_store.h"
#include "penstock/service/store/sqlite_store.h"
#include "penstock/service/store/store_directory_testing.h"

namespace penstock::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Where stores are opened, again and again.
class Home {
 public:
  virtual ~Home() = default;
  virtual std::unique_ptr<MetaStore> Open() = 0;
  // Opens it although another one is open: the lock has been lost.
  virtual std::unique_ptr<MetaStore> OpenBeside() = 0;
};

class MemoryHome final : public Home {
 public:
  std::unique_ptr<MetaStore> Open() override {
    return std::make_unique<MemoryStore>(disk_);
  }
  std::unique_ptr<MetaStore> OpenBeside() override { return Open(); }

 private:
  const std::shared_ptr<MemoryDisk> disk_ = std::make_shared<MemoryDisk>();
};

class SqliteHome final : public Home {
 public:
  std::unique_ptr<MetaStore> Open() override {
    auto store = OpenSqliteStore(directory_.path());
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }
  std::unique_ptr<MetaStore> OpenBeside() override {
    unlink((directory_.path() + "/lock").c_str());
    return Open();
  }

 private:
  const ScratchDirectory directory_;
};

struct StoreKind {
  std::string name;
  std::function<std::unique_ptr<Home>()> make;
};

class StoreTest : public testing::TestWithParam<StoreKind> {
 protected:
  void SetUp() override {
    home_ = GetParam().make();
    Reopen();
    ASSERT_NE(store_, nullptr);
    Campaign();
  }

  void Reopen() {
    store_.reset();
    store_ = home_->Open();
  }

  void Campaign() {
    const auto term = store_->Campaign("a test");
    ASSERT_TRUE(term.ok()) << term.status();
    term_ = *term;
  }

  absl::Status Put(const std::string& key, const std::string& value) {
    return store_->Commit({{key, value}}, term_);
  }
  absl::Status Delete(const std::string& key) {
    return store_->Commit({{key, std::nullopt}}, term_);
  }
  std::vector<Record> Scan(const std::string& prefix = "") {
    const auto records = store_->Scan(prefix);
    EXPECT_TRUE(records.ok()) << records.status();
    return records.ok() ? *records : std::vector<Record>();
  }
  std::vector<std::string> Keys(const std::string& prefix = "") {
    std::vector<std::string> keys;
    for (const Record& record : Scan(prefix)) keys.push_back(record.key);
    return keys;
  }

  std::unique_ptr<Home> home_;
  std::unique_ptr<MetaStore> store_;
  uint64_t term_ = 0;
};

TEST_P(StoreTest, IsEmptyAtFirst) { EXPECT_THAT(Scan(), IsEmpty()); }

TEST_P(StoreTest, ScansAPrefixInOrder) {
  ASSERT_TRUE(store_
                  ->Commit({{"job/2", "b"},
                            {"job", "-"},
                            {"job/10", "a"},
                            {"joc", "-"},
                            {"jo", "-"},
                            {"job0", "-"}},
                           term_)
                  .ok());
  EXPECT_THAT(Scan("job/"),
              ElementsAre(Record{"job/10", "a"}, Record{"job/2", "b"}));
  EXPECT_THAT(Keys(),
              ElementsAre("jo", "job", "job/10", "job/2", "job0", "joc"));
  EXPECT_THAT(Scan("jod"), IsEmpty());
}

TEST_P(StoreTest, Deletes) {
  ASSERT_TRUE(store_->Commit({{"a", "1"}, {"b", "2"}, {"c", "3"}}, term_).ok());
  EXPECT_TRUE(Delete("b").ok());
  EXPECT_TRUE(Delete("never there").ok());
  EXPECT_THAT(Keys(), ElementsAre("a", "c"));
}

TEST_P(StoreTest, AppliesABatchInOrder) {
  ASSERT_TRUE(store_
                  ->Commit({{"a", "1"},
                            {"a", "2"},
                            {"b", "1"},
                            {"b", std::nullopt},
                            {"c", std::nullopt},
                            {"c", "3"}},
                           term_)
                  .ok());
  EXPECT_THAT(Scan(), ElementsAre(Record{"a", "2"}, Record{"c", "3"}));
}

TEST_P(StoreTest, TakesAnEmptyBatch) {
  EXPECT_TRUE(store_->Commit({}, term_).ok());
  EXPECT_THAT(Scan(), IsEmpty());
}

TEST_P(StoreTest, KeepsEmptyValues) {
  ASSERT_TRUE(Put("a", "").ok());
  Reopen();
  EXPECT_THAT(Scan(), ElementsAre(Record{"a", ""}));
}

TEST_P(StoreTest, KeepsAnyBytes) {
  std::vector<Record> want;
  WriteBatch batch;
  for (int first = 0; first < 256; ++first) {
    const char byte = static_cast<char>(first);
    for (const std::string& rest :
         {std::string(), std::string("\0x", 2), std::string("\xff\xff", 2)}) {
      want.push_back({byte + rest, rest + byte});
    }
  }
  for (auto it = want.rbegin(); it != want.rend(); ++it) {
    batch.push_back({it->key, it->value});
  }
  ASSERT_TRUE(store_->Commit(batch, term_).ok());
  EXPECT_EQ(Scan(), want);
  EXPECT_THAT(Keys("\xff"),
              ElementsAre("\xff", std::string("\xff\0x", 3), "\xff\xff\xff"));
  EXPECT_THAT(Keys("\xff\xff"), ElementsAre("\xff\xff\xff"));
  EXPECT_THAT(Keys(std::string("\0", 1)).size(), 3);
}

TEST_P(StoreTest, KeepsLongKeysAndValues) {
  const std::string key(kMaxKeyBytes, 'k');
  std::string value(1 << 20, '\0');
  for (size_t i = 0; i < value.size(); ++i) {
    value[i] = static_cast<char>(i * 31 >> 3);
  }
  ASSERT_TRUE(store_->Commit({{key, value}, {"b", value}}, term_).ok());
  Reopen();
  EXPECT_EQ(Scan(), (std::vector<Record>{{"b", value}, {key, value}}));
  Campaign();
  EXPECT_TRUE(Put("b", "short").ok());
  EXPECT_EQ(Scan("b"), (std::vector<Record>{{"b", "short"}}));
}

TEST_P(StoreTest, RefusesWhatIsOverALimitAndWritesNothing) {
  const std::vector<Write> wrong = {
      {"", "no key"},
      {std::string(kMaxKeyBytes + 1, 'k'), "long key"},
      {"key", std::string(kMaxValueBytes + 1, 'v')},
  };
  for (const Write& write : wrong) {
    EXPECT_TRUE(absl::IsInvalidArgument(
        store_->Commit({{"before", "x"}, write, {"after", "x"}}, term_)));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(
      store_->Campaign(std::string(kMaxHolderBytes + 1, 'h')).status()));
  EXPECT_THAT(Scan(), IsEmpty());
  EXPECT_TRUE(Put("a", "1").ok());
}

TEST_P(StoreTest, TermsGrowOverReopening) {
  uint64_t last = term_;
  for (int i = 0; i < 3; ++i) {
    Reopen();
    for (int j = 0; j < 2; ++j) {
      Campaign();
      EXPECT_GT(term_, last);
      last = term_;
    }
  }
}

TEST_P(StoreTest, RefusesALowerTerm) {
  ASSERT_TRUE(Put("a", "1").ok());
  const uint64_t old = term_;
  Campaign();
  const absl::Status status = store_->Commit({{"a", "2"}, {"b", "2"}}, old);
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_TRUE(absl::IsAborted(store_->Commit({{"a", std::nullopt}}, old)));
  EXPECT_THAT(Scan(), ElementsAre(Record{"a", "1"}));
  EXPECT_TRUE(Put("a", "3").ok());
}

TEST_P(StoreTest, RefusesALowerTermAfterReopening) {
  const uint64_t old = term_;
  Campaign();
  Reopen();
  EXPECT_TRUE(absl::IsAborted(store_->Commit({{"a", "1"}}, old)));
  EXPECT_TRUE(Put("a", "1").ok());
}

TEST_P(StoreTest, RefusesATermThatNeverBegan) {
  EXPECT_TRUE(absl::IsInvalidArgument(store_->Commit({{"a", "1"}}, term_ + 1)));
  EXPECT_FALSE(store_->Commit({{"a", "1"}}, 0).ok());
  EXPECT_THAT(Scan(), IsEmpty());
}

TEST_P(StoreTest, AZombieFailsByItsTerm) {
  ASSERT_TRUE(Put("a", "old").ok());
  const std::unique_ptr<MetaStore> next = home_->OpenBeside();
  ASSERT_NE(next, nullptr);
  EXPECT_TRUE(Put("b", "old").ok());  // nobody has taken over yet
  const auto term = next->Campaign("next");
  ASSERT_TRUE(term.ok()) << term.status();
  EXPECT_GT(*term, term_);
  EXPECT_TRUE(absl::IsAborted(Put("a", "zombie")));
  EXPECT_TRUE(next->Commit({{"a", "new"}}, *term).ok());
  EXPECT_TRUE(absl::IsAborted(Delete("a")));
  EXPECT_THAT(*next->Scan(""),
              ElementsAre(Record{"a", "new"}, Record{"b", "old"}));
  // Who comes back with a new term may write again.
  Campaign();
  EXPECT_TRUE(Put("c", "back").ok());
  EXPECT_TRUE(absl::IsAborted(next->Commit({{"d", "x"}}, *term)));
}

TEST_P(StoreTest, HoldsAHundredThousandRecords) {
  constexpr int kRecords = 100'000;
  WriteBatch batch;
  for (int i = 0; i < kRecords; ++i) {
    batch.push_back({absl::StrFormat("bundle/%08d", i * 7919 % kRecords),
                     std::string(24, 'x')});
    if (batch.size() == 5000) {
      ASSERT_TRUE(store_->Commit(batch, term_).ok());
      batch.clear();
    }
  }
  Reopen();
  const std::vector<Record> found = Scan("bundle/");
  ASSERT_EQ(found.size(), kRecords);
  for (int i = 0; i < kRecords; i += 997) {
    EXPECT_EQ(found[i].key, absl::StrFormat("bundle/%08d", i));
  }
  EXPECT_EQ(Keys("bundle/000123").size(), 100);
}

TEST_P(StoreTest, DoesWhatAMapDoes) {
  std::mt19937 random(7);
  std::map<std::string, std::string> model;
  for (int round = 0; round < 60; ++round) {
    WriteBatch batch;
    for (int i = 0; i < 20; ++i) {
      const std::string key = absl::StrCat("k", random() % 50);
      if (random() % 3 == 0) {
        batch.push_back({key, std::nullopt});
        model.erase(key);
      } else {
        const size_t size = random() % (random() % 10 == 0 ? 9000 : 40);
        batch.push_back({key, std::string(size, 'a' + random() % 26)});
        model[key] = *batch.back().value;
      }
    }
    ASSERT_TRUE(store_->Commit(batch, term_).ok());
    if (round % 10 == 0) {
      Reopen();
      Campaign();
    }
    std::vector<Record> want;
    for (const auto& [key, value] : model) want.push_back({key, value});
    ASSERT_EQ(Scan(), want) << "round " << round;
  }
}

TEST_P(StoreTest, ServesSeveralThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < 25; ++i) {
        EXPECT_TRUE(Put(absl::StrCat(t, "/", i), "x").ok());
        EXPECT_EQ(Scan(absl::StrCat(t, "/")).size(), i + 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Scan().size(), 100);
}

INSTANTIATE_TEST_SUITE_P(
    Stores, StoreTest,
    testing::ValuesIn<StoreKind>({
        {"Memory", [] { return std::make_unique<MemoryHome>(); }},
        {"Sqlite", [] { return std::make_unique<SqliteHome>(); }},
    }),
    [](const auto& info) { return info.param.name; });

// What only the store in memory does.

TEST(MemoryStore, KeepsWhatWasCommittedWhenItCrashes) {
  auto disk = std::make_shared<MemoryDisk>();
  MemoryStore store(disk);
  const uint64_t term = *store.Campaign("a");
  ASSERT_TRUE(store.Commit({{"a", "1"}}, term).ok());
  store.Crash();
  EXPECT_TRUE(absl::IsUnavailable(store.Commit({{"b", "1"}}, term)));
  EXPECT_TRUE(absl::IsUnavailable(store.Campaign("a").status()));
  EXPECT_TRUE(absl::IsUnavailable(store.Scan("").status()));
  MemoryStore next(disk);
  EXPECT_THAT(*next.Scan(""), ElementsAre(Record{"a", "1"}));
  EXPECT_GT(*next.Campaign("b"), term);
}

struct FaultCase {
  std::string name;
  Fault fault;
  bool is_written;
  absl::StatusCode code;
};

class MemoryFaultTest : public testing::TestWithParam<FaultCase> {};

TEST_P(MemoryFaultTest, EndsTheStoreAtTheCommit) {
  const FaultCase& c = GetParam();
  auto disk = std::make_shared<MemoryDisk>();
  MemoryStore store(disk);
  const uint64_t term = *store.Campaign("a");
  disk->FailCommit(2, c.fault);
  EXPECT_TRUE(store.Commit({{"a", "1"}}, term).ok());
  EXPECT_EQ(store.Commit({{"b", "1"}}, term).code(), c.code);
  EXPECT_EQ(store.Commit({{"c", "1"}}, term).code(), c.code);
  MemoryStore next(disk);
  EXPECT_EQ(next.Scan("b")->size(), c.is_written ? 1 : 0);
  EXPECT_EQ(disk->num_commits(), c.is_written ? 3 : 2);
  EXPECT_TRUE(next.Commit({{"c", "1"}}, *next.Campaign("b")).ok());
}

INSTANTIATE_TEST_SUITE_P(Faults, MemoryFaultTest,
                         testing::ValuesIn<FaultCase>({
                             {"ErrorBefore", Fault::kErrorBefore, false,
                              absl::StatusCode::kInternal},
                             {"ErrorAfter", Fault::kErrorAfter, true,
                              absl::StatusCode::kInternal},
                             {"CrashBefore", Fault::kCrashBefore, false,
                              absl::StatusCode::kUnavailable},
                             {"CrashAfter", Fault::kCrashAfter, true,
                              absl::StatusCode::kUnavailable},
                         }),
                         [](const auto& info) { return info.param.name; });

TEST(MemoryStore, DeletesOnAFullDisk) {
  auto disk = std::make_shared<MemoryDisk>();
  MemoryStore store(disk);
  const uint64_t term = *store.Campaign("a");
  ASSERT_TRUE(store.Commit({{"a", "1"}}, term).ok());
  disk->SetFull(true);
  EXPECT_TRUE(absl::IsResourceExhausted(store.Commit({{"b", "1"}}, term)));
  EXPECT_TRUE(store.Commit({{"a", std::nullopt}}, term).ok());
  disk->SetFull(false);
  EXPECT_TRUE(store.Commit({{"b", "1"}}, term).ok());
  EXPECT_THAT(*store.Scan(""), ElementsAre(Record{"b", "1"}));
}

}  // namespace
}  // namespace penstock::store

#include "penstock/engine/kept_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "penstock/data/chunk_testing.h"

namespace penstock::engine {
namespace {

using Kind = KeptRows::Found::Kind;

Chunk RowsFrom(int64_t first, int64_t rows) {
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

class KeptRowsTest : public testing::Test {
 protected:
  // Rows [first, first + rows), as 100 bytes.
  bool Add(KeptRows::Use& use, int64_t first, int64_t rows) {
    auto reservation = std::make_unique<Reservation>(budget_);
    if (!reservation->TryGrow(100)) return false;
    return use.Add(first, RowsFrom(first, rows), std::move(reservation));
  }
  std::unique_ptr<KeptRows::Use> Open(const std::string& key,
                                      std::vector<uint64_t> instances = {}) {
    return store_->Open(key, instances, budget_);
  }

  const std::shared_ptr<KeptRows> store_ = std::make_shared<KeptRows>();
  const std::shared_ptr<MemoryBudget> budget_ =
      std::make_shared<MemoryBudget>(1000, KeptRows::ReclaimFrom(store_));
};

TEST_F(KeptRowsTest, FindsPartsHolesAndTheEnd) {
  const auto use = Open("a");
  EXPECT_EQ(use->Find(0, 5).hole_rows, std::numeric_limits<int64_t>::max());
  EXPECT_TRUE(Add(*use, 10, 5));
  EXPECT_TRUE(Add(*use, 0, 4));
  EXPECT_EQ(use->Find(0, 3).chunk.rows, 3);
  EXPECT_EQ(testing::PrintToString(ToText(use->Find(2, 9).chunk)),
            "{ \"2\", \"3\" }");
  EXPECT_EQ(use->Find(4, 9).kind, Kind::kHole);
  EXPECT_EQ(use->Find(4, 9).hole_rows, 6);
  EXPECT_EQ(use->Find(14, 9).chunk.rows, 1);
  EXPECT_EQ(use->Find(15, 9).kind, Kind::kHole);
  use->SetEnd(15);
  EXPECT_EQ(use->Find(15, 9).kind, Kind::kEnd);
  EXPECT_FALSE(use->is_complete());
  EXPECT_TRUE(Add(*use, 4, 6));
  EXPECT_TRUE(use->is_complete());
  EXPECT_EQ(use->bytes(), 300);
  EXPECT_EQ(budget_->used(), 300);
}

TEST_F(KeptRowsTest, RefusesRowsThatAreThere) {
  const auto use = Open("a");
  EXPECT_TRUE(Add(*use, 10, 5));
  EXPECT_FALSE(Add(*use, 10, 1));
  EXPECT_FALSE(Add(*use, 14, 3));
  EXPECT_FALSE(Add(*use, 7, 4));
  EXPECT_FALSE(Add(*use, 9, 9));
  EXPECT_TRUE(Add(*use, 15, 3));
  EXPECT_TRUE(Add(*use, 7, 3));
  EXPECT_EQ(budget_->used(), 300);
}

// Passes that do not agree about the end are not to be relied on.
TEST_F(KeptRowsTest, AnotherEndDropsTheRows) {
  const auto use = Open("a");
  Add(*use, 0, 5);
  use->SetEnd(5);
  use->SetEnd(5);
  EXPECT_TRUE(use->is_complete());
  use->SetEnd(4);
  EXPECT_EQ(use->bytes(), 0);
}

TEST_F(KeptRowsTest, IdleEntriesGoFirstThenTheLastRows) {
  auto old = Open("old");
  Add(*old, 0, 5);
  auto young = Open("young");
  Add(*young, 0, 5);
  auto used = Open("used");
  for (int64_t i = 0; i < 8; ++i) Add(*used, i, 1);
  old.reset();
  young.reset();
  EXPECT_EQ(budget_->used(), 1000);

  EXPECT_TRUE(budget_->TryReserve(100));
  EXPECT_EQ(Open("old")->bytes(), 0);
  EXPECT_EQ(Open("young")->bytes(), 100);
  EXPECT_TRUE(budget_->Reserve(300).ok());
  EXPECT_EQ(Open("young")->bytes(), 0);
  EXPECT_EQ(used->bytes(), 600);
  EXPECT_EQ(used->Find(5, 1).kind, Kind::kRows);
  EXPECT_EQ(used->Find(6, 1).kind, Kind::kHole);
  EXPECT_EQ(used->losses(), 1);
  EXPECT_FALSE(budget_->TryReserve(100)) << "what is used stays";
  EXPECT_FALSE(budget_->Reserve(2000).ok());
  EXPECT_EQ(used->bytes(), 600) << "nothing goes for what never fits";
}

TEST_F(KeptRowsTest, GoWithTheLastPipelineThatHasThem) {
  {
    Add(*Open("a", {1, 2}), 0, 5);
    Open("a", {3});
    Add(*Open("b", {}), 0, 5);
    Add(*Open("c", {1}), 0, 5);
  }
  const auto used = Open("c", {1});
  store_->DropInstance(2);
  EXPECT_EQ(Open("a", {3})->bytes(), 100);
  store_->DropInstance(3);
  store_->DropInstance(1);
  EXPECT_EQ(store_->bytes(), 200) << "b, and c while it is used";
}

TEST_F(KeptRowsTest, DroppedEntriesTakeNothing) {
  const auto use = Open("a");
  Add(*use, 0, 5);
  use->Drop();
  EXPECT_EQ(budget_->used(), 0);
  EXPECT_FALSE(Add(*use, 0, 5));
  const auto next = Open("a");
  EXPECT_TRUE(Add(*next, 0, 5));
  EXPECT_EQ(use->Find(0, 5).kind, Kind::kHole);
}

TEST_F(KeptRowsTest, AFileThatChangedDropsTheRows) {
  const auto use = Open("a");
  const FileName file = {.is_pattern = false, .name = "f"};
  EXPECT_TRUE(use->AddFiles({{file, {.size = 1}}}));
  Add(*use, 0, 5);
  EXPECT_TRUE(use->AddFiles({{file, {.size = 1}}}));
  EXPECT_EQ(use->bytes(), 100);
  EXPECT_TRUE(use->AddFiles({{file, {.size = 2}}}));
  EXPECT_EQ(use->bytes(), 0);
  EXPECT_EQ(use->manifest().at(file).size, 2);
}

// An iterator may have a budget of its own, and rows outlive iterators.
TEST_F(KeptRowsTest, AreChargedToWhoUsesThem) {
  auto use = Open("a");
  for (int64_t i = 0; i < 5; ++i) Add(*use, i, 1);
  EXPECT_EQ(budget_->used(), 500);
  const auto large =
      std::make_shared<MemoryBudget>(1000, KeptRows::ReclaimFrom(store_));
  auto other = store_->Open("a", {}, large);
  EXPECT_EQ(budget_->used(), 0);
  EXPECT_EQ(large->used(), 500);
  const auto small =
      std::make_shared<MemoryBudget>(350, KeptRows::ReclaimFrom(store_));
  const auto third = store_->Open("a", {}, small);
  EXPECT_EQ(small->used(), 300);
  EXPECT_EQ(third->bytes(), 500) << "others use the rest";
  other.reset();
  use.reset();
  const auto tiny =
      std::make_shared<MemoryBudget>(250, KeptRows::ReclaimFrom(store_));
  EXPECT_EQ(store_->Open("a", {}, tiny)->bytes(), 500);
  EXPECT_EQ(tiny->used(), 200);
}

TEST_F(KeptRowsTest, WhatDoesNotFitGoes) {
  {
    auto use = Open("a");
    for (int64_t i = 0; i < 5; ++i) Add(*use, i, 1);
  }
  const auto small =
      std::make_shared<MemoryBudget>(350, KeptRows::ReclaimFrom(store_));
  const auto use = store_->Open("a", {}, small);
  EXPECT_EQ(use->bytes(), 300);
  EXPECT_EQ(small->used(), 300);
  EXPECT_EQ(budget_->used(), 0);
}

TEST_F(KeptRowsTest, IdleRowsOfOtherBudgetsAreBounded) {
  for (const std::string key : {"a", "b", "c"}) {
    const auto own = std::make_shared<MemoryBudget>(200);
    auto reservation = std::make_unique<Reservation>(own);
    ASSERT_TRUE(reservation->TryGrow(200));
    store_->Open(key, {}, own)->Add(0, RowsFrom(0, 3), std::move(reservation));
    EXPECT_LE(store_->bytes(), 400);
  }
  EXPECT_EQ(store_->bytes(), 400);
  EXPECT_EQ(Open("a")->bytes(), 0) << "the longest unused";
}

TEST_F(KeptRowsTest, MemoryIsGivenBackAtTheEnd) {
  {
    const auto store = std::make_shared<KeptRows>();
    auto reservation = std::make_unique<Reservation>(budget_);
    reservation->TryGrow(100);
    store->Open("a", {}, budget_)
        ->Add(0, RowsFrom(0, 3), std::move(reservation));
    EXPECT_EQ(budget_->used(), 100);
  }
  EXPECT_EQ(budget_->used(), 0);
}

}  // namespace
}  // namespace penstock::engine

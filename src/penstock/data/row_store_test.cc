#include "penstock/data/row_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "penstock/data/chunk_testing.h"

namespace penstock {
namespace {

using testing::ElementsAre;

// Rows first, first + 1, …: a number, a word, a vector and a list of words of
// sizes that follow from it; every fifth is an error.
Chunk Sample(int64_t first, int64_t rows, bool has_errors) {
  std::vector<int64_t> numbers;
  std::vector<std::string> words;
  std::vector<std::vector<int64_t>> vectors;
  std::vector<std::vector<std::string>> lists;
  std::vector<RowError> errors;
  std::vector<uint64_t> lineage;
  for (int64_t i = first; i < first + rows; ++i) {
    numbers.push_back(i);
    words.emplace_back(i % 40, 'a');
    vectors.emplace_back(i % 3, i);
    lists.emplace_back(i % 4, std::to_string(i));
    lineage.push_back(1000 + i);
    if (has_errors && i % 5 == 0) {
      errors.push_back({i - first, absl::DataLossError(std::to_string(i))});
    }
  }
  const std::vector<std::string_view> views(words.begin(), words.end());
  Chunk chunk = ChunkOf({MakeColumn<int64_t>(numbers), MakeStringColumn(views),
                         RaggedInts(vectors), RaggedStrings(lists)},
                        errors);
  chunk.lineage = MakeColumn<uint64_t>(lineage).values();
  return chunk;
}

std::vector<TensorSpec> Leaves() {
  const PartialShape vector(PartialShape::Dims{std::nullopt});
  return {{DType::kInt64, {}},
          {DType::kString, {}},
          {DType::kInt64, vector},
          {DType::kString, vector}};
}

// Against a model that keeps rows as text.
TEST(RowStoreTest, AgreesWithAModel) {
  for (bool has_errors : {false, true}) {
    std::minstd_rand random(5);
    RowStore store(Leaves(), true);
    std::vector<std::string> model;
    std::vector<uint64_t> lineage;
    int64_t next = 0;
    for (int round = 0; round < 300; ++round) {
      const int64_t rows = 1 + static_cast<int64_t>(random() % 9);
      const Chunk chunk = Sample(next, rows, has_errors);
      const std::vector<std::string> text = ToText(chunk);
      std::vector<int64_t> places;
      std::vector<std::string> want;
      std::vector<uint64_t> want_lineage;
      Chunk got;
      const auto kind = random() % 3;
      if (kind == 0 || store.size() < 20) {
        store.Append(chunk, 0, rows);
        for (int64_t i = 0; i < rows; ++i) {
          model.push_back(text[i]);
          lineage.push_back(1000 + next + i);
        }
      } else if (kind == 1) {
        for (int64_t i = 0; i < rows; ++i) {
          const auto place = static_cast<int64_t>(random() % model.size());
          places.push_back(place);
          want.push_back(model[place]);
          want_lineage.push_back(lineage[place]);
          model[place] = text[i];
          lineage[place] = 1000 + next + i;
        }
        got = store.Swap(places, chunk, 0);
      } else {
        for (int64_t i = 0; i < rows; ++i) {
          const auto place = static_cast<int64_t>(random() % model.size());
          places.push_back(place);
          want.push_back(model[place]);
          want_lineage.push_back(lineage[place]);
          model[place] = model.back();
          lineage[place] = lineage.back();
          model.pop_back();
          lineage.pop_back();
        }
        got = store.Remove(places);
      }
      next += rows;
      ASSERT_EQ(ToText(got), want) << "round " << round;
      for (size_t i = 0; i < want.size(); ++i) {
        ASSERT_EQ(got.lineage.As<uint64_t>()[i], want_lineage[i]);
      }
      ASSERT_EQ(store.size(), static_cast<int64_t>(model.size()));
    }
  }
}

TEST(RowStoreTest, RestoresByPuttingRows) {
  RowStore store(Leaves(), true);
  store.Resize(3);
  const Chunk chunk = Sample(0, 6, true);
  store.Put(2, chunk, 5);
  store.Put(0, chunk, 2);
  store.Put(1, chunk, 3);
  const std::vector<std::string> text = ToText(chunk);
  const std::vector<int64_t> places = {2, 0, 0};
  EXPECT_THAT(ToText(store.Remove(places)),
              ElementsAre(text[5], text[2], text[3]));
}

// What it says to hold follows what it holds, however rows came.
TEST(RowStoreTest, CountsItsBytes) {
  const std::string large(10'000, 'x');
  const std::vector<std::string_view> words = {"a", large};
  const Chunk chunk = ChunkOf({MakeStringColumn(words)});
  RowStore store({{DType::kString, {}}}, false);
  store.Append(chunk, 0, 1);
  EXPECT_LT(store.num_bytes(), 1000);
  const std::vector<int64_t> places = {0};
  store.Swap(places, chunk, 1);
  EXPECT_GT(store.num_bytes(), 10'000);
  store.Swap(places, chunk, 0);
  EXPECT_LT(store.num_bytes(), 1000);
  store.Put(0, chunk, 1);
  EXPECT_GT(store.num_bytes(), 10'000);
  store.Remove(places);
  EXPECT_LT(store.num_bytes(), 1000);
}

}  // namespace
}  // namespace penstock

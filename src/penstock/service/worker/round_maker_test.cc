#include "penstock/service/worker/round_maker.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/data/builder.h"
#include "penstock/data/chunk_testing.h"

namespace penstock::service {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Texts = std::vector<std::string>;

std::string TextOf(const RoundMaker::Row& row) {
  return ToText(Slice(*row.chunk, row.row, 1))[0];
}

// Rounds as text, and the spares at the end.
struct Made {
  std::vector<Texts> rounds;
  Texts spares;

  friend bool operator==(const Made&, const Made&) = default;
};

class Maker {
 public:
  explicit Maker(int64_t lanes) : lanes_(lanes), maker_(lanes) {}

  void Add(const Chunk& chunk) { AddRounds(maker_.Add(chunk)); }
  Made Finish() {
    RoundMaker::Rest rest = maker_.Finish();
    AddRounds(rest.rounds);
    for (const auto& row : rest.spares) made_.spares.push_back(TextOf(row));
    return std::exchange(made_, {});
  }
  const std::vector<Texts>& rounds() const { return made_.rounds; }

 private:
  void AddRounds(const std::vector<RoundMaker::Rounds>& all) {
    for (const RoundMaker::Rounds& rounds : all) {
      for (int64_t r = 0; r < rounds.count; ++r) {
        Texts& round = made_.rounds.emplace_back();
        for (int64_t lane = 0; lane < lanes_; ++lane) {
          round.push_back(
              TextOf(rounds.rows.empty()
                         ? RoundMaker::Row{rounds.chunk,
                                           rounds.begin + r * lanes_ + lane}
                         : rounds.rows[static_cast<size_t>(lane)]));
        }
      }
    }
  }

  const int64_t lanes_;
  RoundMaker maker_;
  Made made_;
};

Chunk Numbers(int64_t begin, int64_t end) {
  std::vector<int64_t> values;
  for (int64_t i = begin; i < end; ++i) values.push_back(i);
  return ChunkOf({MakeColumn<int64_t>(values)});
}

// Vectors of these sizes; `first` and so on are their values.
Chunk Vectors(const std::vector<int64_t>& sizes, int64_t first = 0) {
  std::vector<std::vector<int64_t>> rows;
  for (const int64_t size : sizes) {
    rows.emplace_back(static_cast<size_t>(size), first++);
  }
  return ChunkOf({RaggedInts(rows)});
}

TEST(RoundMakerTest, ItemsOfOneShapeKeepTheirOrder) {
  Maker maker(3);
  maker.Add(Numbers(0, 7));
  EXPECT_THAT(maker.rounds(),
              ElementsAre(Texts{"0", "1", "2"}, Texts{"3", "4", "5"}));
  maker.Add(Numbers(7, 8));
  maker.Add(Numbers(8, 14));
  const Made made = maker.Finish();
  EXPECT_THAT(made.rounds,
              ElementsAre(Texts{"0", "1", "2"}, Texts{"3", "4", "5"},
                          Texts{"6", "7", "8"}, Texts{"9", "10", "11"}));
  EXPECT_THAT(made.spares, ElementsAre("12", "13"));
}

TEST(RoundMakerTest, OneLaneHasEverything) {
  Maker maker(1);
  maker.Add(Vectors({1, 3, 2}));
  const Made made = maker.Finish();
  EXPECT_THAT(made.rounds,
              ElementsAre(Texts{"[0]"}, Texts{"[1 1 1]"}, Texts{"[2 2]"}));
  EXPECT_THAT(made.spares, IsEmpty());
}

TEST(RoundMakerTest, AsManyOfOneShapeAsARoundHasDoNotWait) {
  Maker maker(2);
  maker.Add(Vectors({1, 2, 3, 2}));
  EXPECT_THAT(maker.rounds(), ElementsAre(Texts{"[1 1]", "[3 3]"}));
}

TEST(RoundMakerTest, TheClosestGoFirstWhenManyWait) {
  Maker maker(2);
  // 20 and 21 are closer than 10 and 11.
  maker.Add(Vectors({1, 10, 100, 21, 4, 50, 20}));
  maker.Add(Vectors({200, 400, 800, 1600, 3200, 6400, 12800, 25600}, 7));
  EXPECT_THAT(maker.rounds(), IsEmpty());
  maker.Add(Vectors({11}, 15));
  ASSERT_EQ(maker.rounds().size(), 1);
  EXPECT_THAT(maker.rounds()[0][0], testing::StartsWith("[3 "));
  EXPECT_THAT(maker.rounds()[0][1], testing::StartsWith("[6 "));
}

TEST(RoundMakerTest, LargeOnesDoNotWaitAsLong) {
  Maker maker(2);
  constexpr int64_t kMiB = 1 << 17;  // numbers
  maker.Add(Vectors({1, 10 * kMiB, 2, 20 * kMiB, 8, 40 * kMiB, 4}));
  EXPECT_THAT(maker.rounds(), IsEmpty()) << "fewer than four rounds";
  maker.Add(Vectors({9}, 7));
  EXPECT_EQ(maker.rounds().size(), 1);
}

TEST(RoundMakerTest, TheRestIsSortedBySize) {
  Maker maker(2);
  maker.Add(Vectors({5, 1, 3, 2, 4}));
  const Made made = maker.Finish();
  EXPECT_THAT(made.rounds, ElementsAre(Texts{"[1]", "[3 3]"},
                                       Texts{"[2 2 2]", "[4 4 4 4]"}));
  EXPECT_THAT(made.spares, ElementsAre("[0 0 0 0 0]"));
}

TEST(RoundMakerTest, WhatIsLeftAloneIsWhatOthersWouldWaitFor) {
  Maker maker(2);
  maker.Add(Vectors({1, 10, 11, 50, 51}));
  const Made made = maker.Finish();
  ASSERT_EQ(made.rounds.size(), 2);
  EXPECT_THAT(made.rounds[0][0], testing::StartsWith("[1 "));
  EXPECT_THAT(made.rounds[0][1], testing::StartsWith("[2 "));
  EXPECT_THAT(made.rounds[1][0], testing::StartsWith("[3 "));
  EXPECT_THAT(made.rounds[1][1], testing::StartsWith("[4 "));
  EXPECT_THAT(made.spares, ElementsAre("[0]"));
}

TEST(RoundMakerTest, ErrorsTakeTheirTurn) {
  Maker maker(2);
  Chunk chunk = Numbers(0, 4);
  chunk.errors.push_back({1, absl::DataLossError("bad")});
  maker.Add(chunk);
  const std::string error = ToText(chunk)[1];
  EXPECT_THAT(maker.rounds(), ElementsAre(Texts{"0", error}, Texts{"2", "3"}));
}

TEST(RoundMakerTest, StringsOfAnySizeAreOfOneShape) {
  Maker maker(2);
  maker.Add(ChunkOf({MakeStringColumn({"a", "long", "", "b"})}));
  EXPECT_EQ(maker.rounds().size(), 2);
}

// What the header says, item by item and without any haste.
Made Reference(const std::vector<int64_t>& sizes, size_t lanes) {
  struct Item {
    int64_t number;
    int64_t size;
  };
  const auto text = [](const Item& item) {
    return TextOf(
        {std::make_shared<const Chunk>(Vectors({item.size}, item.number)), 0});
  };
  Made made;
  std::vector<Item> waiting;
  const auto take = [&](std::vector<Item> picked) {
    std::ranges::sort(picked, {}, &Item::number);
    Texts& round = made.rounds.emplace_back();
    for (const Item& item : picked) {
      round.push_back(text(item));
      std::erase_if(waiting,
                    [&](const Item& w) { return w.number == item.number; });
    }
  };
  const auto by_size = [&] {
    std::vector<Item> sorted = waiting;
    std::ranges::stable_sort(sorted, {}, &Item::size);
    return sorted;
  };
  for (size_t i = 0; i < sizes.size(); ++i) {
    waiting.push_back({static_cast<int64_t>(i), sizes[i]});
    std::vector<Item> alike;
    for (const Item& item : waiting) {
      if (item.size == sizes[i]) alike.push_back(item);
    }
    if (alike.size() == lanes) {
      take(alike);
    } else if (waiting.size() == 8 * lanes) {
      const std::vector<Item> sorted = by_size();
      std::optional<std::pair<double, int64_t>> best;  // ratio, oldest
      std::vector<Item> chosen;
      for (size_t at = 0; at + lanes <= sorted.size(); ++at) {
        const std::vector<Item> window(
            sorted.begin() + static_cast<std::ptrdiff_t>(at),
            sorted.begin() + static_cast<std::ptrdiff_t>(at + lanes));
        const std::pair<double, int64_t> rank(
            static_cast<double>(window.back().size) /
                static_cast<double>(window.front().size),
            std::ranges::min(window, {}, &Item::number).number);
        if (best.has_value() && rank >= *best) continue;
        best = rank;
        chosen = window;
      }
      take(chosen);
    }
  }
  // Every way to leave out as many as fill no round.
  const std::vector<Item> sorted = by_size();
  struct Way {
    int64_t wait = 0;
    std::vector<std::vector<Item>> rounds;
  };
  const std::function<Way(size_t, size_t)> least = [&](size_t items,
                                                       size_t spares) -> Way {
    if (items < lanes) return {};
    std::optional<Way> way;
    if (spares > 0) way = least(items - 1, spares - 1);
    if (items - lanes >= spares) {
      Way with = least(items - lanes, spares);
      const std::vector<Item> round(
          sorted.begin() + static_cast<std::ptrdiff_t>(items - lanes),
          sorted.begin() + static_cast<std::ptrdiff_t>(items));
      for (const Item& item : round) {
        with.wait += round.back().size - item.size;
      }
      with.rounds.push_back(round);
      if (!way.has_value() || with.wait < way->wait) way = std::move(with);
    }
    return *std::move(way);
  };
  const Way way = least(sorted.size(), sorted.size() % lanes);
  for (const std::vector<Item>& round : way.rounds) take(round);
  for (const Item& item : waiting) made.spares.push_back(text(item));
  return made;
}

TEST(RoundMakerTest, RoundsFollowFromTheItemsAndNotFromTheirChunks) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 400; ++trial) {
    const auto lanes = static_cast<int64_t>(1 + random() % 5);
    const size_t shapes = 1 + random() % 12;
    std::vector<int64_t> sizes(random() % 120);
    for (int64_t& size : sizes) {
      size = static_cast<int64_t>(1 + random() % shapes);
    }
    const Made expected = Reference(sizes, static_cast<size_t>(lanes));
    for (int cut = 0; cut < 3; ++cut) {
      Maker maker(lanes);
      for (size_t begin = 0; begin < sizes.size();) {
        const size_t end = std::min(sizes.size(), begin + 1 + random() % 20);
        const std::vector<int64_t> part(
            sizes.begin() + static_cast<std::ptrdiff_t>(begin),
            sizes.begin() + static_cast<std::ptrdiff_t>(end));
        const Chunk chunk = Vectors(part, static_cast<int64_t>(begin));
        if (std::ranges::adjacent_find(part, std::ranges::not_equal_to()) ==
            part.end()) {
          // All of one shape: dense, as computed rows are.
          Buffer values =
              Buffer::Allocate(part.size() * static_cast<size_t>(part[0]) * 8);
          auto* to = values.MutableAs<int64_t>();
          for (size_t i = 0; i < part.size(); ++i) {
            to = std::fill_n(to, part[0], static_cast<int64_t>(begin + i));
          }
          maker.Add(ChunkOf({Column::Dense(DType::kInt64, {part[0]},
                                           static_cast<int64_t>(part.size()),
                                           std::move(values))}));
        } else {
          maker.Add(chunk);
        }
        begin = end;
      }
      ASSERT_EQ(maker.Finish(), expected) << "trial " << trial;
    }
  }
}

}  // namespace
}  // namespace penstock::service

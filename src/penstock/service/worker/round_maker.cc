#include "penstock/service/worker/round_maker.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "penstock/data/dtype.h"

namespace penstock::service {
namespace {

// How many rounds of items may wait, and how many if they are large. With half
// as many, replicas that read text wait twice as long for each other.
constexpr size_t kMaxWaiting = 8;
constexpr size_t kMaxWaitingLarge = 4;
constexpr int64_t kLargeBytes = int64_t{64} << 20;

int64_t BytesOf(const Column& column, int64_t row) {
  const int64_t items = column.RowItems(row);
  if (column.dtype() != DType::kString) {
    return items * static_cast<int64_t>(ItemSize(column.dtype()));
  }
  const auto* strings = column.Row<StringRef>(row);
  int64_t bytes = 0;
  for (int64_t i = 0; i < items; ++i) {
    bytes += static_cast<int64_t>(strings[i].view().size());
  }
  return bytes;
}

std::vector<int64_t> ShapeOf(const Chunk& chunk, int64_t row) {
  std::vector<int64_t> shape;
  for (const Column& column : chunk.columns) {
    shape.push_back(column.rank());
    for (const int64_t size : column.RowShape(row)) shape.push_back(size);
  }
  return shape;
}

bool HasOneShape(const Chunk& chunk) {
  return chunk.errors.empty() &&
         std::ranges::all_of(chunk.columns, &Column::is_dense);
}

// Whether a / b < c / d.
bool IsLess(int64_t a, int64_t b, int64_t c, int64_t d) {
  using Wide = __int128;
  return Wide{a} * Wide{d} < Wide{c} * Wide{b};
}

}  // namespace

std::vector<RoundMaker::Rounds> RoundMaker::Add(const Chunk& chunk) {
  std::vector<Rounds> out;
  const auto kept = std::make_shared<const Chunk>(chunk);
  const auto lanes = static_cast<int64_t>(lanes_);
  int64_t row = 0;
  if (chunk.rows > 0 && HasOneShape(chunk)) {
    const Shape shape = ShapeOf(chunk, 0);
    const bool is_same = std::ranges::all_of(
        waiting_, [&](const Item& item) { return item.shape == shape; });
    if (is_same) {
      for (; row < chunk.rows && !waiting_.empty(); ++row) {
        AddItem(kept, row, out);
      }
      const int64_t rounds = (chunk.rows - row) / lanes;
      if (rounds > 0) {
        out.push_back({{}, kept, row, rounds});
        row += rounds * lanes;
        last_shape_ = shape;
        last_bytes_ = 0;
        for (const Column& column : chunk.columns) {
          last_bytes_ += BytesOf(column, row - 1);
        }
      }
    }
  }
  for (; row < chunk.rows; ++row) AddItem(kept, row, out);
  return out;
}

void RoundMaker::AddItem(const ChunkPtr& chunk, int64_t row,
                         std::vector<Rounds>& out) {
  if (ErrorAt(*chunk, row) == nullptr) {
    last_shape_ = ShapeOf(*chunk, row);
    last_bytes_ = 0;
    for (const Column& column : chunk->columns) {
      last_bytes_ += BytesOf(column, row);
    }
  }
  waiting_.push_back({{chunk, row}, last_shape_, last_bytes_});
  waiting_bytes_ += last_bytes_;
  std::vector<size_t> alike;
  for (size_t i = 0; i < waiting_.size(); ++i) {
    if (waiting_[i].shape == last_shape_) alike.push_back(i);
  }
  if (alike.size() == lanes_) {
    out.push_back(Take(alike));
  } else if (waiting_.size() == kMaxWaiting * lanes_ ||
             (waiting_.size() >= kMaxWaitingLarge * lanes_ &&
              waiting_bytes_ >= kLargeBytes)) {
    out.push_back(Take(Closest()));
  }
}

std::vector<size_t> RoundMaker::BySize() const {
  std::vector<size_t> places(waiting_.size());
  std::iota(places.begin(), places.end(), size_t{0});
  std::ranges::stable_sort(
      places, {}, [this](size_t place) { return waiting_[place].bytes; });
  return places;
}

std::vector<size_t> RoundMaker::Closest() const {
  const std::vector<size_t> places = BySize();
  std::vector<size_t> best;
  int64_t best_least = 1;
  int64_t best_most = 1;
  for (size_t i = 0; i + lanes_ <= places.size(); ++i) {
    std::vector<size_t> picked(
        places.begin() + static_cast<std::ptrdiff_t>(i),
        places.begin() + static_cast<std::ptrdiff_t>(i + lanes_));
    const int64_t least = std::max<int64_t>(1, waiting_[picked.front()].bytes);
    const int64_t most = std::max<int64_t>(1, waiting_[picked.back()].bytes);
    std::ranges::sort(picked);
    const bool is_tighter = IsLess(most, least, best_most, best_least);
    const bool is_as_tight = !IsLess(best_most, best_least, most, least);
    if (best.empty() || is_tighter ||
        (is_as_tight && picked.front() < best.front())) {
      best = std::move(picked);
      best_least = least;
      best_most = most;
    }
  }
  return best;
}

RoundMaker::Rounds RoundMaker::Take(const std::vector<size_t>& picked) {
  Rounds round;
  std::vector<Item> left;
  auto next = picked.begin();
  for (size_t i = 0; i < waiting_.size(); ++i) {
    if (next != picked.end() && *next == i) {
      waiting_bytes_ -= waiting_[i].bytes;
      round.rows.push_back(std::move(waiting_[i].row));
      ++next;
    } else {
      left.push_back(std::move(waiting_[i]));
    }
  }
  waiting_ = std::move(left);
  return round;
}

std::vector<std::vector<size_t>> RoundMaker::LeastWait() const {
  const std::vector<size_t> places = BySize();
  const size_t rounds = places.size() / lanes_;
  const size_t spares = places.size() % lanes_;
  std::vector<int64_t> before = {0};  // bytes of those before each
  for (const size_t place : places) {
    before.push_back(before.back() + waiting_[place].bytes);
  }
  // Of the round of `lanes_` items from the one at `begin` on, by size.
  const auto wait = [&](size_t begin) {
    const int64_t most = waiting_[places[begin + lanes_ - 1]].bytes;
    return most * static_cast<int64_t>(lanes_) -
           (before[begin + lanes_] - before[begin]);
  };
  // With r rounds made and s items passed over: the least that can be waited,
  // and whether the last step was a round.
  struct Best {
    int64_t wait = 0;
    bool is_round = false;
  };
  std::vector<std::vector<Best>> best(rounds + 1,
                                      std::vector<Best>(spares + 1));
  for (size_t r = 1; r <= rounds; ++r) {
    for (size_t s = 0; s <= spares; ++s) {
      Best& own = best[r][s];
      own = {best[r - 1][s].wait + wait((r - 1) * lanes_ + s), true};
      if (s > 0 && best[r][s - 1].wait <= own.wait) {
        own = {best[r][s - 1].wait, false};
      }
    }
  }
  std::vector<std::vector<size_t>> out(rounds);
  size_t s = spares;
  for (size_t r = rounds; r > 0;) {
    if (!best[r][s].is_round) {
      --s;
      continue;
    }
    --r;
    const auto begin =
        places.begin() + static_cast<std::ptrdiff_t>(r * lanes_ + s);
    out[r].assign(begin, begin + static_cast<std::ptrdiff_t>(lanes_));
    std::ranges::sort(out[r]);
  }
  return out;
}

RoundMaker::Rest RoundMaker::Finish() {
  Rest rest;
  for (const std::vector<size_t>& round : LeastWait()) {
    Rounds& rows = rest.rounds.emplace_back();
    for (const size_t place : round) {
      rows.rows.push_back(std::move(waiting_[place].row));
    }
  }
  std::erase_if(waiting_,
                [](const Item& item) { return item.row.chunk == nullptr; });
  for (Item& item : waiting_) rest.spares.push_back(std::move(item.row));
  waiting_.clear();
  waiting_bytes_ = 0;
  last_shape_.clear();
  last_bytes_ = 0;
  return rest;
}

}  // namespace penstock::service

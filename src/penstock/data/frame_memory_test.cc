#include "penstock/data/frame_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <numeric>
#include <string>

#include "penstock/data/builder.h"
#include "penstock/data/chunk_testing.h"
#include "penstock/data/encode.h"

namespace penstock {
namespace {

using ::testing::IsEmpty;

constexpr int64_t kRows = 4;
constexpr int64_t kItems = 1000;

Column IntsAt(Buffer place, int64_t rows, int32_t first) {
  auto* items = place.MutableAs<int32_t>();
  std::iota(items, items + rows * kItems, first);
  return Column::Dense(DType::kInt32, {kItems}, rows, std::move(place));
}

Chunk One(Column column) {
  Chunk chunk;
  chunk.rows = column.rows();
  chunk.columns.push_back(std::move(column));
  return chunk;
}

class FrameMemoryTest : public testing::Test {
 protected:
  // Two pieces of two rows each, computed where Reserve() said.
  Chunk InPlace() {
    std::vector<Buffer> places = memory_->Reserve({kRows * kItems * 4});
    const size_t half = places[0].size() / 2;
    ChunkBuilder builder;
    builder.Append(One(IntsAt(places[0].Slice(0, half), 2, 0)), 0, 2);
    builder.Append(One(IntsAt(places[0].Slice(half, half), 2, 2 * kItems)), 0,
                   2);
    return builder.Build();
  }

  Buffer BytesOf(uint32_t number, uint64_t offset, size_t size) {
    const auto segment = memory_->arena().Segment(number);
    Buffer bytes = Buffer::Allocate(size);
    EXPECT_EQ(pread(segment->fd, bytes.MutableAs<char>(), size,
                    static_cast<off_t>(offset)),
              static_cast<ssize_t>(size));
    return bytes;
  }
  Chunk ChunkOf(const Frame& frame) {
    auto chunk =
        Decode(BytesOf(frame.segment, frame.offset, frame.chunk_bytes));
    EXPECT_TRUE(chunk.ok()) << chunk.status();
    return *std::move(chunk);
  }
  std::string TrailerOf(const Frame& frame, size_t size) {
    const Buffer bytes =
        BytesOf(frame.trailer_segment, frame.trailer_offset, size);
    return std::string(bytes.As<char>(), size);
  }

  std::shared_ptr<FrameMemory> memory_ = FrameMemory::Make(1 << 20);
};

TEST_F(FrameMemoryTest, RowsComputedInPlaceAreNotCopied) {
  Chunk chunk = InPlace();
  const size_t used = memory_->arena().used_bytes();
  auto frame = memory_->Make(chunk, "state", false);
  ASSERT_TRUE(frame.ok()) << frame.status();
  EXPECT_EQ(memory_->arena().used_bytes(), used);
  EXPECT_EQ(ToText(ChunkOf(*frame)), ToText(chunk));
  EXPECT_EQ(TrailerOf(*frame, 5), "state");
}

TEST_F(FrameMemoryTest, ColumnsFromElsewhereGoAfterThem) {
  Chunk chunk = InPlace();
  chunk.columns.push_back(MakeStringColumn({"a", "", "bcd", "e"}));
  chunk.columns.insert(chunk.columns.begin(),
                       MakeColumn<int64_t>({1, 2, 3, 4}));
  chunk.errors.push_back({1, absl::DataLossError("torn")});
  auto frame = memory_->Make(chunk, "s", false);
  ASSERT_TRUE(frame.ok()) << frame.status();
  EXPECT_EQ(ToText(ChunkOf(*frame)), ToText(chunk));
  EXPECT_EQ(TrailerOf(*frame, 1), "s");
}

TEST_F(FrameMemoryTest, WhatDoesNotFitAroundThemIsCopiedElsewhere) {
  Chunk chunk = InPlace();
  const size_t used = memory_->arena().used_bytes();
  const std::string large(30'000, 'x');
  chunk.columns.push_back(MakeStringColumn({large, "", "", ""}));
  auto frame = memory_->Make(chunk, "s", false);
  ASSERT_TRUE(frame.ok()) << frame.status();
  EXPECT_GT(memory_->arena().used_bytes(), used);
  EXPECT_EQ(ToText(ChunkOf(*frame)), ToText(chunk));
}

TEST_F(FrameMemoryTest, ASecondFrameOfTheSameRowsIsACopy) {
  const Chunk chunk = InPlace();
  auto first = memory_->Make(chunk, "first", false);
  auto second = memory_->Make(chunk, "second", false);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(first->offset, second->offset);
  EXPECT_EQ(TrailerOf(*first, 5), "first");
  EXPECT_EQ(TrailerOf(*second, 6), "second");
  EXPECT_EQ(ToText(ChunkOf(*second)), ToText(chunk));
}

TEST_F(FrameMemoryTest, MemoryIsFreeWhenTheLastHolderHasGone) {
  Chunk chunk = InPlace();
  auto frame = memory_->Make(chunk, "", false);
  ASSERT_TRUE(frame.ok());
  frame->memory = nullptr;
  EXPECT_GT(memory_->arena().used_bytes(), 0);
  chunk = Chunk();
  EXPECT_EQ(memory_->arena().used_bytes(), 0);
}

class FakeLender final : public Lender {
 public:
  int connection() const override { return 77; }
  void Keep(const std::byte* data) override { kept.push_back(data); }
  std::vector<const std::byte*> kept;
};

// A chunk that another process encoded, 64 bytes into its segment.
class LentFrameTest : public FrameMemoryTest {
 protected:
  LentFrameTest() {
    const Chunk chunk =
        One(IntsAt(Buffer::Allocate(kRows * kItems * 4), kRows, 7));
    size_ = EncodedSize(chunk);
    segment_ = Buffer::Allocate(size_ + 128);
    Encode(chunk, segment_.MutableAs<std::byte>() + 64);
    number_ = memory_->Adopt(segment_.data(), segment_.size(), 78, lender_);
    const std::byte* begin = segment_.data() + 64;
    chunk_ = *Decode(Buffer(
        Owner(begin, [this](const void*) { ++given_back_; }), begin, size_));
  }

  const std::shared_ptr<FakeLender> lender_ = std::make_shared<FakeLender>();
  size_t size_;
  Buffer segment_;
  uint32_t number_;
  int given_back_ = 0;
  Chunk chunk_;
};

TEST_F(LentFrameTest, ItIsAFrameAsItIs) {
  auto frame = memory_->Make(chunk_, "state", false);
  ASSERT_TRUE(frame.ok()) << frame.status();
  EXPECT_EQ(frame->segment, number_);
  EXPECT_EQ(frame->offset, 64);
  EXPECT_EQ(frame->chunk_bytes, size_);
  EXPECT_LT(memory_->arena().used_bytes(), 256);
  EXPECT_EQ(TrailerOf(*frame, 5), "state");
  const auto found = memory_->Find(number_);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->fds, (std::vector<int>{78, 77}));
  EXPECT_EQ(found->size, segment_.size());
  chunk_ = Chunk();
  EXPECT_EQ(given_back_, 0);
  *frame = Frame();
  EXPECT_EQ(given_back_, 1);
  EXPECT_EQ(memory_->arena().used_bytes(), 0);
  EXPECT_THAT(lender_->kept, IsEmpty());
}

TEST_F(LentFrameTest, WhatTheTrainerMayStillSeeIsKept) {
  auto frame = memory_->Make(chunk_, "", false);
  ASSERT_TRUE(frame.ok()) << frame.status();
  memory_->Retire();
  *frame = Frame();
  EXPECT_THAT(lender_->kept, testing::ElementsAre(segment_.data() + 64));
}

TEST_F(LentFrameTest, APartOfItIsCopied) {
  auto frame = memory_->Make(Slice(chunk_, 1, 2), "s", false);
  ASSERT_TRUE(frame.ok()) << frame.status();
  EXPECT_LT(frame->segment, kFirstLentSegment);
  EXPECT_EQ(ToText(ChunkOf(*frame)), ToText(Slice(chunk_, 1, 2)));
}

TEST_F(LentFrameTest, WithoutItsLenderItIsCopied) {
  memory_->Disown(number_);
  auto frame = memory_->Make(chunk_, "s", false);
  ASSERT_TRUE(frame.ok()) << frame.status();
  EXPECT_LT(frame->segment, kFirstLentSegment);
  EXPECT_EQ(memory_->Find(number_).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(FrameMemoryTest, ThereIsNoPlaceWithoutRoom) {
  EXPECT_THAT(memory_->Reserve({size_t{2} << 20}), IsEmpty());
  EXPECT_EQ(memory_->arena().used_bytes(), 0);
}

// A frame that was given up when an iterator was closed may be the trainer's
// still; a pull that was under way must not write there.
TEST_F(FrameMemoryTest, ThereIsNoPlaceAfterTheEnd) {
  const size_t bytes = 4096;
  EXPECT_FALSE(memory_->Reserve({&bytes, 1}).empty());
  memory_->Retire();
  EXPECT_TRUE(memory_->Reserve({&bytes, 1}).empty());
}

TEST_F(FrameMemoryTest, OtherRowsAreCopied) {
  const Chunk chunk = One(MakeColumn<int64_t>({7, 8}));
  auto frame = memory_->Make(chunk, "s", false);
  ASSERT_TRUE(frame.ok());
  EXPECT_EQ(ToText(ChunkOf(*frame)), ToText(chunk));
  frame->memory = nullptr;
  EXPECT_EQ(memory_->arena().used_bytes(), 0);
}

}  // namespace
}  // namespace penstock

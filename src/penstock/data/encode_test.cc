#include "penstock/data/encode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "penstock/data/chunk_testing.h"

namespace penstock {
namespace {

Buffer Encoded(const Chunk& chunk) {
  Buffer bytes = Buffer::Allocate(EncodedSize(chunk));
  std::memset(bytes.MutableAs<char>(), 0, bytes.size());
  Encode(chunk, bytes.MutableAs<std::byte>());
  return bytes;
}

// Bytes at the very end of their allocation: reading past them is noticed.
Buffer Copy(const std::byte* data, size_t size) {
  auto owner = std::shared_ptr<char[]>(new char[size + 1]);
  if (size > 0) std::memcpy(owner.get(), data, size);
  return Buffer(owner, owner.get(), size);
}

// Reads every byte of every value.
void Touch(const Chunk& chunk) {
  for (const Column& column : chunk.columns) {
    const bool is_empty = column.is_dense() && column.row_bytes() == 0;
    const int64_t rows = is_empty ? 0 : column.rows();
    uint8_t sum = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t items = column.RowItems(row);
      const auto size = items * static_cast<int64_t>(ItemSize(column.dtype()));
      for (int64_t i = 0; i < size; ++i) sum ^= column.Row<uint8_t>(row)[i];
      if (column.dtype() != DType::kString) continue;
      for (int64_t i = 0; i < items; ++i) {
        for (char c : column.Row<StringRef>(row)[i].view()) sum ^= c;
      }
    }
    testing::Message() << sum;
  }
}

struct EncodeCase {
  std::string name;
  Chunk chunk;
};

std::vector<EncodeCase> Cases() {
  const std::vector<std::string_view> words = {"a", "", "longer"};
  std::vector<EncodeCase> cases = {
      {"Empty", ChunkOf({})},
      {"NoRows", ChunkOf({ZeroColumn(DType::kInt64, {3}, 0)})},
      {"Strings", ChunkOf({MakeStringColumn(words)})},
      {"Ragged", ChunkOf({RaggedInts({{1}, {}, {2, 3}})})},
      {"RaggedStrings", ChunkOf({RaggedStrings({{"x", "yy"}, {}, {""}})})},
      {"Matrix", ChunkOf({ZeroColumn(DType::kFloat32, {2, 2}, 3)})},
      {"ZeroSized", ChunkOf({ZeroColumn(DType::kFloat32, {2, 0}, 3)})},
      {"Errors",
       ChunkOf({RaggedInts({{1}, {}, {2, 3}}), MakeStringColumn(words)},
               {{0, absl::DataLossError("")},
                {2, absl::AbortedError("with a message")}})},
  };
  for (DType dtype : kAllDTypes) {
    cases.push_back({"Of_" + std::string(Name(dtype)),
                     ChunkOf({ZeroColumn(dtype, {2}, 3)})});
  }
  return cases;
}

class EncodeTest : public testing::TestWithParam<EncodeCase> {};

TEST_P(EncodeTest, ComesBackFromParts) {
  const Chunk& chunk = GetParam().chunk;
  for (const size_t least : {size_t{0}, size_t{20}, size_t{1} << 20}) {
    const std::vector<Buffer> parts = EncodeApart(chunk, least);
    std::string all;
    for (const Buffer& part : parts) {
      all.append(part.As<char>(), part.size());
    }
    const absl::StatusOr<Chunk> back = Decode(
        Copy(reinterpret_cast<const std::byte*>(all.data()), all.size()));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(ToText(*back), ToText(chunk));
    EXPECT_EQ(back->errors.size(), chunk.errors.size());
    EXPECT_EQ(all.size() % 8, 0) << "what follows is aligned";
  }
}

TEST(EncodeApartTest, LargeColumnsAreTheChunksOwn) {
  const Chunk chunk = ChunkOf({ZeroColumn(DType::kUint8, {100}, 3),
                               ZeroColumn(DType::kInt64, {}, 3),
                               ZeroColumn(DType::kFloat32, {100}, 3)});
  const std::vector<Buffer> parts = EncodeApart(chunk, 300);
  std::vector<const std::byte*> places;
  size_t at = 0;
  for (const Buffer& part : parts) {
    for (const Column& column : chunk.columns) {
      if (part.data() != column.values().data()) continue;
      EXPECT_EQ(at % 64, 0);
      EXPECT_EQ(part.size(), column.values().size());
      places.push_back(part.data());
    }
    at += part.size();
  }
  EXPECT_THAT(places, testing::ElementsAre(chunk.columns[0].values().data(),
                                           chunk.columns[2].values().data()));
}

TEST(EncodeApartTest, PartsKeepWhatTheirRowsLieIn) {
  std::vector<Buffer> parts;
  std::weak_ptr<const void> memory;
  {
    const Buffer values =
        Copy(reinterpret_cast<const std::byte*>("\x01\0\0\0\0\0\0\0\x02"), 8);
    memory = values.owner();
    Buffer rows = Buffer::Allocate(sizeof(void*));
    rows.MutableAs<const std::byte*>()[0] = values.data();
    Buffer dims = Buffer::Allocate(sizeof(int64_t));
    dims.MutableAs<int64_t>()[0] = 1;
    const Column ragged = Column::Ragged(DType::kInt64, 1, 1, std::move(rows),
                                         std::move(dims), {values.owner()});
    parts = EncodeApart(ChunkOf({RowOf(ragged, 0)}), 8);
  }
  EXPECT_FALSE(memory.expired());
  parts.clear();
  EXPECT_TRUE(memory.expired());
}

TEST_P(EncodeTest, ComesBack) {
  const Buffer bytes = Encoded(GetParam().chunk);
  const absl::StatusOr<Chunk> chunk = Decode(bytes);
  ASSERT_TRUE(chunk.ok()) << chunk.status();
  EXPECT_EQ(ToText(*chunk), ToText(GetParam().chunk));
  for (size_t i = 0; i < chunk->errors.size(); ++i) {
    EXPECT_EQ(chunk->errors[i].status, GetParam().chunk.errors[i].status);
  }
  // The same again: what was decoded is as good as what was made.
  const Buffer again = Encoded(*chunk);
  ASSERT_EQ(again.size(), bytes.size());
  EXPECT_EQ(std::memcmp(again.data(), bytes.data(), bytes.size()), 0);
}

TEST_P(EncodeTest, RefusesEveryTruncation) {
  const Buffer bytes = Encoded(GetParam().chunk);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(Decode(Copy(bytes.data(), size)).ok()) << size;
  }
}

// What is wrong is refused or harmless: the result can be read and encoded.
TEST_P(EncodeTest, SurvivesFlippedBytes) {
  const Buffer bytes = Encoded(GetParam().chunk);
  std::minstd_rand random(7);
  for (int round = 0; round < 4000; ++round) {
    Buffer copy = Copy(bytes.data(), bytes.size());
    const int flips = 1 + static_cast<int>(random() % 3);
    for (int i = 0; i < flips; ++i) {
      const size_t at = random() % bytes.size();
      copy.MutableAs<uint8_t>()[at] = static_cast<uint8_t>(random());
    }
    const absl::StatusOr<Chunk> chunk = Decode(copy);
    if (!chunk.ok()) {
      EXPECT_EQ(chunk.status().code(), absl::StatusCode::kDataLoss);
    } else {
      Touch(*chunk);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Chunks, EncodeTest, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

// Offsets of the fields of the first column's description.
constexpr size_t kRows = 8;
constexpr size_t kDims = 40 + 40;

void Put(Buffer& bytes, size_t at, uint64_t value) {
  std::memcpy(bytes.MutableAs<char>() + at, &value, sizeof(value));
}

// No rows, and dimensions whose product no number holds.
TEST(DecodeTest, RefusesDimensionsThatOverflow) {
  for (uint64_t dim : {uint64_t{1} << 62, uint64_t{1} << 63, ~uint64_t{0}}) {
    for (uint64_t rows : {0, 1}) {
      Buffer bytes =
          Encoded(ChunkOf({ZeroColumn(DType::kInt64, {0, 1, 1}, 1)}));
      Put(bytes, kRows, rows);
      Put(bytes, kDims, rows == 0 ? dim : 0);
      Put(bytes, kDims + 8, dim);
      Put(bytes, kDims + 16, dim);
      EXPECT_FALSE(Decode(bytes).ok()) << dim;
    }
  }
}

TEST(EncodeTest, BuffersAreAligned) {
  const std::vector<std::string_view> words = {"a"};
  const Chunk chunk = ChunkOf(
      {ZeroColumn(DType::kInt8, {}, 1), ZeroColumn(DType::kInt64, {}, 1)});
  const Buffer bytes = Encoded(chunk);
  const absl::StatusOr<Chunk> decoded = Decode(bytes);
  for (const Column& column : decoded->columns) {
    EXPECT_EQ((column.values().data() - bytes.data()) % 64, 0);
  }
}

TEST(FindEncoded, FindsWhatWasDecoded) {
  const Column four = MakeColumn<int64_t>(std::vector<int64_t>{1, 2, 3, 4});
  const Chunk chunk =
      ChunkOf({Column::Dense(DType::kInt64, {2}, 2, four.values()),
               MakeColumn<int32_t>(std::vector<int32_t>{5, 6})});
  const size_t size = EncodedSize(chunk);
  Buffer bytes = Buffer::Allocate(size + 64);
  Encode(chunk, bytes.MutableAs<std::byte>());
  const absl::StatusOr<Chunk> decoded = Decode(bytes.Slice(0, size));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(FindEncoded(*decoded, bytes.data(), bytes.size()), size);
  EXPECT_EQ(FindEncoded(*decoded, bytes.data(), size), size);
  EXPECT_EQ(FindEncoded(*decoded, bytes.data(), size - 1), std::nullopt);
  EXPECT_EQ(FindEncoded(*decoded, bytes.data(), 8), std::nullopt);
  EXPECT_EQ(FindEncoded(*decoded, bytes.data() + 8, size), std::nullopt);
  // The same values elsewhere, and a part of them.
  EXPECT_EQ(FindEncoded(chunk, bytes.data(), bytes.size()), std::nullopt);
  EXPECT_EQ(FindEncoded(Slice(*decoded, 0, 1), bytes.data(), bytes.size()),
            std::nullopt);
  Chunk fewer = *decoded;
  fewer.columns.pop_back();
  EXPECT_EQ(FindEncoded(fewer, bytes.data(), bytes.size()), std::nullopt);
  Chunk reshaped = *decoded;
  reshaped.columns[0] =
      Column::Dense(DType::kInt64, {1, 2}, 2, decoded->columns[0].values());
  EXPECT_EQ(FindEncoded(reshaped, bytes.data(), bytes.size()), std::nullopt);
  Chunk failed = *decoded;
  failed.errors.push_back({0, absl::UnknownError("x")});
  EXPECT_EQ(FindEncoded(failed, bytes.data(), bytes.size()), std::nullopt);
}

}  // namespace
}  // namespace penstock

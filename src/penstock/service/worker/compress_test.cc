#include "penstock/service/worker/compress.h"

#include <lz4.h>
#include <zstd.h>

#include <random>
#include <string>

#include "gtest/gtest.h"

namespace penstock::service {
namespace {

constexpr size_t kFrame = 1'000'000;

std::string Text() {
  std::string text;
  while (text.size() < 100'000) text += "the same words again and again; ";
  return text;
}

TEST(CompressTest, GivesTheBytesBack) {
  const std::string text = Text();
  const auto lz4 = Compress(COMPRESSION_LZ4, text);
  ASSERT_TRUE(lz4.has_value());
  EXPECT_LT(lz4->size(), text.size() / 10);
  std::string plain(text.size(), '\0');
  EXPECT_EQ(LZ4_decompress_safe(lz4->data(), plain.data(),
                                static_cast<int>(lz4->size()),
                                static_cast<int>(plain.size())),
            static_cast<int>(text.size()));
  EXPECT_EQ(plain, text);
  const auto zstd = Compress(COMPRESSION_ZSTD, text);
  ASSERT_TRUE(zstd.has_value());
  plain.assign(text.size(), '\0');
  EXPECT_EQ(
      ZSTD_decompress(plain.data(), plain.size(), zstd->data(), zstd->size()),
      text.size());
  EXPECT_EQ(plain, text);
}

TEST(CompressTest, LeavesAloneWhatDoesNotGetSmaller) {
  std::minstd_rand random(1);
  std::string noise(10'000, '\0');
  for (char& c : noise) c = static_cast<char>(random());
  EXPECT_FALSE(Compress(COMPRESSION_LZ4, noise).has_value());
  EXPECT_FALSE(Compress(COMPRESSION_ZSTD, noise).has_value());
  EXPECT_FALSE(Compress(COMPRESSION_LZ4, "").has_value());
  EXPECT_FALSE(Compress(COMPRESSION_NONE, Text()).has_value());
}

// Sends frames over a link of this rate, with compressions of these ratios, on
// so many threads; gives what is chosen in the end.
Compression Settles(double drain_bytes_per_ns, double lz4_ratio,
                    double zstd_ratio, uint32_t parallel = 1) {
  CompressionChoice choice;
  Compression last = COMPRESSION_NONE;
  for (int frame = 0; frame < 100; ++frame) {
    last = choice.Next({COMPRESSION_LZ4, COMPRESSION_ZSTD}, parallel);
    size_t bytes = kFrame;
    if (last != COMPRESSION_NONE) {
      const bool is_lz4 = last == COMPRESSION_LZ4;
      bytes = static_cast<size_t>(kFrame * (is_lz4 ? lz4_ratio : zstd_ratio));
      choice.OnCompressed(last, kFrame, bytes,
                          static_cast<int64_t>(kFrame / (is_lz4 ? 0.7 : 0.4)));
    }
    choice.OnDrained(bytes, static_cast<int64_t>(static_cast<double>(bytes) /
                                                 drain_bytes_per_ns));
  }
  return last;
}

TEST(CompressionChoiceTest, SendsWhatIsThereFirst) {
  EXPECT_EQ(Settles(10, 0.5, 0.3), COMPRESSION_NONE) << "a fast network";
  EXPECT_EQ(Settles(0.5, 0.5, 0.3), COMPRESSION_LZ4) << "4 Gbit/s";
  EXPECT_EQ(Settles(0.5, 0.5, 0.3, 4), COMPRESSION_ZSTD) << "by four";
  EXPECT_EQ(Settles(1.25, 0.5, 0.3), COMPRESSION_NONE) << "10 Gbit/s";
  EXPECT_EQ(Settles(1.25, 0.5, 0.4, 16), COMPRESSION_ZSTD) << "by many";
  EXPECT_EQ(Settles(0.0125, 0.95, 0.92), COMPRESSION_NONE) << "hardly less";
  EXPECT_EQ(Settles(0.0125, 0.5, 0.3), COMPRESSION_ZSTD) << "100 Mbit/s";
  EXPECT_EQ(Settles(0.0125, 1, 1), COMPRESSION_NONE) << "noise";
}

TEST(CompressionChoiceTest, UsesOnlyWhatTheClientCanRead) {
  CompressionChoice choice;
  for (int frame = 0; frame < 300; ++frame) {
    choice.OnDrained(1, 1'000'000);
    EXPECT_EQ(choice.Next({}, 1), COMPRESSION_NONE);
    EXPECT_EQ(choice.Next({COMPRESSION_NONE}, 1), COMPRESSION_NONE);
    const Compression next =
        choice.Next({COMPRESSION_ZSTD, static_cast<Compression>(77)}, 1);
    EXPECT_TRUE(next == COMPRESSION_NONE || next == COMPRESSION_ZSTD);
    choice.OnCompressed(next, kFrame, kFrame / 2, 1);
  }
}

}  // namespace
}  // namespace penstock::service

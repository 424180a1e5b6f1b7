#include "penstock/io/inflate_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "penstock/io/deflate_file.h"
#include "penstock/io/drain.h"
#include "penstock/io/fake_files.h"

namespace penstock::io {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr size_t kBlockSizes[] = {1, 2, 3, 16, 1000};

std::string Text(size_t num_bytes) {
  std::string text;
  uint32_t word = 1;
  while (text.size() < num_bytes) {
    word = word * 1664525 + 1013904223;
    text += word % 3 == 0 ? "feed the turbine " : std::to_string(word >> 20);
  }
  text.resize(num_bytes);
  return text;
}

class InflateTest : public ::testing::TestWithParam<Compression> {
 protected:
  Drained Drain(size_t block_bytes, int64_t start_offset = 0) {
    ByteStreamOptions options;
    options.io_pool = &io_pool_;
    options.block_bytes = block_bytes;
    auto stream =
        OpenByteStream(files_, "f", GetParam(), start_offset, options);
    EXPECT_TRUE(stream.ok()) << stream.status();
    return DrainStream(**stream);
  }

  std::string Compressed(std::string_view bytes) {
    auto file = MakeDeflateFile(*files_.Create("tmp"), GetParam());
    EXPECT_TRUE((*file)->Append(bytes).ok());
    EXPECT_TRUE((*file)->Close().ok());
    return files_.contents["tmp"];
  }

  FakeFiles files_;
  IoPool io_pool_{3};
};

INSTANTIATE_TEST_SUITE_P(Formats, InflateTest,
                         ::testing::Values(Compression::kGzip,
                                           Compression::kZlib),
                         [](const auto& info) {
                           return info.param == Compression::kGzip ? "Gzip"
                                                                   : "Zlib";
                         });

TEST_P(InflateTest, DecodesInAnyPieces) {
  for (size_t size : {0, 1, 100, 5000}) {
    const std::string text = Text(size);
    files_.contents["f"] = Compressed(text);
    for (bool is_cached : {true, false}) {
      files_.settings.is_cached = is_cached;
      for (size_t block_bytes : kBlockSizes) {
        if (!is_cached && size > 100 && block_bytes < 16) continue;
        const Drained drained = Drain(block_bytes);
        ASSERT_TRUE(drained.error.ok()) << drained.error;
        ASSERT_EQ(drained.bytes, text);
        EXPECT_LE(drained.largest_block, block_bytes);
        EXPECT_EQ(drained.num_wakes, drained.num_waits);
      }
    }
  }
}

TEST_P(InflateTest, DecodesMembersAsOne) {
  files_.contents["f"] = Compressed("first ") + Compressed("") +
                         Compressed(Text(300)) + Compressed("last");
  for (size_t block_bytes : kBlockSizes) {
    const Drained drained = Drain(block_bytes);
    ASSERT_TRUE(drained.error.ok()) << block_bytes << " " << drained.error;
    EXPECT_EQ(drained.bytes, "first " + Text(300) + "last");
  }
}

TEST_P(InflateTest, DecodesManySmallMembers) {
  std::string want;
  files_.contents["f"] = "";
  for (size_t i = 0; i < 100; ++i) {
    want += Text(i);
    const std::string member = Compressed(Text(i));
    files_.contents["f"] += member;
  }
  for (size_t block_bytes : {7, 64, 100000}) {
    const Drained drained = Drain(block_bytes);
    ASSERT_TRUE(drained.error.ok()) << block_bytes << " " << drained.error;
    EXPECT_EQ(drained.bytes, want);
  }
}

TEST_P(InflateTest, SkipsToAnyOffset) {
  const std::string text = Text(60);
  files_.contents["f"] = Compressed(text);
  for (size_t start = 0; start <= text.size(); ++start) {
    const Drained drained = Drain(7, static_cast<int64_t>(start));
    ASSERT_TRUE(drained.error.ok()) << drained.error;
    EXPECT_EQ(drained.bytes, text.substr(start));
  }
}

TEST_P(InflateTest, CutAnywhereIsDataLoss) {
  const std::string text = Text(300);
  const std::string whole = Compressed(text);
  for (size_t size = 1; size < whole.size(); ++size) {
    files_.contents["f"] = whole.substr(0, size);
    for (size_t block_bytes : kBlockSizes) {
      const Drained drained = Drain(block_bytes);
      ASSERT_TRUE(absl::IsDataLoss(drained.error)) << size;
      ASSERT_THAT(text, StartsWith(drained.bytes)) << size;
      ASSERT_THAT(std::string(drained.error.message()),
                  HasSubstr("ends at byte " + std::to_string(size) + ","));
    }
  }
}

TEST_P(InflateTest, FlippedAnywhereIsDataLossOrHarmless) {
  const size_t trailer_bytes = GetParam() == Compression::kGzip ? 8 : 4;
  const std::string text = Text(300);
  const std::string whole = Compressed(text);
  for (size_t i = 0; i < whole.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      files_.contents["f"] = whole;
      files_.contents["f"][i] ^= static_cast<char>(1 << bit);
      const Drained drained = Drain(16);
      // Some bits of a header (a time stamp, a level) carry no data, nor do
      // those that fill the last byte before the trailer.
      if (drained.error.ok()) {
        ASSERT_EQ(drained.bytes, text) << i << " " << bit;
        ASSERT_TRUE(i < 10 || i == whole.size() - trailer_bytes - 1) << i;
      } else {
        ASSERT_TRUE(absl::IsDataLoss(drained.error)) << drained.error;
        ASSERT_THAT(std::string(drained.error.message()), HasSubstr(": f"));
      }
    }
  }
}

TEST_P(InflateTest, GarbageIsDataLoss) {
  const std::string whole = Compressed("hello");
  for (const std::string& bytes :
       {std::string("not compressed at all"), whole + "trailing",
        whole + "\x1f", std::string(100, '\0')}) {
    files_.contents["f"] = bytes;
    const Drained drained = Drain(16);
    EXPECT_TRUE(absl::IsDataLoss(drained.error)) << drained.error;
  }
}

TEST_P(InflateTest, ABombFillsOneBlockAtATime) {
  files_.contents["f"] = Compressed(std::string(size_t{32} << 20, '\0'));
  ASSERT_LT(files_.contents["f"].size(), size_t{64} << 10);
  const Drained drained = Drain(4096);
  EXPECT_TRUE(drained.error.ok());
  EXPECT_EQ(drained.bytes.size(), size_t{32} << 20);
  EXPECT_LE(drained.largest_block, 4096U);
}

}  // namespace
}  // namespace penstock::io

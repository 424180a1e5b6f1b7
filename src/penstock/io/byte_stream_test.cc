#include "penstock/io/byte_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "penstock/io/deflate_file.h"
#include "penstock/io/drain.h"
#include "penstock/io/fake_files.h"

namespace penstock::io {
namespace {

using ::testing::HasSubstr;

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

class ByteStreamTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<ByteStream>> Open(
      size_t block_bytes, Compression compression = Compression::kNone,
      int64_t start_offset = 0) {
    return OpenByteStream(
        files_, "f", compression, start_offset,
        {.io_pool = &io_pool_, .block_bytes = block_bytes, .read_ahead = 3});
  }

  Drained Drain(size_t block_bytes,
                Compression compression = Compression::kNone,
                int64_t start_offset = 0) {
    auto stream = Open(block_bytes, compression, start_offset);
    if (!stream.ok()) return {.error = stream.status()};
    return DrainStream(**stream);
  }

  std::string Compressed(std::string_view bytes, Compression compression) {
    auto file = MakeDeflateFile(*files_.Create("tmp"), compression);
    EXPECT_TRUE((*file)->Append(bytes).ok());
    EXPECT_TRUE((*file)->Close().ok());
    return files_.contents["tmp"];
  }

  FakeFiles files_;
  IoPool io_pool_{3};
};

TEST_F(ByteStreamTest, ReadsAPlainFileFromAnyOffset) {
  const std::string text = Text(50);
  files_.contents["f"] = text;
  for (bool is_cached : {true, false}) {
    files_.settings.is_cached = is_cached;
    for (size_t block_bytes : kBlockSizes) {
      for (size_t start = 0; start <= text.size(); ++start) {
        const Drained drained =
            Drain(block_bytes, Compression::kNone, static_cast<int64_t>(start));
        ASSERT_TRUE(drained.error.ok()) << drained.error;
        ASSERT_EQ(drained.bytes, text.substr(start));
        EXPECT_LE(drained.largest_block, block_bytes);
        EXPECT_EQ(drained.num_wakes, drained.num_waits);
        if (is_cached) {
          EXPECT_EQ(drained.num_waits, 0);
        }
      }
    }
  }
}

TEST_F(ByteStreamTest, AnEmptyFileHasNoBytes) {
  files_.contents["f"] = "";
  for (auto compression :
       {Compression::kNone, Compression::kGzip, Compression::kZlib}) {
    const Drained drained = Drain(16, compression);
    EXPECT_TRUE(drained.error.ok()) << drained.error;
    EXPECT_EQ(drained.bytes, "");
  }
}

TEST_F(ByteStreamTest, AStartPastTheEndIsOutOfRange) {
  files_.contents["f"] = "12345";
  EXPECT_TRUE(absl::IsOutOfRange(Drain(2, Compression::kNone, 6).error));
  files_.contents["f"] = Compressed("12345", Compression::kGzip);
  EXPECT_TRUE(Drain(2, Compression::kGzip, 5).error.ok());
  const absl::Status error = Drain(2, Compression::kGzip, 6).error;
  EXPECT_TRUE(absl::IsOutOfRange(error));
  EXPECT_EQ(error.message(), "expected at least 6 decoded bytes; found 5: f");
}

TEST_F(ByteStreamTest, KeepsSeveralReadsInFlight) {
  files_.contents["f"] = "0123456789";
  files_.settings.is_cached = false;
  files_.settings.gate = std::make_shared<Gate>();
  auto stream = Open(2);
  Alarm alarm;
  auto block = (*stream)->Next(alarm.Set());
  ASSERT_TRUE(block.ok());
  EXPECT_FALSE(block->has_value());
  files_.settings.gate->AwaitArrivals(3);
  EXPECT_EQ(alarm.num_calls(), 0);
  files_.settings.gate->Open();
  alarm.Await(1);
  EXPECT_EQ(DrainStream(**stream).bytes, "0123456789");
}

TEST_F(ByteStreamTest, ALaterWakeReplacesAnEarlierOne) {
  files_.contents["f"] = "01";
  files_.settings.is_cached = false;
  files_.settings.gate = std::make_shared<Gate>();
  auto stream = Open(2);
  Alarm first;
  Alarm second;
  EXPECT_FALSE((*stream)->Next(first.Set())->has_value());
  EXPECT_FALSE((*stream)->Next(second.Set())->has_value());
  files_.settings.gate->Open();
  second.Await(1);
  EXPECT_EQ(first.num_calls(), 0);
}

TEST_F(ByteStreamTest, MayBeDroppedWithReadsInFlight) {
  files_.contents["f"] = Text(100);
  files_.settings.is_cached = false;
  for (auto compression : {Compression::kNone, Compression::kGzip}) {
    auto gate = std::make_shared<Gate>();
    files_.settings.gate = gate;
    Alarm alarm;
    {
      auto stream = Open(2, compression);
      EXPECT_FALSE((*stream)->Next(alarm.Set())->has_value());
      gate->AwaitArrivals(3);
    }
    gate->Open();
    EXPECT_EQ(alarm.num_calls(), 0);
  }
}

TEST_F(ByteStreamTest, AnErrorComesAfterTheBytesBeforeIt) {
  files_.contents["f"] = "0123456789";
  files_.settings.broken_at = 5;
  for (bool is_cached : {true, false}) {
    files_.settings.is_cached = is_cached;
    auto stream = Open(2);
    for (int i = 0; i < 2; ++i) {
      const Drained drained = DrainStream(**stream);
      EXPECT_EQ(drained.bytes, i == 0 ? "0123" : "");
      EXPECT_EQ(drained.error.message(), "broken at 5");
    }
  }
}

TEST_F(ByteStreamTest, AFileThatShrinksIsDataLoss) {
  files_.contents["f"] = "0123456789";
  files_.settings.shrinks_to = 6;
  for (bool is_cached : {true, false}) {
    files_.settings.is_cached = is_cached;
    const Drained drained = Drain(3);
    EXPECT_EQ(drained.bytes, "012345");
    EXPECT_TRUE(absl::IsDataLoss(drained.error));
    EXPECT_THAT(std::string(drained.error.message()),
                HasSubstr("expected 10 bytes"));
  }
}

TEST(PlainStream, LargerReadsGiveTheSameBytes) {
  FakeFiles files;
  files.settings.is_cached = false;
  std::string bytes;
  for (int i = 0; i < 100'000; ++i) bytes.push_back(static_cast<char>(i * 7));
  files.contents["f"] = bytes;
  IoPool pool;
  const std::atomic<int64_t> read_bytes = 9'000;
  ByteStreamOptions options;
  options.io_pool = &pool;
  options.block_bytes = 1'000;
  options.read_bytes_now = {std::shared_ptr<void>(), &read_bytes};
  options.reads_when_opened = true;
  options.large_reads = std::make_shared<LargeReads>();
  options.stats = std::make_shared<IoStats>();
  for (int stream = 0; stream < 10; ++stream) {
    auto opened = OpenByteStream(files, "f", Compression::kNone, 0, options);
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ(DrainStream(**opened).bytes, bytes);
  }
  // A tenth of what blocks would take, or little more.
  EXPECT_LE(options.stats->reads, 10 * 13);
  EXPECT_EQ(options.stats->bytes, 10 * bytes.size());
  // Opening and reading take a processor, too, and no longer than they take.
  EXPECT_GT(options.stats->cpu_nanos, 0);
  EXPECT_LT(options.stats->cpu_nanos, 2 * options.stats->nanos);
}

}  // namespace
}  // namespace penstock::io

#include "penstock/io/tfrecord_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/io/crc32c.h"
#include "penstock/io/deflate_file.h"
#include "penstock/io/drain.h"
#include "penstock/io/fake_files.h"
#include "penstock/io/tfrecord_writer.h"

namespace penstock::io {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

using Records = std::vector<std::string>;

constexpr size_t kBlockSizes[] = {1, 2, 3, 16, 1000};
constexpr Compression kCompressions[] = {Compression::kNone, Compression::kGzip,
                                         Compression::kZlib};

class TfRecordReaderTest : public ::testing::Test {
 protected:
  void Write(const Records& records,
             Compression compression = Compression::kNone) {
    auto writer = CreateTfRecordWriter(files_, "f", compression);
    ASSERT_TRUE(writer.ok());
    for (const std::string& record : records) {
      ASSERT_TRUE((*writer)->Write(record).ok());
    }
    ASSERT_TRUE((*writer)->Close().ok());
    options_.compression = compression;
  }

  std::string& file() { return files_.contents["f"]; }

  Drawn Read(size_t block_bytes = 1000, size_t max_records = 1,
             RecordPosition start = {}) {
    options_.stream.io_pool = &io_pool_;
    options_.stream.block_bytes = block_bytes;
    options_.start = start;
    auto reader = OpenTfRecordReader(files_, "f", options_);
    EXPECT_TRUE(reader.ok()) << reader.status();
    return DrainReader(**reader, max_records);
  }

  // The one error of a file that begins with `num_records` good records.
  absl::Status ErrorAfter(size_t num_records) {
    const Drawn drawn = Read();
    EXPECT_THAT(drawn.records, SizeIs(num_records + 1));
    EXPECT_THAT(drawn.errors, SizeIs(1));
    return drawn.errors.empty() ? absl::OkStatus() : drawn.errors[0];
  }

  FakeFiles files_;
  IoPool io_pool_{2};
  RecordReaderOptions options_;
};

const Records kRecords = {"first", "", std::string(40, 'x'), "last"};
// Where they begin, and the end.
constexpr int64_t kOffsets[] = {0, 21, 37, 93, 113};

TEST_F(TfRecordReaderTest, ReadsBackWhatWasWritten) {
  for (Compression compression : kCompressions) {
    Write(kRecords, compression);
    for (bool is_cached : {true, false}) {
      files_.settings.is_cached = is_cached;
      for (size_t block_bytes : kBlockSizes) {
        for (size_t max_records : {1, 3, 100}) {
          EXPECT_THAT(Read(block_bytes, max_records).records,
                      ElementsAreArray(kRecords));
        }
      }
    }
  }
}

TEST_F(TfRecordReaderTest, ReadsNoneOrManyOverRealBlocks) {
  Records records;
  for (int i = 0; i < 5000; ++i) records.push_back(std::string(i % 700, 'r'));
  records.push_back(std::string(size_t{3} << 20, 'b'));
  records.emplace_back("end");
  for (Compression compression : kCompressions) {
    Write({}, compression);
    EXPECT_THAT(Read().records, IsEmpty());
    Write(records, compression);
    const Drawn drawn = Read(size_t{256} << 10, 1024);
    EXPECT_TRUE(drawn.records == records);
    EXPECT_EQ(drawn.positions.back().ordinal, 5002);
  }
}

TEST_F(TfRecordReaderTest, RecordsOfOneBlockAreViewsIntoIt) {
  Write({"aa", "bb", "cc"});
  options_.stream.io_pool = &io_pool_;
  auto reader = OpenTfRecordReader(files_, "f", options_);
  RecordBatch batch;
  EXPECT_EQ((*reader)->Next(
                2, [] {}, batch),
            ReadState::kReady);
  ASSERT_THAT(batch.records, ElementsAre("aa", "bb"));
  ASSERT_THAT(batch.blocks, SizeIs(1));
  EXPECT_EQ(batch.records[1].data() - batch.records[0].data(), 18);
  // The batch keeps its memory when the reader goes.
  reader = absl::CancelledError();
  EXPECT_THAT(batch.records, ElementsAre("aa", "bb"));
}

TEST_F(TfRecordReaderTest, ResumesAtEveryPosition) {
  for (Compression compression : kCompressions) {
    Write(kRecords, compression);
    if (compression == Compression::kNone) file()[kOffsets[2] + 20] ^= 1;
    const Drawn all = Read();
    for (size_t i = 0; i < all.positions.size(); ++i) {
      const RecordPosition& position = all.positions[i];
      EXPECT_EQ(position.byte_offset, kOffsets[i + 1]);
      EXPECT_EQ(position.ordinal, static_cast<int64_t>(i + 1));
      for (size_t block_bytes : {size_t{1}, size_t{16}}) {
        const Drawn rest = Read(block_bytes, 1, position);
        EXPECT_EQ(rest.records,
                  Records(all.records.begin() + i + 1, all.records.end()));
        EXPECT_TRUE(std::equal(rest.positions.begin(), rest.positions.end(),
                               all.positions.begin() + i + 1,
                               all.positions.end()));
      }
    }
  }
}

TEST_F(TfRecordReaderTest, AWrongDataCrcCostsOneRecord) {
  Write(kRecords);
  file()[kOffsets[2] + 12] ^= 1;
  std::string flipped = kRecords[2];
  flipped[0] ^= 1;
  const Drawn drawn = Read();
  EXPECT_THAT(
      drawn.records,
      ElementsAre("first", "", StartsWith("!corrupt TFRecord"), "last"));
  ASSERT_THAT(drawn.errors, SizeIs(1));
  EXPECT_TRUE(absl::IsDataLoss(drawn.errors[0]));
  const std::string message(drawn.errors[0].message());
  EXPECT_THAT(message, HasSubstr("data at byte 49"));
  EXPECT_THAT(message, HasSubstr("record 2 at byte 37 of f"));
  const auto hex = [](uint32_t crc) {
    return absl::StrCat("0x", absl::Hex(crc, absl::kZeroPad8));
  };
  EXPECT_THAT(message, HasSubstr("crc32c " + hex(MaskedCrc32c(kRecords[2]))));
  EXPECT_THAT(message, HasSubstr("found " + hex(MaskedCrc32c(flipped))));
}

TEST_F(TfRecordReaderTest, AWrongLengthCrcEndsTheFile) {
  Write(kRecords);
  file()[kOffsets[1] + 3] ^= 1;
  const absl::Status error = ErrorAfter(1);
  EXPECT_TRUE(absl::IsDataLoss(error));
  EXPECT_THAT(std::string(error.message()),
              HasSubstr("length at byte 21; found"));
  const Drawn drawn = Read();
  EXPECT_TRUE(drawn.positions.back().is_end);
  EXPECT_THAT(Read(16, 1, drawn.positions.back()).records, IsEmpty());
}

TEST_F(TfRecordReaderTest, EveryFlippedByteIsFound) {
  Write(kRecords);
  const std::string whole = file();
  for (size_t i = 0; i < whole.size(); ++i) {
    size_t record = 0;
    while (kOffsets[record + 1] <= static_cast<int64_t>(i)) ++record;
    const bool is_length = static_cast<int64_t>(i) < kOffsets[record] + 12;
    for (int bit = 0; bit < 8; ++bit) {
      file() = whole;
      file()[i] ^= static_cast<char>(1 << bit);
      for (size_t block_bytes : {size_t{3}, size_t{1000}}) {
        const Drawn drawn = Read(block_bytes, 100);
        ASSERT_THAT(drawn.errors, SizeIs(1)) << i;
        ASSERT_TRUE(absl::IsDataLoss(drawn.errors[0]));
        ASSERT_THAT(std::string(drawn.errors[0].message()),
                    HasSubstr(absl::StrCat("record ", record, " at byte ",
                                           kOffsets[record], " of f")));
        Records want(kRecords.begin(), kRecords.begin() + record);
        want.push_back(drawn.records[record]);
        if (!is_length) {
          want.insert(want.end(), kRecords.begin() + record + 1,
                      kRecords.end());
        }
        ASSERT_EQ(drawn.records, want) << i;
      }
    }
  }
}

TEST_F(TfRecordReaderTest, EveryCutIsFound) {
  Write(kRecords);
  const std::string whole = file();
  for (size_t size = 0; size < whole.size(); ++size) {
    file() = whole.substr(0, size);
    size_t record = 0;
    while (kOffsets[record + 1] <= static_cast<int64_t>(size)) ++record;
    const bool is_clean = kOffsets[record] == static_cast<int64_t>(size);
    for (size_t block_bytes : kBlockSizes) {
      const Drawn drawn = Read(block_bytes);
      ASSERT_THAT(drawn.records, SizeIs(record + (is_clean ? 0 : 1))) << size;
      for (size_t i = 0; i < record; ++i) {
        ASSERT_EQ(drawn.records[i], kRecords[i]);
      }
      if (is_clean) continue;
      ASSERT_TRUE(absl::IsDataLoss(drawn.errors.at(0)));
      ASSERT_THAT(drawn.records.back(), StartsWith("!truncated TFRecord"));
      ASSERT_THAT(drawn.records.back(),
                  HasSubstr(absl::StrCat("record ", record, " at byte ",
                                         kOffsets[record], " of f")));
    }
  }
}

TEST_F(TfRecordReaderTest, EveryCutOfACompressedFileIsFound) {
  for (Compression compression : {Compression::kGzip, Compression::kZlib}) {
    Write(kRecords, compression);
    const std::string whole = file();
    for (size_t size = 1; size < whole.size(); ++size) {
      file() = whole.substr(0, size);
      const Drawn drawn = Read(16);
      ASSERT_THAT(drawn.errors, SizeIs(1));
      ASSERT_TRUE(absl::IsDataLoss(drawn.errors[0]));
      for (size_t i = 0; i + 1 < drawn.records.size(); ++i) {
        ASSERT_EQ(drawn.records[i], kRecords[i]);
      }
    }
  }
}

TEST_F(TfRecordReaderTest, FindsATruncatedRecordInASoundCompressedFile) {
  Write(kRecords);
  const std::string plain = file();
  for (size_t size : {95, 110}) {
    auto writer = MakeDeflateFile(*files_.Create("f"), Compression::kGzip);
    ASSERT_TRUE((*writer)->Append(plain.substr(0, size)).ok());
    ASSERT_TRUE((*writer)->Close().ok());
    options_.compression = Compression::kGzip;
    const absl::Status error = ErrorAfter(3);
    EXPECT_TRUE(absl::IsDataLoss(error));
    EXPECT_THAT(std::string(error.message()),
                HasSubstr("record 3 at decoded byte 93 of f"));
  }
}

TEST_F(TfRecordReaderTest, AHugeLengthTakesNoMemory) {
  Write({"a"});
  const uint64_t length = uint64_t{1} << 60;
  const std::string_view bytes(reinterpret_cast<const char*>(&length), 8);
  const uint32_t crc = MaskedCrc32c(bytes);
  file().append(bytes);
  file().append(reinterpret_cast<const char*>(&crc), 4);
  EXPECT_TRUE(absl::IsResourceExhausted(ErrorAfter(1)));
  options_.max_record_bytes = ~size_t{0};
  EXPECT_TRUE(absl::IsDataLoss(ErrorAfter(1)));
}

TEST_F(TfRecordReaderTest, ARecordOverTheLimitIsAnError) {
  Write({"12345", "123456", "1"});
  options_.max_record_bytes = 5;
  const absl::Status error = ErrorAfter(1);
  EXPECT_TRUE(absl::IsResourceExhausted(error));
  EXPECT_THAT(
      std::string(error.message()),
      HasSubstr("at most 5 bytes; found one of 6: record 1 at byte 21"));
}

TEST_F(TfRecordReaderTest, OpeningReportsAMissingFile) {
  options_.stream.io_pool = &io_pool_;
  EXPECT_TRUE(
      absl::IsNotFound(OpenTfRecordReader(files_, "none", options_).status()));
  options_.start.is_end = true;
  EXPECT_TRUE(OpenTfRecordReader(files_, "none", options_).ok());
}

TEST_F(TfRecordReaderTest, AStorageErrorKeepsItsPlace) {
  Write(kRecords);
  files_.settings.broken_at = 100;
  files_.settings.is_cached = false;
  EXPECT_THAT(Read(20).records, ElementsAre(kRecords[0], kRecords[1],
                                            kRecords[2], "!broken at 100"));
}

}  // namespace
}  // namespace penstock::io

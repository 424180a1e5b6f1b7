#include "penstock/io/fixed_length_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "penstock/io/deflate_file.h"
#include "penstock/io/drain.h"
#include "penstock/io/fake_files.h"

namespace penstock::io {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::SizeIs;

using Records = std::vector<std::string>;

struct FormatCase {
  std::string name;
  FixedLengthFormat format;
  std::string file = {};
  Records want = {};
};

class FixedLengthTest : public ::testing::TestWithParam<FormatCase> {
 protected:
  void Put(std::string_view bytes, Compression compression) {
    auto file = MakeDeflateFile(*files_.Create("f"), compression);
    ASSERT_TRUE((*file)->Append(bytes).ok());
    ASSERT_TRUE((*file)->Close().ok());
    options_.compression = compression;
  }

  absl::StatusOr<Drawn> Read(const FixedLengthFormat& format,
                             size_t block_bytes, size_t max_records = 1,
                             RecordPosition start = {}) {
    options_.stream.io_pool = &io_pool_;
    options_.stream.block_bytes = block_bytes;
    options_.start = start;
    auto reader = OpenFixedLengthReader(files_, "f", format, options_);
    if (!reader.ok()) return reader.status();
    return DrainReader(**reader, max_records);
  }

  FakeFiles files_;
  IoPool io_pool_{2};
  RecordReaderOptions options_;
};

TEST_P(FixedLengthTest, GivesTheBody) {
  const FixedLengthFormat& format = GetParam().format;
  for (Compression compression : {Compression::kNone, Compression::kZlib}) {
    Put(GetParam().file, compression);
    for (bool is_cached : {true, false}) {
      files_.settings.is_cached = is_cached;
      for (size_t block_bytes : {1, 2, 3, 4, 16, 1000}) {
        auto all = Read(format, block_bytes);
        ASSERT_TRUE(all.ok()) << all.status();
        ASSERT_THAT(all->records, ElementsAreArray(GetParam().want));
        ASSERT_THAT(Read(format, block_bytes, 100)->records,
                    ElementsAreArray(GetParam().want));
        for (size_t i = 0; i < all->positions.size(); ++i) {
          ASSERT_EQ(Read(format, block_bytes, 1, all->positions[i])->records,
                    Records(all->records.begin() + i + 1, all->records.end()));
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Formats, FixedLengthTest,
    ::testing::ValuesIn<FormatCase>({
        {.name = "Empty", .format = {.record_bytes = 3}},
        {.name = "Plain",
         .format = {.record_bytes = 3},
         .file = "aaabbbccc",
         .want = {"aaa", "bbb", "ccc"}},
        {.name = "Bytes",
         .format = {.record_bytes = 1},
         .file = "abc",
         .want = {"a", "b", "c"}},
        {.name = "Header",
         .format = {.record_bytes = 3, .header_bytes = 2},
         .file = "HHaaabbb",
         .want = {"aaa", "bbb"}},
        {.name = "Footer",
         .format = {.record_bytes = 3, .footer_bytes = 5},
         .file = "aaabbbFFFFF",
         .want = {"aaa", "bbb"}},
        {.name = "Both",
         .format = {.record_bytes = 2, .header_bytes = 5, .footer_bytes = 1},
         .file = "HHHHHaabbccF",
         .want = {"aa", "bb", "cc"}},
        {.name = "NoBody",
         .format = {.record_bytes = 2, .header_bytes = 2, .footer_bytes = 2},
         .file = "HHFF"},
    }),
    [](const auto& info) { return info.param.name; });

TEST_F(FixedLengthTest, APlainFileOfTheWrongSizeIsRefusedAtOnce) {
  const FixedLengthFormat format = {
      .record_bytes = 3, .header_bytes = 1, .footer_bytes = 1};
  for (const char* bytes : {"", "H", "HaaabF", "HaF"}) {
    Put(bytes, Compression::kNone);
    EXPECT_TRUE(absl::IsInvalidArgument(Read(format, 16).status())) << bytes;
  }
  Put("HaaabF", Compression::kNone);
  EXPECT_EQ(Read(format, 16).status().message(),
            "expected a header of 1 bytes, records of 3 bytes and a footer of "
            "1 bytes; found a file of 6 bytes, which these do not fill: f");
}

TEST_F(FixedLengthTest, ACompressedFileOfTheWrongSizeFailsAtItsEnd) {
  Put("HaaabF", Compression::kGzip);
  for (size_t block_bytes : {1, 2, 3, 16}) {
    auto drawn = Read({.record_bytes = 3, .header_bytes = 1, .footer_bytes = 1},
                      block_bytes);
    ASSERT_TRUE(drawn.ok());
    ASSERT_THAT(drawn->records, SizeIs(2));
    EXPECT_EQ(drawn->records[0], "aaa");
    EXPECT_TRUE(absl::IsInvalidArgument(drawn->errors.at(0)));
    EXPECT_THAT(drawn->records[1], HasSubstr("found a file of 6 bytes"));
  }
}

TEST_F(FixedLengthTest, RecordsNeedALength) {
  Put("abc", Compression::kNone);
  EXPECT_TRUE(absl::IsInvalidArgument(Read({}, 16).status()));
  options_.max_record_bytes = 2;
  EXPECT_TRUE(absl::IsInvalidArgument(Read({.record_bytes = 3}, 16).status()));
}

TEST_F(FixedLengthTest, AStorageErrorKeepsItsPlace) {
  Put("aabbcc", Compression::kNone);
  files_.settings.broken_at = 4;
  EXPECT_THAT(Read({.record_bytes = 2}, 3)->records,
              ElementsAre("aa", "!broken at 4"));
}

TEST_F(FixedLengthTest, PiecesAreTheWhole) {
  Put("HHaabbccddeeffggF", Compression::kNone);
  for (const int64_t pieces : {1, 2, 3, 7, 20}) {
    Records all;
    for (int64_t piece = 0; piece < pieces; ++piece) {
      const FixedLengthFormat format = {.record_bytes = 2,
                                        .header_bytes = 2,
                                        .footer_bytes = 1,
                                        .pieces = pieces,
                                        .piece = piece};
      const auto whole = Read(format, 5);
      ASSERT_TRUE(whole.ok()) << whole.status();
      all.insert(all.end(), whole->records.begin(), whole->records.end());
    }
    EXPECT_THAT(all, ElementsAre("aa", "bb", "cc", "dd", "ee", "ff", "gg"))
        << pieces;
  }
}

TEST_F(FixedLengthTest, APieceGoesOnInsideOfIt) {
  Put("aabbccddee", Compression::kNone);
  const FixedLengthFormat format = {.record_bytes = 2, .pieces = 2, .piece = 1};
  const auto rest = Read(format, 64, 1, {.byte_offset = 6, .ordinal = 3});
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_THAT(rest->records, ElementsAre("dd", "ee"));
}

}  // namespace
}  // namespace penstock::io

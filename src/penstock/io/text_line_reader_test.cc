#include "penstock/io/text_line_reader.h"

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

using Lines = std::vector<std::string>;

struct LineCase {
  std::string name;
  std::string file;
  Lines want;
};

class TextLineTest : public ::testing::TestWithParam<LineCase> {
 protected:
  Drawn Read(size_t block_bytes, size_t max_records = 1,
             RecordPosition start = {}) {
    options_.stream.io_pool = &io_pool_;
    options_.stream.block_bytes = block_bytes;
    options_.start = start;
    auto reader = OpenTextLineReader(files_, "f", options_, format_);
    EXPECT_TRUE(reader.ok()) << reader.status();
    return DrainReader(**reader, max_records);
  }

  FakeFiles files_;
  IoPool io_pool_{2};
  RecordReaderOptions options_;
  TextLineFormat format_;
};

TEST_P(TextLineTest, GivesTheLines) {
  for (Compression compression : {Compression::kNone, Compression::kGzip}) {
    auto file = MakeDeflateFile(*files_.Create("f"), compression);
    ASSERT_TRUE((*file)->Append(GetParam().file).ok());
    ASSERT_TRUE((*file)->Close().ok());
    options_.compression = compression;
    for (bool is_cached : {true, false}) {
      files_.settings.is_cached = is_cached;
      for (size_t block_bytes : {1, 2, 3, 4, 5, 16, 1000}) {
        const Drawn all = Read(block_bytes);
        ASSERT_THAT(all.records, ElementsAreArray(GetParam().want));
        ASSERT_THAT(Read(block_bytes, 100).records,
                    ElementsAreArray(GetParam().want));
        for (size_t i = 0; i < all.positions.size(); ++i) {
          ASSERT_EQ(Read(block_bytes, 1, all.positions[i]).records,
                    Lines(all.records.begin() + i + 1, all.records.end()));
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Files, TextLineTest,
    ::testing::ValuesIn<LineCase>({
        {.name = "Empty", .file = "", .want = {}},
        {.name = "OnlyNewline", .file = "\n", .want = {""}},
        {.name = "NoNewline", .file = "abc", .want = {"abc"}},
        {.name = "LastWithNewline", .file = "ab\ncd\n", .want = {"ab", "cd"}},
        {.name = "LastWithout", .file = "ab\ncd", .want = {"ab", "cd"}},
        {.name = "EmptyLines", .file = "\n\na\n\n", .want = {"", "", "a", ""}},
        {.name = "Returns", .file = "a\r\n\r\nb\r\n", .want = {"a", "", "b"}},
        {.name = "TwoReturns", .file = "a\r\r\n", .want = {"a\r"}},
        {.name = "ReturnInside", .file = "a\rb\n", .want = {"a\rb"}},
        {.name = "ReturnAtEnd", .file = "a\nb\r", .want = {"a", "b"}},
        {.name = "Nul",
         .file = std::string("a\0b\n\0", 5),
         .want = {std::string("a\0b", 3), std::string("\0", 1)}},
        {.name = "Long",
         .file = std::string(50, 'x') + "\n" + std::string(33, 'y'),
         .want = {std::string(50, 'x'), std::string(33, 'y')}},
    }),
    [](const auto& info) { return info.param.name; });

TEST_F(TextLineTest, ALineOverTheLimitIsAnError) {
  for (const char* ending : {"\nc\n", ""}) {
    files_.contents["f"] = std::string("abcd\r\n12345678") + ending;
    options_.max_record_bytes = 6;
    for (size_t block_bytes : {1, 2, 3, 16, 1000}) {
      const Drawn drawn = Read(block_bytes);
      ASSERT_THAT(drawn.records, SizeIs(2));
      EXPECT_EQ(drawn.records[0], "abcd");
      ASSERT_THAT(drawn.errors, SizeIs(1));
      EXPECT_TRUE(absl::IsResourceExhausted(drawn.errors[0]));
      EXPECT_THAT(std::string(drawn.errors[0].message()),
                  HasSubstr("at most 6 bytes; found a longer one: line 1 at "
                            "byte 6 of f"));
      EXPECT_TRUE(drawn.positions.back().is_end);
    }
  }
}

TEST_F(TextLineTest, AStorageErrorKeepsItsPlace) {
  files_.contents["f"] = "ab\ncd\nef\n";
  files_.settings.broken_at = 7;
  EXPECT_THAT(Read(2).records, ElementsAre("ab", "cd", "!broken at 7"));
}

class CsvLineTest : public TextLineTest {};

// Wherever blocks end, and wherever reading begins again.
TEST_P(CsvLineTest, QuotedFieldsGoOverLines) {
  auto file = MakeDeflateFile(*files_.Create("f"), Compression::kNone);
  ASSERT_TRUE((*file)->Append(GetParam().file).ok());
  ASSERT_TRUE((*file)->Close().ok());
  format_.field_delim = ',';
  for (bool is_cached : {true, false}) {
    files_.settings.is_cached = is_cached;
    for (size_t block_bytes : {1, 2, 3, 4, 5, 16, 1000}) {
      const Drawn all = Read(block_bytes);
      ASSERT_THAT(all.records, ElementsAreArray(GetParam().want));
      ASSERT_THAT(Read(block_bytes, 100).records,
                  ElementsAreArray(GetParam().want));
      for (size_t i = 0; i < all.positions.size(); ++i) {
        ASSERT_EQ(Read(block_bytes, 1, all.positions[i]).records,
                  Lines(all.records.begin() + i + 1, all.records.end()));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Files, CsvLineTest,
    ::testing::ValuesIn<LineCase>({
        {.name = "NoQuotes", .file = "a,b\nc,d\n", .want = {"a,b", "c,d"}},
        {.name = "Quoted",
         .file = "a,\"b\nc\"\nd,e\n",
         .want = {"a,\"b\nc\"", "d,e"}},
        {.name = "SeveralLines",
         .file = "\"a\n\n\r\nb\",\"\n\"\r\nc\n",
         .want = {"\"a\n\n\r\nb\",\"\n\"", "c"}},
        {.name = "Escaped",
         .file = "\"a\"\"\nb\"\nc\n\"\"\"\"\nd\n",
         .want = {"\"a\"\"\nb\"", "c", "\"\"\"\"", "d"}},
        {.name = "EmptyQuotes",
         .file = "\"\",1\n\"\"\n2",
         .want = {"\"\",1", "\"\"", "2"}},
        // A quote that is no field's first character opens nothing.
        {.name = "StrayQuote",
         .file = "a\"b,1\nc,2\n",
         .want = {"a\"b,1", "c,2"}},
        {.name = "AfterQuote", .file = "\"a\"b\nc\n", .want = {"\"a\"b", "c"}},
        {.name = "NeverClosed",
         .file = "a\nb,\"c\nd\n",
         .want = {"a", "b,\"c\nd\n"}},
    }),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace penstock::io

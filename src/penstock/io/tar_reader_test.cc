#include "penstock/io/tar_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "penstock/base/tar.h"
#include "penstock/io/drain.h"
#include "penstock/io/fake_files.h"
#include "penstock/io/whole_file_reader.h"

namespace penstock::io {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string Header(const std::string& name, size_t size, char type) {
  std::string header(kTarBlockBytes, '\0');
  header.replace(0, name.size(), name);
  char text[16];
  std::snprintf(text, sizeof(text), "%011zo", size);
  header.replace(124, 11, text, 11);
  header[156] = type;
  header.replace(257, 5, "ustar");
  header.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (char c : header) sum += static_cast<unsigned char>(c);
  std::snprintf(text, sizeof(text), "%06o", sum);
  header.replace(148, 6, text, 6);
  header[154] = '\0';
  return header;
}

std::string Member(const std::string& name, const std::string& data,
                   char type = '0') {
  std::string padded = data;
  padded.resize((data.size() + 511) / 512 * 512, '\0');
  return Header(name, data.size(), type) + padded;
}

std::string LongMember(const std::string& name, const std::string& data) {
  return Member("././@LongLink", name + '\0', 'L') +
         Member(name.substr(0, 100), data);
}

const std::string kZeros(1024, '\0');

// "key: extension=data …" of each sample.
std::string Shown(const std::string& sample) {
  if (sample[0] == '!') return sample;
  std::string shown;
  for (size_t at = 0; at < sample.size();) {
    TarMember member;
    EXPECT_EQ(*ReadTarMember(sample, at, member), TarState::kMember);
    at = member.end;
    if (!member.is_file) continue;
    if (shown.empty()) shown = std::string(member.key()) + ":";
    shown += " " + std::string(member.extension()) + "=" +
             sample.substr(member.data_begin, member.data_size);
  }
  return shown;
}

class TarReaderTest : public ::testing::Test {
 protected:
  std::vector<std::string> Read(const std::string& bytes,
                                size_t block_bytes = 256 << 10,
                                RecordPosition start = {}) {
    files_.contents["f"] = bytes;
    options_.stream.io_pool = &io_pool_;
    options_.stream.block_bytes = block_bytes;
    options_.start = start;
    auto reader = OpenTarReader(files_, "f", options_);
    EXPECT_TRUE(reader.ok()) << reader.status();
    drawn_ = DrainReader(**reader);
    std::vector<std::string> shown;
    for (const std::string& sample : drawn_.records) {
      shown.push_back(Shown(sample));
    }
    return shown;
  }

  FakeFiles files_;
  IoPool io_pool_{2};
  RecordReaderOptions options_;
  Drawn drawn_;
};

std::string Archive() {
  return Member("d/", "", '5') + Member("d/1.jpg", "one") +
         Member("d/1.seg.png", std::string(700, 's')) + Member("d/2.jpg", "") +
         LongMember("d/" + std::string(150, 'n') + ".cls", "7") + kZeros;
}

TEST_F(TarReaderTest, MembersOfOneKeyAreASample) {
  for (size_t block_bytes : {1, 100, 512, 513, 1 << 20}) {
    EXPECT_THAT(
        Read(Archive(), block_bytes),
        ElementsAre("d/1: jpg=one seg.png=" + std::string(700, 's'),
                    "d/2: jpg=", "d/" + std::string(150, 'n') + ": cls=7"));
  }
}

TEST_F(TarReaderTest, GoesOnFromEveryPosition) {
  const std::vector<std::string> all = Read(Archive());
  const std::vector<RecordPosition> positions = drawn_.positions;
  ASSERT_THAT(positions, SizeIs(3));
  for (size_t i = 0; i < positions.size(); ++i) {
    EXPECT_EQ(Read(Archive(), 100, positions[i]),
              std::vector<std::string>(all.begin() + i + 1, all.end()));
  }
}

TEST_F(TarReaderTest, MayEndWithoutZeros) {
  const std::string archive = Archive();
  EXPECT_THAT(Read(archive.substr(0, archive.size() - 1024)), SizeIs(3));
  EXPECT_THAT(Read(""), SizeIs(0));
  EXPECT_THAT(Read(kZeros), SizeIs(0));
}

TEST_F(TarReaderTest, EveryTruncationIsAnErrorAtItsPlace) {
  const std::string archive = Archive();
  for (size_t size = 1; size < archive.size() - 1024; size += 37) {
    if (size % 512 == 0) continue;  // may be between members
    const std::vector<std::string> got = Read(archive.substr(0, size));
    ASSERT_FALSE(got.empty());
    EXPECT_THAT(got.back(), HasSubstr("truncated tar archive")) << size;
    EXPECT_THAT(got.back(), HasSubstr(" of f"));
  }
}

TEST_F(TarReaderTest, DamagedAndDangerousHeadersAreErrors) {
  std::string damaged = Archive();
  damaged[520] ^= 1;
  EXPECT_THAT(Read(damaged).back(), HasSubstr("damaged header"));
  for (const std::string name : {"../a.jpg", "a/../../b.jpg", "/etc/a.jpg"}) {
    EXPECT_THAT(Read(Member(name, "x") + kZeros).back(),
                HasSubstr("must lead to places inside"));
  }
  options_.max_record_bytes = 2000;
  EXPECT_THAT(Read(Member("a.b", std::string(9000, 'x')) + kZeros).back(),
              HasSubstr("a sample of at most 2000 bytes"));
}

TEST_F(TarReaderTest, ZstdArchives) {
  const std::string archive = Archive();
  std::string packed(ZSTD_compressBound(archive.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), archive.data(),
                              archive.size(), 3));
  options_.compression = Compression::kZstd;
  // Frames that follow each other decode as one.
  for (size_t block_bytes : {1, 7, 1 << 20}) {
    EXPECT_THAT(Read(packed, block_bytes), SizeIs(3));
    EXPECT_EQ(drawn_.errors.size(), 0u);
  }
  const std::vector<RecordPosition> positions = drawn_.positions;
  EXPECT_THAT(Read(packed, 100, positions[1]), SizeIs(1));
  for (size_t size = 1; size < packed.size(); ++size) {
    Read(packed.substr(0, size));
    ASSERT_EQ(drawn_.errors.size(), 1u) << size;
    EXPECT_THAT(std::string(drawn_.errors[0].message()),
                HasSubstr("truncated zstd data"));
  }
  packed[packed.size() / 2] ^= 0x55;
  Read(packed);
  Read("not zstd at all");
  EXPECT_THAT(std::string(drawn_.errors.at(0).message()),
              HasSubstr("corrupt zstd data"));
}

TEST_F(TarReaderTest, WholeFilesAreOneRecord) {
  options_.stream.io_pool = &io_pool_;
  options_.stream.block_bytes = 3;
  for (const std::string bytes : {"", "a", "abc", "abcdefgh"}) {
    files_.contents["w"] = bytes;
    auto reader = OpenWholeFileReader(files_, "w", options_);
    ASSERT_TRUE(reader.ok());
    const Drawn drawn = DrainReader(**reader);
    EXPECT_THAT(drawn.records, ElementsAre(bytes));
    EXPECT_TRUE(drawn.positions.at(0).is_end);
  }
  options_.max_record_bytes = 7;
  auto reader = OpenWholeFileReader(files_, "w", options_);
  EXPECT_THAT(DrainReader(**reader).records,
              ElementsAre(HasSubstr("a file of at most 7 bytes")));
}

}  // namespace
}  // namespace penstock::io

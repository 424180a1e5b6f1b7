#include "penstock/io/tfrecord_writer.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <memory>
#include <string>

#include "penstock/io/crc32c.h"
#include "penstock/io/fake_files.h"

namespace penstock::io {
namespace {

std::string Crc(std::string_view bytes) {
  const uint32_t masked = MaskedCrc32c(bytes);
  return std::string(reinterpret_cast<const char*>(&masked), 4);
}

TEST(TfRecordWriterTest, WritesTheBytesOfTheFormat) {
  FakeFiles files;
  auto writer = CreateTfRecordWriter(files, "f");
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->Write("abc").ok());
  ASSERT_TRUE((*writer)->Write("").ok());
  ASSERT_TRUE((*writer)->Close().ok());
  const std::string three("\3\0\0\0\0\0\0\0", 8);
  const std::string zero(8, '\0');
  EXPECT_EQ(files.contents["f"], three + Crc(three) + "abc" + Crc("abc") +
                                     zero + Crc(zero) + Crc(""));
}

TEST(TfRecordWriterTest, CompressesAsOthersDo) {
  FakeFiles files;
  auto writer = CreateTfRecordWriter(files, "f", Compression::kZlib);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->Write(std::string(1000, 'x')).ok());
  ASSERT_TRUE((*writer)->Close().ok());
  const std::string& bytes = files.contents["f"];
  std::string decoded(2000, '\0');
  uLongf size = decoded.size();
  ASSERT_EQ(
      uncompress(reinterpret_cast<Bytef*>(decoded.data()), &size,
                 reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()),
      Z_OK);
  EXPECT_EQ(size, 1016U);
}

TEST(TfRecordWriterTest, ReportsThatAFileCannotBeMade) {
  EXPECT_TRUE(absl::IsNotFound(
      CreateTfRecordWriter(LocalFileSystem(), "/nowhere/at/all").status()));
}

}  // namespace
}  // namespace penstock::io

#include "penstock/service/client/unpack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "penstock/io/crc32c.h"

namespace penstock::service {
namespace {

std::string SomeHeader() {
  FrameHeader header;
  header.set_position(96);
  header.set_items(32);
  header.set_is_end(true);
  header.set_digest(0x1234567890);
  header.set_frame_bytes(4096);
  header.set_crc32c(77);
  return header.SerializeAsString();
}

TEST(ParseHeader, GivesWhatWasSent) {
  const std::string bytes = SomeHeader();
  const auto header = ParseHeader(bytes, io::Crc32c(bytes));
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->position(), 96);
  EXPECT_TRUE(header->is_end());
}

// Most of these would parse, and say another place or another size.
TEST(ParseHeader, RefusesEveryFlippedBit) {
  const std::string bytes = SomeHeader();
  const uint32_t crc = io::Crc32c(bytes);
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    EXPECT_TRUE(absl::IsDataLoss(ParseHeader(flipped, crc).status())) << bit;
  }
  for (int bit = 0; bit < 32; ++bit) {
    EXPECT_TRUE(
        absl::IsDataLoss(ParseHeader(bytes, crc ^ uint32_t{1} << bit).status()))
        << bit;
  }
}

TEST(ParseHeader, RefusesWhatIsNoHeader) {
  const std::string bytes = "\xff\xff\xff";
  EXPECT_TRUE(absl::IsDataLoss(ParseHeader(bytes, io::Crc32c(bytes)).status()));
}

}  // namespace
}  // namespace penstock::service

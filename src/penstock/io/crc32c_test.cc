#include "penstock/io/crc32c.h"

#include <gtest/gtest.h>

#include <string>

#include "penstock/base/vector_state_testing.h"

namespace penstock::io {
namespace {

// One bit at a time, by the definition.
uint32_t SlowCrc32c(std::string_view bytes) {
  uint32_t crc = 0xffffffffU;
  for (char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int i = 0; i < 8; ++i) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78U : 0);
    }
  }
  return ~crc;
}

TEST(Crc32cTest, HasTheValuesOfTheStandard) {
  EXPECT_EQ(Crc32c(""), 0U);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43U);
}

TEST(Crc32cTest, AgreesWithTheDefinitionAtEveryLength) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(Crc32c(bytes), SlowCrc32c(bytes)) << i;
    ASSERT_EQ(Crc32c(std::string_view(bytes).substr(i / 2)),
              SlowCrc32c(std::string_view(bytes).substr(i / 2)))
        << i;
    bytes.push_back(static_cast<char>(i * 37 + i / 256));
  }
}

TEST(Crc32cTest, LeavesVectorRegistersClean) {
  for (size_t size : {16, 300, 5000, 1 << 20}) {
    Crc32c(std::string(size, 'x'));
    EXPECT_FALSE(AreUpperVectorsInUse()) << size;
  }
}

TEST(Crc32cTest, MasksAsTfRecordDoes) {
  EXPECT_EQ(MaskedCrc(0), 0xa282ead8U);
  EXPECT_EQ(MaskedCrc(0xe3069283U), 0xc78ab0e5U);
}

}  // namespace
}  // namespace penstock::io

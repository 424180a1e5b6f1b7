#include "penstock/base/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace penstock {
namespace {

TEST(WireTest, ReadsBackWhatWasWritten) {
  WireWriter writer;
  writer.Varint(0);
  writer.Varint(std::numeric_limits<uint64_t>::max());
  writer.Signed(-1);
  writer.Signed(std::numeric_limits<int64_t>::min());
  writer.Bytes("abc");
  writer.Bool(true);

  WireReader reader(writer.bytes());
  EXPECT_EQ(*reader.Varint(), 0u);
  EXPECT_EQ(*reader.Varint(), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(*reader.Signed(), -1);
  EXPECT_EQ(*reader.Signed(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(*reader.Bytes(), "abc");
  EXPECT_TRUE(*reader.Bool());
  EXPECT_TRUE(reader.is_at_end());
}

TEST(WireTest, EveryTruncationIsAnError) {
  WireWriter writer;
  writer.Varint(300);
  writer.Bytes("hello");
  for (size_t cut = 0; cut < writer.bytes().size(); ++cut) {
    WireReader reader(std::string_view(writer.bytes()).substr(0, cut));
    const bool is_ok = reader.Varint().ok() && reader.Bytes().ok();
    EXPECT_FALSE(is_ok) << "cut at " << cut;
  }
}

TEST(WireTest, RefusesAnEndlessVarintAndABadFlag) {
  EXPECT_FALSE(WireReader(std::string(11, '\xff')).Varint().ok());
  EXPECT_FALSE(WireReader(std::string(9, '\xff') + '\x02').Varint().ok());
  EXPECT_FALSE(WireReader("\x02").Bool().ok());
}

TEST(WireTest, RefusesBitsThatANumberHasNoPlaceFor) {
  const std::string nine(9, '\xff');
  EXPECT_EQ(*WireReader(nine + '\x01').Varint(),
            std::numeric_limits<uint64_t>::max());
  EXPECT_FALSE(WireReader(nine + '\x03').Varint().ok());
  EXPECT_FALSE(WireReader(nine + '\x41').Varint().ok());
}

}  // namespace
}  // namespace penstock

#include "penstock/tuner/number_text.h"

#include "gtest/gtest.h"

namespace penstock::tuner {
namespace {

TEST(NumberText, HasNoExponents) {
  EXPECT_EQ(NumberText(0), "0");
  EXPECT_EQ(NumberText(25.854), "25.85");
  EXPECT_EQ(NumberText(999.94), "999.9");
  EXPECT_EQ(NumberText(999.96), "1 k");
  EXPECT_EQ(NumberText(2451), "2.451 k");
  EXPECT_EQ(NumberText(1.05e7), "10.5 M");
  EXPECT_EQ(NumberText(4e12), "4 T");
}

}  // namespace
}  // namespace penstock::tuner

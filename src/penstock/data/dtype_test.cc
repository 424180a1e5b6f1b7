#include "penstock/data/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace penstock {
namespace {

// The value of binary16 bits, by its definition.
double HalfValue(uint16_t bits) {
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  const int exponent = (bits >> 10) & 0x1f;
  const int mantissa = bits & 0x3ff;
  if (exponent == 31) {
    return mantissa != 0 ? std::nan("") : sign * INFINITY;
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(HalfTest, EveryValueIsItsDefinition) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    Half half;
    half.bits = static_cast<uint16_t>(bits);
    const auto value = static_cast<float>(half);
    const double want = HalfValue(half.bits);
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      EXPECT_TRUE(std::isnan(static_cast<float>(Half(value)))) << bits;
      continue;
    }
    ASSERT_EQ(value, want) << bits;
    ASSERT_EQ(Half(value).bits, half.bits) << bits;
  }
}

// Between two neighbours: the nearer one, and halfway the even one.
TEST(HalfTest, RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const double low = HalfValue(static_cast<uint16_t>(bits));
    const double high = HalfValue(static_cast<uint16_t>(bits + 1));
    const auto middle = static_cast<float>((low + high) / 2);
    const uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(Half(middle).bits, even) << bits;
    ASSERT_EQ(Half(std::nextafter(middle, 0.0F)).bits, bits);
    ASSERT_EQ(Half(std::nextafter(middle, INFINITY)).bits, bits + 1);
    ASSERT_EQ(Half(-middle).bits, even | 0x8000);
  }
}

TEST(HalfTest, Extremes) {
  EXPECT_EQ(Half(65519.0F).bits, 0x7bff);  // below halfway to 65536
  EXPECT_EQ(Half(65520.0F).bits, 0x7c00);
  EXPECT_EQ(Half(1e30F).bits, 0x7c00);
  EXPECT_EQ(Half(-INFINITY).bits, 0xfc00);
  EXPECT_EQ(Half(1e-30F).bits, 0);
  EXPECT_EQ(Half(-0.0F).bits, 0x8000);
}

TEST(Bfloat16Test, RoundsToNearestEven) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    Bfloat16 value;
    value.bits = static_cast<uint16_t>(bits);
    const auto exact = static_cast<float>(value);
    if (std::isnan(exact)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(Bfloat16(exact))));
      continue;
    }
    ASSERT_EQ(Bfloat16(exact).bits, bits);
    if (std::isinf(exact)) continue;
    const auto at = [&](uint32_t low) {
      return Bfloat16(std::bit_cast<float>((bits << 16) | low)).bits;
    };
    ASSERT_EQ(at(0x7fff), bits);
    ASSERT_EQ(at(0x8000), bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(at(0x8001), bits + 1);
  }
}

// A NaN whose payload lies in the lower half stays one.
TEST(Bfloat16Test, KeepsNans) {
  EXPECT_TRUE(std::isnan(
      static_cast<float>(Bfloat16(std::bit_cast<float>(0x7f800001U)))));
}

TEST(DTypeTest, NamesAreUnique) {
  for (DType dtype : kAllDTypes) {
    EXPECT_EQ(ParseDType(Name(dtype)), dtype);
    EXPECT_TRUE(IsDType(static_cast<int>(dtype)));
    EXPECT_GT(ItemSize(dtype), 0);
    EXPECT_LE(
        static_cast<int>(IsInteger(dtype)) + IsFloat(dtype) + IsComplex(dtype),
        1);
  }
  EXPECT_FALSE(ParseDType("int7").has_value());
  EXPECT_FALSE(IsDType(0));
  EXPECT_FALSE(IsDType(17));
}

}  // namespace
}  // namespace penstock

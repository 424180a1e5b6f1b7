#include "penstock/functions/float_math.h"

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "penstock/functions/call_for_test.h"

namespace penstock::functions {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Case {
  std::string name;
  void (*floats)(const float*, float*, int64_t);
  double (*want)(double);
};

class FloatMathTest : public testing::TestWithParam<Case> {};

bool IsSame(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

TEST_P(FloatMathTest, IsNearestToTheTrueValue) {
  const Case& c = GetParam();
  constexpr int kCount = 1'000'000;
  std::mt19937 random(7);
  std::vector<float> in(kCount), out(kCount);
  // Every kind of float, and every second one from where results are.
  std::uniform_real_distribution<float> near(-20, 20);
  for (int i = 0; i < kCount; ++i) {
    in[i] = i % 2 == 0 ? near(random)
                       : std::bit_cast<float>(static_cast<uint32_t>(random()));
  }
  c.floats(in.data(), out.data(), kCount);
  int others = 0;
  for (int i = 0; i < kCount; ++i) {
    const auto want = static_cast<float>(c.want(in[i]));
    if (IsSame(out[i], want)) continue;
    ++others;
    EXPECT_TRUE(std::nextafter(want, out[i]) == out[i])
        << in[i] << ": " << out[i] << ", not " << want;
  }
  EXPECT_LE(others, 1);
}

TEST_P(FloatMathTest, KnowsTheOddOnes) {
  const Case& c = GetParam();
  const std::vector<float> in = {
      0.0F,     -0.0F,   1,           -1,           kInf,
      -kInf,    kNan,    FLT_MAX,     -FLT_MAX,     FLT_MIN,
      -FLT_MIN, 39000,   -39001,      1e30F,        FLT_TRUE_MIN,
      104,      -104.5F, 88.7F,       710,          -710,
      -2,       0.5F,    FLT_EPSILON, -FLT_EPSILON, -1 + 0x1p-24F};
  std::vector<float> out(in.size());
  c.floats(in.data(), out.data(), static_cast<int64_t>(in.size()));
  for (size_t i = 0; i < in.size(); ++i) {
    EXPECT_TRUE(IsSame(out[i], static_cast<float>(c.want(in[i]))))
        << in[i] << ": " << out[i];
  }
}

TEST_P(FloatMathTest, ResultsDoNotHangOnPlaces) {
  const Case& c = GetParam();
  std::vector<float> in;
  for (int i = 0; i < 67; ++i) {
    in.push_back(i % 11 == 5 ? 1e9F : 0.37F * static_cast<float>(i));
  }
  std::vector<float> alone(in.size());
  for (size_t i = 0; i < in.size(); ++i) c.floats(&in[i], &alone[i], 1);
  for (size_t begin = 0; begin < 17; ++begin) {
    std::vector<float> items(in.begin() + static_cast<int64_t>(begin),
                             in.end());
    c.floats(items.data(), items.data(), static_cast<int64_t>(items.size()));
    for (size_t i = 0; i < items.size(); ++i) {
      EXPECT_TRUE(IsSame(items[i], alone[begin + i])) << begin << " " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Functions, FloatMathTest,
                         testing::ValuesIn<Case>({
                             {"Sin", SinFloats, std::sin},
                             {"Cos", CosFloats, std::cos},
                             {"Tanh", TanhFloats, std::tanh},
                             {"Arctan", ArctanFloats, std::atan},
                             {"Log2", Log2Floats, std::log2},
                             {"Log10", Log10Floats, std::log10},
                             {"Log1p", Log1pFloats, std::log1p},
                             {"Expm1", Expm1Floats, std::expm1},
                         }),
                         [](const auto& info) { return info.param.name; });

// Those that are computed as float32 are, one item or many.
TEST(FloatMath, OfSmallFloatsAndOfOneItem) {
  EXPECT_EQ(Got("sin", {Rows<Half>({Half(0.5F), Half(2.0F)})}),
            "float16: 0.4794922; 0.9091797");
  EXPECT_EQ(Got("sin", {Rows<float>({0.5F})}), "float32: 0.47942555");
}

}  // namespace
}  // namespace penstock::functions

#include <cmath>
#include <numeric>

#include "gtest/gtest.h"
#include "penstock/functions/call_for_test.h"

namespace penstock::functions {
namespace {

// `rows` rows of one call, the lineage counting from `first`.
Column Draw(const std::string& function, std::vector<Step> steps, Attrs attrs,
            uint64_t first, int64_t rows, uint64_t key = 1) {
  CallStep call{function, {}, std::move(attrs)};
  for (uint32_t i = 0; i < steps.size(); ++i) call.args.push_back(i);
  const auto last = static_cast<uint32_t>(steps.size());
  steps.push_back(std::move(call));
  absl::StatusOr<Program> program =
      Program::Make(std::move(steps), {last}, {}, {});
  EXPECT_TRUE(program.ok()) << program.status();
  EXPECT_TRUE(program->is_random());
  std::vector<uint64_t> lineage(rows);
  std::iota(lineage.begin(), lineage.end(), first);
  EvalContext context;
  context.rows = rows;
  context.random_key = key;
  context.lineage = lineage.data();
  auto results = program->Run({}, {}, context);
  EXPECT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(results->at(0).rows(), rows);
  return results->at(0);
}

Step Dims(std::vector<int64_t> dims) {
  const Column flat = MakeColumn<int64_t>(absl::MakeConstSpan(dims));
  return ConstantStep{flat.Reshape(1, {static_cast<int64_t>(dims.size())})};
}
template <typename T>
Step Scalar(T value) {
  return ConstantStep{MakeColumn<T>(absl::MakeConstSpan(&value, 1)), true};
}

std::vector<Step> Uniform(std::vector<int64_t> dims = {}) {
  return {Dims(std::move(dims)), Scalar(0.0), Scalar(1.0)};
}

TEST(RandomTest, ChunksCannotBeSeen) {
  const Column whole = Draw("random_uniform", Uniform({2}), {}, 0, 100);
  for (int64_t cut : {1, 37, 99}) {
    const Column head = Draw("random_uniform", Uniform({2}), {}, 0, cut);
    const Column tail =
        Draw("random_uniform", Uniform({2}), {}, cut, 100 - cut);
    for (int64_t row = 0; row < 100; ++row) {
      EXPECT_EQ(RowText(whole, row),
                row < cut ? RowText(head, row) : RowText(tail, row - cut));
    }
  }
}

TEST(RandomTest, KeySeedRowAndItemTellApart) {
  const Column base = Draw("random_uniform", Uniform({2}), {}, 0, 2);
  EXPECT_NE(base.Row<float>(0)[0], base.Row<float>(0)[1]);
  EXPECT_NE(base.Row<float>(0)[0], base.Row<float>(1)[0]);
  const Column seeded =
      Draw("random_uniform", Uniform({2}), {{"seed", int64_t{5}}}, 0, 2);
  EXPECT_NE(RowText(base, 0), RowText(seeded, 0));
  const Column keyed = Draw("random_uniform", Uniform({2}), {}, 0, 2, 2);
  EXPECT_NE(RowText(base, 0), RowText(keyed, 0));
}

// These never change: users' runs depend on them.
TEST(RandomTest, ValuesAreKeptForEver) {
  const Column uniform = Draw("random_uniform", Uniform(), {}, 7, 1);
  const Column integer =
      Draw("random_int", {Dims({3}), Scalar(int64_t{0}), Scalar(int64_t{100})},
           {}, 7, 1);
  EXPECT_EQ(RowText(uniform, 0), "0.68250334");
  EXPECT_EQ(RowText(integer, 0), "[68 27 50]");
}

// Chi-squared over 64 bins of 64,000 draws: 63 degrees of freedom, so that a
// fair one is above 130 once in a million.
void ExpectEven(const std::vector<int>& bins) {
  const double total = std::accumulate(bins.begin(), bins.end(), 0.0);
  const double expected = total / bins.size();
  double chi = 0;
  for (int bin : bins) chi += (bin - expected) * (bin - expected) / expected;
  EXPECT_LT(chi, 130);
  EXPECT_GT(chi, 20);
}

TEST(RandomTest, UniformIsEven) {
  // Across rows, and across the items of a row.
  for (const auto& [rows, items] :
       {std::pair<int64_t, int64_t>{64000, 1}, {1, 64000}}) {
    const Column values = Draw("random_uniform", Uniform({items}), {}, 0, rows);
    std::vector<int> bins(64);
    for (int64_t i = 0; i < 64000; ++i) {
      const float value = values.values().As<float>()[i];
      ASSERT_GE(value, 0);
      ASSERT_LT(value, 1);
      ++bins[static_cast<int>(value * 64)];
    }
    ExpectEven(bins);
  }
}

TEST(RandomTest, SmallFloatsStayBelowTheEnd) {
  for (DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
    const Column values =
        Draw("random_uniform", {Dims({5000}), Scalar(10.0), Scalar(11.0)},
             {{"dtype", dtype}}, 0, 1);
    for (int64_t i = 0; i < 5000; ++i) {
      float value;
      if (dtype == DType::kFloat16) {
        value = static_cast<float>(values.Row<Half>(0)[i]);
      } else if (dtype == DType::kBfloat16) {
        value = static_cast<float>(values.Row<Bfloat16>(0)[i]);
      } else {
        value = values.Row<float>(0)[i];
      }
      ASSERT_GE(value, 10);
      ASSERT_LT(value, 11);
    }
  }
}

TEST(RandomTest, IntegersAreEven) {
  const Column values =
      Draw("random_int", {Dims({}), Scalar(int64_t{-10}), Scalar(int64_t{54})},
           {{"dtype", DType::kInt8}}, 0, 64000);
  std::vector<int> bins(64);
  for (int64_t row = 0; row < 64000; ++row) {
    const int value = *values.Row<int8_t>(row);
    ASSERT_GE(value, -10);
    ASSERT_LT(value, 54);
    ++bins[value + 10];
  }
  ExpectEven(bins);
}

TEST(RandomTest, NormalHasItsMoments) {
  const Column values =
      Draw("random_normal", {Dims({100000}), Scalar(3.0), Scalar(2.0)},
           {{"dtype", DType::kFloat64}}, 0, 1);
  double sum = 0;
  double squares = 0;
  int within = 0;
  for (int64_t i = 0; i < 100000; ++i) {
    const double z = (values.Row<double>(0)[i] - 3) / 2;
    sum += z;
    squares += z * z;
    within += std::abs(z) < 1;
  }
  EXPECT_NEAR(sum / 100000, 0, 0.02);
  EXPECT_NEAR(squares / 100000, 1, 0.03);
  EXPECT_NEAR(within / 100000.0, 0.6827, 0.01);
}

TEST(RandomTest, BoundsMayComeFromRows) {
  CallOptions options;
  options.lineage = {1, 2, 3};
  EXPECT_EQ(Got("random_int",
                {Constant(Dense<int64_t>({0}, {})), Weak<int64_t>(4),
                 Rows<int64_t>({5, 4, 5})},
                {}, options),
            "int64: 4; <random_int needs minval < maxval within int64; got 4 "
            "and 4>; 4");
}

TEST(RandomTest, ShapesMayComeFromRows) {
  CallOptions options;
  options.lineage = {1, 2};
  EXPECT_EQ(
      Got("random_int",
          {Dense<int64_t>({1}, {2, 0}), Weak<int64_t>(1), Weak<int64_t>(2)}, {},
          options),
      "int64: [1 1]; []");
}

TEST(RandomTest, SaysWhatIsWrong) {
  const TestArg scalar = Constant(Dense<int64_t>({0}, {}));
  EXPECT_EQ(Got("random_int", {scalar, Weak<double>(0), Weak<int64_t>(2)}),
            "random_int needs scalar bounds; got float64()");
  EXPECT_EQ(Got("random_uniform", {scalar, Weak<double>(0), Weak<double>(1)},
                {{"dtype", DType::kInt8}}),
            "random_uniform's dtype must be a float; got int8");
  EXPECT_EQ(Got("random_uniform", {scalar, Weak<double>(0), Weak<double>(1)}),
            "random functions need the rows' lineage");
}

}  // namespace
}  // namespace penstock::functions

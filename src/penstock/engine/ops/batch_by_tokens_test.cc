#include "penstock/engine/ops/batch_by_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/engine/contract_testing.h"
#include "penstock/engine/reader_testing.h"
#include "penstock/engine/samples_testing.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::engine_testing {
namespace {

using namespace plan_testing;  // NOLINT: the language of these tests
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

struct Given {
  int64_t max_tokens = 1;
  int64_t window = 0;    // 0: none
  int64_t max_rows = 0;  // 0: any
  plan::TooLong too_long = plan::TOO_LONG_IS_ERROR;
  bool drop_remainder = false;
};

// Of sequences; a sequence's length is its number of items.
Plan Tokens(Plan input, const Given& given) {
  Node node;
  plan::BatchByTokens* op = node.mutable_batch_by_tokens();
  FunctionBuilder f("length");
  *op->mutable_length() = f.Return(f.Call("size", {f.Arg(0)}));
  op->set_max_tokens(given.max_tokens);
  if (given.window > 0) op->set_window(given.window);
  if (given.max_rows > 0) op->set_max_rows(given.max_rows);
  op->set_too_long(given.too_long);
  op->set_drop_remainder(given.drop_remainder);
  return AppendOrDie({std::move(input)}, std::move(node));
}

// Sequences 0, 1, 2 … of these lengths.
Plan Sequences(const std::vector<int64_t>& lengths) {
  return Map(Ints(lengths), UpTo());
}

struct TokensCase {
  std::string name;
  std::vector<int64_t> lengths;
  Given given;
  Rows want;
};

class TokensTest : public testing::TestWithParam<TokensCase> {};

TEST_P(TokensTest, Batches) {
  const TokensCase& c = GetParam();
  EXPECT_THAT(Drain(Tokens(Sequences(c.lengths), c.given)),
              ElementsAreArray(c.want));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, TokensTest,
    testing::ValuesIn<TokensCase>({
        {"AsManyAsFit",
         {1, 2, 1, 2, 1},
         {.max_tokens = 4},
         {"[[0 0] [0 1]]", "[[0 0] [0 1]]", "[[0]]"}},
        {"OneMoreWouldNotFit",
         {2, 1, 3, 1},
         {.max_tokens = 5},
         {"[[0 1] [0 0]]", "[[0 1 2]]", "[[0]]"}},
        {"ExactlyFull", {2, 2, 2}, {.max_tokens = 6}, {"[[0 1] [0 1] [0 1]]"}},
        {"MaxRows",
         {1, 1, 1},
         {.max_tokens = 9, .max_rows = 2},
         {"[[0] [0]]", "[[0]]"}},
        {"DropsTheRemainder",
         {2, 2, 1},
         {.max_tokens = 4, .drop_remainder = true},
         {"[[0 1] [0 1]]"}},
        {"TooLongAlone",
         {1, 4, 1},
         {.max_tokens = 3, .too_long = plan::TOO_LONG_IS_ALONE},
         {"[[0]]", "[[0 1 2 3]]", "[[0]]"}},
        {"TooLongDropped",
         {1, 4, 1},
         {.max_tokens = 3, .too_long = plan::TOO_LONG_IS_DROPPED},
         {"[[0] [0]]"}},
        {"Empty", {}, {.max_tokens = 3}, {}},
        // Sorted: 1 1 1 | 3 3, each where its oldest element is.
        {"Window",
         {3, 1, 3, 1, 1},
         {.max_tokens = 6, .window = 5},
         {"[[0 1 2] [0 1 2]]", "[[0] [0] [0]]"}},
        {"WindowsOneByOne",
         {1, 3, 3, 1},
         {.max_tokens = 3, .window = 2},
         {"[[0]]", "[[0 1 2]]", "[[0 1 2]]", "[[0]]"}},
        // The last window is not full; its longest batch has room left.
        {"WindowRemainder",
         {1, 1, 1, 2, 1, 1},
         {.max_tokens = 2, .window = 4, .drop_remainder = true},
         {"[[0] [0]]", "[[0]]", "[[0 1]]", "[[0] [0]]"}},
        {"WindowRemainderWithRoom",
         {1, 1, 2},
         {.max_tokens = 4, .window = 4, .drop_remainder = true},
         {"[[0] [0]]"}},
        {"WindowTooLong",
         {5, 1, 1},
         {.max_tokens = 2, .window = 9, .too_long = plan::TOO_LONG_IS_ALONE},
         {"[[0 1 2 3 4]]", "[[0] [0]]"}},
    }),
    [](const auto& info) { return info.param.name; });

TEST(TokensErrors, AreGivenWhereTheyCome) {
  const Plan failing = Map(Map(Range(6), FailsWhere(6, 2)), UpTo());
  // Lengths 0, 1, error, 3, 4, 5.
  EXPECT_THAT(Drain(Tokens(failing, {.max_tokens = 5})),
              ElementsAre(FailureText(), "[[0] [0]]", "[[0 1 2]]",
                          "[[0 1 2 3]]", "[[0 1 2 3 4]]"));
  EXPECT_THAT(Drain(Tokens(failing, {.max_tokens = 8, .window = 3})),
              ElementsAre(FailureText(), "[[0] [0]]", "[[0 1 2]]",
                          "[[0 1 2 3]]", "[[0 1 2 3 4]]"));
}

TEST(TokensErrors, TooLong) {
  EXPECT_THAT(Drain(Tokens(Sequences({1, 4, 1}), {.max_tokens = 3})),
              ElementsAre(HasSubstr("!"), "[[0] [0]]"));
}

TEST(TokensTest, AtOnceOnInfiniteInput) {
  Plan ones = Map(Map(Counter(), Mod(1)), UpTo());
  EXPECT_THAT(DrainFirst(Tokens(ones, {.max_tokens = 2}), 2).size(), 2);
}

TEST(TokensContract, Holds) {
  const Plan mixed = Map(Map(Range(40), Mod(7)), UpTo());
  CheckContract(Tokens(mixed, {.max_tokens = 12}));
  CheckContract(Tokens(mixed, {.max_tokens = 12, .window = 9}));
  CheckContract(Tokens(mixed, {.max_tokens = 5,
                               .window = 9,
                               .too_long = plan::TOO_LONG_IS_DROPPED,
                               .drop_remainder = true}));
  // Errors among them, of the input and of lengths.
  const Plan failing =
      Map(Map(Map(Range(20), FailsWhere(20, 7)), Mod(5)), UpTo());
  CheckContract(Tokens(failing, {.max_tokens = 3}));
  CheckContract(Tokens(failing, {.max_tokens = 3, .window = 6}));
}

}  // namespace
}  // namespace penstock::engine_testing

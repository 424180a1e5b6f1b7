#include "penstock/plan/validate.h"

#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/stubs/logging.h"
#include "gtest/gtest.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::plan_testing {
namespace {

using ::testing::HasSubstr;

// Most operators at once.
Plan Large() {
  Plan plan = Shuffle(Interleave(ListFiles("*.txt", true, 7),
                                 ToDataset(TextLines({"a"})), 2, 3, 4),
                      100, 9);
  plan = Zip({Enumerate(plan), Repeat(Range(10)), Skip(Counter(), 3)});
  plan = Batch(Prefetch(Cache(Shard(Take(plan, 50), 3, 1)), 2), 4, true);
  return WithOptions(IgnoreErrors(Unbatch(Rebatch(plan, {2, 3}))), {});
}

Plan Nested() {
  return Reduce(Scan(Filter(FlatMap(Map(Range(5), AddConstant(1)), ToRange()),
                            IsMultipleOf(2)),
                     0, RunningSum()),
                0, Sum());
}

TEST(Validate, AcceptsWhatTheBuilderMakes) {
  EXPECT_EQ(plan::Validate(Range(5)), absl::OkStatus());
  EXPECT_EQ(plan::Validate(Nested()), absl::OkStatus());
  Plan parsed;
  ASSERT_TRUE(parsed.ParseFromString(Nested().SerializeAsString()));
  EXPECT_EQ(plan::Validate(parsed), absl::OkStatus());
}

TEST(Validate, AcceptsUnusedNodes) {
  Plan plan = Range(5);
  *plan.add_nodes() = Range(3).nodes(0);
  EXPECT_EQ(plan::Validate(plan), absl::OkStatus());
}

struct SpoilCase {
  std::string name;
  std::function<void(Plan&)> spoil;  // of Batch(Shuffle(Range(5), 2), 2)
  std::string want;
};

class SpoilTest : public ::testing::TestWithParam<SpoilCase> {};

TEST_P(SpoilTest, IsRefused) {
  Plan plan = Batch(Shuffle(Range(5), 2), 2);
  ASSERT_EQ(plan::Validate(plan), absl::OkStatus());
  GetParam().spoil(plan);
  const absl::Status status = plan::Validate(plan);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().want));
}

INSTANTIATE_TEST_SUITE_P(
    All, SpoilTest,
    ::testing::ValuesIn<SpoilCase>({
        {"NoNodes", [](Plan& p) { p.clear_nodes(); }, "at least one node"},
        {"InputAhead", [](Plan& p) { p.mutable_nodes(1)->set_inputs(0, 2); },
         "inputs must be nodes before number 1; got 2\n"
         "  at node \"shuffle_1\""},
        {"InputItself", [](Plan& p) { p.mutable_nodes(2)->set_inputs(0, 2); },
         "before number 2; got 2"},
        {"InputFar", [](Plan& p) { p.mutable_nodes(2)->set_inputs(0, ~0u); },
         "before number 2; got 4294967295"},
        {"InputMissing", [](Plan& p) { p.mutable_nodes(1)->clear_inputs(); },
         "shuffle must have 1 input; got 0"},
        {"Output",
         [](Plan& p) {
           *p.mutable_nodes(2)->mutable_output() = TensorOf(plan::INT64, {2});
         },
         "must say that its elements are int64(None,); got int64(2,)"},
        {"NoOutput", [](Plan& p) { p.mutable_nodes(2)->clear_output(); },
         "got nothing"},
        {"Cardinality",
         [](Plan& p) {
           p.mutable_nodes(2)->mutable_cardinality()->set_finite(4);
         },
         "its cardinality is 3; got 4"},
        {"NoCardinality",
         [](Plan& p) { p.mutable_nodes(2)->clear_cardinality(); },
         "its cardinality is 3; got ?"},
        {"Instance", [](Plan& p) { p.mutable_nodes(1)->clear_instance(); },
         "must have an instance id; got none"},
        {"NoOperator", [](Plan& p) { p.mutable_nodes(0)->clear_op(); },
         "one of the known operators; got none"},
        {"Bound",
         [](Plan& p) {
           *p.mutable_nodes(2)->mutable_batch()->mutable_size() = Bound(0);
         },
         "batch_size must be one of 0 bound values; got number 0"},
        {"BoundSpec",
         [](Plan& p) { *p.add_bound() = LeafOf(plan::INT64, {-1}); },
         "at least 0"},
    }),
    [](const auto& info) { return info.param.name; });

TEST(Validate, LooksIntoFunctions) {
  Plan plan = Nested();
  plan.mutable_nodes(2)
      ->mutable_flat_map()
      ->mutable_function()
      ->mutable_dataset()
      ->mutable_nodes(0)
      ->mutable_range()
      ->mutable_stop()
      ->set_bound(5);
  EXPECT_EQ(std::string(plan::Validate(plan).message()),
            "stop must be one of 1 bound values; got number 5\n"
            "  at node \"range_0\"\n"
            "  at node \"flat_map_2\"");
}

// Bytes from anywhere: whatever parses is accepted or refused, never worse.
TEST(Validate, SurvivesDamage) {
  const google::protobuf::LogSilencer silence;
  const std::string good = Zip({Nested(), Nested()}).SerializeAsString();
  uint64_t state = 1;
  int parsed_plans = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = good;
    for (int i = 0; i <= round % 3; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      bytes[(state >> 33) % bytes.size()] = static_cast<char>(state >> 56);
    }
    Plan plan;
    if (!plan.ParseFromString(bytes)) continue;
    ++parsed_plans;
    plan::Validate(plan).IgnoreError();
  }
  EXPECT_GT(parsed_plans, 1000);
}

TEST(Validate, AcceptsALargePlan) {
  EXPECT_EQ(plan::Validate(Large()), absl::OkStatus());
}

}  // namespace
}  // namespace penstock::plan_testing

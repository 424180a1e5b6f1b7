#include "penstock/plan/fingerprint.h"

#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::plan_testing {
namespace {

using plan::Fingerprint;

// Saved caches and shared jobs are found by these: they never change.
TEST(Fingerprint, IsTheSameForEver) {
  EXPECT_EQ(Fingerprint(Range(5)), "2cbc0feaaf9f93b143f37d4875ad115e");
  EXPECT_EQ(Fingerprint(Batch(Map(Range(5), AddConstant(1)), 2)),
            "3c121b3ce0fcff7dbfc81c616a1e6061");
  EXPECT_EQ(Fingerprint(FlatMap(Range(5), ToRange())),
            "6d0fc5521ad304f8a20073eecf90328b");
  EXPECT_EQ(Fingerprint(Shuffle(Strings({"a", "bc"}), 10, 7)),
            "31463ce945b555411c15b13f39f67bbc");
}

TEST(Fingerprint, DiffersWithWhatIsComputed) {
  const std::vector<Plan> plans = {
      Range(5),
      Range(6),
      Range(1, 5),
      FloatRange(0, 5, 1),
      Counter(0, 5),
      Batch(Range(5), 2),
      Batch(Range(5), 2, true),
      Batch(Range(5), 3),
      Cache(Range(5)),
      Map(Range(5), AddConstant(1)),
      Map(Range(5), AddConstant(2)),
      Map(Range(5), MultiplyBy(1)),
      Map(Range(5), Pair()),
      Shuffle(Range(5), 2),
      Shuffle(Range(5), 2, 0),
      Shuffle(Range(5), 2, 1),
      Shuffle(Range(5), 3),
      Shuffle(Range(5), {}),
      Shuffle(Range(5), 2, {}, false),
      Zip({Range(5), Range(6)}),
      Zip({Range(6), Range(5)}),
      FlatMap(Range(5), ToRange()),
      FlatMap(Range(5), ToDataset(Range(5))),
      FlatMap(Range(5), ToDataset(Range(6))),
      Interleave(Range(5), ToRange(), 2),
      Interleave(Range(5), ToRange(), 3),
      Take(Range(5), {}),
      Take(Range(5), 0),
      Repeat(Range(5)),
      Repeat(Range(5), 2),
      Unbatch(Batch(Range(5), 2)),
      Strings({"ab", "c"}),
      Strings({"a", "bc"}),
  };
  std::set<std::string> seen;
  for (const Plan& plan : plans) {
    EXPECT_EQ(Fingerprint(plan).size(), 32);
    EXPECT_TRUE(seen.insert(Fingerprint(plan)).second)
        << plan.ShortDebugString();
  }
}

Plan Elsewhere(Plan plan) {
  for (Node& node : *plan.mutable_nodes()) {
    node.mutable_made_at()->set_file("other.py");
    if (node.has_instance()) node.set_instance(99);
    if (node.has_map()) node.mutable_map()->mutable_function()->set_name("g");
  }
  return plan;
}

Plan Behind(const Plan& unused, const Plan& plan) {
  Plan both = unused;
  const uint32_t offset = both.nodes_size();
  for (Node node : plan.nodes()) {
    for (uint32_t& input : *node.mutable_inputs()) input += offset;
    *both.add_nodes() = node;
  }
  return both;
}

plan::Options Budget() {
  plan::Options options;
  options.set_max_element_bytes(3);
  options.set_name("mine");
  return options;
}

Function Ordered(bool is_reversed) {
  ElementSpec spec =
      DictOf({{"a", TensorOf(plan::INT64)}, {"b", TensorOf(plan::INT64)}});
  spec.mutable_dict()->add_order(is_reversed ? 1 : 0);
  spec.mutable_dict()->add_order(is_reversed ? 0 : 1);
  FunctionBuilder f;
  const auto x = f.Arg(0);
  return f.Return(spec, {x, x});
}

TEST(Fingerprint, IsTheSameForWhatOnlyRunsOtherwise) {
  const Plan base = Batch(Shuffle(Map(Range(5), AddConstant(1)), 3), 2);
  const std::string want = Fingerprint(base);
  EXPECT_EQ(Fingerprint(Elsewhere(base)), want);
  EXPECT_EQ(Fingerprint(Behind(Range(9), base)), want);
  EXPECT_EQ(Fingerprint(Prefetch(base, 3)), want);
  EXPECT_EQ(Fingerprint(WithOptions(base, Budget())), want);
  EXPECT_EQ(Fingerprint(Batch(
                Shuffle(Prefetch(Map(Range(5), AddConstant(1), 8)), 3), 2)),
            want);
  EXPECT_EQ(Fingerprint(Map(Range(5), Ordered(true))),
            Fingerprint(Map(Range(5), Ordered(false))));

  plan::Options any_order;
  any_order.set_deterministic(false);
  EXPECT_NE(Fingerprint(WithOptions(base, any_order)), want);
}

TEST(Fingerprint, GapsInAChunkDoNotCount) {
  const Plan base = Strings({"a", "bc"});
  Plan other = base;
  std::string* chunk = other.mutable_nodes(0)->mutable_rows()->mutable_chunk();
  int gaps = 0;
  for (char& byte : *chunk) {
    const char before = byte;
    byte = static_cast<char>(byte ^ 0x5a);
    if (Fingerprint(other) == Fingerprint(base)) ++gaps;
    byte = before;
  }
  EXPECT_GT(gaps, 0);
  EXPECT_LT(gaps, static_cast<int>(chunk->size()));
}

// Attributes are a map: in the message they have no order.
TEST(Fingerprint, AttributesHaveNoOrder) {
  const auto function = [](bool is_reversed) {
    std::vector<std::string> names;
    for (char c = 'a'; c <= 'z'; ++c) names.emplace_back(1, c);
    if (is_reversed) names = {names.rbegin(), names.rend()};
    Plan plan = Map(Range(5), AddConstant(1));
    auto& attrs = *plan.mutable_nodes(1)
                       ->mutable_map()
                       ->mutable_function()
                       ->mutable_steps(2)
                       ->mutable_call()
                       ->mutable_attrs();
    for (const std::string& name : names) attrs[name].set_text(name);
    return Fingerprint(plan);
  };
  EXPECT_EQ(function(true), function(false));
  EXPECT_NE(function(true), Fingerprint(Map(Range(5), AddConstant(1))));
}

TEST(Fingerprint, OfAnythingAtAll) {
  EXPECT_EQ(Fingerprint(Plan()).size(), 32);
  Plan plan = Batch(Range(5), 2);
  plan.mutable_nodes(0)->add_inputs(7);
  EXPECT_EQ(Fingerprint(plan).size(), 32);
}

}  // namespace
}  // namespace penstock::plan_testing

#include "penstock/tuner/move.h"

#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/tuner/measured_testing.h"
#include "penstock/tuner/what_if.h"

namespace penstock::tuner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TestNode Of(TestNode node, const std::string& name, plan::Node::OpCase op) {
  node.name = name;
  node.op = op;
  return node;
}

// read -> decode (1 ms) -> filter (a tenth, 0.1 ms) -> batch of 8
TestRun LateFilter() {
  TestRun run;
  TestNode filter = Of(Map("", 1e-3, 600e3, 8), "filter", plan::Node::kFilter);
  run.nodes = {Source(1000, 80), Map("decode", 1e-3, 600e3, 80), filter,
               Batch(8, 8 * 600e3)};
  return run;
}

std::optional<int> PlaceOrEnd(const Model& model, const std::string& name) {
  return name.empty() ? std::nullopt : std::optional(PlaceOf(model, name));
}

Model Moved(const Model& model, const std::string& node,
            const std::string& before) {
  Model moved = model;
  const absl::Status status =
      Move(moved, PlaceOf(model, node), PlaceOrEnd(model, before));
  EXPECT_TRUE(status.ok()) << status;
  return moved;
}

std::vector<std::string> NamesOf(const Model& model) {
  std::vector<std::string> names;
  for (const Measured& each : *model.measured) names.push_back(each.name);
  return names;
}

double CpuOf(const Model& model, const std::string& name) {
  return model.nodes[PlaceOf(model, name)].cpu.value;
}

TEST(Move, AFilterThatGoesFirstLeavesLessToDo) {
  const Model model = ModelOf(LateFilter());
  const Model moved = Moved(model, "filter", "decode");
  EXPECT_THAT(NamesOf(moved), ElementsAre("read", "filter", "decode", "batch"));
  EXPECT_NEAR(CpuOf(moved, "decode"), 0.1 * CpuOf(model, "decode"), 1e-6);
  EXPECT_NEAR(CpuOf(moved, "filter"), CpuOf(model, "filter"), 1e-6);
  EXPECT_NEAR(moved.nodes[1].visits, 8, 1e-6);
  EXPECT_NEAR((*moved.measured)[1].row_bytes, 1000, 1);
  EXPECT_NEAR((*moved.measured)[2].row_bytes, 600e3, 1);
  // Each has the one before it as its input, and is found by its number.
  for (int i = 1; i < 4; ++i) {
    EXPECT_THAT(moved.nodes[i].inputs, ElementsAre(i - 1));
    EXPECT_EQ(FindNode(moved, (*moved.measured)[i].id), i);
  }
  EXPECT_GT(FindBound(moved, KnobsAre::kFree).rate.middle,
            4 * FindBound(model, KnobsAre::kFree).rate.middle);
}

TEST(Move, ThereAndBackIsAsBefore) {
  const Model model = ModelOf(LateFilter());
  const Model back = Moved(Moved(model, "filter", "decode"), "filter", "batch");
  EXPECT_EQ(NamesOf(back), NamesOf(model));
  for (size_t i = 0; i < model.nodes.size(); ++i) {
    EXPECT_NEAR(back.nodes[i].cpu.value, model.nodes[i].cpu.value, 1e-9);
    EXPECT_NEAR(back.nodes[i].visits, model.nodes[i].visits, 1e-9);
    EXPECT_NEAR((*back.measured)[i].row_bytes, (*model.measured)[i].row_bytes,
                1e-3);
  }
}

TEST(Move, WhatCopiesCostsByTheBytesOfItsRows) {
  TestRun run;
  TestNode shuffle = Of(Map("", 1e-4, 400e3), "shuffle", plan::Node::kShuffle);
  run.nodes = {Source(100e3), Map("cast", 1e-4, 400e3), shuffle,
               Batch(64, 64 * 400e3)};
  const Model model = ModelOf(run);
  const Model moved = Moved(model, "cast", "batch");
  EXPECT_THAT(NamesOf(moved), ElementsAre("read", "shuffle", "cast", "batch"));
  EXPECT_NEAR(CpuOf(moved, "shuffle"), CpuOf(model, "shuffle") / 4, 1e-6);
  EXPECT_NEAR(CpuOf(moved, "cast"), CpuOf(model, "cast"), 1e-6);
  EXPECT_NEAR((*moved.measured)[1].row_bytes, 100e3, 1);
}

TEST(Move, PastABatchRowsAreOthersAndTheirWorkTheSame) {
  TestRun run;
  run.nodes = {Source(), Map("cast", 1e-3, 4000), Batch(64, 64 * 4000)};
  run.nodes[2].cpu_seconds = 1e-3;
  const Model model = ModelOf(run);
  const Model moved = Moved(model, "cast", "");
  EXPECT_THAT(NamesOf(moved), ElementsAre("read", "batch", "cast"));
  EXPECT_NEAR(moved.nodes[2].visits, 1, 1e-9);
  EXPECT_NEAR((*moved.measured)[2].row_bytes, 64 * 4000, 1);
  EXPECT_NEAR(CpuOf(moved, "cast"), CpuOf(model, "cast"), 1e-6);
  EXPECT_NEAR(CpuOf(moved, "batch"), CpuOf(model, "batch") / 4, 1e-6);
}

// Reading and batching take 10 ms each, of one task together or of two.
TEST(Move, WhatABufferTakesApartRunsInTwoTasks) {
  const auto in_order = [](const std::vector<std::string>& names) {
    TestRun run;
    for (const std::string& name : names) {
      TestNode node = Map(name, name == "ahead" ? 1e-9 : 10e-3, 1000, 1);
      node.is_sequential = true;
      node.inputs = std::nullopt;
      if (name == "read") node = Source(1000, 1), node.cpu_seconds = 10e-3;
      if (name == "ahead") {
        node.op = plan::Node::kPrefetch;
        node.buffer_rows = 8;
      }
      run.nodes.push_back(node);
    }
    run.has_stages = false;
    run.cores = 8;
    run.rate = 40;
    return ModelOf(run);
  };
  const auto rate = [](const Model& model) {
    return FindBound(model, KnobsAre::kFree).rate.middle;
  };
  const Model apart = in_order({"read", "ahead", "work"});
  const Model together = in_order({"read", "work", "ahead"});
  ASSERT_NEAR(rate(apart), 100, 1);
  ASSERT_NEAR(rate(together), 50, 1);
  EXPECT_NEAR(rate(Moved(apart, "work", "ahead")), 50, 1);
  EXPECT_NEAR(rate(Moved(apart, "ahead", "")), 50, 1);
  EXPECT_NEAR(rate(Moved(together, "ahead", "work")), 100, 1);
  EXPECT_NEAR(rate(Moved(together, "work", "")), 100, 1);
}

TEST(Move, ToWhereItIsChangesNothing) {
  const Model model = ModelOf(LateFilter());
  EXPECT_EQ(NamesOf(Moved(model, "decode", "filter")), NamesOf(model));
  EXPECT_EQ(NamesOf(Moved(model, "batch", "")), NamesOf(model));
}

TEST(Move, RefusesWhatMeansNothing) {
  TestRun zipped;
  TestNode a = Map("a", 1e-3);
  TestNode b = Map("b", 1e-3);
  b.inputs = std::vector<uint32_t>{0};
  TestNode zip = Of(Map("", 1e-6), "zip", plan::Node::kZip);
  zip.inputs = std::vector<uint32_t>{1, 2};
  zipped.nodes = {Source(), a, b, zip, Map("c", 1e-3)};
  TestRun kept;
  kept.nodes = {Source(), Map("decode", 1e-3),
                Of(Map("", 1e-9), "cache", plan::Node::kCache),
                Map("map", 1e-3)};
  struct Case {
    TestRun run;
    std::string node;
    std::string before;
    std::string want;
  };
  for (const Case& each : std::vector<Case>{
           {LateFilter(), "filter", "", "would have other rows"},
           {LateFilter(), "batch", "filter", "would have other rows"},
           {LateFilter(), "decode", "decode", "before itself"},
           {LateFilter(), "decode", "read", "it has 0"},
           {LateFilter(), "read", "batch", "it has 0"},
           {zipped, "a", "c", "it has 2"},
           {zipped, "a", "b", "no"},
           {zipped, "c", "a", "it has 2"},
           {kept, "map", "cache", "rows that are kept"},
           {kept, "map", "decode", "rows that are kept"},
       }) {
    Model model = ModelOf(each.run);
    const absl::Status status =
        Move(model, PlaceOf(model, each.node), PlaceOrEnd(model, each.before));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(each.want))
        << each.node << " before " << each.before;
  }
}

}  // namespace
}  // namespace penstock::tuner

#include "penstock/tuner/offload.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/tuner/measured_testing.h"
#include "penstock/tuner/what_if.h"

namespace penstock::tuner {
namespace {

using testing::HasSubstr;

// 64 ms of decoding, 6.4 ms of the rest for a batch of 38 MB, on two cores.
TestRun Photos() {
  TestRun run;
  run.nodes = {Source(100e3), Map("decode", 1e-3, 600e3),
               Map("flip", 1e-4, 600e3), Batch(64, 600e3 * 64)};
  return run;
}

Bound With(const Model& model, const OnWorkers& change) {
  const absl::StatusOr<Bound> bound = WhatIf(model, {change}, KnobsAre::kFree);
  EXPECT_TRUE(bound.ok()) << bound.status();
  return bound.ok() ? *bound : Bound();
}

uint32_t IdOf(const Model& model, const std::string& name) {
  return (*model.measured)[PlaceOf(model, name)].id;
}

TEST(Offload, WorkersAllowWhatTheirCoresDo) {
  const Model model = ModelOf(Photos());
  const uint32_t decode = IdOf(model, "decode");
  // A batch is 38 MB, and a core sends 4 GB a second.
  const double each = 64e-3 + 38.4e6 * 0.25e-9;
  const Bound few = With(model, {decode, 4, std::nullopt});
  EXPECT_EQ(few.wall().wall, Wall::kWorkers);
  EXPECT_NEAR(few.rate.middle, 4 / each, 0.03 * 4 / each);
  // With more of them, what is left here is the limit.
  const Bound many = With(model, {decode, 64, std::nullopt});
  EXPECT_EQ(many.wall().wall, Wall::kCores);
  EXPECT_LT(many.rate.middle, 2 / (6.4e-3 + 38.4e6 * 0.25e-9));
}

TEST(Offload, ANetworkGivesSoManyBytes) {
  const Model model = ModelOf(Photos());
  const Bound slow = With(model, {IdOf(model, "decode"), 64, 1e9});
  EXPECT_EQ(slow.wall().wall, Wall::kNetworkBytes);
  EXPECT_NEAR(slow.rate.middle, 1e9 / 38.4e6, 0.1);
  // Files are six times smaller than their pixels.
  const Bound early = With(model, {IdOf(model, "read"), 64, 1e9});
  EXPECT_EQ(early.wall().wall, Wall::kCores);
}

TEST(Offload, FilesAreReadThere) {
  TestRun run = Photos();
  run.nodes[0].read_bytes = 100e3;
  run.disk_bytes_per_second = 20e6;
  const Model model = ModelOf(run);
  EXPECT_EQ(FindBound(model, KnobsAre::kFree).wall().wall, Wall::kDiskBytes);
  EXPECT_EQ(With(model, {IdOf(model, "batch"), 4, std::nullopt}).wall().wall,
            Wall::kWorkers);
}

TEST(Offload, RefusesWhatMeansNothing) {
  TestRun run = Photos();
  run.nodes[0].op = plan::Node::kReceived;
  const Model received = ModelOf(run);
  const Model model = ModelOf(Photos());
  const uint32_t decode = IdOf(model, "decode");
  const auto refused = [](const Model& of, const OnWorkers& change) {
    return std::string(
        WhatIf(of, {change}, KnobsAre::kFree).status().message());
  };
  EXPECT_THAT(refused(model, {99, 4, std::nullopt}), HasSubstr("got 99"));
  EXPECT_THAT(refused(model, {decode, 0, std::nullopt}),
              HasSubstr("workers' cores must be over 0"));
  EXPECT_THAT(refused(model, {decode, 4, -1}),
              HasSubstr("the network's bytes a second must be over 0"));
  EXPECT_THAT(refused(received, {decode, 4, std::nullopt}),
              HasSubstr("from a service's workers already"));
  TestRun shared;
  TestNode other = Map("other", 1e-3);
  other.inputs = std::vector<uint32_t>{0};
  TestNode zip = Map("zip", 1e-6);
  zip.op = plan::Node::kZip;
  zip.inputs = std::vector<uint32_t>{1, 2};
  shared.nodes = {Source(), Map("decode", 1e-3), other, zip};
  EXPECT_THAT(refused(ModelOf(shared), {decode, 4, std::nullopt}),
              HasSubstr("shares its input with others"));
}

}  // namespace
}  // namespace penstock::tuner

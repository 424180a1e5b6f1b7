#include "penstock/tuner/legality.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/tuner/measured_testing.h"

namespace penstock::tuner {
namespace {

using testing::HasSubstr;

struct LegalityCase {
  std::string name;
  TestNode node;     // between the source and the batch
  std::string want;  // empty: legal after it
};

class LegalityTest : public testing::TestWithParam<LegalityCase> {};

TestNode With(plan::Node::OpCase op, void (*change)(TestNode&) = nullptr) {
  TestNode node = Map("node", 1e-3);
  node.op = op;
  if (change != nullptr) change(node);
  return node;
}

TEST_P(LegalityTest, OfACacheAfterIt) {
  TestRun run;
  run.nodes = {Source(), GetParam().node, Batch()};
  const std::vector<CacheLegality> found = FindCacheLegality(ModelOf(run));
  EXPECT_EQ(found[1].is_legal, GetParam().want.empty()) << found[1].why;
  EXPECT_THAT(found[1].why, HasSubstr(GetParam().want));
  // What ends the candidates, ends them for all above.
  EXPECT_EQ(found[2].is_legal, found[1].is_legal) << found[2].why;
}

INSTANTIATE_TEST_SUITE_P(
    Nodes, LegalityTest,
    testing::ValuesIn<LegalityCase>({
        {"Map", With(plan::Node::kMap), ""},
        {"RandomMap",
         With(plan::Node::kMap, [](TestNode& n) { n.is_random = true; }),
         "node gives other rows in every epoch"},
        {"Python",
         With(plan::Node::kMap, [](TestNode& n) { n.is_python = true; }),
         "Python that is not declared pure"},
        {"PurePython",
         With(plan::Node::kMap,
              [](TestNode& n) { n.is_python = n.is_declared_pure = true; }),
         ""},
        {"Shuffle",
         With(plan::Node::kShuffle, [](TestNode& n) { n.is_random = true; }),
         "every epoch"},
        {"ShuffleTheSame", With(plan::Node::kShuffle), ""},
        {"Filter", With(plan::Node::kFilter), ""},
        {"Scan", With(plan::Node::kScan), ""},
        {"Repeat", With(plan::Node::kRepeat), "cache before it"},
        {"Generator", With(plan::Node::kGenerator), "may give other rows"},
        {"Unknown", With(plan::Node::OP_NOT_SET), "may give other rows"},
    }),
    [](const auto& info) { return info.param.name; });

TEST(FindCacheLegality, OfPythonThatWouldHaveToBePure) {
  const auto is_python = [](TestNode& n) { n.is_python = true; };
  const auto is_random = [](TestNode& n) { n.is_random = true; };
  const TestNode undeclared = With(plan::Node::kMap, is_python);
  const TestNode shuffle = With(plan::Node::kShuffle, is_random);
  const auto if_pure = [](TestNode below, TestNode node) {
    TestRun run;
    run.nodes = {Source(), std::move(below), std::move(node), Batch()};
    const std::vector<CacheLegality> found = FindCacheLegality(ModelOf(run));
    EXPECT_FALSE(found[3].is_legal_if_pure);  // not its own Python
    return found[2].is_legal_if_pure;
  };
  const TestNode map = With(plan::Node::kMap);
  EXPECT_TRUE(if_pure(map, undeclared));
  EXPECT_FALSE(if_pure(map, map));
  EXPECT_FALSE(if_pure(shuffle, undeclared));
  EXPECT_FALSE(if_pure(undeclared, undeclared));
  EXPECT_FALSE(if_pure(With(plan::Node::kRepeat), undeclared));
  EXPECT_FALSE(if_pure(map, With(plan::Node::kGenerator, is_python)));
  EXPECT_FALSE(if_pure(map, With(plan::Node::kMap, [](TestNode& n) {
                         n.is_python = n.is_declared_pure = true;
                       })));
}

TEST(FindCacheLegality, OfWhatIsInsideFunctionsOrCut) {
  TestRun run;
  TestNode inner = Source();
  inner.inside = 2;
  TestNode interleave = Map("interleave", 1e-6);
  interleave.op = plan::Node::kInterleave;
  interleave.inputs = std::vector<uint32_t>{0};
  TestNode take = Map("take", 1e-6);
  take.op = plan::Node::kTake;
  run.nodes = {Source(), inner, interleave, take, Batch()};
  std::vector<CacheLegality> found = FindCacheLegality(ModelOf(run));
  EXPECT_THAT(found[1].why, HasSubstr("inside the function of interleave"));
  EXPECT_THAT(found[2].why, HasSubstr("take ends before its input"));
  EXPECT_TRUE(found[3].is_legal);

  // Between a cache and a take, a repeat lets the cache come to its end.
  TestNode repeat = Map("repeat", 1e-6);
  repeat.op = plan::Node::kRepeat;
  run.nodes.insert(run.nodes.begin() + 3, repeat);
  found = FindCacheLegality(ModelOf(run));
  EXPECT_TRUE(found[2].is_legal) << found[2].why;
}

}  // namespace
}  // namespace penstock::tuner

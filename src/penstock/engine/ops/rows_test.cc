#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/engine/contract_testing.h"
#include "penstock/engine/samples_testing.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::engine_testing {
namespace {

using namespace plan_testing;  // NOLINT: the language of these tests
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAreArray;

TEST(RowsTest, GivesItsRows) {
  EXPECT_THAT(Drain(Ints({3, 1, 4})), ElementsAre("3", "1", "4"));
  EXPECT_THAT(Drain(Strings({"a", "", "ccc"})),
              ElementsAre("\"a\"", "\"\"", "\"ccc\""));
  EXPECT_THAT(Drain(Ints({})), IsEmpty());
}

TEST(RowsTest, ReadsACapturedArray) {
  const Rows want = {"7", "8"};
  plan::Plan plan = Ints({7, 8});
  plan::Rows& rows = *plan.mutable_nodes(0)->mutable_rows();
  Buffer bytes = Buffer::Allocate(rows.chunk().size());
  std::copy(rows.chunk().begin(), rows.chunk().end(), bytes.MutableAs<char>());
  rows.set_capture("array");

  TestEngine engine;
  engine.sources().SetArray("array", bytes);
  EXPECT_EQ(Reader(engine, plan).Drain(), want);
  EXPECT_EQ(FailureOf(plan).code(), absl::StatusCode::kNotFound);
}

TEST(RowsTest, RefusesBytesThatAreNoChunk) {
  plan::Plan plan = Ints({7, 8});
  plan.mutable_nodes(0)->mutable_rows()->set_chunk("nonsense");
  EXPECT_EQ(FailureOf(plan).code(), absl::StatusCode::kDataLoss);
}

TEST(RowsTest, RefusesRowsOfAnotherSpec) {
  plan::Plan plan = Ints({7, 8});
  const plan::Plan other = Strings({"a", "b"});
  plan.mutable_nodes(0)->mutable_rows()->set_chunk(
      other.nodes(0).rows().chunk());
  EXPECT_EQ(FailureOf(plan).code(), absl::StatusCode::kInvalidArgument);
}

plan::Plan Values(std::vector<Tensor> tensors, bool slices) {
  Node node;
  std::vector<plan::ElementSpec> items;
  for (Tensor& tensor : tensors) {
    *node.mutable_values()->add_values() = Constant(std::move(tensor));
    items.push_back(TensorOf(plan::INT64));
  }
  *node.mutable_values()->mutable_structure() = TupleOf(items);
  node.mutable_values()->set_slices(slices);
  return AppendOrDie({}, std::move(node));
}

TEST(ValuesTest, AreOneElementOrSlices) {
  EXPECT_THAT(Drain(Values({Vector({1, 2}), Text("a")}, false)),
              ElementsAre("([1 2], \"a\")"));
  EXPECT_THAT(Drain(Values({Vector({1, 2}), Texts({"a", "b"})}, true)),
              ElementsAre("(1, \"a\")", "(2, \"b\")"));
}

TEST(RowsContract, Holds) {
  CheckContract(Ints({5, 6, 7, 8, 9}));
  CheckContract(Words(40));
  CheckContract(Values({Vector({1, 2, 3}), Texts({"a", "b", "c"})}, true));
}

}  // namespace
}  // namespace penstock::engine_testing

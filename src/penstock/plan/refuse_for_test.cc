#include "penstock/plan/refuse_for_test.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/plan/builder.h"

namespace penstock::plan_testing {

using ::testing::HasSubstr;
using ::testing::StartsWith;

void ExpectRefused(const RefuseCase& c) {
  Node node;
  node.mutable_made_at()->set_file("train.py");
  node.mutable_made_at()->set_line(31);
  c.fill(node);
  const absl::Status status =
      TryAppend(c.inputs, node, {LeafOf(plan::FLOAT32, {2})}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  const std::string message(status.message());
  EXPECT_THAT(message, StartsWith(c.want));
  EXPECT_THAT(message, HasSubstr("\n  at node \""));
  EXPECT_THAT(message, HasSubstr("\", made at train.py:31"));
  EXPECT_EQ(status.GetPayload(plan::kTypeError).has_value(), c.is_type_error);
}

plan::Rows OneInt() { return Ints({0}).nodes(0).rows(); }

}  // namespace penstock::plan_testing

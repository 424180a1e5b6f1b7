#include "penstock/plan/facts.h"

#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"

namespace penstock::plan {
namespace {

TEST(FactsOf, EveryOperatorHasThem) {
  const auto* descriptor = Node::descriptor()->FindOneofByName("op");
  ASSERT_NE(descriptor, nullptr);
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const auto op = static_cast<Node::OpCase>(descriptor->field(i)->number());
    const Facts facts = FactsOf(op);
    EXPECT_TRUE(facts.is_pure || facts.draws || op == Node::kGenerator)
        << descriptor->field(i)->name();
    EXPECT_FALSE(facts.is_pure && facts.draws);
  }
  EXPECT_FALSE(FactsOf(Node::OP_NOT_SET).is_pure);
}

}  // namespace
}  // namespace penstock::plan

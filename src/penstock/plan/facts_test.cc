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
    const bool is_foreign = op == Node::kGenerator || op == Node::kReceived;
    EXPECT_TRUE(facts.is_pure || facts.draws || is_foreign)
        << descriptor->field(i)->name();
    EXPECT_FALSE(facts.is_pure && facts.draws);
  }
  EXPECT_FALSE(FactsOf(Node::OP_NOT_SET).is_pure);
}

// What is said of parts fits what is said of a run of the whole.
TEST(FactsOf, PartsAgreeWithTheWhole) {
  const auto* descriptor = Node::descriptor()->FindOneofByName("op");
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const auto op = static_cast<Node::OpCase>(descriptor->field(i)->number());
    const Facts facts = FactsOf(op);
    const std::string& name = descriptor->field(i)->name();
    if (facts.in_parts == InParts::kRowWise) {
      EXPECT_FALSE(facts.is_stateful || facts.draws) << name;
    }
    if (facts.in_parts == InParts::kSource) {
      EXPECT_FALSE(facts.is_order_sensitive) << name;
    }
    if (facts.in_parts == InParts::kGroups) {
      EXPECT_TRUE(facts.changes_count) << name;
    }
    if (facts.picks_by_place) {
      EXPECT_TRUE(facts.changes_count) << name;
    }
  }
}

}  // namespace
}  // namespace penstock::plan

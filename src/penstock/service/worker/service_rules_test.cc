#include "penstock/service/worker/service_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "penstock/plan/plan_testing.h"

namespace penstock::service {
namespace {

using plan_testing::AddConstant;
using plan_testing::AppendOrDie;
using plan_testing::FlatMap;
using plan_testing::Map;
using plan_testing::Range;
using plan_testing::ToDataset;
using testing::HasSubstr;

plan::Plan ReadFrom(const std::string& address) {
  plan::Node node;
  plan::Distribution& asked = *node.mutable_received()->mutable_distribution();
  asked.set_address(address);
  asked.set_job("read");
  asked.set_readers(1);
  return AppendOrDie({Map(Range(9), AddConstant(1))}, node);
}

TEST(ServiceRulesTest, TheOwnServiceIsAllowedByAnyNameOfThisMachine) {
  const ServiceRules rules("127.0.0.1:5050", {}, {});
  EXPECT_TRUE(rules.Check(ReadFrom("127.0.0.1:5050")).ok());
  EXPECT_TRUE(rules.Check(ReadFrom("localhost:5050")).ok());
  EXPECT_TRUE(rules.Check(Range(3)).ok());
}

TEST(ServiceRulesTest, OthersMustBeNamed) {
  const ServiceRules none("head:5050", {}, {});
  for (const plan::Plan& plan :
       {ReadFrom("readers:5050"),
        FlatMap(Range(2), ToDataset(ReadFrom("readers:5050")))}) {
    const absl::Status refused = none.Check(plan);
    EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr("--allow-services readers:5050"));
    const ServiceRules some("head:5050", {"penstock://readers:5050"}, {});
    EXPECT_TRUE(some.Check(plan).ok());
  }
  EXPECT_FALSE(ServiceRules().Check(ReadFrom("head:5050")).ok());
}

TEST(ServiceRulesTest, ItCallsAsAConsumer) {
  rpc::Credentials worker;
  worker.token_file = "tokens";
  worker.role = "worker";
  const ServiceRules rules("head:5050", {}, worker);
  EXPECT_EQ(rules.credentials().role, "consumer");
  EXPECT_EQ(rules.credentials().token_file, "tokens");
}

}  // namespace
}  // namespace penstock::service

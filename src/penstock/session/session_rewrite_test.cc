#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/base/socket_testing.h"
#include "penstock/plan/fingerprint.h"
#include "penstock/plan/plan_testing.h"
#include "penstock/session/session.h"

namespace penstock::session {
namespace {

using ::penstock::plan_testing::AddConstant;
using ::penstock::plan_testing::Batch;
using ::penstock::plan_testing::Map;
using ::penstock::plan_testing::MultiplyBy;
using ::penstock::plan_testing::Plan;
using ::penstock::plan_testing::Range;
using ::penstock::plan_testing::Skip;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SessionRewriteTest : public ::testing::Test {
 protected:
  SessionRewriteTest() : SessionRewriteTest(SocketPair()) {}
  explicit SessionRewriteTest(std::pair<Descriptor, Descriptor> service)
      : service_(std::move(service.second)),
        session_({2, int64_t{1} << 30}, std::move(service.first)) {}

  Response Ask(const Request& request, std::vector<Descriptor> fds = {}) {
    return session_.Handle(request, std::move(fds)).response;
  }

  Response Rewritten(const Plan& plan, Rewrite call = {}) {
    Request request;
    call.set_plan(plan.SerializeAsString());
    *request.mutable_rewrite() = std::move(call);
    return Ask(request);
  }

  Response Make(const Plan& plan, MakeIterator call) {
    call.set_plan(plan.SerializeAsString());
    Request request;
    *request.mutable_make_iterator() = std::move(call);
    auto [near, far] = SocketPair();
    trainer_ = std::move(near);
    std::vector<Descriptor> fds;
    fds.push_back(std::move(far));
    return Ask(request, std::move(fds));
  }

  Descriptor service_;
  Descriptor trainer_;
  Session session_;
};

// One node to leave out, and two that become one.
Plan Example() {
  return Map(Map(Skip(Range(9), 0), AddConstant(1)), MultiplyBy(2));
}

TEST_F(SessionRewriteTest, SaysWhatItDoes) {
  const RewriteReply reply = Rewritten(Example()).rewrite();
  ASSERT_EQ(reply.applied_size(), 2);
  EXPECT_EQ(reply.applied(0).pass(), "drop_no_ops");
  EXPECT_EQ(reply.applied(0).nodes(0).name(), "skip_1");
  EXPECT_THAT(reply.rewriting().passes(),
              ElementsAre("drop_no_ops", "fuse_maps"));
  EXPECT_EQ(reply.rewriting().nodes(), 4u);
  EXPECT_FALSE(reply.has_expected());  // there is no trace
  EXPECT_FALSE(Rewritten(Range(3)).rewrite().has_rewriting());
}

TEST_F(SessionRewriteTest, PassesAreChosenByName) {
  Rewrite call;
  call.mutable_only()->add_names("fuse_maps");
  EXPECT_THAT(Rewritten(Example(), call).rewrite().rewriting().passes(),
              ElementsAre("fuse_maps"));
  call.mutable_only()->clear_names();
  EXPECT_FALSE(Rewritten(Example(), call).rewrite().has_rewriting());
  call.mutable_only()->add_names("turbo");
  EXPECT_THAT(Rewritten(Example(), call).error().message(),
              HasSubstr("a pass must be one of drop_no_ops, push_filter"));
  Request request;
  request.mutable_list_passes();
  const Response listed = Ask(request);
  EXPECT_EQ(listed.list_passes().passes(0).name(), "drop_no_ops");
  EXPECT_EQ(listed.list_passes().passes_size(), 7);
}

TEST_F(SessionRewriteTest, AnIteratorRunsIt) {
  MakeIterator call;
  *call.mutable_rewriting() = Rewritten(Example()).rewrite().rewriting();
  EXPECT_EQ(Make(Example(), call).make_iterator().fingerprint(),
            call.rewriting().fingerprint());
  // With what was appended since.
  const Plan longer = Batch(Example(), 2);
  const std::string fingerprint =
      Make(longer, call).make_iterator().fingerprint();
  EXPECT_NE(fingerprint, plan::Fingerprint(longer));
  EXPECT_NE(fingerprint, call.rewriting().fingerprint());
}

TEST_F(SessionRewriteTest, WhatCannotBeDoneAgainIsNotDone) {
  MakeIterator call;
  *call.mutable_rewriting() = Rewritten(Example()).rewrite().rewriting();
  // Of nodes that only the rewritten plan could have.
  (*call.mutable_knobs()->mutable_nodes())[77].mutable_buffer_rows()->set_value(
      3);
  EXPECT_THAT(Make(Example(), call).error().message(), HasSubstr("node 77"));
  call.mutable_rewriting()->set_fingerprint("another");
  EXPECT_EQ(Make(Example(), call).make_iterator().fingerprint(),
            plan::Fingerprint(Example()));
  Rewrite again;
  *again.mutable_again() = call.rewriting();
  EXPECT_THAT(Rewritten(Example(), again).error().message(),
              HasSubstr("must make pipeline another"));
  EXPECT_NE(Rewritten(Range(1), again).error().code(), 0);
}

TEST_F(SessionRewriteTest, TracesThatCannotBeRead) {
  Rewrite call;
  call.set_path("/nowhere/trace.bin");
  EXPECT_NE(Rewritten(Example(), call).error().code(), 0);
  Request request;
  request.mutable_rewrite()->set_plan("no plan");
  EXPECT_THAT(Ask(request).error().message(), HasSubstr("damaged plan"));
}

}  // namespace
}  // namespace penstock::session

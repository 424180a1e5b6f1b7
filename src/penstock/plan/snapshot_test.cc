#include "penstock/plan/snapshot.h"

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::plan {
namespace {

using testing::HasSubstr;

Snapshot Chain() {
  Snapshot snapshot;
  snapshot.set_version(kSnapshotVersion);
  snapshot.set_fingerprint("f");
  snapshot.set_time_ns(1'000);
  snapshot.mutable_machine()->set_cores(2);
  for (uint32_t id : {0, 1}) {
    Snapshot::Node& node = *snapshot.add_nodes();
    node.set_node(id);
    node.set_op(id == 0 ? Node::kRange : Node::kMap);
    node.set_rows(10);
    node.set_self_ns(100);
    node.mutable_service_ns()->add_counts(4);
    node.mutable_queue()->set_row_ns(5);
    node.mutable_cache()->set_hits(1);
  }
  snapshot.mutable_nodes(1)->add_inputs(0);
  snapshot.set_root(1);
  return snapshot;
}

struct RefusalCase {
  std::string name;
  std::function<void(Snapshot&)> change;
  std::string want;
};

class RefusalTest : public testing::TestWithParam<RefusalCase> {};

TEST_P(RefusalTest, SaysWhatIsWrong) {
  Snapshot snapshot = Chain();
  EXPECT_TRUE(ValidateSnapshot(snapshot).ok()) << ValidateSnapshot(snapshot);
  GetParam().change(snapshot);
  const absl::Status status = ValidateSnapshot(snapshot);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().want));
}

INSTANTIATE_TEST_SUITE_P(
    Snapshots, RefusalTest,
    testing::ValuesIn<RefusalCase>({
        {"Version", [](Snapshot& s) { s.set_version(9); }, "version must be 1"},
        {"TwiceTheSame", [](Snapshot& s) { s.mutable_nodes(1)->set_node(0); },
         "must be there once"},
        {"UnknownInput", [](Snapshot& s) { s.mutable_nodes(1)->add_inputs(7); },
         "inputs among the nodes; got 7"},
        {"UnknownOutside",
         [](Snapshot& s) { s.mutable_nodes(1)->set_inside(7); },
         "inside one of the nodes; got 7"},
        {"Circle", [](Snapshot& s) { s.mutable_nodes(0)->add_inputs(1); },
         "circle"},
        {"InsideItself", [](Snapshot& s) { s.mutable_nodes(0)->set_inside(0); },
         "circle"},
        {"NoRoot", [](Snapshot& s) { s.set_root(5); }, "root must be"},
        {"NoCores", [](Snapshot& s) { s.mutable_machine()->set_cores(0); },
         "cores must be over 0"},
        {"NotANumber",
         [](Snapshot& s) {
           s.mutable_consumer()->set_gap_ns(
               std::numeric_limits<double>::quiet_NaN());
         },
         "must be finite"},
        {"Buckets",
         [](Snapshot& s) {
           for (int i = 0; i < 70; ++i) {
             s.mutable_nodes(0)->mutable_service_ns()->add_counts(1);
           }
         },
         "at most 65"},
        {"Integral",
         [](Snapshot& s) {
           s.mutable_nodes(0)->mutable_queue()->set_row_ns(-1);
         },
         "non-negative"},
        {"ManyNodes",
         [](Snapshot& s) {
           for (uint32_t i = 2; i < 10'002; ++i) s.add_nodes()->set_node(i);
         },
         "at most 10000 nodes"},
    }),
    [](const auto& info) { return info.param.name; });

TEST(WindowBetween, IsTheDifferenceOfTotals) {
  const Snapshot before = Chain();
  Snapshot after = before;
  after.set_time_ns(3'000);
  Snapshot::Node& node = *after.mutable_nodes(1);
  node.set_rows(25);
  node.set_cpu_ns(70);
  node.mutable_service_ns()->set_counts(0, 5);
  node.mutable_service_ns()->add_counts(2);
  node.mutable_queue()->set_capacity_rows(8);
  node.mutable_queue()->set_row_ns(9);
  node.mutable_cache()->set_is_complete(true);
  after.mutable_process()->set_resident_bytes(77);
  after.mutable_process()->set_engine_cpu_ns(50);
  const absl::StatusOr<Snapshot> window = WindowBetween(before, after);
  ASSERT_TRUE(window.ok()) << window.status();
  EXPECT_EQ(window->time_ns(), 2'000);
  EXPECT_EQ(window->nodes(0).rows(), 0);
  EXPECT_EQ(window->nodes(1).rows(), 15);
  EXPECT_EQ(window->nodes(1).cpu_ns(), 70);
  EXPECT_FALSE(window->nodes(0).has_cpu_ns());
  EXPECT_THAT(window->nodes(1).service_ns().counts(),
              testing::ElementsAre(1, 2));
  EXPECT_EQ(window->nodes(1).queue().row_ns(), 4);
  EXPECT_EQ(window->nodes(1).queue().capacity_rows(), 8);
  EXPECT_EQ(window->nodes(1).cache().hits(), 0);
  EXPECT_TRUE(window->nodes(1).cache().is_complete());
  EXPECT_EQ(window->process().engine_cpu_ns(), 50);
  EXPECT_EQ(window->process().resident_bytes(), 77);
}

TEST(WindowBetween, MeansNothingBetweenOthers) {
  const Snapshot before = Chain();
  Snapshot later = before;
  later.set_time_ns(2'000);
  ASSERT_TRUE(WindowBetween(before, later).ok());
  const std::vector<std::function<void(Snapshot&)>> changes = {
      [](Snapshot& s) { s.set_fingerprint("g"); },
      [](Snapshot& s) { s.set_run(4); },
      [](Snapshot& s) { s.set_time_ns(1'000); },
      [](Snapshot& s) { s.mutable_nodes(0)->set_rows(9); },
      [](Snapshot& s) { s.mutable_nodes(0)->set_node(9); },
      [](Snapshot& s) { s.mutable_nodes()->RemoveLast(); },
      [](Snapshot& s) {
        (*s.mutable_knobs()->mutable_nodes())[1]
            .mutable_parallelism()
            ->set_value(2);
      },
  };
  for (const auto& change : changes) {
    Snapshot after = later;
    change(after);
    EXPECT_EQ(WindowBetween(before, after).status().code(),
              absl::StatusCode::kFailedPrecondition)
        << WindowBetween(before, after).status();
  }
}

TEST(Describe, SaysWhatThePlanKnows) {
  const Plan plan =
      plan_testing::Batch(plan_testing::Shuffle(plan_testing::Range(9), 4), 2);
  Snapshot::Node range, shuffle, batch;
  Describe(plan, 0, range);
  Describe(plan, 1, shuffle);
  Describe(plan, 2, batch);
  EXPECT_EQ(range.op(), Node::kRange);
  EXPECT_EQ(range.name(), "range_0");
  EXPECT_EQ(range.cardinality().finite(), 9);
  EXPECT_FALSE(range.is_random());
  EXPECT_TRUE(shuffle.is_random());
  EXPECT_TRUE(batch.keeps_order());
  Snapshot::Node same_order;
  Describe(plan_testing::Shuffle(plan_testing::Range(9), 4, 1, false), 1,
           same_order);
  EXPECT_FALSE(same_order.is_random());
}

// Every field of knobs counts: a new one must not be forgotten.
TEST(SameKnobs, LooksAtEveryField) {
  const auto change = [](google::protobuf::Message& message,
                         const google::protobuf::FieldDescriptor* field) {
    const google::protobuf::Reflection& reflection = *message.GetReflection();
    switch (field->cpp_type()) {
      case google::protobuf::FieldDescriptor::CPPTYPE_INT64:
        return reflection.SetInt64(&message, field, 7);
      case google::protobuf::FieldDescriptor::CPPTYPE_DOUBLE:
        return reflection.SetDouble(&message, field, 0.5);
      case google::protobuf::FieldDescriptor::CPPTYPE_ENUM:
        return reflection.SetEnumValue(&message, field, 1);
      default:
        FAIL() << field->full_name() << " is of a kind that is not tested";
    }
  };
  const plan::Knobs none = [] {
    plan::Knobs knobs;
    (*knobs.mutable_nodes())[3];
    return knobs;
  }();
  const auto* node = plan::NodeKnobs::descriptor();
  for (int i = 0; i < node->field_count(); ++i) {
    const auto* inner = node->field(i)->message_type();
    plan::Knobs set = none;
    plan::NodeKnobs& own = (*set.mutable_nodes())[3];
    auto* message = own.GetReflection()->MutableMessage(&own, node->field(i));
    EXPECT_FALSE(plan::SameKnobs(none, set)) << node->field(i)->name();
    for (int k = 0; k < inner->field_count(); ++k) {
      plan::Knobs other = set;
      plan::NodeKnobs& theirs = (*other.mutable_nodes())[3];
      change(*theirs.GetReflection()->MutableMessage(&theirs, node->field(i)),
             inner->field(k));
      EXPECT_FALSE(plan::SameKnobs(set, other)) << inner->field(k)->full_name();
      EXPECT_TRUE(plan::SameKnobs(other, plan::Knobs(other)));
    }
    EXPECT_NE(message, nullptr);
  }
  plan::Knobs output = none;
  output.mutable_output_rows();
  EXPECT_FALSE(plan::SameKnobs(none, output));
  EXPECT_FALSE(plan::SameKnobs(none, plan::Knobs()));
}

}  // namespace
}  // namespace penstock::plan

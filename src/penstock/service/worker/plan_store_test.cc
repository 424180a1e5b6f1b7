#include "penstock/service/worker/plan_store.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/data/chunk_testing.h"
#include "penstock/data/encode.h"
#include "penstock/dispatcher.pb.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::service {
namespace {

using plan::Plan;
using plan_testing::AddConstant;
using plan_testing::Batch;
using plan_testing::Generator;
using plan_testing::Map;
using plan_testing::Range;
using testing::HasSubstr;

std::string BundleOf(const Plan& plan) {
  PlanBundle bundle;
  plan.SerializeToString(bundle.mutable_plan());
  bundle.set_directory("/data");
  return bundle.SerializeAsString();
}

TEST(ReadyPlanTest, IsDividedAndBuilt) {
  const auto plan = MakeReadyPlan(BundleOf(Batch(Range(100), 8)));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ((*plan)->division.rows, 100);
  EXPECT_TRUE((*plan)->division.stitch.has_value());
  EXPECT_NE((*plan)->pipeline, nullptr);
  EXPECT_EQ((*plan)->directory, "/data");
}

TEST(ReadyPlanTest, RefusesWhatDoesNotHoldTogether) {
  EXPECT_EQ(MakeReadyPlan("\xff\xff").status().code(),
            absl::StatusCode::kDataLoss);
  Plan plan = Batch(Range(100), 8);
  plan.mutable_nodes(0)->mutable_cardinality()->set_finite(7);
  EXPECT_EQ(MakeReadyPlan(BundleOf(plan)).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MakeReadyPlan(BundleOf(Plan())).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ReadyPlanTest, KeepsTheArraysThatCameAlong) {
  const Chunk chunk = ChunkOf({MakeColumn<int64_t>(std::vector<int64_t>{7})});
  PlanBundle bundle;
  Range(10).SerializeToString(bundle.mutable_plan());
  PlanBundle::Capture* capture = bundle.add_captures();
  capture->set_id("x");
  capture->mutable_bytes()->resize(EncodedSize(chunk));
  Buffer bytes = Buffer::Allocate(EncodedSize(chunk));
  Encode(chunk, bytes.MutableAs<std::byte>());
  capture->set_bytes(bytes.As<char>(), bytes.size());
  const auto plan = MakeReadyPlan(bundle.SerializeAsString());
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto found = (*plan)->captures->Capture("x");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(ToText(*Decode(*found)), std::vector<std::string>{"7"});
  EXPECT_TRUE(absl::IsNotFound((*plan)->captures->Capture("y").status()));
  EXPECT_THAT((*plan)->captures->Open("g", Chunk()).status().message(),
              HasSubstr("generator"));
}

TEST(PlanStoreTest, FetchesEachPlanOnce) {
  std::atomic<int> fetched{0};
  PlanStore store([&](const std::string&) {
    ++fetched;
    return BundleOf(Range(10));
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { EXPECT_TRUE(store.Get("a").ok()); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fetched, 1);
}

TEST(PlanStoreTest, ForgetsFailures) {
  int tries = 0;
  PlanStore store([&](const std::string&) -> absl::StatusOr<std::string> {
    if (++tries == 1) return absl::UnavailableError("not now");
    return BundleOf(Range(10));
  });
  EXPECT_TRUE(absl::IsUnavailable(store.Get("a").status()));
  EXPECT_TRUE(store.Get("a").ok());
}

TEST(PlanStoreTest, KeepsThoseThatWereUsedLast) {
  std::vector<std::string> fetched;
  PlanStore store(
      [&](const std::string& plan) {
        fetched.push_back(plan);
        return BundleOf(Range(10));
      },
      2);
  for (const char* plan : {"a", "b", "a", "c", "a", "b"}) {
    EXPECT_TRUE(store.Get(plan).ok());
  }
  EXPECT_EQ(store.size(), 2);
  EXPECT_THAT(fetched, testing::ElementsAre("a", "b", "c", "b"));
}

}  // namespace
}  // namespace penstock::service

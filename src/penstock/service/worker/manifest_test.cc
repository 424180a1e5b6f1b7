#include "penstock/service/worker/manifest.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/dispatcher.pb.h"
#include "penstock/engine/reader_testing.h"
#include "penstock/plan/divide_by_worker.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::service {
namespace {

using engine_testing::TestEngine;
using plan::Plan;
using plan_testing::Batch;
using plan_testing::ListFiles;
using plan_testing::Range;
using plan_testing::Repeat;
using plan_testing::Shuffle;
using plan_testing::Skip;
using plan_testing::Take;
using plan_testing::TextLines;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

struct SizeCase {
  std::string name;
  uint64_t rows;
  bool is_files;
  int64_t least_rows = 1;
  uint64_t want;
  bool is_kept = false;
};

class RowsPerBundleTest : public testing::TestWithParam<SizeCase> {};

TEST_P(RowsPerBundleTest, FollowsFromPlanAndData) {
  plan::Division division;
  division.is_files = GetParam().is_files;
  division.least_rows = GetParam().least_rows;
  division.is_kept = GetParam().is_kept;
  EXPECT_EQ(RowsPerBundle(division, GetParam().rows), GetParam().want);
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, RowsPerBundleTest,
    testing::ValuesIn<SizeCase>({
        {.name = "AFileEach", .rows = 4096, .is_files = true, .want = 1},
        {.name = "ManyFiles", .rows = 4097, .is_files = true, .want = 2},
        {.name = "FilesOfAnInterleave",
         .rows = 100,
         .is_files = true,
         .least_rows = 16,
         .want = 16},
        {.name = "FewFiles",
         .rows = 3,
         .is_files = true,
         .least_rows = 16,
         .want = 3},
        {.name = "NoFiles", .rows = 0, .is_files = true, .want = 1},
        {.name = "FewRows", .rows = 10, .is_files = false, .want = 10},
        {.name = "SomeRows", .rows = 1000, .is_files = false, .want = 64},
        {.name = "KeptRows",
         .rows = 1000,
         .is_files = false,
         .least_rows = 10,
         .want = 64,
         .is_kept = true},
        {.name = "KeptRowsOfWindows",
         .rows = 1000,
         .is_files = false,
         .least_rows = 65,
         .want = 128,
         .is_kept = true},
        {.name = "ManyRows",
         .rows = 1'000'000,
         .is_files = false,
         .want = 1024},
        {.name = "VeryManyRows",
         .rows = 10'000'000,
         .is_files = false,
         .want = 9766},
        {.name = "WholeBatches",
         .rows = 12'800,
         .is_files = false,
         .least_rows = 64,
         .want = 256},
        {.name = "AWideShuffle",
         .rows = 1'000'000,
         .is_files = false,
         .least_rows = 40'000,
         .want = 40'000},
        {.name = "NoRows", .rows = 0, .is_files = false, .want = 1},
    }),
    [](const auto& info) { return info.param.name; });

class ManifestTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::path(testing::TempDir()) / "manifest_test";
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    for (int i = 0; i < 12; ++i) {
      std::ofstream(directory_ / absl::StrCat(10 + i, ".txt")) << "text\n";
    }
  }
  absl::StatusOr<Manifest> Make(const Plan& plan) {
    PlanBundle bundle;
    plan.SerializeToString(bundle.mutable_plan());
    bundle.set_directory(directory_.string());
    const auto ready = MakeReadyPlan(bundle.SerializeAsString());
    if (!ready.ok()) return ready.status();
    return MakeManifest(**ready, io::LocalFileSystem(), engine_.environment(),
                        engine_.instances());
  }

  std::filesystem::path directory_;
  TestEngine engine_;
};

TEST_F(ManifestTest, CountsWhatIsKnown) {
  const auto manifest = Make(Shuffle(Repeat(Range(1000), 3), 100));
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->rows(), 1000);
  EXPECT_EQ(manifest->passes(), 3);
  EXPECT_EQ(manifest->rows_per_bundle(), 400);
  EXPECT_EQ(Make(Repeat(Range(1000)))->passes(), 0);
  EXPECT_EQ(Make(Batch(Range(1000), 10))->passes(), 1);
  EXPECT_EQ(Make(Repeat(Range(1000), 0))->rows(), 0);
}

TEST_F(ManifestTest, CountsFilesByFindingThem) {
  const auto manifest = Make(Skip(Take(ListFiles("*.txt", true), 10), 3));
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->rows(), 7);
  EXPECT_THAT(manifest->files(), SizeIs(12));
  EXPECT_EQ(manifest->files(0).name(), "10.txt");
  EXPECT_EQ(manifest->files(0).size(), 5);
  EXPECT_GT(manifest->files(0).changed_ns(), 0);
  ASSERT_THAT(manifest->listings(), SizeIs(1));
  EXPECT_EQ(manifest->listings(0).pattern(), "*.txt");
  EXPECT_THAT(manifest->listings(0).files(), SizeIs(12));
}

TEST_F(ManifestTest, FilesThatThePlanNamesAreInIt) {
  const auto manifest = Make(TextLines({"10.txt", "11.txt", "none.txt"}));
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->rows(), 3);
  EXPECT_THAT(manifest->files(), SizeIs(2));
}

TEST_F(ManifestTest, IsTheSameEachTime) {
  const Plan plan = ListFiles("*.txt", true);
  EXPECT_EQ(Make(plan)->SerializeAsString(), Make(plan)->SerializeAsString());
}

Plan ReadFrom(const std::string& address) {
  plan::Node node;
  plan::Distribution& asked = *node.mutable_received()->mutable_distribution();
  asked.set_address(address);
  asked.set_readers(1);
  return plan_testing::AppendOrDie({Range(1000)}, node);
}

TEST_F(ManifestTest, BundlesOfOtherJobsAreFoundByOpeningThem) {
  PlanBundle bundle;
  ReadFrom("a:1").SerializeToString(bundle.mutable_plan());
  const ServiceRules rules("a:1", {}, {});
  const auto ready = MakeReadyPlan(bundle.SerializeAsString(), nullptr, rules);
  ASSERT_TRUE(ready.ok()) << ready.status();
  const auto survey = [](const plan::Distribution& inner) {
    Manifest::Received found;
    found.set_source(HashOf(inner));
    found.set_manifest(77);
    found.set_bundles(130);
    return absl::StatusOr<Manifest::Received>(found);
  };
  const auto manifest =
      MakeManifest(**ready, io::LocalFileSystem(), engine_.environment(),
                   engine_.instances(), 0, survey);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->rows(), 130);
  EXPECT_EQ(manifest->rows_per_bundle(), 3) << "at most 64 bundles";
  ASSERT_THAT(manifest->received(), SizeIs(1));
  EXPECT_EQ(manifest->received(0).manifest(), 77);
  const auto part = PartOfBundle((*ready)->division, *manifest, 43, 0);
  ASSERT_TRUE(part.ok());
  EXPECT_TRUE(part->is_received);
  EXPECT_EQ(part->begin, 129);
  EXPECT_EQ(part->end, 130);
}

TEST_F(ManifestTest, FailsWhereNothingMatches) {
  const auto manifest = Make(ListFiles("*.csv"));
  EXPECT_TRUE(absl::IsNotFound(manifest.status())) << manifest.status();
  EXPECT_THAT(manifest.status().message(), HasSubstr("*.csv"));
}

TEST_F(ManifestTest, BundlesCoverAllRowsOfAllPasses) {
  const Plan plan = Repeat(Range(10), 2);
  const auto division = plan::Divide(plan);
  Manifest manifest;
  manifest.set_rows(10);
  manifest.set_rows_per_bundle(4);
  manifest.set_passes(2);
  std::vector<std::string> parts;
  for (uint64_t bundle = 0; bundle < 6; ++bundle) {
    const auto part = PartOfBundle(*division, manifest, bundle, 5);
    ASSERT_TRUE(part.ok());
    EXPECT_EQ(part->iteration, 5);
    parts.push_back(absl::StrCat(part->pass, ":", part->begin, "-", part->end));
  }
  EXPECT_THAT(parts, ElementsAre("0:0-4", "0:4-8", "0:8-10", "1:0-4", "1:4-8",
                                 "1:8-10"));
  EXPECT_TRUE(
      absl::IsOutOfRange(PartOfBundle(*division, manifest, 6, 0).status()));
}

// A file of records of 8 bytes.
Plan Records(const std::string& name) {
  plan::Node node;
  plan::ReadFiles& read = *node.mutable_read_files();
  *read.mutable_files() = plan_testing::Constant(plan_testing::Texts({name}));
  *read.mutable_fixed_length()->mutable_record_bytes() =
      plan_testing::Constant(int64_t{8});
  *read.mutable_fixed_length()->mutable_header_bytes() =
      plan_testing::Constant(int64_t{0});
  *read.mutable_fixed_length()->mutable_footer_bytes() =
      plan_testing::Constant(int64_t{0});
  return plan_testing::AppendOrDie({}, std::move(node));
}

TEST_F(ManifestTest, ALargeFileOfRecordsIsCut) {
  std::ofstream(directory_ / "large") << std::string(1 << 20, 'x');
  std::ofstream(directory_ / "small") << std::string(8, 'x');
  std::ofstream(directory_ / "odd") << std::string((1 << 20) + 1, 'x');
  const auto manifest = Make(Records("large"));
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->rows(), 1);
  EXPECT_EQ(manifest->pieces(), 4);
  EXPECT_EQ(Make(Records("small"))->pieces(), 0);
  EXPECT_EQ(Make(Records("odd"))->pieces(), 0) << "one error, not four";
  EXPECT_EQ(Make(Records("none"))->pieces(), 0);
  // A share has four windows.
  EXPECT_EQ(Make(Shuffle(Records("large"), 1 << 14))->pieces(), 2);

  const auto division = plan::Divide(Records("large"));
  for (uint64_t bundle = 0; bundle < 4; ++bundle) {
    const auto part = PartOfBundle(*division, *manifest, bundle, 0);
    ASSERT_TRUE(part.ok());
    EXPECT_EQ(part->begin, 0);
    EXPECT_EQ(part->end, 1);
    EXPECT_EQ(part->pieces, 4);
    EXPECT_EQ(part->piece, bundle);
  }
  EXPECT_TRUE(
      absl::IsOutOfRange(PartOfBundle(*division, *manifest, 4, 0).status()));
}

TEST_F(ManifestTest, AWorkerHasEveryNth) {
  const auto division = plan::DivideFor(Range(10), plan::Distribution::STATIC,
                                        plan::Distribution::DATA);
  ASSERT_TRUE(division.ok()) << division.status();
  Manifest manifest;
  manifest.set_rows(3);
  const auto part = PartOfBundle(*division, manifest, 2, 0);
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_EQ(part->node, 0);
  EXPECT_EQ(part->begin, 2);
  EXPECT_EQ(part->stride, 3);
  EXPECT_TRUE(
      absl::IsOutOfRange(PartOfBundle(*division, manifest, 3, 0).status()));
}

TEST_F(ManifestTest, StaticFilesMustBeEnoughForAllWorkers) {
  const auto make = [&](plan::Distribution::Sharding sharding,
                        uint32_t workers) -> absl::StatusOr<Manifest> {
    PlanBundle bundle;
    TextLines({"10.txt", "11.txt"}).SerializeToString(bundle.mutable_plan());
    bundle.set_directory(directory_.string());
    bundle.set_visitation(plan::Distribution::STATIC);
    bundle.set_sharding(sharding);
    const auto ready = MakeReadyPlan(bundle.SerializeAsString());
    if (!ready.ok()) return ready.status();
    return MakeManifest(**ready, io::LocalFileSystem(), engine_.environment(),
                        engine_.instances(), workers);
  };
  const auto two = make(plan::Distribution::FILE, 2);
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_EQ(two->rows(), 2);
  EXPECT_TRUE(two->is_by_file());
  const auto three = make(plan::Distribution::FILE, 3);
  EXPECT_TRUE(absl::IsInvalidArgument(three.status())) << three.status();
  EXPECT_THAT(three.status().message(), HasSubstr("3 workers; found 2"));
  const auto either = make(plan::Distribution::FILE_OR_DATA, 3);
  ASSERT_TRUE(either.ok()) << either.status();
  EXPECT_EQ(either->rows(), 3);
  EXPECT_FALSE(either->is_by_file());
}

}  // namespace
}  // namespace penstock::service

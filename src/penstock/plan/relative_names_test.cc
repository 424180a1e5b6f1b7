#include "penstock/plan/relative_names.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>

#include "penstock/data/encode.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::plan {
namespace {

using plan_testing::AddConstant;
using plan_testing::AppendOrDie;
using plan_testing::Batch;
using plan_testing::Bound;
using plan_testing::Concatenate;
using plan_testing::FlatMap;
using plan_testing::FunctionBuilder;
using plan_testing::Interleave;
using plan_testing::LeafOf;
using plan_testing::ListFiles;
using plan_testing::Map;
using plan_testing::Range;
using plan_testing::Shuffle;
using plan_testing::Strings;
using plan_testing::Text;
using plan_testing::TextLines;

absl::StatusOr<Buffer> FindNone(const std::string&) {
  return absl::NotFoundError("none");
}

bool MayOpen(const Plan& plan) { return MayOpenRelative(plan, FindNone); }

// name -> its lines, the name by way of `begin`, unless that is empty.
Function ToLines(const std::string& begin = "") {
  Node node;
  *node.mutable_read_files()->mutable_files() = Bound(0);
  node.mutable_read_files()->mutable_text();
  FunctionBuilder f("to_lines");
  auto name = f.Arg(0);
  if (!begin.empty()) name = f.Call("add", {f.Constant(Text(begin)), name});
  return f.ReturnDataset(
      AppendOrDie({}, std::move(node), {LeafOf(plan::STRING)}), {name});
}

TEST(RelativeNames, WithoutFilesThereAreNone) {
  EXPECT_FALSE(MayOpen(Batch(Map(Range(5), AddConstant(1)), 2)));
}

TEST(RelativeNames, OfConstants) {
  EXPECT_FALSE(MayOpen(TextLines({"/a", "/b"})));
  EXPECT_TRUE(MayOpen(TextLines({"/a", "b"})));
  EXPECT_TRUE(MayOpen(Concatenate(TextLines({"/a"}), TextLines({"b"}))));
}

TEST(RelativeNames, OfFilesThatAreListed) {
  EXPECT_FALSE(MayOpen(FlatMap(ListFiles("/data/*"), ToLines())));
  EXPECT_FALSE(MayOpen(Interleave(Shuffle(ListFiles("/*"), 9), ToLines(), 2)));
  EXPECT_TRUE(MayOpen(FlatMap(ListFiles("data/*"), ToLines())));
}

TEST(RelativeNames, OfArrays) {
  EXPECT_FALSE(MayOpen(FlatMap(Strings({"/a", "/b"}), ToLines())));
  EXPECT_TRUE(MayOpen(FlatMap(Strings({"/a", "b"}), ToLines())));
  Plan captured = FlatMap(Strings({"/a"}), ToLines());
  const std::string chunk = captured.nodes(0).rows().chunk();
  captured.mutable_nodes(0)->mutable_rows()->set_capture("names");
  EXPECT_TRUE(MayOpen(captured));
  EXPECT_FALSE(MayOpenRelative(captured, [&](const std::string& id) {
    EXPECT_EQ(id, "names");
    Buffer bytes = Buffer::Allocate(chunk.size());
    std::memcpy(bytes.MutableAs<char>(), chunk.data(), chunk.size());
    return absl::StatusOr<Buffer>(std::move(bytes));
  }));
}

TEST(RelativeNames, OfWhatTheyArePutTogetherOf) {
  EXPECT_FALSE(MayOpen(FlatMap(Strings({"a", "b"}), ToLines("/data/"))));
  EXPECT_TRUE(MayOpen(FlatMap(Strings({"/a", "/b"}), ToLines("data"))));
}

TEST(RelativeNames, ThatNobodyCanFollow) {
  // The lines of a file are names.
  EXPECT_TRUE(MayOpen(FlatMap(TextLines({"/list"}), ToLines())));
}

TEST(RelativeNames, OfCachesAndOptions) {
  Node cache;
  cache.mutable_cache()->set_filename("/kept");
  EXPECT_FALSE(MayOpen(AppendOrDie({Range(3)}, cache)));
  cache.mutable_cache()->set_filename("kept");
  EXPECT_TRUE(MayOpen(AppendOrDie({Range(3)}, cache)));
  Options options;
  options.set_kept_directory("kept");
  EXPECT_TRUE(MayOpen(plan_testing::WithOptions(Range(3), options)));
}

TEST(RelativeNames, OfPlansThatAreDistributed) {
  Node node;
  Distribution& asked = *node.mutable_received()->mutable_distribution();
  asked.set_address("localhost:5050");
  asked.set_readers(1);
  EXPECT_FALSE(MayOpen(AppendOrDie({TextLines({"/a"})}, node)));
  EXPECT_TRUE(MayOpen(AppendOrDie({TextLines({"a"})}, node)));
}

}  // namespace
}  // namespace penstock::plan

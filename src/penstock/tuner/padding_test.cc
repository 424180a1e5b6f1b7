#include "penstock/tuner/padding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::tuner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A node that has padded elements of length 10 and, one in four, 100.
plan::Snapshot Padded(uint32_t op, uint64_t items, uint64_t padded_items) {
  plan::Snapshot snapshot;
  plan::Snapshot::Node* node = snapshot.add_nodes();
  node->set_node(3);
  node->set_op(op);
  plan::PaddingCounts* padding = node->mutable_padding();
  padding->set_batches(10);
  padding->set_items(items);
  padding->set_padded_items(padded_items);
  padding->set_shapes(2);
  for (const auto& [length, rows] : {std::pair(10, 300), std::pair(100, 100)}) {
    plan::PaddingCounts::Length* to = padding->add_lengths();
    to->set_length(length);
    to->set_rows(rows);
  }
  return snapshot;
}

plan::Report ReportOf(const plan::Snapshot& snapshot) {
  plan::Report report;
  plan::Report::Node* node = report.add_nodes();
  node->set_node(3);
  node->set_name("pads_3");
  node->mutable_made_at()->set_file("train.py");
  node->mutable_made_at()->set_line(7);
  report.mutable_possible()->set_middle(5);
  AddPadding(snapshot, report);
  return report;
}

TEST(PaddingTest, OffersBucketsForABatch) {
  const plan::Report report =
      ReportOf(Padded(plan::Node::kPaddedBatch, 13'000, 40'000));
  const plan::Report::Padding& padding = report.nodes(0).padding();
  EXPECT_NEAR(padding.share(), 0.675, 1e-9);
  EXPECT_EQ(padding.shapes(), 2);
  EXPECT_THAT(padding.boundaries(), ElementsAre(11, 101));
  EXPECT_EQ(padding.best_share(), 0);
  ASSERT_EQ(report.fixes_size(), 1);
  EXPECT_EQ(report.fixes(0).title(),
            "use bucket_by_sequence_length with bucket_boundaries=[11, 101] in "
            "place of pads_3 at train.py:7");
  EXPECT_THAT(report.fixes(0).why(),
              HasSubstr("padding from 68 % to about 0 %"));
  EXPECT_TRUE(report.fixes(0).needs_the_user());
  EXPECT_EQ(report.fixes(0).expected().middle(), 5);
}

TEST(PaddingTest, OffersOtherBucketsAndWindows) {
  EXPECT_THAT(ReportOf(Padded(plan::Node::kBucketBySequenceLength, 1, 2))
                  .fixes(0)
                  .title(),
              HasSubstr("set bucket_boundaries=[11, 101] of pads_3"));
  EXPECT_THAT(
      ReportOf(Padded(plan::Node::kBatchByTokens, 1, 2)).fixes(0).title(),
      HasSubstr("set window=1024 of pads_3"));
}

TEST(PaddingTest, SaysNothingOfLittle) {
  const plan::Report report =
      ReportOf(Padded(plan::Node::kPaddedBatch, 90, 100));
  EXPECT_NEAR(report.nodes(0).padding().share(), 0.1, 1e-9);
  EXPECT_THAT(report.fixes(), IsEmpty());
  // A damaged trace.
  EXPECT_FALSE(
      ReportOf(Padded(plan::Node::kPaddedBatch, 9, 5)).nodes(0).has_padding());
}

// Of a report with this wall, two fixes of the user's and one that needs
// nobody: places and rates of all four.
std::vector<std::pair<std::string, double>> Ranked(const std::string& wall,
                                                   double next,
                                                   double cpu_share = 0) {
  plan::Report report;
  plan::Report::Node* node = report.add_nodes();
  node->set_node(3);
  node->set_name("pads_3");
  node->set_cpu_share(cpu_share);
  report.mutable_possible()->set_middle(5);
  report.mutable_wall()->set_kind(wall);
  report.mutable_next_wall()->set_rate(next);
  for (const auto& [title, rate] :
       {std::pair("tune", 6.0), std::pair("large", 8.0),
        std::pair("small", 5.5)}) {
    plan::Report::Fix* fix = report.add_fixes();
    fix->set_title(title);
    fix->mutable_expected()->set_middle(rate);
    fix->set_needs_the_user(std::string(title) != "tune");
  }
  AddPadding(Padded(plan::Node::kPaddedBatch, 20'000, 40'000), report);
  std::vector<std::pair<std::string, double>> ranked;
  for (const plan::Report::Fix& fix : report.fixes()) {
    ranked.emplace_back(fix.title().substr(0, 5), fix.expected().middle());
  }
  return ranked;
}

TEST(PaddingTest, IsRankedByItsGain) {
  using testing::Pair;
  // A consumer has half of its work.
  EXPECT_THAT(Ranked("consumer", 0),
              ElementsAre(Pair("tune", 6), Pair("use b", 10), Pair("large", 8),
                          Pair("small", 5.5)));
  // But not more than the pipeline gives.
  EXPECT_THAT(Ranked("consumer", 7),
              ElementsAre(Pair("tune", 6), Pair("large", 8), Pair("use b", 7),
                          Pair("small", 5.5)));
  // Half of what the node costs, and that is a third of all.
  EXPECT_THAT(Ranked("cores", 0, 1 / 3.0),
              ElementsAre(Pair("tune", 6), Pair("large", 8), Pair("use b", 6),
                          Pair("small", 5.5)));
  // Nothing, where something else is the limit.
  EXPECT_THAT(Ranked("disk bytes", 0),
              ElementsAre(Pair("tune", 6), Pair("large", 8), Pair("small", 5.5),
                          Pair("use b", 5)));
}

}  // namespace
}  // namespace penstock::tuner

#include "penstock/plan/infer.h"

#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/plan/convert.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::plan_testing {
namespace {

struct SpecCase {
  std::string name;
  Plan plan;
  std::string want;
};

class InferTest : public ::testing::TestWithParam<SpecCase> {};

TEST_P(InferTest, SaysWhatComesOut) {
  const Plan& plan = GetParam().plan;
  absl::StatusOr<penstock::ElementSpec> spec =
      plan::FromProto(plan.nodes(plan.nodes_size() - 1).output());
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->ToString(), GetParam().want);
}

Plan Of(plan::DType dtype, const Dims& dims) {
  return Generator(TensorOf(dtype, dims));
}
Plan OfUnknownRank() {
  ElementSpec spec = TensorOf(plan::INT64);
  spec.mutable_tensor()->mutable_shape()->set_unknown_rank(true);
  return Generator(spec);
}
Plan ZipAs(ElementSpec structure, std::vector<Plan> inputs) {
  Node node;
  *node.mutable_zip()->mutable_structure() = std::move(structure);
  return AppendOrDie(std::move(inputs), std::move(node));
}
// A state of one int64 in a vector of one, added to vectors of three.
Plan WideningFold(bool is_scan) {
  Chunk chunk;
  chunk.rows = 1;
  const std::vector<int64_t> values = {0};
  chunk.columns = {MakeColumn<int64_t>(values).Reshape(1, {1})};
  Node node;
  if (is_scan) {
    *node.mutable_scan()->mutable_initial_state() =
        RowsOf(chunk, TensorOf(plan::INT64, {1}));
    *node.mutable_scan()->mutable_function() = RunningSum();
  } else {
    *node.mutable_reduce()->mutable_initial_state() =
        RowsOf(chunk, TensorOf(plan::INT64, {1}));
    *node.mutable_reduce()->mutable_function() = Sum();
  }
  return AppendOrDie({Of(plan::INT64, {3})}, std::move(node));
}
Plan Slices() {
  Node node;
  *node.mutable_values()->add_values() = Constant(Vector({1, 2}));
  *node.mutable_values()->add_values() = Bound(0);
  *node.mutable_values()->mutable_structure() =
      TupleOf({TensorOf(plan::BOOL), TensorOf(plan::BOOL)});
  node.mutable_values()->set_slices(true);
  return AppendOrDie({}, std::move(node),
                     {LeafOf(plan::FLOAT32, {std::nullopt, 7})});
}

INSTANTIATE_TEST_SUITE_P(
    All, InferTest,
    ::testing::ValuesIn<SpecCase>({
        {"Range", Range(5), "int64()"},
        {"FloatRange", FloatRange(0, 1, 0.5), "float64()"},
        {"Random", Random(), "int64()"},
        {"Strings", Strings({"a", "bc"}), "string()"},
        {"Slices", Slices(), "(int64(), float32(7,))"},
        {"ListFiles", ListFiles("*"), "string()"},
        {"TfRecords", TfRecords({"a", "b"}), "string()"},
        {"Zip", Zip({Range(5), Strings({"a"})}), "(int64(), string())"},
        {"ZipDict",
         ZipAs(DictOf({{"a", TensorOf(plan::INT64)},
                       {"b", TupleOf({TensorOf(plan::INT64)})}}),
               {Range(5), Enumerate(Strings({"x"}))}),
         "{'a': int64(), 'b': ((int64(), string()),)}"},
        {"ConcatenateRelaxes",
         Concatenate(Of(plan::INT8, {2, 3}), Of(plan::INT8, {2, 4})),
         "int8(2, None)"},
        {"ConcatenateRanks",
         Concatenate(Of(plan::INT8, {2, 3}), Of(plan::INT8, {2})),
         "int8<unknown rank>"},
        {"Batch", Batch(Range(4), 2), "int64(None,)"},
        {"BatchDrop", Batch(Range(5), 2, true), "int64(2,)"},
        {"BatchTwice", Batch(Batch(Range(5), 2), 3, true), "int64(3, None)"},
        {"BatchUnknownRank", Batch(OfUnknownRank(), 2, true),
         "int64<unknown rank>"},
        {"PaddedDefault", PaddedBatch(Of(plan::STRING, {std::nullopt, 3}), 2),
         "string(None, None, 3)"},
        {"PaddedGiven",
         PaddedBatch(Of(plan::INT64, {std::nullopt, 3}), 2, {{std::nullopt, 5}},
                     true),
         "int64(2, None, 5)"},
        {"PaddedUnknownRank", PaddedBatch(OfUnknownRank(), 2, {{4}}),
         "int64(None, 4)"},
        {"PaddedOneValueForAll",
         PaddedBatch(Zip({Range(3), Range(3)}), 2, {}, false,
                     {Scalar(int64_t{-1})}),
         "(int64(None,), int64(None,))"},
        {"Unbatch", Unbatch(Of(plan::INT64, {2, 3})), "int64(3,)"},
        {"UnbatchUnknownRank", Unbatch(OfUnknownRank()), "int64<unknown rank>"},
        {"RebatchDivides", Rebatch(Of(plan::INT64, {4}), {2}), "int64(2,)"},
        {"RebatchRest", Rebatch(Of(plan::INT64, {4}), {3}), "int64(None,)"},
        {"RebatchDrop", Rebatch(Of(plan::INT64, {4}), {3, 3}, true),
         "int64(3,)"},
        {"RebatchCycle", Rebatch(Of(plan::INT64, {4}), {2, 0}, true),
         "int64(None,)"},
        {"RebatchDynamic", Rebatch(Of(plan::INT64, {std::nullopt}), {2}),
         "int64(None,)"},
        {"Map", Map(Range(5), IsLessThan(3)), "bool()"},
        {"MapToTuple", Map(Range(5), Pair()), "(int64(), int64())"},
        {"Filter", Filter(Range(5), IsLessThan(3)), "int64()"},
        {"FlatMap", FlatMap(Range(5), ToRange()), "int64()"},
        {"Interleave", Interleave(Range(5), ToDataset(Batch(Range(4), 2))),
         "int64(None,)"},
        {"Enumerate", Enumerate(Strings({"a"})), "(int64(), string())"},
        {"Scan", Scan(Range(5), 0, RunningSum()), "int64()"},
        {"ScanWidens", WideningFold(true), "int64(3,)"},
        {"Reduce", Reduce(Range(5), 0, Sum()), "int64()"},
        {"ReduceWidens", WideningFold(false), "int64(None,)"},
        {"Cache", Cache(Range(5)), "int64()"},
    }),
    [](const auto& info) { return info.param.name; });

TEST(Infer, CycleLengthIsTheCores) {
  const Plan plan = Interleave(Range(5), ToRange());
  EXPECT_EQ(plan.nodes(1).interleave().cycle_length(), 8);
  EXPECT_EQ(plan.nodes(1).interleave().block_length(), 1);
}

}  // namespace
}  // namespace penstock::plan_testing

#include "penstock/plan/convert.h"

#include <functional>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::plan {
namespace {

using plan_testing::DictOf;
using plan_testing::Dims;
using plan_testing::LeafOf;
using plan_testing::TensorOf;
using plan_testing::TupleOf;
using ::testing::HasSubstr;

ElementSpec NestedTuples(int depth) {
  ElementSpec spec = TensorOf(INT64);
  for (int i = 0; i < depth; ++i) spec = TupleOf({spec});
  return spec;
}

struct SpecCase {
  std::string name;
  ElementSpec spec;
  std::string want;  // how it reads, or the error
};

class SpecTest : public ::testing::TestWithParam<SpecCase> {};

TEST_P(SpecTest, ReadsBack) {
  const SpecCase& c = GetParam();
  absl::StatusOr<penstock::ElementSpec> spec = FromProto(c.spec);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->ToString(), c.want);
  EXPECT_EQ(ToProto(*spec).SerializeAsString(), c.spec.SerializeAsString());
}

ElementSpec Named() {
  ElementSpec spec;
  spec.mutable_named()->set_type_name("Point");
  spec.mutable_named()->add_fields("x");
  *spec.mutable_named()->add_values() = TensorOf(FLOAT32);
  return spec;
}

ElementSpec None() {
  ElementSpec spec;
  spec.mutable_none();
  return spec;
}

ElementSpec UnknownRank() {
  ElementSpec spec = TensorOf(STRING);
  spec.mutable_tensor()->mutable_shape()->set_unknown_rank(true);
  return spec;
}

ElementSpec Reordered() {
  ElementSpec spec = DictOf({{"a", TensorOf(INT8)}, {"b", TensorOf(BOOL)}});
  spec.mutable_dict()->add_order(1);
  spec.mutable_dict()->add_order(0);
  return spec;
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, SpecTest,
    ::testing::ValuesIn<SpecCase>({
        {"Scalar", TensorOf(INT64), "int64()"},
        {"Partial", TensorOf(FLOAT32, {std::nullopt, 3}), "float32(None, 3)"},
        {"UnknownRank", UnknownRank(), "string<unknown rank>"},
        {"EmptyTuple", TupleOf({}), "()"},
        {"Tuple", TupleOf({TensorOf(INT64), None()}), "(int64(), None)"},
        {"Dict", Reordered(), "{'a': int8(), 'b': bool()}"},
        {"Named", Named(), "Point(x=float32())"},
        {"Deepest", NestedTuples(kMaxSpecDepth),
         std::string(kMaxSpecDepth, '(') + "int64()" +
             [] {
               std::string close;
               for (int i = 0; i < kMaxSpecDepth; ++i) close += ",)";
               return close;
             }()},
    }),
    [](const auto& info) { return info.param.name; });

class BadSpecTest : public ::testing::TestWithParam<SpecCase> {};

TEST_P(BadSpecTest, IsRefused) {
  const SpecCase& c = GetParam();
  const absl::Status status = FromProto(c.spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(c.want));
}

ElementSpec BrokenDict(std::function<void(ElementSpec::Dict&)> spoil) {
  ElementSpec spec = DictOf({{"a", TensorOf(INT8)}, {"b", TensorOf(BOOL)}});
  spoil(*spec.mutable_dict());
  return spec;
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, BadSpecTest,
    ::testing::ValuesIn<SpecCase>({
        {"Nothing", ElementSpec(), "got nothing"},
        {"NoDType", TensorOf(DTYPE_UNSPECIFIED), "got number 0"},
        {"BadDType", TensorOf(static_cast<DType>(99)), "got number 99"},
        {"NegativeDimension", TensorOf(INT64, {-1}), "at least 0"},
        {"TooManyDimensions", TensorOf(INT64, Dims(9, 1)), "at most 8"},
        {"TooLarge", TensorOf(INT64, {int64_t{1} << 32, int64_t{1} << 32}),
         "less than 2^47 bytes"},
        {"TooLargeBesideZero",
         TensorOf(INT64, {0, int64_t{1} << 62, int64_t{1} << 62}),
         "less than 2^47 bytes"},
        {"TooDeep", NestedTuples(kMaxSpecDepth + 1), "nested at most"},
        {"DictUnsorted",
         BrokenDict([](ElementSpec::Dict& d) { d.set_keys(0, "c"); }),
         "sorted and differ; got 'c' before 'b'"},
        {"DictTwice",
         BrokenDict([](ElementSpec::Dict& d) { d.set_keys(0, "b"); }),
         "sorted and differ"},
        {"DictShort", BrokenDict([](ElementSpec::Dict& d) { d.add_keys("c"); }),
         "one value per key; got 3 keys and 2"},
        {"DictOrder", BrokenDict([](ElementSpec::Dict& d) {
           d.add_order(0);
           d.add_order(0);
         }),
         "name each of its keys once"},
        {"NamedShort",
         [] {
           ElementSpec spec = Named();
           spec.mutable_named()->add_fields("y");
           return spec;
         }(),
         "one value per field"},
        {"UnknownRankWithDimensions",
         [] {
           ElementSpec spec = TensorOf(INT64, {1});
           spec.mutable_tensor()->mutable_shape()->set_unknown_rank(true);
           return spec;
         }(),
         "unknown rank must have no dimensions"},
    }),
    [](const auto& info) { return info.param.name; });

// The deepest structure in the deepest function parses with protobuf's
// defaults.
TEST(Convert, DeepestSpecParses) {
  const std::string bytes = NestedTuples(kMaxSpecDepth).SerializeAsString();
  ElementSpec spec;
  EXPECT_TRUE(spec.ParseFromString(bytes));
}

TEST(ConvertTensor, Vector) {
  absl::StatusOr<Column> column = FromProto(plan_testing::Vector({1, 2, 3}));
  ASSERT_TRUE(column.ok()) << column.status();
  EXPECT_EQ(column->rows(), 1);
  EXPECT_EQ(column->shape(), Shape({3}));
  EXPECT_EQ(column->Row<int64_t>(0)[2], 3);
}

TEST(ConvertTensor, Strings) {
  absl::StatusOr<Column> column =
      FromProto(plan_testing::Texts({"one", std::string("\0x", 2)}));
  ASSERT_TRUE(column.ok()) << column.status();
  EXPECT_EQ(column->rows(), 1);
  EXPECT_EQ(column->shape(), Shape({2}));
  EXPECT_EQ(column->Row<StringRef>(0)[1].view(), std::string_view("\0x", 2));
}

TEST(ConvertTensor, Empty) {
  absl::StatusOr<Column> column = FromProto(plan_testing::Vector({}));
  ASSERT_TRUE(column.ok()) << column.status();
  EXPECT_EQ(column->shape(), Shape({0}));
}

struct TensorCase {
  std::string name;
  std::function<void(Tensor&)> spoil;  // of the vector [1, 2, 3]
  std::string want;
};

class BadTensorTest : public ::testing::TestWithParam<TensorCase> {};

TEST_P(BadTensorTest, IsRefused) {
  Tensor tensor = plan_testing::Vector({1, 2, 3});
  GetParam().spoil(tensor);
  const absl::Status status = FromProto(tensor).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().want));
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, BadTensorTest,
    ::testing::ValuesIn<TensorCase>({
        {"DType", [](Tensor& t) { t.set_dtype(static_cast<DType>(-3)); },
         "got number -3"},
        {"Short", [](Tensor& t) { t.mutable_data()->pop_back(); },
         "must have 24 bytes; got 23"},
        {"Long", [](Tensor& t) { t.mutable_data()->push_back('x'); },
         "must have 24 bytes; got 25"},
        {"Negative", [](Tensor& t) { t.set_shape(0, -3); }, "at least 0"},
        {"Overflow",
         [](Tensor& t) {
           t.set_shape(0, std::numeric_limits<int64_t>::max());
           t.add_shape(std::numeric_limits<int64_t>::max());
         },
         "less than 2^47"},
        {"Rank",
         [](Tensor& t) {
           for (int i = 0; i < 8; ++i) t.add_shape(1);
         },
         "at most 8 dimensions; got 9"},
        {"StringsOfNumbers", [](Tensor& t) { t.add_strings("x"); },
         "must have 24 bytes"},
        {"NoStrings", [](Tensor& t) { t.set_dtype(STRING); },
         "must have 3 strings; got 0"},
        {"Bool",
         [](Tensor& t) {
           t.set_dtype(BOOL);
           t.set_data("\1\2\1", 3);
         },
         "bytes 0 and 1"},
    }),
    [](const auto& info) { return info.param.name; });

TEST(MakeProgram, NamesTheStepsLine) {
  plan_testing::FunctionBuilder f("scale");
  Function function = f.Return(f.Call("no_such_function", {f.Arg(0)}));
  function.mutable_steps(1)->mutable_made_at()->set_file("train.py");
  function.mutable_steps(1)->mutable_made_at()->set_line(7);
  const penstock::TensorSpec argument;
  const absl::Status status = MakeProgram(function, {argument}, {}).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("no_such_function"));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("\n  in scale, at train.py:7"));
}

}  // namespace
}  // namespace penstock::plan

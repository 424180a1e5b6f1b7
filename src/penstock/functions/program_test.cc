#include "penstock/functions/program.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/functions/call_for_test.h"

namespace penstock::functions {
namespace {

using testing::HasSubstr;

const TensorSpec kInt = {DType::kInt64, {}};

Column Int(int64_t value) { return MakeColumn<int64_t>({value}); }
Step Number(int64_t value) { return ConstantStep{Int(value), true}; }
Step Apply(std::string function, std::vector<uint32_t> args, Attrs attrs = {}) {
  return CallStep{std::move(function), std::move(args), std::move(attrs)};
}

Program MakeOrDie(std::vector<Step> steps, std::vector<uint32_t> outputs,
                  std::vector<TensorSpec> bound = {}) {
  absl::StatusOr<Program> program =
      Program::Make(std::move(steps), std::move(outputs), {&kInt, 1}, bound);
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

std::vector<std::string> Texts(const Program& program, const Column& argument,
                               std::vector<Column> bound = {},
                               const std::vector<RowError>* known = nullptr) {
  std::vector<RowError> errors;
  EvalContext context;
  context.rows = argument.rows();
  context.errors = &errors;
  context.known_errors = known;
  absl::StatusOr<std::vector<Column>> results =
      program.Run({&argument, 1}, bound, context);
  EXPECT_TRUE(results.ok()) << results.status();
  std::vector<std::string> texts;
  for (const Column& column : *results) {
    texts.push_back(Text(column, errors));
  }
  return texts;
}

TEST(ProgramTest, RunsStepsInOrder) {
  const Program program =
      MakeOrDie({ArgumentStep{0}, Number(2), Apply("mod", {0, 1}), Number(0),
                 Apply("equal", {2, 3})},
                {4, 0});
  EXPECT_THAT(
      Texts(program, MakeColumn<int64_t>({1, 2, 3})),
      testing::ElementsAre("bool: False; True; False", "int64: 1; 2; 3"));
}

TEST(ProgramTest, CallsMayHaveSeveralResults) {
  const Program program =
      MakeOrDie({ArgumentStep{0}, Number(3), Apply("divmod", {0, 1}),
                 PartStep{2, 1}, Apply("add", {2, 3}), PartStep{2, 0}},
                {3, 4, 5});
  EXPECT_THAT(
      Texts(program, MakeColumn<int64_t>({7, -7})),
      testing::ElementsAre("int64: 1; 2", "int64: 3; -1", "int64: 2; -3"));
}

TEST(ProgramTest, PartsAreChecked) {
  for (const PartStep part : {PartStep{2, 2}, PartStep{0, 0}, PartStep{3, 0}}) {
    const absl::Status status =
        Program::Make(
            {ArgumentStep{0}, Number(3), Apply("divmod", {0, 1}), Step(part)},
            {3}, {&kInt, 1}, {})
            .status();
    EXPECT_THAT(std::string(status.message()), HasSubstr("must be one of"));
  }
}

TEST(ProgramTest, AnAbsentConstantIsEnoughToInfer) {
  const Program program = MakeOrDie(
      {ArgumentStep{0},
       AbsentStep{{DType::kFloat64, PartialShape(PartialShape::Dims{5})}},
       Apply("add", {0, 1})},
      {2});
  EXPECT_FALSE(program.is_complete());
  EXPECT_EQ(program.output_specs()[0].ToString(), "float64(5,)");
  EvalContext context;
  const Column argument = Int(1);
  context.rows = 1;
  EXPECT_FALSE(program.Run({&argument, 1}, {}, context).ok());
}

TEST(ProgramTest, KeepsAnOutputThatALaterStepUses) {
  const Program program =
      MakeOrDie({ArgumentStep{0}, Number(2), Apply("multiply", {0, 1}),
                 Apply("add", {2, 1}), Apply("add", {3, 2})},
                {2, 4});
  EXPECT_THAT(Texts(program, MakeColumn<int64_t>({1, 2})),
              testing::ElementsAre("int64: 2; 4", "int64: 6; 10"));
}

TEST(ProgramTest, RepeatsUniformOutputs) {
  const Program program = MakeOrDie(
      {ArgumentStep{0}, BoundStep{0}, Number(1), Apply("add", {1, 2})},
      {3, 2, 1}, {kInt});
  EXPECT_THAT(
      Texts(program, MakeColumn<int64_t>({0, 0}), {Int(5)}),
      testing::ElementsAre("int64: 6; 6", "int64: 1; 1", "int64: 5; 5"));
}

TEST(ProgramTest, SharesLargeUniformOutputs) {
  const Program program = MakeOrDie(
      {ArgumentStep{0}, ConstantStep{ZeroColumn(DType::kInt64, {100}, 1)}},
      {1});
  const Column argument = MakeColumn<int64_t>({0, 0, 0});
  EvalContext context;
  context.rows = 3;
  const auto results = program.Run({&argument, 1}, {}, context);
  ASSERT_TRUE(results.ok());
  EXPECT_EQ(results->at(0).rows(), 3);
  EXPECT_EQ(results->at(0).RowData(0), results->at(0).RowData(2));
}

TEST(ProgramTest, FoldsConstantsAndTheirErrors) {
  int error_step = -1;
  const auto program =
      Program::Make({ConstantStep{ZeroColumn(DType::kInt64, {3}, 1)}, Number(3),
                     Apply("take", {0, 1})},
                    {2}, {}, {}, &error_step);
  EXPECT_EQ(program.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(error_step, 2);
}

TEST(ProgramTest, FoldedShapesAreKnown) {
  const auto program =
      Program::Make({Number(4), Apply("arange", {0})}, {1}, {}, {});
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(program->output_specs()[0].ToString(), "int64(4,)");
}

TEST(ProgramTest, SaysWhatIsWrong) {
  struct Case {
    std::vector<Step> steps;
    std::string want;
  };
  const Case cases[] = {
      {{Apply("nothing", {})}, "there is no native function nothing"},
      {{Number(1), Apply("add", {0})}, "add takes 2 values; got 1"},
      {{Apply("negative", {0})}, "must come before it"},
      {{ArgumentStep{1}}, "an argument must be one of 1 components; got 1"},
      {{BoundStep{0}}, "a bound value must be one of 0; got 0"},
      {{Number(1), Apply("negative", {0}, {{"axis", None{}}})},
       "negative has no attribute axis"},
      {{Number(1), Apply("cast", {0})}, "cast needs the attribute dtype"},
      {{Number(1), Apply("sum", {0}, {{"axis", std::string("x")}})},
       "axis must be None, an int or a tuple of ints"},
  };
  for (const Case& c : cases) {
    const auto program = Program::Make(c.steps, {0}, {&kInt, 1}, {});
    EXPECT_THAT(std::string(program.status().message()), HasSubstr(c.want));
  }
}

TEST(ProgramTest, FirstErrorOfARowIsKept) {
  // x ** x, then [x][1]: rows with negative x fail twice.
  const Program program =
      MakeOrDie({ArgumentStep{0}, Apply("power", {0, 0}), Apply("stack", {1}),
                 Apply("getitem", {2, 0}, {{"spec", std::string("i")}})},
                {3});
  const std::string negative =
      "<integers to negative integer powers are not allowed; cast to a float>";
  EXPECT_THAT(Texts(program, MakeColumn<int64_t>({0, -3, 1})),
              testing::ElementsAre(
                  "int64: 1; " + negative +
                  "; <index 1 is out of bounds for axis 0 with size 1>"));
}

TEST(ProgramTest, KnownErrorsAreNotReported) {
  const Program program =
      MakeOrDie({ArgumentStep{0}, Apply("power", {0, 0})}, {1});
  const std::vector<RowError> known = {{0, absl::InternalError("before")},
                                       {2, absl::InternalError("before")}};
  const Column argument = MakeColumn<int64_t>({-1, -1, -1});
  std::vector<RowError> errors;
  EvalContext context;
  context.rows = 3;
  context.errors = &errors;
  context.known_errors = &known;
  ASSERT_TRUE(program.Run({&argument, 1}, {}, context).ok());
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].row, 1);
}

TEST(ProgramTest, ErrorOfABoundValueIsEveryRows) {
  const Program program = MakeOrDie(
      {ArgumentStep{0}, BoundStep{0}, Apply("power", {1, 1})}, {2}, {kInt});
  const std::vector<std::string> texts =
      Texts(program, MakeColumn<int64_t>({1, 2}), {Int(-1)});
  const std::string negative =
      "<integers to negative integer powers are not allowed; cast to a float>";
  EXPECT_EQ(texts[0], "int64: " + negative + "; " + negative);
}

TEST(ProgramTest, RefusesOtherColumnsThanPromised) {
  const Program program =
      MakeOrDie({ArgumentStep{0}, Apply("negative", {0})}, {1});
  EvalContext context;
  context.rows = 1;
  const Column wrong = MakeColumn<float>({1});
  EXPECT_FALSE(program.Run({&wrong, 1}, {}, context).ok());
  const Column more = MakeColumn<int64_t>({1, 2});
  EXPECT_FALSE(program.Run({&more, 1}, {}, context).ok());
  EXPECT_FALSE(program.Run({}, {}, context).ok());
}

TEST(FunctionsTest, EachIsDocumented) {
  std::set<std::string_view> names;
  for (const Function& function : AllFunctions()) {
    SCOPED_TRACE(std::string(function.name));
    EXPECT_TRUE(names.insert(function.name).second);
    EXPECT_EQ(FindFunction(function.name), &function);
    EXPECT_FALSE(function.params.empty());
    EXPECT_FALSE(function.doc.empty());
    EXPECT_EQ(function.doc.back(), '.');
    if (!function.is_internal) {
      EXPECT_THAT(std::string(function.example),
                  HasSubstr("ps." + std::string(function.name) + "("));
    }
    if (function.infer_parts == nullptr) {
      EXPECT_NE(function.infer, nullptr);
      EXPECT_NE(function.eval, nullptr);
    } else {
      EXPECT_NE(function.eval_parts, nullptr);
    }
    for (const Param& param : function.params) EXPECT_FALSE(param.doc.empty());
  }
  EXPECT_EQ(FindFunction("nothing"), nullptr);
}

}  // namespace
}  // namespace penstock::functions

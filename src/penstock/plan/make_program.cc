#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/plan/convert.h"
#include "penstock/plan/print.h"

namespace penstock::plan {
namespace {

absl::StatusOr<functions::Attr> FromProto(const Attr& attr) {
  switch (attr.kind_case()) {
    case Attr::kFlag:
      return attr.flag();
    case Attr::kInteger:
      return attr.integer();
    case Attr::kNumber:
      return attr.number();
    case Attr::kText:
      return attr.text();
    case Attr::kDtype:
      if (IsDType(attr.dtype())) {
        return static_cast<penstock::DType>(attr.dtype());
      }
      return absl::InvalidArgumentError(absl::StrCat(
          "dtype must be one of the known ones; got number ", attr.dtype()));
    case Attr::kIntegers:
      return std::vector<int64_t>(attr.integers().values().begin(),
                                  attr.integers().values().end());
    case Attr::kNumbers:
      return std::vector<double>(attr.numbers().values().begin(),
                                 attr.numbers().values().end());
    case Attr::kTexts:
      return std::vector<std::string>(attr.texts().values().begin(),
                                      attr.texts().values().end());
    case Attr::kNone:
    case Attr::KIND_NOT_SET:
      return functions::None{};
  }
  return absl::InternalError("not a kind of attribute");
}

absl::StatusOr<functions::Step> FromProto(const Function::Constant& constant,
                                          const CaptureColumn& captures) {
  if (constant.capture().empty()) {
    PENSTOCK_ASSIGN_OR_RETURN(Column value, plan::FromProto(constant.tensor()));
    return functions::ConstantStep{std::move(value), constant.weak()};
  }
  PENSTOCK_ASSIGN_OR_RETURN(penstock::TensorSpec spec,
                            plan::FromProto(constant.spec()));
  if (captures == nullptr) return functions::AbsentStep{std::move(spec)};
  PENSTOCK_ASSIGN_OR_RETURN(Column value, captures(constant.capture()));
  if (value.dtype() != spec.dtype || value.rows() != 1 || !value.is_dense() ||
      !spec.shape.Accepts(value.shape())) {
    return absl::DataLossError(absl::StrCat("a captured constant must be ",
                                            spec.ToString(), "; it is not"));
  }
  return functions::ConstantStep{std::move(value), /*is_weak=*/false};
}

absl::StatusOr<functions::Step> FromProto(const Function::Step& step,
                                          const CaptureColumn& captures) {
  switch (step.kind_case()) {
    case Function::Step::kArgument:
      return functions::ArgumentStep{step.argument()};
    case Function::Step::kBound:
      return functions::BoundStep{step.bound()};
    case Function::Step::kConstant:
      return FromProto(step.constant(), captures);
    case Function::Step::kPart:
      return functions::PartStep{step.part().call(), step.part().index()};
    case Function::Step::kCall: {
      functions::CallStep call;
      call.function = step.call().function();
      call.args.assign(step.call().args().begin(), step.call().args().end());
      for (const auto& [name, attr] : step.call().attrs()) {
        PENSTOCK_ASSIGN_OR_RETURN(call.attrs[name], FromProto(attr));
      }
      return call;
    }
    case Function::Step::KIND_NOT_SET:
      return absl::InvalidArgumentError(
          "a step must be an argument, bound value, constant or call; got "
          "nothing");
  }
  return absl::InternalError("not a kind of step");
}

absl::Status AtStep(const absl::Status& status, const Function& function,
                    int step) {
  const bool is_known = step >= 0 && step < function.steps_size() &&
                        !function.steps(step).made_at().file().empty();
  const Location& made_at =
      is_known ? function.steps(step).made_at() : function.made_at();
  std::string line = absl::StrCat(
      "  in ", function.name().empty() ? "the function" : function.name());
  if (!made_at.file().empty()) {
    absl::StrAppend(&line, ", at ", made_at.file(), ":", made_at.line());
  }
  return WithLine(status, line);
}

// What an error of each step is to say of its node.
std::vector<std::string> LinesOf(const Function& function) {
  std::vector<std::string> lines(function.steps_size());
  for (int i = 0; i < function.steps_size(); ++i) {
    const Function::Step& step = function.steps(i);
    if (!step.has_origin() ||
        step.origin() >= static_cast<uint32_t>(function.origins_size())) {
      continue;
    }
    const Function::Origin& origin =
        function.origins(static_cast<int>(step.origin()));
    lines[i] = LineOfNode(origin.node(), origin.made_at());
  }
  return lines;
}

}  // namespace

absl::StatusOr<functions::Program> MakeProgram(
    const Function& function, absl::Span<const penstock::TensorSpec> arguments,
    absl::Span<const penstock::TensorSpec> bound,
    const CaptureColumn& captures) {
  std::vector<functions::Step> steps;
  steps.reserve(function.steps_size());
  for (int i = 0; i < function.steps_size(); ++i) {
    absl::StatusOr<functions::Step> step =
        FromProto(function.steps(i), captures);
    if (!step.ok()) return AtStep(step.status(), function, i);
    steps.push_back(*std::move(step));
  }
  int error_step = -1;
  absl::StatusOr<functions::Program> program = functions::Program::Make(
      std::move(steps), {function.outputs().begin(), function.outputs().end()},
      arguments, bound, &error_step);
  if (!program.ok()) return AtStep(program.status(), function, error_step);
  if (function.origins_size() > 0) program->SetLines(LinesOf(function));
  return program;
}

bool IsRandom(const Function& function) {
  if (function.python().is_random()) return true;
  for (const Function::Step& step : function.steps()) {
    const functions::Function* called =
        functions::FindFunction(step.call().function());
    if (called != nullptr && called->is_random) return true;
  }
  return false;
}

}  // namespace penstock::plan

#include "penstock/functions/program.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "penstock/base/hash.h"
#include "penstock/base/status.h"
#include "penstock/functions/promote.h"

namespace penstock::functions {
namespace {

// Larger results of constants are computed when they are asked for.
constexpr int64_t kMaxFoldedBytes = 64 << 10;
// Rows at least this large are shared, not repeated, by a constant output.
constexpr int64_t kMinSharedRowBytes = 256;

absl::Status CheckParams(const Function& function, const CallStep& call) {
  size_t least = 0;
  size_t most = 0;
  for (const Param& param : function.params) {
    if (param.kind == ParamKind::kTensors) {
      least += 1;
      most = std::numeric_limits<size_t>::max();
    } else if (param.kind == ParamKind::kTensor) {
      if (param.default_value != "None") ++least;
      if (most != std::numeric_limits<size_t>::max()) ++most;
    }
  }
  if (call.args.size() < least || call.args.size() > most) {
    return absl::InvalidArgumentError(
        absl::StrCat(call.function, " takes ", least,
                     most > least ? " or more values" : " values", "; got ",
                     call.args.size()));
  }
  for (const auto& attr : call.attrs) {
    const bool is_known = std::any_of(
        function.params.begin(), function.params.end(), [&](const Param& p) {
          return p.name == attr.first && p.kind != ParamKind::kTensor &&
                 p.kind != ParamKind::kTensors;
        });
    if (!is_known) {
      return absl::InvalidArgumentError(
          absl::StrCat(call.function, " has no attribute ", attr.first));
    }
  }
  for (const Param& param : function.params) {
    if (param.kind != ParamKind::kTensor && param.kind != ParamKind::kTensors &&
        param.default_value.empty() &&
        !call.attrs.contains(std::string(param.name))) {
      return absl::InvalidArgumentError(absl::StrCat(
          call.function, " needs the attribute ", Text(param.name)));
    }
  }
  return absl::OkStatus();
}

// `value` as `rows` rows of the one it has.
Column Repeat(const Column& value, int64_t rows) {
  if (rows == 1) return value;
  const int64_t bytes =
      value.RowItems(0) * static_cast<int64_t>(ItemSize(value.dtype()));
  if (!value.is_dense() || bytes >= kMinSharedRowBytes) {
    Buffer pointers = Buffer::Allocate(rows * sizeof(void*));
    std::fill_n(pointers.MutableAs<const std::byte*>(), rows, value.RowData(0));
    const absl::Span<const int64_t> shape = value.RowShape(0);
    Buffer dims = Buffer::Allocate(rows * shape.size() * sizeof(int64_t));
    int64_t* dim = dims.MutableAs<int64_t>();
    for (int64_t row = 0; row < rows; ++row) {
      dim = std::copy(shape.begin(), shape.end(), dim);
    }
    Pins pins = value.pins();
    pins.push_back(value.values().owner());
    return Column::Ragged(value.dtype(), value.rank(), rows,
                          std::move(pointers), std::move(dims),
                          std::move(pins));
  }
  Buffer values = Buffer::Allocate(rows * bytes);
  std::byte* out = values.MutableAs<std::byte>();
  if (bytes == 8) {
    uint64_t item;
    std::memcpy(&item, value.values().data(), 8);
    std::fill_n(reinterpret_cast<uint64_t*>(out), rows, item);
  } else if (bytes > 0) {
    for (int64_t row = 0; row < rows; ++row, out += bytes) {
      std::memcpy(out, value.values().data(), bytes);
    }
  }
  return Column::Dense(value.dtype(), value.shape(), rows, std::move(values),
                       value.pins());
}

// Keeps the first error of each row, without those already known.
void KeepFirst(std::vector<RowError>& found, EvalContext& context) {
  std::stable_sort(
      found.begin(), found.end(),
      [](const RowError& a, const RowError& b) { return a.row < b.row; });
  if (context.errors == nullptr) return;
  const size_t before = context.errors->size();
  auto is_known = [&](int64_t row) {
    if (context.known_errors == nullptr) return false;
    return std::binary_search(
        context.known_errors->begin(), context.known_errors->end(),
        RowError{row, {}},
        [](const RowError& a, const RowError& b) { return a.row < b.row; });
  };
  for (RowError& error : found) {
    const bool is_repeated = context.errors->size() > before &&
                             context.errors->back().row == error.row;
    if (!is_repeated && !is_known(error.row)) {
      context.errors->push_back(std::move(error));
    }
  }
}

}  // namespace

absl::StatusOr<Program> Program::Make(std::vector<Step> steps,
                                      std::vector<uint32_t> outputs,
                                      absl::Span<const TensorSpec> arguments,
                                      absl::Span<const TensorSpec> bound,
                                      int* error_step) {
  Program program;
  program.steps_ = std::move(steps);
  program.outputs_ = std::move(outputs);
  program.values_.resize(program.steps_.size());
  for (uint32_t i = 0; i < program.steps_.size(); ++i) {
    absl::Status status = program.InferStep(i, arguments, bound);
    if (!status.ok()) {
      if (error_step != nullptr) *error_step = static_cast<int>(i);
      return status;
    }
    program.NoteRank(i);
  }
  for (uint32_t output : program.outputs_) {
    if (output >= program.steps_.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("an output must be one of ", program.steps_.size(),
                       " steps; got ", output));
    }
    if (!program.values_[output].is_output) {
      program.values_[output].place = program.output_specs_.size();
    }
    program.values_[output].is_output = true;
    program.output_specs_.push_back(program.values_[output].spec);
  }
  program.PlanFrees();
  return program;
}

// A rank that an argument has is the same for all rows of a chunk; one that a
// call finds out need not be.
void Program::NoteRank(uint32_t index) {
  if (values_[index].spec.shape.has_rank()) return;
  const auto* call = std::get_if<CallStep>(&steps_[index]);
  if (call == nullptr) return;
  has_unknown_rank_ |= std::all_of(
      call->args.begin(), call->args.end(),
      [this](uint32_t each) { return values_[each].spec.shape.has_rank(); });
}

absl::Status Program::InferStep(uint32_t index,
                                absl::Span<const TensorSpec> arguments,
                                absl::Span<const TensorSpec> bound) {
  Value& value = values_[index];
  Step& step = steps_[index];
  if (const auto* argument = std::get_if<ArgumentStep>(&step)) {
    if (argument->index >= arguments.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("an argument must be one of ", arguments.size(),
                       " components; got ", argument->index));
    }
    value.spec = arguments[argument->index];
    return absl::OkStatus();
  }
  if (const auto* bound_step = std::get_if<BoundStep>(&step)) {
    if (bound_step->index >= bound.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("a bound value must be one of ", bound.size(), "; got ",
                       bound_step->index));
    }
    value.spec = bound[bound_step->index];
    value.is_uniform = true;
    return absl::OkStatus();
  }
  if (const auto* constant = std::get_if<ConstantStep>(&step)) {
    if (!constant->value.is_dense() || constant->value.rows() != 1) {
      return absl::InvalidArgumentError("a constant must be one dense row");
    }
    value.spec = {
        constant->value.dtype(),
        PartialShape(absl::Span<const int64_t>(constant->value.shape()))};
    value.is_uniform = true;
    value.is_weak = constant->is_weak;
    return absl::OkStatus();
  }
  if (const auto* absent = std::get_if<AbsentStep>(&step)) {
    value.spec = absent->spec;
    value.is_uniform = true;
    is_complete_ = false;
    return absl::OkStatus();
  }
  if (std::holds_alternative<PartStep>(step)) return InferPart(index);
  return InferCall(index);
}

absl::Status Program::InferPart(uint32_t index) {
  const PartStep part = std::get<PartStep>(steps_[index]);
  const size_t parts = part.call < index ? values_[part.call].parts.size() : 0;
  if (part.index >= parts) {
    return absl::InvalidArgumentError(
        absl::StrCat("part ", part.index, " of step ", part.call,
                     " must be one of its ", parts, " results"));
  }
  values_[index].spec = values_[part.call].parts[part.index];
  values_[index].is_uniform = values_[part.call].is_uniform;
  return absl::OkStatus();
}

absl::Status Program::InferCall(uint32_t index) {
  Value& value = values_[index];
  const auto& call = std::get<CallStep>(steps_[index]);
  const Function* function = FindFunction(call.function);
  if (function == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no native function ", call.function));
  }
  PENSTOCK_RETURN_IF_ERROR(CheckParams(*function, call));
  std::vector<ArgSpec> args;
  value.is_uniform = !function->is_random;
  bool is_constant = value.is_uniform;
  for (uint32_t arg : call.args) {
    if (arg >= index) {
      return absl::InvalidArgumentError(absl::StrCat(
          "an argument of step ", index, " must come before it; got ", arg));
    }
    const auto* constant = std::get_if<ConstantStep>(&steps_[arg]);
    args.push_back({values_[arg].spec, values_[arg].is_weak,
                    constant != nullptr ? &constant->value : nullptr});
    value.is_uniform = value.is_uniform && values_[arg].is_uniform;
    is_constant = is_constant && constant != nullptr;
  }
  value.function = function;
  is_random_ = is_random_ || function->is_random;
  if (function->infer_parts != nullptr) {
    PENSTOCK_ASSIGN_OR_RETURN(value.parts,
                              function->infer_parts(args, call.attrs));
    value.spec = value.parts.at(0);
    is_constant = false;
  } else {
    PENSTOCK_ASSIGN_OR_RETURN(value.spec, function->infer(args, call.attrs));
  }
  if (function->prepare != nullptr && is_complete_) {
    PENSTOCK_ASSIGN_OR_RETURN(value.prepared,
                              function->prepare(args, call.attrs));
  }
  if (is_constant) return Fold(index);
  return absl::OkStatus();
}

absl::Status Program::Fold(uint32_t index) {
  Value& value = values_[index];
  if (value.spec.shape.is_fully_known() &&
      NumItems(value.spec.shape.ToShape()) > kMaxFoldedBytes) {
    return absl::OkStatus();
  }
  const auto& call = std::get<CallStep>(steps_[index]);
  absl::InlinedVector<Arg, 4> args;
  for (uint32_t arg : call.args) {
    args.push_back({&std::get<ConstantStep>(steps_[arg]).value, true,
                    values_[arg].is_weak});
  }
  std::vector<RowError> errors;
  EvalContext context;
  context.rows = 1;
  context.prepared = value.prepared.get();
  context.errors = &errors;
  PENSTOCK_ASSIGN_OR_RETURN(
      Column result,
      value.function->eval(args, call.attrs, value.spec, context));
  if (!errors.empty()) return errors.front().status;
  if (!result.is_dense()) result = RowOf(result, 0);
  if (result.row_bytes() > kMaxFoldedBytes) return absl::OkStatus();
  value.spec.shape = PartialShape(absl::Span<const int64_t>(result.shape()));
  value.function = nullptr;
  steps_[index] = ConstantStep{std::move(result), /*is_weak=*/false};
  return absl::OkStatus();
}

void Program::PlanFrees() {
  // Outputs first: a later step may use one too, and must not free it.
  std::vector<bool> is_needed(steps_.size(), false);
  for (size_t i = 0; i < steps_.size(); ++i)
    is_needed[i] = values_[i].is_output;
  for (uint32_t i = static_cast<uint32_t>(steps_.size()); i-- > 0;) {
    Value& value = values_[i];
    if (const auto* part = std::get_if<PartStep>(&steps_[i])) {
      // Its columns go with their call's, at the end.
      is_needed[i] = true;
      is_needed[part->call] = true;
      continue;
    }
    if (value.function == nullptr) continue;
    num_computed_ += std::max<size_t>(1, value.parts.size());
    for (uint32_t arg : std::get<CallStep>(steps_[i]).args) {
      if (!is_needed[arg] && values_[arg].function != nullptr &&
          values_[arg].parts.empty()) {
        value.frees.push_back(arg);
      }
      is_needed[arg] = true;
    }
  }
}

absl::Status Program::Locate(uint32_t index, const absl::Status& status) const {
  if (index >= lines_.size() || lines_[index].empty()) return status;
  absl::Status located(status.code(),
                       absl::StrCat(status.message(), "\n", lines_[index]));
  located.SetPayload(kLocated, absl::Cord());
  return located;
}

absl::StatusOr<std::vector<Column>> Program::Run(
    absl::Span<const Column> arguments, absl::Span<const Column> bound,
    EvalContext& context) const {
  if (!is_complete_) {
    return absl::InternalError("a program without its constants cannot run");
  }
  absl::InlinedVector<const Column*, 16> values(steps_.size());
  absl::InlinedVector<Column, 6> computed(num_computed_);
  absl::InlinedVector<Arg, 4> args;
  std::vector<RowError> found;
  size_t next = 0;
  for (uint32_t i = 0; i < steps_.size(); ++i) {
    const Value& value = values_[i];
    if (const auto* part = std::get_if<PartStep>(&steps_[i])) {
      values[i] = values[part->call] + part->index;
      continue;
    }
    if (value.function == nullptr) {
      PENSTOCK_ASSIGN_OR_RETURN(values[i],
                                InputOf(i, arguments, bound, context.rows));
      continue;
    }
    const auto& call = std::get<CallStep>(steps_[i]);
    args.clear();
    for (uint32_t arg : call.args) {
      const bool is_last_use = std::find(value.frees.begin(), value.frees.end(),
                                         arg) != value.frees.end();
      args.push_back({values[arg], values_[arg].is_uniform,
                      values_[arg].is_weak, is_last_use});
    }
    EvalContext own = context;
    own.errors = &found;
    own.prepared = value.prepared.get();
    own.random_key = Combine(context.random_key, i);
    const size_t found_before = found.size();
    if (value.is_uniform) own.rows = 1;
    const bool has_place = !context.places.empty() && value.is_output &&
                           !value.is_uniform && value.parts.empty();
    own.places = has_place ? context.places.subspan(value.place, 1)
                           : absl::Span<const Buffer>();
    values[i] = &computed[next];
    if (value.parts.empty()) {
      absl::StatusOr<Column> result =
          value.function->eval(args, call.attrs, value.spec, own);
      if (!result.ok()) return Locate(i, result.status());
      computed[next++] = *std::move(result);
    } else {
      absl::StatusOr<std::vector<Column>> parts =
          value.function->eval_parts(args, call.attrs, value.parts, own);
      if (!parts.ok()) return Locate(i, parts.status());
      for (Column& part : *parts) computed[next++] = std::move(part);
    }
    for (size_t k = found_before; k < found.size() && !lines_.empty(); ++k) {
      found[k].status = Locate(i, found[k].status);
    }
    if (value.is_uniform && found.size() > found_before) {
      // What goes wrong for the one value goes wrong in every row.
      const absl::Status status = found[found_before].status;
      found.resize(found_before);
      for (int64_t row = 0; row < context.rows; ++row) {
        found.push_back({row, status});
      }
    }
    for (uint32_t freed : value.frees) {
      *const_cast<Column*>(values[freed]) = Column();
    }
  }
  if (!found.empty()) KeepFirst(found, context);
  std::vector<Column> results;
  results.reserve(outputs_.size());
  for (uint32_t output : outputs_) {
    results.push_back(values_[output].is_uniform
                          ? Repeat(*values[output], context.rows)
                          : *values[output]);
  }
  return results;
}

absl::StatusOr<const Column*> Program::InputOf(
    uint32_t index, absl::Span<const Column> arguments,
    absl::Span<const Column> bound, int64_t rows) const {
  const Column* column = nullptr;
  if (const auto* constant = std::get_if<ConstantStep>(&steps_[index])) {
    return &constant->value;
  }
  if (const auto* argument = std::get_if<ArgumentStep>(&steps_[index])) {
    if (argument->index < arguments.size()) {
      column = &arguments[argument->index];
    }
  } else {
    const uint32_t at = std::get<BoundStep>(steps_[index]).index;
    if (at < bound.size()) column = &bound[at];
    rows = 1;
  }
  if (column == nullptr || column->rows() != rows ||
      column->dtype() != values_[index].spec.dtype) {
    return absl::InternalError(absl::StrCat(
        "step ", index, " of a program needs ", rows, " rows of ",
        values_[index].spec.ToString(), "; got ",
        column == nullptr ? "nothing"
                          : absl::StrCat(column->rows(), " of ",
                                         Text(Name(column->dtype())))));
  }
  return column;
}

}  // namespace penstock::functions

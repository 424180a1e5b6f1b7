#include "penstock/engine/ops/python_map.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/hash.h"
#include "penstock/base/status.h"
#include "penstock/engine/ops/parallel_map.h"

namespace penstock::engine {
namespace {

// What a call's result lacks: the rows' own components, if they are kept, their
// lineage, and in errors who says so.
class LocatedRows final : public PendingRows {
 public:
  LocatedRows(std::shared_ptr<PendingRows> call, Chunk input,
              const OpInfo& info, std::string name, bool keeps_input)
      : call_(std::move(call)),
        input_(std::move(input)),
        info_(info),
        name_(std::move(name)),
        keeps_input_(keeps_input) {}

  bool is_done() const override { return call_->is_done(); }
  int64_t nanos() const override { return call_->nanos(); }

  absl::StatusOr<Chunk> Take() override {
    absl::StatusOr<Chunk> result = call_->Take();
    if (!result.ok()) return info_.Located(result.status());
    if (result->rows != input_.rows) {
      return info_.Located(absl::InternalError(
          absl::StrCat("a Python process was given ", input_.rows,
                       " rows; it gave ", result->rows)));
    }
    PENSTOCK_RETURN_IF_ERROR(CheckResult(*result));
    for (RowError& error : result->errors) {
      if (ErrorAt(input_, error.row) == nullptr) {
        error.status = info_.Located(
            absl::Status(error.status.code(),
                         absl::StrCat("in ", name_, ": ",
                                      std::string(error.status.message()))));
      }
    }
    result->lineage = input_.lineage;
    if (keeps_input_) {
      std::vector<Column> columns = std::move(input_.columns);
      for (Column& column : result->columns) {
        columns.push_back(std::move(column));
      }
      result->columns = std::move(columns);
    }
    return result;
  }

 private:
  absl::Status CheckResult(const Chunk& result) const {
    if (keeps_input_) return absl::OkStatus();  // a verdict is looked at anyway
    return info_.Located(CheckColumns(result, info_.leaves));
  }

  const std::shared_ptr<PendingRows> call_;
  Chunk input_;
  const OpInfo& info_;
  const std::string name_;
  const bool keeps_input_;
};

// A word per row that a random generator is seeded with.
Column SeedsOf(const Chunk& input, uint64_t key) {
  Buffer words = Buffer::Allocate(input.rows * sizeof(uint64_t));
  auto* word = words.MutableAs<uint64_t>();
  const uint64_t* lineage =
      input.has_lineage() ? input.lineage.As<uint64_t>() : nullptr;
  for (int64_t row = 0; row < input.rows; ++row) {
    word[row] = Combine(key, lineage != nullptr ? lineage[row] : 0);
  }
  return Column::Dense(DType::kUint64, {}, input.rows, std::move(words));
}

RowFunctions::Settings SettingsOf(const plan::Function::Python& python,
                                  const plan::Options::Python& options) {
  RowFunctions::Settings settings;
  settings.capture = python.capture();
  settings.processes = options.processes();
  settings.memory_bytes = options.memory_bytes();
  settings.deadline_nanos =
      static_cast<int64_t>(std::min(options.deadline_seconds(), 1e9) * 1e9);
  return settings;
}

}  // namespace

OperatorOr MakePythonMap(const plan::Function& function,
                         const PythonMapOptions& options, OperatorPtr input,
                         OpContext& context) {
  const OpInfo& info = *context.info;
  const plan::Function::Python python = function.python();
  const std::string name = function.name();
  return MakeOperator([=, &info](const Scope& scope) -> StreamOr {
    RowFunctions* functions = scope.run->environment.functions;
    if (functions == nullptr) {
      return info.Located(absl::FailedPreconditionError(
          "there are no Python processes here to run a Python function in"));
    }
    PENSTOCK_ASSIGN_OR_RETURN(auto stream, input->Start(scope));
    const RowFunctions::Settings settings =
        SettingsOf(python, scope.run->options.python);
    const uint64_t key = scope.run->RandomKey(info, /*with_epoch=*/true);
    const bool keeps_input = options.keeps_input;
    const bool is_random = python.is_random();
    StartRows start = [functions, settings, key, is_random, keeps_input, name,
                       &info, run = scope.run](Chunk rows, Places,
                                               std::function<void()> done) {
      Chunk arguments = rows;
      if (is_random) arguments.columns.push_back(SeedsOf(rows, key));
      return std::make_shared<LocatedRows>(
          functions->Call(settings, std::move(arguments), std::move(done)),
          std::move(rows), info, name, keeps_input);
    };
    ParallelMapOptions map;
    map.parallelism = options.parallelism.value_or(functions->parallelism());
    map.keep_order =
        options.deterministic.value_or(scope.run->options.is_deterministic);
    map.is_exact = scope.run->options.is_row_exact;
    if (keeps_input) map.counts = Stream::Counts::kTime;
    return MakeParallelMapStream(scope, info, std::move(stream),
                                 std::move(start), map);
  });
}

}  // namespace penstock::engine

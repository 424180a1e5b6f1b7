#include "penstock/engine/ops/python_call.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/hash.h"
#include "penstock/base/status.h"
#include "penstock/engine/knobs.h"

namespace penstock::engine {
namespace {

// What all calls of a node have in common.
struct Callee {
  std::string name;
  PythonCallOptions options;
  const OpInfo& info;
};

// What a call's result lacks: the rows' own components, if they are kept, their
// lineage, and in errors who says so.
class LocatedRows final : public PendingRows {
 public:
  LocatedRows(std::shared_ptr<PendingRows> call, Chunk input, int64_t first,
              std::shared_ptr<const Callee> callee)
      : call_(std::move(call)),
        input_(std::move(input)),
        first_(first),
        callee_(std::move(callee)) {}

  bool is_done() const override { return call_->is_done(); }
  int64_t nanos() const override { return call_->nanos(); }

  absl::StatusOr<Chunk> Take() override {
    const OpInfo& info = callee_->info;
    absl::StatusOr<Chunk> result = call_->Take();
    if (!result.ok()) return info.Located(result.status());
    if (result->rows != input_.rows) {
      return info.Located(absl::InternalError(
          absl::StrCat("a Python process was given ", input_.rows,
                       " rows; it gave ", result->rows)));
    }
    PENSTOCK_RETURN_IF_ERROR(
        info.Located(CheckColumns(*result, callee_->options.result)));
    for (RowError& error : result->errors) {
      if (ErrorAt(input_, error.row) == nullptr) {
        error.status = info.Located(absl::Status(
            error.status.code(),
            absl::StrCat("in ", callee_->name, ", for element ",
                         first_ + error.row,
                         " (from 0): ", std::string(error.status.message()))));
      }
    }
    result->lineage = input_.lineage;
    if (callee_->options.keeps_input) {
      std::vector<Column> columns = std::move(input_.columns);
      for (Column& column : result->columns) {
        columns.push_back(std::move(column));
      }
      result->columns = std::move(columns);
    }
    return result;
  }

 private:
  const std::shared_ptr<PendingRows> call_;
  Chunk input_;
  const int64_t first_;
  const std::shared_ptr<const Callee> callee_;
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
                                  const RunOptions& run) {
  const plan::Options::Python& options = run.python;
  RowFunctions::Settings settings;
  settings.capture = python.capture();
  settings.processes = options.processes();
  settings.memory_bytes = options.memory_bytes();
  settings.deadline_nanos =
      static_cast<int64_t>(std::min(options.deadline_seconds(), 1e9) * 1e9);
  settings.max_element_bytes = run.max_element_bytes;
  return settings;
}

}  // namespace

absl::StatusOr<StartRows> StartInProcesses(const plan::Function& function,
                                           const PythonCallOptions& options,
                                           const Scope& scope,
                                           const OpInfo& info) {
  RowFunctions* functions = scope.run->environment.functions;
  if (functions == nullptr) {
    return info.Located(absl::FailedPreconditionError(
        "there are no Python processes here to run a Python function in"));
  }
  auto callee =
      std::make_shared<const Callee>(Callee{function.name(), options, info});
  RowFunctions::Settings settings =
      SettingsOf(function.python(), scope.run->options);
  static std::atomic<uint64_t> last_caller{0};
  settings.caller = ++last_caller;
  const uint64_t key = Combine(
      Combine(scope.run->RandomKey(info, /*with_epoch=*/true), scope.iteration),
      function.python().seed());
  const bool is_random = function.python().is_random();
  return
      [functions, settings, key, is_random, callee, run = scope.run](
          Chunk rows, int64_t first, Places,
          std::function<void()> done) mutable -> std::shared_ptr<PendingRows> {
        settings.at_once = KnobOr(run->knobs[callee->info.id].parallelism,
                                  callee->options.at_once);
        Chunk arguments = rows;
        arguments.columns.erase(
            arguments.columns.begin(),
            arguments.columns.begin() +
                static_cast<std::ptrdiff_t>(callee->options.first_argument));
        if (is_random) arguments.columns.push_back(SeedsOf(rows, key));
        return std::make_shared<LocatedRows>(
            functions->Call(settings, std::move(arguments), std::move(done)),
            std::move(rows), first, callee);
      };
}

}  // namespace penstock::engine

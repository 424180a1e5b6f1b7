#include "penstock/engine/python_testing.h"

#include <atomic>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "penstock/data/encode.h"
#include "penstock/data/nested.h"

namespace penstock::engine_testing {
namespace {

bool Fails(const Chunk& input, int64_t row) {
  return *input.columns[0].Row<int64_t>(row) % 7 == 3;
}

// The errors of `input`, and of what fails besides.
std::vector<RowError> ErrorsOf(const Chunk& input) {
  std::vector<RowError> errors;
  for (int64_t row = 0; row < input.rows; ++row) {
    if (const absl::Status* known = ErrorAt(input, row)) {
      errors.push_back({row, *known});
    } else if (Fails(input, row)) {
      errors.push_back({row, absl::InvalidArgumentError("raised")});
    }
  }
  return errors;
}

Chunk WithState(Chunk result, int64_t rows, int64_t state) {
  Chunk one;
  one.rows = 1;
  one.columns = {MakeColumn<int64_t>({state})};
  std::vector<Chunk> states(rows);
  states.back() = one;
  result.columns.push_back(EncodeNested(states));
  return result;
}

Chunk Folded(const std::string& name, const Chunk& input) {
  const absl::StatusOr<Chunk> before =
      DecodeNested(RowOf(input.columns.back(), 0));
  int64_t state = *before->columns[0].Row<int64_t>(0);
  Chunk result;
  result.rows = input.rows;
  result.errors = ErrorsOf(input);
  std::vector<int64_t> sums;
  for (int64_t row = 0; row < input.rows; ++row) {
    if (ErrorAt(result, row) == nullptr) {
      state += *input.columns[0].Row<int64_t>(row);
    }
    sums.push_back(state);
  }
  if (name == "running_sum") {
    result.columns.push_back(MakeColumn<int64_t>(absl::MakeConstSpan(sums)));
  }
  return WithState(std::move(result), input.rows, state);
}

Chunk Mapped(const std::string& name, const Chunk& input) {
  Chunk result;
  result.rows = input.rows;
  result.errors = ErrorsOf(input);
  std::vector<int64_t> numbers;
  std::vector<uint8_t> verdicts;
  std::vector<Chunk> datasets;
  int64_t divisor = 1;
  const bool is_mod =
      absl::SimpleAtoi(name.substr(name.find('_') + 1), &divisor);
  for (int64_t row = 0; row < input.rows; ++row) {
    const int64_t x = *input.columns[0].Row<int64_t>(row);
    numbers.push_back(is_mod ? x % divisor : 2 * x);
    verdicts.push_back(x % 2 == 0 ? 1 : 0);
    std::vector<int64_t> inside(ErrorAt(result, row) == nullptr ? x : 0);
    std::iota(inside.begin(), inside.end(), 0);
    Chunk& dataset = datasets.emplace_back();
    dataset.rows = static_cast<int64_t>(inside.size());
    dataset.columns = {MakeColumn<int64_t>(absl::MakeConstSpan(inside))};
  }
  if (name == "is_even") {
    Buffer values = Buffer::Allocate(verdicts.size());
    std::memcpy(values.MutableAs<uint8_t>(), verdicts.data(), verdicts.size());
    result.columns = {
        Column::Dense(DType::kBool, {}, input.rows, std::move(values))};
  } else if (name == "up_to") {
    result.columns = {EncodeNested(datasets)};
  } else {
    result.columns = {MakeColumn<int64_t>(absl::MakeConstSpan(numbers))};
  }
  return result;
}

plan::Function Python(const std::string& name, plan::ElementSpec output) {
  plan::Function function;
  function.set_name(name);
  *function.mutable_output() = std::move(output);
  function.mutable_python()->set_capture(name);
  function.mutable_python()->set_identity(name);
  function.mutable_python()->set_reason("the test says so");
  return function;
}

plan::ElementSpec Number() { return plan_testing::TensorOf(plan::INT64); }

}  // namespace

class FakeFunctions::Pending final : public engine::PendingRows {
 public:
  Pending(std::string name, Chunk input, std::function<void()> done)
      : name_(std::move(name)),
        input_(std::move(input)),
        done_(std::move(done)) {}

  bool is_done() const override { return is_done_.load(); }
  absl::StatusOr<Chunk> Take() override { return std::move(result_); }
  int64_t nanos() const override { return 1'000'000; }

  void Run() {
    const bool is_fold = name_ == "running_sum" || name_ == "sum";
    result_ = is_fold ? Folded(name_, input_) : Mapped(name_, input_);
    is_done_ = true;
    done_();
  }

 private:
  const std::string name_;
  const Chunk input_;
  const std::function<void()> done_;
  Chunk result_;
  std::atomic<bool> is_done_{false};
};

FakeFunctions::FakeFunctions() : thread_([this] { Run(); }) {}

FakeFunctions::~FakeFunctions() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::shared_ptr<engine::PendingRows> FakeFunctions::Call(
    const Settings& settings, Chunk input, std::function<void()> done) {
  auto pending = std::make_shared<Pending>(settings.capture, std::move(input),
                                           std::move(done));
  {
    std::lock_guard<std::mutex> lock(mutex_);
    queue_.push_back(pending);
  }
  changed_.notify_all();
  return pending;
}

void FakeFunctions::Run() {
  while (true) {
    std::shared_ptr<Pending> next;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [this] { return is_ending_ || !queue_.empty(); });
      if (is_ending_) return;
      next = std::move(queue_.front());
      queue_.pop_front();
    }
    next->Run();
  }
}

plan::Function PythonDouble() { return Python("double", Number()); }

plan::Function PythonIsEven() {
  return Python("is_even", plan_testing::TensorOf(plan::BOOL));
}

plan::Function PythonMod(int64_t divisor) {
  return Python(absl::StrCat("mod_", divisor), Number());
}

plan::Function PythonRunningSum() {
  return Python("running_sum", plan_testing::TupleOf({Number(), Number()}));
}

plan::Function PythonSum() { return Python("sum", Number()); }

plan::Function PythonUpTo() {
  plan::ElementSpec dataset;
  *dataset.mutable_dataset()->mutable_element() = Number();
  return Python("up_to", dataset);
}

}  // namespace penstock::engine_testing

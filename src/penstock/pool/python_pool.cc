#include "penstock/pool/python_pool.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <list>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/clock.h"
#include "penstock/base/status.h"
#include "penstock/data/encode.h"
#include "penstock/pool/result_memory.h"

namespace penstock::pool {
namespace {

// Of a process: one runs, the other is there when that is done.
constexpr size_t kCallsAtOnce = 2;
constexpr size_t kMinResultBytes = size_t{64} << 10;
constexpr size_t kMaxResultBytes = size_t{64} << 20;
constexpr int64_t kMillion = 1'000'000;
// A process whose calls nobody waits for any more is ended after this.
constexpr int64_t kAbandonedNanos = 500 * kMillion;

struct FunctionFile {
  uint64_t number;
  Descriptor memory;
  uint64_t bytes;
  // Of results so far, for a row: how much room to give.
  std::atomic<size_t> bytes_per_row{0};
};

// `more` joins `errors`; where both have a row, the first stays.
void Merge(std::vector<RowError>& errors, const std::vector<RowError>& more) {
  errors.insert(errors.end(), more.begin(), more.end());
  std::stable_sort(
      errors.begin(), errors.end(),
      [](const RowError& a, const RowError& b) { return a.row < b.row; });
  errors.erase(std::unique(errors.begin(), errors.end(),
                           [](const RowError& a, const RowError& b) {
                             return a.row == b.row;
                           }),
               errors.end());
}

}  // namespace

// A call, from when it is made until its result is taken. What the supervisor
// alone touches before it is done, the caller alone touches after.
class PoolCall final {
 public:
  PoolCall(engine::RowFunctions::Settings given_settings, Chunk given_input,
           std::function<void()> given_done)
      : settings(std::move(given_settings)),
        input(std::move(given_input)),
        done(std::move(given_done)) {}

  void Finish(absl::StatusOr<Chunk> given_result) {
    result = std::move(given_result);
    is_done.store(true, std::memory_order_release);
    done();
  }

  const engine::RowFunctions::Settings settings;
  Chunk input;
  const std::function<void()> done;
  uint64_t id = 0;
  std::shared_ptr<FunctionFile> function;
  std::optional<int64_t> died_at;  // the row where a process ended
  absl::StatusOr<Chunk> result = Chunk();
  int64_t nanos = 0;
  std::atomic<bool> is_done{false};
  std::atomic<bool> is_dropped{false};
};

namespace {

using CallPtr = std::shared_ptr<PoolCall>;

class CallHandle final : public engine::PendingRows {
 public:
  explicit CallHandle(CallPtr call) : call_(std::move(call)) {}
  ~CallHandle() override { call_->is_dropped.store(true); }

  bool is_done() const override {
    return call_->is_done.load(std::memory_order_acquire);
  }
  absl::StatusOr<Chunk> Take() override { return std::move(call_->result); }
  int64_t nanos() const override { return call_->nanos; }

 private:
  const CallPtr call_;
};

}  // namespace

// The thread that talks to the processes.
class Supervisor final {
 public:
  explicit Supervisor(const PythonPool::Options& options)
      : options_(options),
        max_processes_(static_cast<size_t>(std::max(1, options.processes))),
        arena_(std::make_shared<Arena>(options.memory_bytes)),
        event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  ~Supervisor() {
    {
      MutexLock lock(&mutex_);
      is_ending_ = true;
    }
    Nudge();
    if (thread_.joinable()) thread_.join();
  }

  void AddFunction(const std::string& id, Descriptor memory, uint64_t bytes,
                   PythonCommand command, std::vector<Descriptor> outputs) {
    MutexLock lock(&mutex_);
    auto file = std::make_shared<FunctionFile>();
    file->number = next_function_++;
    file->memory = std::move(memory);
    file->bytes = bytes;
    functions_[id] = std::move(file);
    command_ = std::move(command);
    outputs_ = std::move(outputs);
    if (outputs_.size() == 2) {
      command_.stdout_fd = outputs_[0].get();
      command_.stderr_fd = outputs_[1].get();
    }
  }

  void DropFunction(const std::string& id) {
    {
      MutexLock lock(&mutex_);
      const auto found = functions_.find(id);
      if (found == functions_.end()) return;
      forgotten_.push_back(found->second->number);
      functions_.erase(found);
    }
    Nudge();
  }

  bool is_own_thread() {
    MutexLock lock(&mutex_);
    return thread_.get_id() == std::this_thread::get_id();
  }

  PythonTimes times() {
    MutexLock lock(&mutex_);
    PythonTimes times = clock_.Until(SteadyClock().NowNanos());
    times.cpu_nanos = cpu_nanos_;
    return times;
  }

  void Submit(const CallPtr& call) {
    absl::Status refusal;
    {
      MutexLock lock(&mutex_);
      const auto found = functions_.find(call->settings.capture);
      if (found == functions_.end()) {
        refusal = absl::FailedPreconditionError(absl::StrCat(
            "Python function ", call->settings.capture, " is not here"));
      } else {
        call->function = found->second;
        call->id = next_call_++;
        queue_.push_back(call);
        if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
      }
    }
    if (!refusal.ok()) return call->Finish(refusal);
    Nudge();
  }

 private:
  struct Running {
    CallPtr call;
    Arena::Region in;
    Arena::Region out;  // of size 0: none
  };
  struct Worker {
    explicit Worker(WorkerProcess started) : process(std::move(started)) {}

    WorkerProcess process;
    bool is_ready = false;
    bool is_retiring = false;
    std::deque<Running> running;  // in the order in which it computes them
    std::set<uint32_t> segments;
    std::set<uint64_t> functions;
    // What it was last seen at, and since when.
    Progress seen = {};
    int64_t seen_since = 0;
    uint64_t cpu_nanos = 0;  // that it last told
    int64_t busy_at = 0;     // when it was last seen with something to do
  };
  using WorkerIt = std::list<Worker>::iterator;

  void Nudge() const {
    const uint64_t one = 1;
    // Full means that it will wake anyway.
    [[maybe_unused]] const ssize_t n = write(event_.get(), &one, sizeof(one));
  }

  void Run() {
    std::vector<pollfd> watched;
    while (true) {
      watched.clear();
      watched.push_back({event_.get(), POLLIN, 0});
      for (const Worker& worker : workers_) {
        watched.push_back({worker.process.fd(), POLLIN, 0});
      }
      poll(watched.data(), watched.size(), TimeoutMillis());
      uint64_t count;
      [[maybe_unused]] const ssize_t n =
          read(event_.get(), &count, sizeof(count));
      {
        MutexLock lock(&mutex_);
        if (is_ending_) break;
      }
      size_t i = 1;
      for (auto worker = workers_.begin(); worker != workers_.end(); ++i) {
        const auto current = worker++;
        if (i < watched.size() && watched[i].revents != 0) Listen(current);
      }
      for (auto worker = workers_.begin(); worker != workers_.end();) {
        CheckProgress(worker++);
      }
      Forget();
      Assign();
      EndIdle();
      NotePhase();
    }
    workers_.clear();
  }

  void EndIdle() {
    if (options_.idle_nanos <= 0) return;
    const int64_t now = SteadyClock().NowNanos();
    for (auto worker = workers_.begin(); worker != workers_.end();) {
      const auto current = worker++;
      if (!current->running.empty() || current->busy_at == 0) {
        current->busy_at = now;
      } else if (now - current->busy_at > options_.idle_nanos) {
        workers_.erase(current);
      }
    }
  }

  void NotePhase() {
    using Phase = PhaseClock::Phase;
    Phase phase = Phase::kIdle;
    for (const Worker& worker : workers_) {
      if (worker.running.empty()) continue;
      phase = std::max(phase,
                       worker.is_ready ? Phase::kComputing : Phase::kStarting);
    }
    MutexLock lock(&mutex_);
    if (!clock_.IsIn(phase)) clock_.Enter(phase, SteadyClock().NowNanos());
  }

  // Until something must be looked at though nobody says anything.
  int TimeoutMillis() const {
    int64_t nanos = std::numeric_limits<int64_t>::max();
    for (const Worker& worker : workers_) {
      for (const Running& running : worker.running) {
        const int64_t deadline = running.call->settings.deadline_nanos;
        if (deadline > 0) nanos = std::min(nanos, deadline / 4);
        if (running.call->is_dropped) nanos = std::min(nanos, 100 * kMillion);
      }
    }
    if (nanos == std::numeric_limits<int64_t>::max()) return 250;
    return static_cast<int>(std::clamp<int64_t>(nanos / kMillion, 5, 250));
  }

  void Listen(WorkerIt worker) {
    FromWorker message;
    std::vector<Descriptor> fds;
    std::string text;
    if (!worker->process.Receive(message, fds, text).ok()) {
      return Bury(worker, std::nullopt, /*has_hung_up=*/true);
    }
    cpu_nanos_ += static_cast<int64_t>(
        message.cpu_nanos - std::min(message.cpu_nanos, worker->cpu_nanos));
    worker->cpu_nanos = message.cpu_nanos;
    if (message.kind == FromWorker::kReady) {
      worker->is_ready = true;
      return;
    }
    if (worker->running.empty() ||
        worker->running.front().call->id != message.call) {
      return Bury(worker, std::nullopt);  // it does not keep the protocol
    }
    Running running = std::move(worker->running.front());
    worker->running.pop_front();
    const int64_t limit = running.call->settings.memory_bytes;
    if (limit > 0 && message.memory_bytes > static_cast<uint64_t>(limit)) {
      worker->is_retiring = true;
    }
    arena_->Free(running.in);
    running.call->nanos = static_cast<int64_t>(message.nanos);
    running.call->Finish(
        ResultOf(running, message, fds, text, worker->process.is_confined()));
    if (worker->is_retiring && worker->running.empty()) workers_.erase(worker);
  }

  absl::StatusOr<Chunk> ResultOf(Running& running, const FromWorker& message,
                                 std::vector<Descriptor>& fds,
                                 const std::string& text, bool is_confined) {
    PoolCall& call = *running.call;
    std::shared_ptr<void> room;
    if (running.out.size > 0) {
      room = std::shared_ptr<void>(
          running.out.data, [arena = arena_, region = running.out](void*) {
            arena->Free(region);
          });
    }
    if (message.kind == FromWorker::kFailed) {
      return absl::UnknownError(text);
    }
    Buffer bytes;
    if (message.kind == FromWorker::kDone) {
      if (message.bytes > running.out.size) {
        return absl::InternalError("a Python process gave too much");
      }
      bytes = Buffer(room, running.out.data, message.bytes);
      // It could change while it is looked at.
      if (is_confined) bytes = CopyOf(bytes);
    } else {
      if (fds.empty()) {
        return absl::InternalError("a Python process gave no memory");
      }
      PENSTOCK_ASSIGN_OR_RETURN(bytes, is_confined
                                           ? ReadFrom(fds[0], message.bytes)
                                           : MapOf(fds[0], message.bytes));
    }
    PENSTOCK_ASSIGN_OR_RETURN(Chunk result, Decode(bytes));
    if (result.rows > 0) {
      call.function->bytes_per_row.store(bytes.size() / result.rows + 1);
    }
    std::vector<RowError> errors = std::move(call.input.errors);
    Merge(errors, result.errors);
    result.errors = std::move(errors);
    return result;
  }

  // Ends rows past their deadline, and processes that nobody waits for.
  void CheckProgress(WorkerIt worker) {
    if (worker->running.empty()) return;
    const PoolCall& call = *worker->running.front().call;
    const int64_t now = SteadyClock().NowNanos();
    const Progress progress = worker->process.progress();
    if (progress.call != worker->seen.call ||
        progress.row != worker->seen.row || progress.call != call.id) {
      worker->seen = progress;
      worker->seen_since = now;
      return;
    }
    const int64_t took = now - worker->seen_since;
    const int64_t deadline = call.settings.deadline_nanos;
    if (deadline > 0 && took > deadline) {
      return Bury(worker,
                  absl::DeadlineExceededError(absl::StrCat(
                      "an element must be computed in ",
                      static_cast<double>(deadline) / 1e9,
                      " s; it took longer\n  Raise Options(python="
                      "ps.PythonOptions(deadline=...)), or see what the "
                      "function waits for.")));
    }
    const bool is_abandoned = std::all_of(
        worker->running.begin(), worker->running.end(),
        [](const Running& each) { return each.call->is_dropped.load(); });
    if (is_abandoned && took > kAbandonedNanos) Bury(worker, std::nullopt);
  }

  // A process has ended, or must: `verdict`, if set, of the row it was at. Its
  // calls go to others.
  void Bury(WorkerIt worker, std::optional<absl::Status> verdict,
            bool has_hung_up = false) {
    const Progress progress = worker->process.progress();
    const bool was_ready = worker->is_ready;
    std::deque<Running> running = std::move(worker->running);
    const std::string how = worker->process.End(has_hung_up);
    workers_.erase(worker);
    for (Running& each : running) {
      arena_->Free(each.in);
      if (each.out.size > 0) arena_->Free(each.out);
      if (progress.call == each.call->id) {
        Blame(*each.call, static_cast<int64_t>(progress.row), how, verdict);
      }
    }
    std::deque<CallPtr> failed;
    {
      MutexLock lock(&mutex_);
      for (auto it = running.rbegin(); it != running.rend(); ++it) {
        queue_.push_front(std::move(it->call));
      }
      // Others would end the same way.
      if (!was_ready) failed.swap(queue_);
    }
    for (const CallPtr& call : failed) {
      call->Finish(absl::FailedPreconditionError(absl::StrCat(
          "a Python process must start; it ", how,
          " before it was ready\n  Its standard error says why.")));
    }
  }

  static void Blame(PoolCall& call, int64_t row, const std::string& how,
                    std::optional<absl::Status> verdict) {
    if (row < 0 || row >= call.input.rows) return;
    if (!verdict.has_value()) {
      if (call.died_at != row) {
        call.died_at = row;  // once more
        return;
      }
      verdict = absl::UnavailableError(
          absl::StrCat("the process that computed this element ", how,
                       "; so did the one that tried again"));
    }
    Merge(call.input.errors, {RowError{row, *std::move(verdict)}});
    call.died_at.reset();
  }

  void Forget() {
    std::vector<uint64_t> numbers;
    {
      MutexLock lock(&mutex_);
      numbers.swap(forgotten_);
    }
    for (const uint64_t number : numbers) {
      for (Worker& worker : workers_) {
        if (worker.functions.erase(number) == 0) continue;
        ToWorker message;
        message.kind = ToWorker::kForget;
        message.function = number;
        worker.process.Send(message).IgnoreError();  // it is heard of later
      }
    }
  }

  void Assign() {
    size_t passed = 0;  // calls that have to wait; others need not
    while (true) {
      CallPtr call;
      PythonCommand command;
      {
        MutexLock lock(&mutex_);
        while (passed < queue_.size() && queue_[passed]->is_dropped) {
          queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(passed));
        }
        if (passed >= queue_.size()) return;
        call = queue_[passed];
        command = command_;
      }
      const WorkerIt worker = FindWorker(call, command);
      if (worker == workers_.end()) {
        if (!call->is_done) ++passed;
        continue;
      }
      absl::StatusOr<Running> running = Prepare(call);
      if (!running.ok()) return;  // until memory is free
      Unqueue(call);
      worker->running.push_back(*std::move(running));
      // If it is gone, what it said before is still to be read.
      if (!Give(*worker).ok()) worker->is_retiring = true;
    }
  }

  static bool Runs(const Worker& worker, uint64_t caller) {
    return std::any_of(worker.running.begin(), worker.running.end(),
                       [caller](const Running& each) {
                         return each.call->settings.caller == caller;
                       });
  }

  void Unqueue(const CallPtr& call) {
    MutexLock lock(&mutex_);
    queue_.erase(std::find(queue_.begin(), queue_.end(), call));
  }

  // One that has nothing to do, else a new one, else the least busy; once its
  // caller has as many as it may, one of those. None: it has to wait, or is
  // done, as no process starts.
  WorkerIt FindWorker(const CallPtr& call, const PythonCommand& command) {
    const uint64_t caller = call->settings.caller;
    const bool has_all = call->settings.at_once > 0 &&
                         std::count_if(workers_.begin(), workers_.end(),
                                       [caller](const Worker& each) {
                                         return Runs(each, caller);
                                       }) >= call->settings.at_once;
    WorkerIt best = workers_.end();
    for (auto it = workers_.begin(); it != workers_.end(); ++it) {
      if (it->is_retiring || it->running.size() >= kCallsAtOnce) continue;
      if (has_all && !Runs(*it, caller)) continue;
      if (best == workers_.end() || it->running.size() < best->running.size()) {
        best = it;
      }
    }
    if (has_all) return best;
    if (best != workers_.end() && best->running.empty()) return best;
    const auto wanted = static_cast<size_t>(call->settings.processes);
    const size_t allowed =
        options_.may_grow ? max_processes_ * 16 : max_processes_;
    const size_t most = wanted > 0 ? std::min(wanted, allowed) : max_processes_;
    if (workers_.size() < most) {
      absl::StatusOr<WorkerProcess> process = WorkerProcess::Start(command);
      if (process.ok()) {
        workers_.emplace_back(*std::move(process));
        return std::prev(workers_.end());
      }
      if (workers_.empty()) {
        Unqueue(call);
        call->Finish(process.status());
      }
    }
    return best;
  }

  absl::StatusOr<Running> Prepare(const CallPtr& call) {
    const bool is_alone =
        std::all_of(workers_.begin(), workers_.end(),
                    [](const Worker& each) { return each.running.empty(); });
    Running running;
    running.call = call;
    PENSTOCK_ASSIGN_OR_RETURN(
        running.in, arena_->Allocate(EncodedSize(call->input), is_alone));
    Encode(call->input, running.in.data);
    const size_t guess = call->function->bytes_per_row.load() *
                         static_cast<size_t>(call->input.rows);
    const size_t room =
        std::clamp(guess + guess / 4, kMinResultBytes, kMaxResultBytes);
    const absl::StatusOr<Arena::Region> out = arena_->Allocate(room);
    if (out.ok()) running.out = *out;  // else it makes room itself
    return running;
  }

  absl::Status Give(Worker& worker) {
    const Running& running = worker.running.back();
    const FunctionFile& function = *running.call->function;
    PENSTOCK_RETURN_IF_ERROR(ShowSegment(worker, running.in));
    if (running.out.size > 0) {
      PENSTOCK_RETURN_IF_ERROR(ShowSegment(worker, running.out));
    }
    if (worker.functions.insert(function.number).second) {
      ToWorker message;
      message.kind = ToWorker::kFunction;
      message.function = function.number;
      message.in_bytes = function.bytes;
      PENSTOCK_RETURN_IF_ERROR(
          worker.process.Send(message, function.memory.get()));
    }
    ToWorker message;
    message.kind = ToWorker::kCall;
    message.function = function.number;
    message.call = running.call->id;
    message.segment = running.in.segment;
    message.in_offset = running.in.offset;
    message.in_bytes = running.in.size;
    message.out_segment = running.out.segment;
    message.out_offset = running.out.offset;
    message.out_bytes = running.out.size;
    message.max_element_bytes =
        static_cast<uint64_t>(running.call->settings.max_element_bytes);
    return worker.process.Send(message);
  }

  absl::Status ShowSegment(Worker& worker, const Arena::Region& region) {
    if (!worker.segments.insert(region.segment).second) {
      return absl::OkStatus();
    }
    PENSTOCK_ASSIGN_OR_RETURN(const Arena::SegmentInfo info,
                              arena_->Segment(region.segment));
    ToWorker message;
    message.kind = ToWorker::kSegment;
    message.segment = region.segment;
    message.in_bytes = info.size;
    return worker.process.Send(message, info.fd);
  }

  const PythonPool::Options options_;
  const size_t max_processes_;
  const std::shared_ptr<Arena> arena_;
  const Descriptor event_;

  Mutex mutex_;
  std::map<std::string, std::shared_ptr<FunctionFile>> functions_
      ABSL_GUARDED_BY(mutex_);
  std::vector<uint64_t> forgotten_ ABSL_GUARDED_BY(mutex_);
  PythonCommand command_ ABSL_GUARDED_BY(mutex_);
  std::vector<Descriptor> outputs_ ABSL_GUARDED_BY(mutex_);
  std::deque<CallPtr> queue_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_function_ ABSL_GUARDED_BY(mutex_) = 1;
  uint64_t next_call_ ABSL_GUARDED_BY(mutex_) = 1;
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;
  PhaseClock clock_ ABSL_GUARDED_BY(mutex_);

  std::atomic<int64_t> cpu_nanos_{0};

  // Touched by the thread alone.
  std::list<Worker> workers_;
  std::thread thread_;
};

PythonPool::PythonPool(const Options& options)
    : processes_(std::max(1, options.processes)),
      supervisor_(std::make_shared<Supervisor>(options)) {}

PythonPool::~PythonPool() {
  // A thread cannot wait for itself.
  if (!supervisor_->is_own_thread()) return;
  std::thread([last = std::move(supervisor_)]() mutable {
    last.reset();
  }).detach();
}

void PythonPool::AddFunction(const std::string& id, Descriptor memory,
                             uint64_t bytes, PythonCommand command,
                             std::vector<Descriptor> outputs) {
  supervisor_->AddFunction(id, std::move(memory), bytes, std::move(command),
                           std::move(outputs));
}

void PythonPool::DropFunction(const std::string& id) {
  supervisor_->DropFunction(id);
}

PythonTimes PythonPool::times() const { return supervisor_->times(); }

std::shared_ptr<engine::PendingRows> PythonPool::Call(
    const Settings& settings, Chunk input, std::function<void()> done) {
  auto call =
      std::make_shared<PoolCall>(settings, std::move(input), std::move(done));
  auto handle = std::make_shared<CallHandle>(call);
  supervisor_->Submit(call);
  return handle;
}

}  // namespace penstock::pool

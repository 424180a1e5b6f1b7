#include "penstock/session/session.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "penstock/base/clock.h"
#include "penstock/base/cpu_clock.h"
#include "penstock/base/status.h"
#include "penstock/data/encode.h"
#include "penstock/io/file_system.h"
#include "penstock/io/relative_files.h"
#include "penstock/plan/builder.h"
#include "penstock/plan/convert.h"
#include "penstock/plan/distribute.h"
#include "penstock/plan/expect.h"
#include "penstock/plan/fingerprint.h"
#include "penstock/plan/infer.h"
#include "penstock/plan/print.h"
#include "penstock/plan/sample.h"
#include "penstock/plan/validate.h"
#include "penstock/service/client/consumer.h"
#include "penstock/session/apply_knobs.h"
#include "penstock/session/machine_cpu.h"
#include "penstock/session/random_word.h"
#include "penstock/session/take_snapshot.h"
#include "penstock/session/version.h"

namespace penstock::session {
namespace {

// A generator's rows are seen being made: not far ahead of the trainer.
constexpr int64_t kGeneratorRows = 64;
constexpr int64_t kGeneratorFrames = 2;
// Room for a few chunks of many rows, however little memory there is.
constexpr int64_t kMinArenaBytes = int64_t{8} << 20;
// Of rows that have come from workers, and wait.
constexpr int64_t kMaxReceivedBytes = int64_t{128} << 20;

// The bytes of a descriptor, mapped for reading as long as they are used.
absl::StatusOr<Buffer> Map(const Descriptor& fd, uint64_t bytes) {
  struct stat info;
  if (fstat(fd.get(), &info) != 0 ||
      static_cast<uint64_t>(info.st_size) < bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected ", bytes, " bytes of shared memory; got fewer"));
  }
  void* data = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot map ", bytes, " bytes: ", std::strerror(errno)));
  }
  Owner owner(data,
              [bytes](const void* p) { munmap(const_cast<void*>(p), bytes); });
  return Buffer(std::move(owner), data, bytes);
}

// Of shuffles and caches; frames and what is under way have the rest.
int64_t BudgetOf(const HostLimits& limits) { return limits.memory_bytes / 2; }

absl::string_view FirstLine(absl::string_view text) {
  return text.substr(0, text.find('\n'));
}

bool HasGenerator(const engine::Pipeline& pipeline) {
  return std::any_of(pipeline.ops().begin(), pipeline.ops().end(),
                     [](const engine::OpInfo& info) {
                       return info.name.find("from_generator") !=
                              std::string::npos;
                     });
}

// The plan for another number of consumers that read in rounds.
absl::Status Resize(const MakeIterator::Resize& resize, plan::Plan& plan) {
  bool has_rounds = false;
  for (plan::Node& node : *plan.mutable_nodes()) {
    if (node.received().distribution().consumers() == 0) continue;
    has_rounds = true;
    plan::Distribution& distribution =
        *node.mutable_received()->mutable_distribution();
    if (resize.has_consumers()) {
      distribution.set_consumers(resize.consumers());
    }
    if (resize.has_consumer()) distribution.set_consumer(resize.consumer());
    if (distribution.consumer() >= distribution.consumers()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "consumer must be in [0, ", distribution.consumers(),
          "), one of num_consumers; got ", distribution.consumer(),
          "\n  One that is no more among them closes its iterator."));
    }
  }
  if (has_rounds) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "resize() changes the number of consumers of a pipeline that ends in "
      "distribute(consumer=..., num_consumers=...); got another");
}

}  // namespace

absl::StatusOr<plan::Plan> Session::ParsePlan(const std::string& bytes) {
  plan::Plan plan;
  if (!plan.ParseFromString(bytes)) {
    return absl::DataLossError("damaged plan: it cannot be read");
  }
  return plan;
}

Session::Session(const HostLimits& limits, Descriptor service_socket)
    : limits_(limits),
      service_(std::move(service_socket)),
      io_pool_(kMaxReadThreads),
      kept_(std::make_shared<engine::KeptRows>()),
      memory_(std::make_shared<engine::MemoryBudget>(
          BudgetOf(limits), engine::KeptRows::ReclaimFrom(kept_))),
      instances_(RandomWord),
      python_({.processes = static_cast<int>(limits.cpus),
               .memory_bytes = static_cast<size_t>(
                   std::max(limits.memory_bytes / 8, kMinArenaBytes))}),
      speeds_(Speeds::RealOptions()),
      executor_(static_cast<int>(limits.cpus)) {}

void Session::SetLimits(const HostLimits& limits) {
  limits_.memory_bytes = limits.memory_bytes;
  memory_->SetLimit(BudgetOf(limits));
}

Session::~Session() {
  for (auto& [id, reading] : iterators_) reading.sender->Close();
}

Answer Session::Handle(const Request& request, std::vector<Descriptor> fds) {
  absl::StatusOr<Answer> answer = Call(request, std::move(fds));
  if (answer.ok()) return *std::move(answer);
  Answer failed;
  Error* error = failed.response.mutable_error();
  error->set_code(static_cast<int>(answer.status().code()));
  error->set_message(std::string(answer.status().message()));
  error->set_is_type_error(
      answer.status().GetPayload(plan::kTypeError).has_value());
  return failed;
}

absl::StatusOr<Answer> Session::Call(const Request& request,
                                     std::vector<Descriptor> fds) {
  absl::StatusOr<Response> response;
  switch (request.call_case()) {
    case Request::kHello:
      response = DoHello(request.hello());
      break;
    case Request::kAppend:
      response = DoAppend(request.append());
      break;
    case Request::kInfer:
      response = DoInfer(request.infer());
      break;
    case Request::kEvaluate:
      response = DoEvaluate(request.evaluate());
      break;
    case Request::kDescribe:
      response = DoDescribe(request.describe());
      break;
    case Request::kSample: {
      PENSTOCK_ASSIGN_OR_RETURN(plan::Plan plan,
                                ParsePlan(request.sample().plan()));
      PENSTOCK_RETURN_IF_ERROR(plan::Validate(plan));
      Response sample;
      if (request.sample().has_without_cache()) {
        PENSTOCK_RETURN_IF_ERROR(
            plan::LeaveOutCache(request.sample().without_cache(), plan));
      } else {
        plan::KeepForSample(plan);
      }
      plan.SerializeToString(sample.mutable_sample()->mutable_plan());
      response = std::move(sample);
      break;
    }
    case Request::kAddFunction:
      response = DoAddFunction(request.add_function(), std::move(fds));
      break;
    case Request::kAddCapture:
      response = DoAddCapture(request.add_capture(), std::move(fds));
      break;
    case Request::kDropCaptures:
      for (const std::string& id : request.drop_captures().ids()) {
        service_.DropCapture(id);
        python_.DropFunction(id);
      }
      response = Response();
      response->set_done(true);
      break;
    case Request::kDropInstances:
      for (uint64_t instance : request.drop_instances().instances()) {
        instances_.Drop(instance);
        caches_.Drop(instance);
        kept_->DropInstance(instance);
      }
      response = Response();
      response->set_done(true);
      break;
    case Request::kMakeIterator:
      response = DoMakeIterator(request.make_iterator(), std::move(fds));
      break;
    case Request::kGetSegment:
      return DoGetSegment(request.get_segment());
    case Request::kGetStats:
      response = DoGetStats(request.get_stats());
      break;
    case Request::kTrace:
      response = DoTrace(request.trace());
      break;
    case Request::kExplain:
      response = DoExplain(request.explain());
      break;
    case Request::kWhatIf:
      response = DoWhatIf(request.what_if());
      break;
    case Request::kSetKnobs:
      response = DoSetKnobs(request.set_knobs());
      break;
    case Request::kRewrite:
      response = DoRewrite(request.rewrite());
      break;
    case Request::kListPasses:
      response = DoListPasses();
      break;
    case Request::kRegisterPlan:
      response = DoRegister(request.register_plan());
      break;
    case Request::kGetRegistered:
      response = DoGetRegistered(request.get_registered());
      break;
    case Request::kUnregister:
      response = DoUnregister(request.unregister());
      break;
    case Request::kChooseBoundaries:
      response = DoChooseBoundaries(request.choose_boundaries());
      break;
    case Request::CALL_NOT_SET:
      return absl::InvalidArgumentError("a request names no call");
  }
  PENSTOCK_RETURN_IF_ERROR(response.status());
  return Answer{*std::move(response)};
}

absl::StatusOr<Response> Session::DoHello(const Hello& call) {
  if (call.version() != kVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "expected a package of version ", kVersion, "; got ", call.version(),
        "\n  Package and engine must be of one version: install "
        "again."));
  }
  Response response;
  HelloReply* reply = response.mutable_hello();
  reply->set_version(kVersion);
  reply->set_pid(getpid());
  reply->set_cpu_budget(limits_.cpus);
  reply->set_memory_budget_bytes(memory_->limit());
  return response;
}

namespace {

// The node with the dataset that its function returns in its place.
absl::StatusOr<plan::Node> WithDataset(plan::Node node, plan::Plan dataset) {
  if (node.has_flat_map()) {
    *node.mutable_flat_map()->mutable_function()->mutable_dataset() =
        std::move(dataset);
  } else if (node.has_interleave()) {
    *node.mutable_interleave()->mutable_function()->mutable_dataset() =
        std::move(dataset);
  } else if (node.has_map()) {
    *node.mutable_map()->mutable_function()->mutable_dataset() =
        std::move(dataset);
  } else if (node.has_group_by_window()) {
    *node.mutable_group_by_window()->mutable_reduce()->mutable_dataset() =
        std::move(dataset);
  } else {
    return plan::WithLine(
        plan::TypeError(absl::StrCat("the function of ", plan::OpName(node),
                                     " must return values; got a dataset")),
        absl::StrCat("  Use flat_map() or interleave().\n  made at ",
                     node.made_at().file(), ":", node.made_at().line()));
  }
  return node;
}

void AddInstances(const plan::Plan& plan, AppendReply& reply) {
  for (const plan::Node& node : plan.nodes()) {
    if (node.has_instance()) reply.add_instances(node.instance());
    if (const plan::Function* function = plan::DatasetFunctionOf(node)) {
      AddInstances(function->dataset(), reply);
    }
  }
}

}  // namespace

absl::StatusOr<Response> Session::DoAppend(const Append& call) {
  std::vector<plan::Plan> inputs;
  for (const std::string& bytes : call.plans()) {
    PENSTOCK_ASSIGN_OR_RETURN(plan::Plan input, ParsePlan(bytes));
    inputs.push_back(std::move(input));
  }
  const std::vector<plan::TensorSpec> bound(call.bound().begin(),
                                            call.bound().end());
  plan::Node node = call.node();
  if (call.has_dataset()) {
    PENSTOCK_ASSIGN_OR_RETURN(plan::Plan dataset, ParsePlan(call.dataset()));
    PENSTOCK_ASSIGN_OR_RETURN(node,
                              WithDataset(std::move(node), std::move(dataset)));
  }
  PENSTOCK_ASSIGN_OR_RETURN(
      const plan::Plan plan,
      plan::Append(std::move(inputs), std::move(node), bound, {RandomWord}));
  Response response;
  AppendReply* reply = response.mutable_append();
  plan.SerializeToString(reply->mutable_plan());
  const plan::Node& root = plan.nodes(plan.nodes_size() - 1);
  *reply->mutable_spec() = root.output();
  *reply->mutable_cardinality() = root.cardinality();
  AddInstances(plan, *reply);
  return response;
}

absl::StatusOr<Response> Session::DoInfer(const Infer& call) {
  std::vector<TensorSpec> arguments;
  std::vector<TensorSpec> bound;
  for (const plan::TensorSpec& proto : call.arguments()) {
    PENSTOCK_ASSIGN_OR_RETURN(TensorSpec spec, plan::FromProto(proto));
    arguments.push_back(std::move(spec));
  }
  for (const plan::TensorSpec& proto : call.bound()) {
    PENSTOCK_ASSIGN_OR_RETURN(TensorSpec spec, plan::FromProto(proto));
    bound.push_back(std::move(spec));
  }
  PENSTOCK_ASSIGN_OR_RETURN(
      const functions::Program program,
      plan::MakeProgram(call.function(), arguments, bound));
  Response response;
  for (const TensorSpec& spec : program.output_specs()) {
    *response.mutable_infer()->add_outputs() = plan::ToProto(spec);
  }
  response.mutable_infer();
  return response;
}

absl::StatusOr<Response> Session::DoEvaluate(const Evaluate& call) {
  PENSTOCK_ASSIGN_OR_RETURN(const functions::Program program,
                            plan::MakeProgram(call.function(), {}, {}));
  std::vector<RowError> errors;
  const uint64_t lineage = RandomWord();
  functions::EvalContext context;
  context.rows = 1;
  context.random_key = lineage;
  context.lineage = &lineage;
  context.errors = &errors;
  PENSTOCK_ASSIGN_OR_RETURN(std::vector<Column> columns,
                            program.Run({}, {}, context));
  if (!errors.empty()) return errors[0].status;
  Chunk chunk;
  chunk.rows = 1;
  chunk.columns = std::move(columns);
  Response response;
  std::string* bytes = response.mutable_evaluate()->mutable_chunk();
  bytes->resize(EncodedSize(chunk));
  Encode(chunk, reinterpret_cast<std::byte*>(bytes->data()));
  return response;
}

absl::StatusOr<Response> Session::DoDescribe(const Describe& call) {
  PENSTOCK_ASSIGN_OR_RETURN(const plan::Plan plan, ParsePlan(call.plan()));
  Response response;
  DescribeReply* reply = response.mutable_describe();
  reply->set_text(plan::Print(plan));
  reply->set_fingerprint(plan::Fingerprint(plan));
  for (int i = 0; i < plan.nodes_size(); ++i) {
    const plan::Node& node = plan.nodes(i);
    DescribeReply::Node* out = reply->add_nodes();
    out->set_name(plan::NodeName(plan, i));
    out->set_op(plan::OpName(node));
    out->set_detail(plan::Detail(node));
    *out->mutable_output() = node.output();
    *out->mutable_cardinality() = node.cardinality();
    *out->mutable_made_at() = node.made_at();
    *out->mutable_inputs() = node.inputs();
  }
  return response;
}

absl::StatusOr<Response> Session::DoAddCapture(const AddCapture& call,
                                               std::vector<Descriptor> fds) {
  if (fds.size() != 1) {
    return absl::InvalidArgumentError("add_capture needs one descriptor");
  }
  PENSTOCK_ASSIGN_OR_RETURN(Buffer bytes, Map(fds[0], call.bytes()));
  service_.AddCapture(call.id(), std::move(bytes));
  Response response;
  response.set_done(true);
  return response;
}

absl::StatusOr<Response> Session::DoAddFunction(const AddFunction& call,
                                                std::vector<Descriptor> fds) {
  if (fds.size() != 3) {
    return absl::InvalidArgumentError("add_function needs three descriptors");
  }
  pool::PythonCommand command;
  command.interpreter = call.interpreter();
  command.path.assign(call.path().begin(), call.path().end());
  command.directory = call.directory();
  Descriptor memory = std::move(fds[0]);
  fds.erase(fds.begin());
  python_.AddFunction(call.id(), std::move(memory), call.bytes(),
                      std::move(command), std::move(fds));
  Response response;
  response.set_done(true);
  return response;
}

absl::StatusOr<Response> Session::DoMakeIterator(const MakeIterator& call,
                                                 std::vector<Descriptor> fds) {
  if (fds.size() != 1) {
    return absl::InvalidArgumentError("make_iterator needs one socket");
  }
  PENSTOCK_ASSIGN_OR_RETURN(ToRun to_run, FindPlanToRun(call));
  if (call.has_resize()) {
    PENSTOCK_RETURN_IF_ERROR(Resize(call.resize(), to_run.plan));
  }
  PENSTOCK_RETURN_IF_ERROR(plan::ValidateOptions(call.defaults()));
  PENSTOCK_ASSIGN_OR_RETURN(
      auto pipeline,
      engine::Pipeline::Build(to_run.plan, call.defaults(), &service_));

  engine::Environment environment;
  environment.executor = &executor_;
  environment.has_counters = std::getenv("PENSTOCK_NO_COUNTERS") == nullptr;
  environment.files = FilesFrom(call.working_directory());
  environment.directory = call.working_directory();
  environment.io_pool = &io_pool_;
  environment.memory = memory_;
  if (pipeline->options().has_memory_budget_bytes()) {
    environment.memory = std::make_shared<engine::MemoryBudget>(
        pipeline->options().memory_budget_bytes(),
        engine::KeptRows::ReclaimFrom(kept_));
  }
  environment.caches = &caches_;
  environment.kept = kept_;
  if (pipeline->options().has_kept_directory()) {
    environment.kept_disk =
        DiskOf(pipeline->options().kept_directory(), call.working_directory());
  }
  environment.sources = &service_;
  PENSTOCK_ASSIGN_OR_RETURN(environment.receiver,
                            MakeReceiver(to_run.plan, call));
  environment.functions = &python_;
  environment.warn = [this](std::string_view text) { service_.Log(30, text); };

  for (const InstanceState& last : call.last()) {
    instances_.Resume(last.instance(), {last.seed(), last.epoch()},
                      /*is_recovery=*/true);
  }
  environment.frames = FrameMemory::Make(
      static_cast<size_t>(std::max(limits_.memory_bytes / 4, kMinArenaBytes)));
  std::optional<uint64_t> epoch;
  if (call.has_epoch()) epoch = call.epoch();
  std::optional<uint64_t> seed;
  if (call.has_seed()) seed = call.seed();
  absl::StatusOr<std::unique_ptr<engine::Iterator>> iterator =
      call.has_state()
          ? engine::Iterator::Resume(
                pipeline, environment, instances_, call.state(),
                static_cast<int64_t>(call.skip_rows()), call.is_recovery())
          : engine::Iterator::Start(pipeline, environment, instances_, epoch,
                                    seed);
  if (call.has_state() && absl::IsDataLoss(iterator.status())) {
    return absl::DataLossError(
        absl::StrCat("a state must be as it was saved; got a damaged one: ",
                     FirstLine(iterator.status().message()),
                     "\n  Use an earlier checkpoint."));
  }
  PENSTOCK_RETURN_IF_ERROR(iterator.status());

  FrameOptions options;
  if (pipeline->is_row_exact()) {
    const int64_t ahead = pipeline->options().run_ahead();
    options.exact_rows_ahead = ahead;
    // Two frames of what may be there, so that one is made while the other is
    // read.
    options.max_rows =
        std::clamp<int64_t>((ahead + 1) / 2, 1, options.max_rows);
  } else if (HasGenerator(*pipeline)) {
    options.max_rows = kGeneratorRows;
    options.run_ahead_frames = kGeneratorFrames;
  }
  options.max_element_bytes = (*iterator)->run()->options.max_element_bytes;

  Response response;
  IteratorInfo* info = response.mutable_make_iterator();
  info->set_state((*iterator)->Seal((*iterator)->Save()).state);
  info->set_is_row_exact(pipeline->is_row_exact());
  info->set_fingerprint(pipeline->fingerprint());
  if (to_run.rewriting) *info->mutable_rewriting() = *to_run.rewriting;
  for (const engine::OpInfo& op : pipeline->ops()) {
    // With a seed of its own it is none of the iterators that are counted.
    if (op.instance == 0 || seed.has_value()) continue;
    const engine::RandomState& random = (*iterator)->run()->random[op.id];
    InstanceState* state = info->add_random();
    state->set_instance(op.instance);
    state->set_seed(random.seed);
    state->set_epoch(random.epoch);
  }
  info->set_iterator(next_iterator_);
  Reading reading;
  reading.sender = std::make_shared<FrameSender>(
      &executor_, *std::move(iterator), std::move(environment.frames),
      std::move(fds[0]), options);
  PENSTOCK_RETURN_IF_ERROR(ApplyKnobs(to_run.knobs, *reading.sender));
  reading.knobs = std::move(to_run.knobs);
  reading.started_ns = SteadyClock().NowNanos();
  reading.cpu_ns_before = ProcessCpuNanos();
  reading.machine_cpu_before = MachineCpuNanos(limits_.cpus);
  reading.python_before = python_.times();
  reading.begun_at_ns = reading.started_ns;
  BeginTuning(reading);
  iterators_[next_iterator_++] = std::move(reading);
  return response;
}

absl::StatusOr<std::shared_ptr<engine::Receiver>> Session::MakeReceiver(
    const plan::Plan& plan, const MakeIterator& call) {
  bool is_distributed = false;
  bool is_plain = true;
  for (const plan::Node& node : plan.nodes()) {
    const bool is_source = node.received().has_distribution();
    is_plain &= (is_source && !is_distributed) || node.has_prefetch() ||
                node.has_with_options();
    is_distributed |= is_source;
  }
  if (call.states_size() > 0 && !(is_distributed && is_plain)) {
    return absl::InvalidArgumentError(
        "states of several readers go on together where nothing but prefetch "
        "follows distribute(); got a pipeline with more\n  Load the state of "
        "each reader in its own place, or move what follows before "
        "distribute().");
  }
  if (plan::DistributionsIn(plan).empty()) return nullptr;
  service::Consumer::Options options;
  options.directory = call.working_directory();
  options.defaults = call.defaults();
  options.budget_bytes = static_cast<uint64_t>(
      std::clamp(limits_.memory_bytes / 16, kMinArenaBytes, kMaxReceivedBytes));
  options.is_plain = is_plain;
  options.may_resize = call.has_resize();
  options.random = call.reader() != 0 ? call.reader() : RandomWord();
  auto consumer = std::make_shared<service::Consumer>(std::move(options));
  std::vector<service::ConsumerState> states;
  for (const MakeIterator::ReaderState& state : call.states()) {
    PENSTOCK_ASSIGN_OR_RETURN(
        states.emplace_back(),
        service::Consumer::StateOf(state.state(), state.skip_rows()));
  }
  consumer->RestoreFrom(std::move(states));
  return consumer;
}

io::FileSystem* Session::FilesFrom(const std::string& directory) {
  std::unique_ptr<io::FileSystem>& files = files_[directory];
  if (files == nullptr) {
    files = io::MakeRelativeFileSystem(io::LocalFileSystem(), directory);
  }
  return files.get();
}

std::shared_ptr<engine::KeptDisk> Session::DiskOf(
    const std::string& name, const std::string& directory) {
  namespace fs = std::filesystem;
  // Another version may compute other rows. Of the space that is left, half.
  const fs::path path = fs::path(directory) / name;
  std::shared_ptr<engine::KeptDisk>& disk = disks_[path.string()];
  if (disk != nullptr) return disk;
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  const fs::space_info space = fs::space(path.parent_path(), error);
  const int64_t bytes = error ? 0 : static_cast<int64_t>(space.available / 2);
  mkdir(path.c_str(), 0700);
  disk = std::make_shared<engine::KeptDisk>((path / kVersion).string(), bytes);
  return disk;
}

absl::StatusOr<Session::Reading*> Session::FindReading(uint64_t iterator) {
  auto it = iterators_.find(iterator);
  if (it == iterators_.end()) {
    return absl::NotFoundError(absl::StrCat("no iterator ", iterator));
  }
  return &it->second;
}

absl::StatusOr<FrameSender*> Session::FindSender(uint64_t iterator) {
  PENSTOCK_ASSIGN_OR_RETURN(Reading * reading, FindReading(iterator));
  return reading->sender.get();
}

absl::StatusOr<Answer> Session::DoGetSegment(const GetSegment& call) {
  PENSTOCK_ASSIGN_OR_RETURN(FrameSender * sender, FindSender(call.iterator()));
  PENSTOCK_ASSIGN_OR_RETURN(FrameMemory::Segment segment,
                            sender->memory().Find(call.segment()));
  Answer answer;
  answer.response.mutable_get_segment()->set_bytes(segment.size);
  answer.fds = std::move(segment.fds);
  answer.keeper = std::move(segment.keeper);
  return answer;
}

absl::StatusOr<Response> Session::DoGetStats(const GetStats& call) {
  PENSTOCK_ASSIGN_OR_RETURN(FrameSender * sender, FindSender(call.iterator()));
  const Reading& reading = iterators_[call.iterator()];
  Response response;
  Stats* stats = response.mutable_get_stats();
  stats->set_wall_ns(SteadyClock().NowNanos() - reading.started_ns);
  stats->set_cpu_ns(ProcessCpuNanos() - reading.cpu_ns_before);
  const pool::PythonTimes python = python_.times();
  stats->set_python_start_ns(python.starting_nanos -
                             reading.python_before.starting_nanos);
  stats->set_python_ns(python.computing_nanos -
                       reading.python_before.computing_nanos);
  stats->set_tuning_ns(static_cast<uint64_t>(reading.tuning_cpu_ns));
  stats->set_rows(sender->rows());
  stats->set_bytes(sender->bytes());
  uint64_t io_bytes = 0;
  const engine::Run& run = sender->run();
  // The root comes last, after what the plans inside its function have.
  std::vector<const engine::OpInfo*> ops;
  const engine::OpInfo& root = sender->pipeline()->root_info();
  for (const engine::OpInfo& info : sender->pipeline()->ops()) {
    if (&info != &root) ops.push_back(&info);
  }
  ops.push_back(&root);
  for (const engine::OpInfo* op : ops) {
    const engine::OpInfo& info = *op;
    const engine::NodeStats& from = run.stats[info.id];
    Stats::Node* node = stats->add_nodes();
    node->set_node(info.id);
    node->set_name(info.name);
    *node->mutable_made_at() = info.made_at;
    node->set_rows(from.rows);
    node->set_chunks(from.chunks);
    node->set_bytes(from.bytes);
    node->set_errors(from.errors);
    node->set_self_ns(static_cast<uint64_t>(
        static_cast<double>(from.self_ticks) * NanosPerTick()));
    node->set_blocked(from.blocked);
    for (int input : info.inputs) node->add_inputs(input);
    io_bytes += from.io->bytes + from.io->cached_bytes;
  }
  stats->set_io_bytes(io_bytes);
  return response;
}

std::vector<int> Session::IteratorSockets() const {
  std::vector<int> sockets;
  for (const auto& [id, reading] : iterators_) {
    sockets.push_back(reading.sender->fd());
  }
  return sockets;
}

void Session::OnReadable(int fd) {
  for (auto it = iterators_.begin(); it != iterators_.end(); ++it) {
    if (it->second.sender->fd() != fd) continue;
    if (!it->second.sender->OnReadable().ok()) {
      it->second.sender->Close();
      iterators_.erase(it);
    }
    return;
  }
}

}  // namespace penstock::session

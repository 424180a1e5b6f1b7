#include "penstock/session/session.h"

#include <fcntl.h>
#include <google/protobuf/stubs/logging.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/base/socket_testing.h"
#include "penstock/data/encode.h"
#include "penstock/plan/plan_testing.h"
#include "penstock/plan/snapshot_log.h"
#include "penstock/session/version.h"

namespace penstock::session {
namespace {

using ::penstock::plan::Report;
using ::penstock::plan_testing::Plan;
using ::testing::AllOf;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;

constexpr int64_t kGiB = int64_t{1} << 30;

class SessionTest : public ::testing::Test {
 protected:
  SessionTest() : SessionTest(SocketPair()) {}
  explicit SessionTest(std::pair<Descriptor, Descriptor> service)
      : service_(std::move(service.second)),
        session_({2, kGiB}, std::move(service.first)) {}

  Response Ask(const Request& request, std::vector<Descriptor> fds = {}) {
    return session_.Handle(request, std::move(fds)).response;
  }
  // The error of a call, or one of code 0.
  Error Refused(const Request& request, std::vector<Descriptor> fds = {}) {
    return Ask(request, std::move(fds)).error();
  }
  static int Code(absl::StatusCode code) { return static_cast<int>(code); }

  Response Make(const Plan& plan, MakeIterator call = {}) {
    call.set_plan(plan.SerializeAsString());
    Request request;
    *request.mutable_make_iterator() = std::move(call);
    auto [near, far] = SocketPair();
    trainer_ = std::move(near);
    std::vector<Descriptor> fds;
    fds.push_back(std::move(far));
    return Ask(request, std::move(fds));
  }

  // A word of the trainer's.
  void Say(uint32_t kind, uint32_t gap_us, uint64_t value) {
    char word[16];
    std::memcpy(word, &kind, 4);
    std::memcpy(word + 4, &gap_us, 4);
    std::memcpy(word + 8, &value, 8);
    ASSERT_TRUE(SendAll(trainer_.get(), {word, sizeof(word)}).ok());
    session_.OnReadable(session_.IteratorSockets()[0]);
  }
  // The knobs that a trace of the iterator shows.
  google::protobuf::Map<uint32_t, plan::NodeKnobs> InForce(uint64_t iterator) {
    const std::string path = testing::TempDir() + "/knobs.bin";
    Request trace;
    trace.mutable_trace()->set_iterator(iterator);
    trace.mutable_trace()->set_path(path);
    EXPECT_TRUE(Ask(trace).done());
    const plan::SnapshotLog log = plan::ReadSnapshotFile(path);
    std::remove(path.c_str());
    EXPECT_EQ(log.snapshots.size(), 1u) << log.status;
    return log.snapshots.empty()
               ? google::protobuf::Map<uint32_t, plan::NodeKnobs>()
               : log.snapshots[0].knobs().nodes();
  }

  Descriptor service_;
  Session session_;
  Descriptor trainer_;
};

TEST_F(SessionTest, Hello) {
  Request request;
  request.mutable_hello()->set_version(kVersion);
  const Response response = Ask(request);
  EXPECT_EQ(response.hello().version(), kVersion);
  EXPECT_EQ(response.hello().pid(), getpid());
  EXPECT_EQ(response.hello().cpu_budget(), 2);
  EXPECT_EQ(response.hello().memory_budget_bytes(), kGiB / 2);
}

TEST_F(SessionTest, AnotherVersionIsRefused) {
  Request request;
  request.mutable_hello()->set_version("0.0.0-other");
  const Error error = Refused(request);
  EXPECT_EQ(error.code(), Code(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(error.message(),
              AllOf(HasSubstr(kVersion), HasSubstr("got 0.0.0-other"),
                    HasSubstr("install")));
}

TEST_F(SessionTest, NoCallAtAll) {
  EXPECT_EQ(Refused(Request()).code(),
            Code(absl::StatusCode::kInvalidArgument));
}

TEST_F(SessionTest, LimitsFollowTheContainer) {
  std::map<std::string, std::string> files;
  const auto find = [&files] {
    return FindHostLimits(
        8, 64 * kGiB,
        [&files](const std::string& name) -> std::optional<std::string> {
          auto it = files.find(name);
          if (it == files.end()) return std::nullopt;
          return it->second;
        },
        [](const std::string&) { return std::nullopt; });
  };
  const auto budget = [this] {
    Request request;
    request.mutable_hello()->set_version(kVersion);
    return Ask(request).hello().memory_budget_bytes();
  };
  session_.SetLimits(find());
  EXPECT_EQ(budget(), 32 * kGiB);
  files["/sys/fs/cgroup/memory.max"] = "1073741824\n";
  session_.SetLimits(find());
  EXPECT_EQ(budget(), kGiB / 2);
}

TEST(MemoryBudget, ALowerLimitKeepsWhatIsThereAndAddsNothing) {
  const auto budget = std::make_shared<engine::MemoryBudget>(1000);
  engine::Reservation reservation(budget);
  ASSERT_TRUE(reservation.Resize(800).ok());
  budget->SetLimit(500);
  const absl::Status more = reservation.Resize(801);
  EXPECT_TRUE(absl::IsResourceExhausted(more));
  EXPECT_THAT(std::string(more.message()), HasSubstr("0 are left"));
  EXPECT_TRUE(reservation.Resize(500).ok());
  budget->SetLimit(2000);
  EXPECT_TRUE(reservation.Resize(2000).ok());
}

TEST_F(SessionTest, AppendMakesPlans) {
  Request request;
  *request.mutable_append()->mutable_node() = plan_testing::Range(5).nodes(0);
  request.mutable_append()->mutable_node()->clear_output();
  request.mutable_append()->mutable_node()->clear_cardinality();
  const Response response = Ask(request);
  ASSERT_TRUE(response.has_append()) << response.DebugString();
  Plan plan;
  ASSERT_TRUE(plan.ParseFromString(response.append().plan()));
  EXPECT_EQ(plan.nodes_size(), 1);
  EXPECT_EQ(response.append().cardinality().finite(), 5);
  EXPECT_EQ(response.append().instances_size(), 0);
}

TEST_F(SessionTest, AppendTellsTheInstances) {
  Request request;
  request.mutable_append()->add_plans(
      plan_testing::Range(5).SerializeAsString());
  request.mutable_append()->mutable_node()->mutable_cache();
  EXPECT_EQ(Ask(request).append().instances_size(), 1);
}

TEST_F(SessionTest, AppendRefusesDamagedPlans) {
  Request request;
  request.mutable_append()->add_plans("\xff\xff\xff");
  request.mutable_append()->mutable_node()->mutable_cache();
  EXPECT_EQ(Refused(request).code(), Code(absl::StatusCode::kDataLoss));
}

TEST_F(SessionTest, StructuresThatDifferAreTypeErrors) {
  Request request;
  request.mutable_append()->add_plans(
      plan_testing::Range(5).SerializeAsString());
  request.mutable_append()->add_plans(
      plan_testing::Strings({"a"}).SerializeAsString());
  request.mutable_append()->mutable_node()->mutable_concatenate();
  const Error error = Refused(request);
  EXPECT_EQ(error.code(), Code(absl::StatusCode::kInvalidArgument));
  EXPECT_TRUE(error.is_type_error()) << error.message();

  request.mutable_append()->clear_plans();
  request.mutable_append()->add_plans(
      plan_testing::Range(5).SerializeAsString());
  *request.mutable_append()->mutable_node()->mutable_take()->mutable_count() =
      plan_testing::Constant(-7);
  EXPECT_FALSE(Refused(request).is_type_error());
}

TEST_F(SessionTest, OnlySomeFunctionsReturnDatasets) {
  Request request;
  const std::string range = plan_testing::Range(5).SerializeAsString();
  request.mutable_append()->add_plans(range);
  request.mutable_append()->set_dataset(range);
  *request.mutable_append()
       ->mutable_node()
       ->mutable_filter()
       ->mutable_predicate() = plan_testing::Identity();
  EXPECT_THAT(Refused(request).message(), HasSubstr("must return values"));
  EXPECT_TRUE(Refused(request).is_type_error());
  request.mutable_append()->set_dataset("\xff");
  EXPECT_EQ(Refused(request).code(), Code(absl::StatusCode::kDataLoss));
}

TEST_F(SessionTest, InferAndEvaluate) {
  Request request;
  *request.mutable_infer()->mutable_function() = plan_testing::AddConstant(1);
  *request.mutable_infer()->add_arguments() =
      plan_testing::LeafOf(plan::FLOAT32, {3});
  const Response inferred = Ask(request);
  ASSERT_EQ(inferred.infer().outputs_size(), 1);
  EXPECT_EQ(inferred.infer().outputs(0).dtype(), plan::FLOAT32);
  request.mutable_infer()->clear_arguments();
  EXPECT_NE(Refused(request).code(), 0);

  plan_testing::FunctionBuilder f;
  Request evaluate;
  *evaluate.mutable_evaluate()->mutable_function() =
      f.Return(f.Constant(plan_testing::Scalar(int64_t{42})));
  const std::string bytes = Ask(evaluate).evaluate().chunk();
  Buffer buffer = Buffer::Allocate(bytes.size());
  std::memcpy(buffer.MutableAs<char>(), bytes.data(), bytes.size());
  const absl::StatusOr<Chunk> chunk = Decode(buffer);
  ASSERT_TRUE(chunk.ok());
  EXPECT_EQ(*chunk->columns[0].Row<int64_t>(0), 42);
  *evaluate.mutable_evaluate()->mutable_function() = plan_testing::Identity();
  EXPECT_NE(Refused(evaluate).code(), 0);
}

TEST_F(SessionTest, Describe) {
  Request request;
  request.mutable_describe()->set_plan(
      plan_testing::Batch(plan_testing::Range(5), 2).SerializeAsString());
  const Response response = Ask(request);
  ASSERT_EQ(response.describe().nodes_size(), 2);
  EXPECT_EQ(response.describe().nodes(1).op(), "batch");
  EXPECT_EQ(response.describe().fingerprint().size(), 32);
  request.mutable_describe()->set_plan("\xff");
  EXPECT_EQ(Refused(request).code(), Code(absl::StatusCode::kDataLoss));
}

TEST_F(SessionTest, Captures) {
  Request request;
  request.mutable_add_capture()->set_id("rows");
  request.mutable_add_capture()->set_bytes(64);
  EXPECT_EQ(Refused(request).code(), Code(absl::StatusCode::kInvalidArgument));

  const auto file = [](off_t size) {
    std::vector<Descriptor> fds;
    fds.emplace_back(memfd_create("test", MFD_CLOEXEC));
    EXPECT_EQ(ftruncate(fds[0].get(), size), 0);
    return fds;
  };
  EXPECT_THAT(Refused(request, file(63)).message(),
              HasSubstr("expected 64 bytes"));
  EXPECT_TRUE(Ask(request, file(64)).done());
  EXPECT_TRUE(session_.service().Capture("rows").ok());
  request.mutable_add_capture()->set_bytes(0);
  EXPECT_NE(Refused(request, file(0)).code(), 0);

  Request drop;
  drop.mutable_drop_captures()->add_ids("rows");
  drop.mutable_drop_captures()->add_ids("never there");
  EXPECT_TRUE(Ask(drop).done());
  EXPECT_FALSE(session_.service().Capture("rows").ok());
}

TEST_F(SessionTest, InstancesMayBeDroppedTwice) {
  Request request;
  request.mutable_drop_instances()->add_instances(3);
  EXPECT_TRUE(Ask(request).done());
  EXPECT_TRUE(Ask(request).done());
}

TEST_F(SessionTest, MakeIteratorNeedsASocket) {
  Request request;
  request.mutable_make_iterator()->set_plan(
      plan_testing::Range(5).SerializeAsString());
  EXPECT_EQ(Refused(request).code(), Code(absl::StatusCode::kInvalidArgument));
}

TEST_F(SessionTest, AnIteratorFromItsStartToItsEnd) {
  const Response made = Make(plan_testing::Range(5));
  ASSERT_TRUE(made.has_make_iterator()) << made.DebugString();
  ASSERT_EQ(session_.IteratorSockets().size(), 1);
  char demand[16] = {1};
  demand[8] = 1;
  ASSERT_TRUE(SendAll(trainer_.get(), {demand, sizeof(demand)}).ok());
  session_.OnReadable(session_.IteratorSockets()[0]);
  const std::string event = ReadExactly(trainer_.get(), 64);
  ASSERT_EQ(event.size(), 64);

  Request segment;
  segment.mutable_get_segment()->set_iterator(made.make_iterator().iterator());
  const Answer answer = session_.Handle(segment, {});
  EXPECT_GT(answer.response.get_segment().bytes(), 0);
  ASSERT_EQ(answer.fds.size(), 1);
  EXPECT_GE(answer.fds[0], 0);
  segment.mutable_get_segment()->set_segment(99);
  EXPECT_EQ(Refused(segment).code(), Code(absl::StatusCode::kNotFound));

  Request stats;
  stats.mutable_get_stats()->set_iterator(made.make_iterator().iterator());
  EXPECT_EQ(Ask(stats).get_stats().nodes_size(), 1);

  trainer_ = Descriptor();
  session_.OnReadable(session_.IteratorSockets()[0]);
  EXPECT_TRUE(session_.IteratorSockets().empty());
  EXPECT_EQ(Refused(stats).code(), Code(absl::StatusCode::kNotFound));
  EXPECT_EQ(Refused(segment).code(), Code(absl::StatusCode::kNotFound));
}

TEST_F(SessionTest, ATraceIsExplained) {
  MakeIterator call;
  call.mutable_defaults()->set_autotune(false);
  const Response made =
      Make(plan_testing::Batch(plan_testing::Range(100), 5), call);
  const uint64_t iterator = made.make_iterator().iterator();
  EXPECT_GT(session_.Tick(), 20) << "nothing is recorded yet";
  Request trace;
  trace.mutable_trace()->set_iterator(iterator);
  trace.mutable_trace()->set_every_ms(20);
  EXPECT_TRUE(Ask(trace).done());
  EXPECT_THAT(session_.Tick(), AllOf(Ge(0), Le(20)));

  Request explain;
  explain.mutable_explain()->set_iterator(iterator);
  EXPECT_THAT(Refused(explain).message(), HasSubstr("nothing came out"))
      << "no element was there yet";

  // Two frames are taken, with a wait and some work of the trainer's between.
  Say(1, 0, 1);
  const std::string first = ReadExactly(trainer_.get(), 64);
  ASSERT_EQ(first.size(), 64);
  ReadExactly(trainer_.get(), 64);
  Say(4, 0, 3'000'000);
  Say(2, 0, 1);
  Say(2, 500, 2);
  const Report report = Ask(explain).explain();
  EXPECT_FALSE(report.sentence().empty());
  EXPECT_GT(report.measured(), 0);
  EXPECT_EQ(report.nodes_size(), 2);
  EXPECT_GT(report.consumer().wait_ns(), 0);
  EXPECT_EQ(report.cores(), 2);

  Request what_if;
  what_if.mutable_what_if()->set_iterator(iterator);
  what_if.mutable_what_if()->add_changes()->set_cores(16);
  EXPECT_GT(Ask(what_if).what_if().rate().middle(), 0);
  what_if.mutable_what_if()->add_changes()->set_fuse("nothing_9");
  const Error unknown = Refused(what_if);
  EXPECT_EQ(unknown.code(), Code(absl::StatusCode::kNotFound));
  EXPECT_THAT(unknown.message(),
              AllOf(HasSubstr("range_0, batch_1"), HasSubstr("nothing_9")));

  explain.mutable_explain()->mutable_budget()->set_cores(0);
  EXPECT_THAT(Refused(explain).message(), HasSubstr("cores must be over 0"));
}

TEST_F(SessionTest, TracesOfOthersAreReadFromFiles) {
  Request explain;
  explain.mutable_explain()->set_path("/nowhere/t.bin");
  EXPECT_EQ(Refused(explain).code(), Code(absl::StatusCode::kNotFound));
  explain.mutable_explain()->set_path("/proc/self/exe");
  EXPECT_EQ(Refused(explain).code(), Code(absl::StatusCode::kDataLoss));
  explain.mutable_explain()->set_iterator(77);
  EXPECT_EQ(Refused(explain).code(), Code(absl::StatusCode::kNotFound));
}

TEST_F(SessionTest, KnobsAreSetWhileItRuns) {
  MakeIterator call;
  plan::Knob parallelism;
  parallelism.set_value(2);
  parallelism.set_chosen_by(plan::TUNER);
  *(*call.mutable_knobs()->mutable_nodes())[1].mutable_parallelism() =
      parallelism;
  const Response made = Make(
      plan_testing::Map(plan_testing::Range(5), plan_testing::AddConstant(1)),
      call);
  const uint64_t iterator = made.make_iterator().iterator();
  EXPECT_EQ(InForce(iterator).at(1).parallelism().value(), 2);
  Request knobs;
  knobs.mutable_set_knobs()->set_iterator(99);
  EXPECT_EQ(Refused(knobs).code(), Code(absl::StatusCode::kNotFound));
  knobs.mutable_set_knobs()->set_iterator(iterator);
  EXPECT_TRUE(Ask(knobs).done());
  EXPECT_TRUE(InForce(iterator).empty()) << "those that are not named go";
}

TEST_F(SessionTest, StatisticsEndWithTheRoot) {
  const Response made = Make(
      plan_testing::FlatMap(plan_testing::Range(5), plan_testing::ToRange()));
  Request stats;
  stats.mutable_get_stats()->set_iterator(made.make_iterator().iterator());
  const Stats found = Ask(stats).get_stats();
  ASSERT_EQ(found.nodes_size(), 3);
  EXPECT_EQ(found.nodes(2).name(), "flat_map_1");
}

TEST_F(SessionTest, RowsAreKeptWhileItRuns) {
  const Response made = Make(plan_testing::Repeat(
      plan_testing::Map(plan_testing::Range(50), plan_testing::AddConstant(1)),
      3));
  Request request;
  SetKnobs& call = *request.mutable_set_knobs();
  call.set_iterator(made.make_iterator().iterator());
  plan::NodeKnobs& knobs = (*call.mutable_knobs()->mutable_nodes())[1];
  knobs.mutable_cache()->set_tier(plan::MEMORY);
  knobs.mutable_cache()->set_fraction(1);
  EXPECT_TRUE(Ask(request).done()) << Ask(request).DebugString();

  char demand[16] = {1};
  demand[8] = 1;
  ASSERT_TRUE(SendAll(trainer_.get(), {demand, sizeof(demand)}).ok());
  session_.OnReadable(session_.IteratorSockets()[0]);
  std::string event;
  do {
    event = ReadExactly(trainer_.get(), 64);
    ASSERT_EQ(event.size(), 64);
  } while (event[0] == 1);  // frames, until the end
  Request stats;
  stats.mutable_get_stats()->set_iterator(made.make_iterator().iterator());
  const Stats found = Ask(stats).get_stats();
  EXPECT_EQ(found.nodes(1).name(), "map_1");
  EXPECT_EQ(found.nodes(1).rows(), 50);
  EXPECT_EQ(found.rows(), 150);
}

TEST_F(SessionTest, ADirectoryOutlivesTheSession) {
  const std::string directory = testing::TempDir() + "/session_kept";
  std::filesystem::remove_all(directory);
  plan::Options options;
  options.set_kept_directory("session_kept");
  const Plan plan = plan_testing::WithOptions(
      plan_testing::Map(plan_testing::Range(50), plan_testing::AddConstant(1)),
      options);
  for (uint64_t computed : {50, 0}) {
    auto [near, far] = SocketPair();
    Session session({2, kGiB}, std::move(far));
    MakeIterator call;
    call.set_plan(plan.SerializeAsString());
    call.set_working_directory(testing::TempDir());
    Request request;
    *request.mutable_make_iterator() = call;
    auto [trainer, iterator] = SocketPair();
    std::vector<Descriptor> fds;
    fds.push_back(std::move(iterator));
    const Answer made = session.Handle(request, std::move(fds));
    const uint64_t id = made.response.make_iterator().iterator();
    request.mutable_set_knobs()->set_iterator(id);
    (*request.mutable_set_knobs()->mutable_knobs()->mutable_nodes())[1]
        .mutable_cache()
        ->set_tier(plan::DISK);
    EXPECT_TRUE(session.Handle(request, {}).response.done());
    char demand[16] = {1};
    demand[8] = 1;
    ASSERT_TRUE(SendAll(trainer.get(), {demand, sizeof(demand)}).ok());
    session.OnReadable(session.IteratorSockets()[0]);
    std::string event;
    do {
      event = ReadExactly(trainer.get(), 64);
      ASSERT_EQ(event.size(), 64);
    } while (event[0] == 1);
    request.mutable_get_stats()->set_iterator(id);
    EXPECT_EQ(session.Handle(request, {}).response.get_stats().nodes(1).rows(),
              computed);
  }
  std::filesystem::remove_all(directory);
}

TEST_F(SessionTest, KnobsThatCannotBeAreRefused) {
  const Response made =
      Make(plan_testing::Map(plan_testing::Shuffle(plan_testing::Range(5), 2),
                             plan_testing::AddConstant(1)));
  Request request;
  SetKnobs& call = *request.mutable_set_knobs();
  EXPECT_EQ(Refused(request).code(), Code(absl::StatusCode::kNotFound));
  call.set_iterator(made.make_iterator().iterator());
  EXPECT_TRUE(Ask(request).done());
  (*call.mutable_knobs()->mutable_nodes())[2].mutable_cache();
  EXPECT_EQ(Refused(request).message(),
            "rows after map_2 cannot be kept: shuffle_1 gives other rows in "
            "every pass");
  const Response plain = Make(
      plan_testing::Map(plan_testing::Range(5), plan_testing::AddConstant(1)));
  call.set_iterator(plain.make_iterator().iterator());
  call.mutable_knobs()->clear_nodes();
  (*call.mutable_knobs()->mutable_nodes())[1].mutable_cache()->set_tier(
      plan::DISK);
  EXPECT_THAT(Refused(request).message(), HasSubstr("kept_directory"));
  call.mutable_knobs()->clear_nodes();
  (*call.mutable_knobs()->mutable_nodes())[7].mutable_cache();
  EXPECT_EQ(Refused(request).code(), Code(absl::StatusCode::kInvalidArgument));
}

TEST_F(SessionTest, AWordItCannotReadEndsTheIterator) {
  Make(plan_testing::Range(5));
  const std::string word(16, '\x55');
  ASSERT_TRUE(SendAll(trainer_.get(), word).ok());
  session_.OnReadable(session_.IteratorSockets()[0]);
  EXPECT_TRUE(session_.IteratorSockets().empty());
}

TEST_F(SessionTest, StatesOfOthersAndDamagedOnesAreRefused) {
  const std::string state =
      Make(plan_testing::Range(5)).make_iterator().state();
  MakeIterator call;
  call.set_state(state);
  EXPECT_TRUE(Make(plan_testing::Range(5), call).has_make_iterator());
  EXPECT_EQ(Make(plan_testing::Range(6), call).error().code(),
            Code(absl::StatusCode::kInvalidArgument));
  for (size_t i = 0; i < state.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = state;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      call.set_state(damaged);
      EXPECT_NE(Make(plan_testing::Range(5), call).error().code(), 0) << i;
    }
    call.set_state(state.substr(0, i));
    EXPECT_EQ(Make(plan_testing::Range(5), call).error().code(),
              Code(absl::StatusCode::kDataLoss))
        << i;
  }
}

TEST_F(SessionTest, DefaultsGiveWayToThePlansOwn) {
  plan::Options own;
  own.set_memory_budget_bytes(1000);
  const Plan plan = plan_testing::WithOptions(plan_testing::Range(5), own);
  const auto pipeline = engine::Pipeline::Build(plan, [] {
    plan::Options defaults;
    defaults.set_memory_budget_bytes(5);
    defaults.set_max_element_bytes(7);
    return defaults;
  }());
  EXPECT_EQ((*pipeline)->options().memory_budget_bytes(), 1000);
  EXPECT_EQ((*pipeline)->options().max_element_bytes(), 7);

  MakeIterator call;
  call.mutable_defaults()->set_run_ahead(0);
  const Plan generator =
      plan_testing::Generator(plan_testing::TensorOf(plan::INT64));
  EXPECT_FALSE(Make(generator).make_iterator().is_row_exact());
  EXPECT_TRUE(Make(generator, call).make_iterator().is_row_exact());
  call.mutable_defaults()->set_run_ahead(-1);
  EXPECT_THAT(Make(generator, call).error().message(),
              HasSubstr("run_ahead must be at least 0; got -1"));
}

// Whatever is wrong with a plan's bytes, there is an answer.
TEST_F(SessionTest, AnyDamagedPlanIsAnswered) {
  const Plan plan = plan_testing::Batch(
      plan_testing::Interleave(
          plan_testing::Map(plan_testing::Shuffle(plan_testing::Range(9), 3),
                            plan_testing::AddConstant(1)),
          plan_testing::ToRange(), 2),
      2);
  const google::protobuf::LogSilencer silence_for_utf8;
  const std::string whole = plan.SerializeAsString();
  Request request;
  for (size_t i = 0; i < whole.size(); ++i) {
    for (const int change : {0x01, 0x08, 0x80, 0xff}) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ change);
      Plan read;
      if (read.ParseFromString(damaged)) Make(read);
      request.mutable_append()->clear_plans();
      request.mutable_append()->add_plans(damaged);
      request.mutable_append()->mutable_node()->mutable_cache();
      Ask(request);
      request.mutable_describe()->set_plan(damaged);
      Ask(request);
    }
    Plan cut;
    if (cut.ParseFromString(whole.substr(0, i))) Make(cut);
  }
}

}  // namespace
}  // namespace penstock::session

#include "penstock/session/frame_sender.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/base/socket_testing.h"
#include "penstock/data/encode.h"
#include "penstock/engine/memory_budget.h"
#include "penstock/io/file_system.h"
#include "penstock/io/io_pool.h"
#include "penstock/plan/plan_testing.h"
#include "penstock/session/frame_sender_testing.h"

namespace penstock::session {
namespace {

using ::penstock::plan_testing::Plan;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kFrame = 1;
constexpr uint32_t kEnd = 2;
constexpr uint32_t kFailed = 3;
constexpr uint32_t kDemand = 1;
constexpr uint32_t kConsumed = 2;
constexpr uint32_t kReleased = 3;

struct Event {
  uint32_t kind;
  uint32_t segment;
  uint64_t offset;
  uint64_t bytes;
  uint64_t rows;
  uint64_t frame;
  uint64_t state_offset;
  uint32_t state_bytes;
  uint32_t state_segment;
  uint64_t skip;
};
static_assert(sizeof(Event) == 64);

class FrameSenderTest : public ::testing::Test {
 protected:
  ~FrameSenderTest() override {
    if (sender_ != nullptr) sender_->Close();
    Settle();
  }

  engine::Environment Environment() {
    engine::Environment environment;
    environment.executor = &executor_;
    environment.files = &io::LocalFileSystem();
    environment.io_pool = &io_pool_;
    environment.memory = memory_;
    environment.caches = &caches_;
    environment.sources = sources_.get();
    return environment;
  }

  void Start(const Plan& plan, FrameOptions options = {},
             size_t memory_bytes = size_t{1} << 30) {
    pipeline_ = *engine::Pipeline::Build(plan);
    if (pipeline_->is_row_exact()) {
      options.exact_rows_ahead = pipeline_->options().run_ahead();
    }
    engine::Environment environment = Environment();
    environment.frames = FrameMemory::Make(memory_bytes);
    auto iterator = engine::Iterator::Start(pipeline_, environment, instances_,
                                            std::nullopt);
    ASSERT_TRUE(iterator.ok()) << iterator.status();
    auto [near, far] = SocketPair();
    trainer_ = std::move(near);
    sender_ = std::make_shared<FrameSender>(&executor_, *std::move(iterator),
                                            environment.frames, std::move(far),
                                            options);
  }

  // The trainer's words reach the sender as its loop would bring them.
  absl::Status Tell(uint32_t kind, uint64_t value) {
    char message[16] = {};
    std::memcpy(message, &kind, sizeof(kind));
    std::memcpy(message + 8, &value, sizeof(value));
    EXPECT_TRUE(SendAll(trainer_.get(), {message, sizeof(message)}).ok());
    return sender_->OnReadable();
  }
  void Demand(uint64_t rows = 1) { EXPECT_TRUE(Tell(kDemand, rows).ok()); }
  void Take(const Event& event) {
    EXPECT_TRUE(Tell(kConsumed, event.frame).ok());
  }
  void Release(const Event& event) {
    EXPECT_TRUE(Tell(kReleased, event.frame).ok());
  }

  // Until the sender has nothing more to do: one thread, so that a task that
  // comes after its slice says that the slice is over.
  void Settle() {
    int before = -1;
    for (int now = 0; now != before;) {
      before = trainer_.is_open() ? BytesToRead(trainer_.get()) : 0;
      for (int i = 0; i < 3; ++i) {
        std::make_shared<Barrier>(&executor_)->Pass();
      }
      now = trainer_.is_open() ? BytesToRead(trainer_.get()) : 0;
    }
  }

  Event ReadEvent() {
    Event event = {};
    const std::string bytes = ReadExactly(trainer_.get(), sizeof(event));
    EXPECT_EQ(bytes.size(), sizeof(event));
    std::memcpy(&event, bytes.data(), bytes.size());
    return event;
  }
  std::vector<Event> ReadyEvents() {
    Settle();
    std::vector<Event> events;
    while (BytesToRead(trainer_.get()) > 0) events.push_back(ReadEvent());
    return events;
  }

  std::string Bytes(const Event& event, uint64_t offset, uint64_t size) {
    const auto segment = sender_->memory().arena().Segment(event.segment);
    std::string bytes(size, '\0');
    EXPECT_EQ(
        pread(segment->fd, bytes.data(), size, static_cast<off_t>(offset)),
        static_cast<ssize_t>(size));
    return bytes;
  }
  Chunk ChunkOf(const Event& event) {
    const std::string bytes = Bytes(event, event.offset, event.bytes);
    Buffer buffer = Buffer::Allocate(bytes.size());
    std::memcpy(buffer.MutableAs<char>(), bytes.data(), bytes.size());
    absl::StatusOr<Chunk> chunk = Decode(buffer);
    EXPECT_TRUE(chunk.ok()) << chunk.status();
    return chunk.ok() ? *chunk : Chunk();
  }
  std::vector<int64_t> Values(const Event& event) {
    const Chunk chunk = ChunkOf(event);
    std::vector<int64_t> values;
    for (int64_t i = 0; i < chunk.rows; ++i) {
      values.push_back(*chunk.columns[0].Row<int64_t>(i));
    }
    return values;
  }
  // Takes and releases everything up to and with the end, or the failure.
  std::vector<int64_t> Drain(Event* last, size_t* frames = nullptr) {
    std::vector<int64_t> values;
    Demand();
    while (true) {
      *last = ReadEvent();
      if (last->kind != kFrame) return values;
      const std::vector<int64_t> more = Values(*last);
      values.insert(values.end(), more.begin(), more.end());
      if (frames != nullptr) ++*frames;
      Take(*last);
      Release(*last);
    }
  }

  engine::Executor executor_{1};
  io::IoPool io_pool_;
  const std::shared_ptr<engine::MemoryBudget> memory_ =
      std::make_shared<engine::MemoryBudget>(int64_t{1} << 30);
  engine::CacheStore caches_;
  engine::Instances instances_{[] { return uint64_t{5}; }};
  std::unique_ptr<CountingSources> sources_;
  std::shared_ptr<const engine::Pipeline> pipeline_;
  std::shared_ptr<FrameSender> sender_;
  Descriptor trainer_;
};

Plan Generator() {
  return plan_testing::Generator(plan_testing::TensorOf(plan::INT64));
}

// Of any rank.
Plan FreeGenerator() {
  plan::ElementSpec spec = plan_testing::TensorOf(plan::INT64);
  spec.mutable_tensor()->mutable_shape()->set_unknown_rank(true);
  return plan_testing::Generator(spec);
}

Plan RowExact(Plan plan, int64_t run_ahead = 0) {
  plan::Options options;
  options.set_run_ahead(run_ahead);
  return plan_testing::WithOptions(std::move(plan), options);
}

// `rows` rows of 64 KiB.
Plan LargeRows(int64_t rows) {
  Chunk chunk;
  chunk.rows = 1;
  chunk.columns.push_back(ZeroColumn(DType::kInt64, {8192}, 1));
  return plan_testing::Take(
      plan_testing::Repeat(plan_testing::Rows(
          chunk, plan_testing::TensorOf(plan::INT64, {8192}))),
      rows);
}

TEST_F(FrameSenderTest, FramesHoldTheRows) {
  Start(plan_testing::Map(plan_testing::Range(1000),
                          plan_testing::AddConstant(7)));
  Event last;
  EXPECT_EQ(Drain(&last), Count(7, 1007));
  EXPECT_EQ(last.kind, kEnd);
  EXPECT_EQ(sender_->rows(), 1000);
}

TEST_F(FrameSenderTest, NothingRunsBeforeTheFirstDemand) {
  sources_ = std::make_unique<CountingSources>(CountingSources::Script{});
  Start(Generator());
  sender_->Wake();
  EXPECT_TRUE(ReadyEvents().empty());
  EXPECT_EQ(sources_->given(), 0);
}

TEST_F(FrameSenderTest, AnEmptyInputEndsAtOnce) {
  Start(plan_testing::Range(0));
  Event last;
  EXPECT_TRUE(Drain(&last).empty());
  EXPECT_EQ(last.kind, kEnd);
}

TEST_F(FrameSenderTest, RunsAheadOnlySoFarAndRestsUntilHalfWasTaken) {
  FrameOptions options;
  options.max_rows = 1;
  options.run_ahead_frames = 4;
  Start(plan_testing::Counter(), options);
  Demand();
  std::vector<Event> ahead = ReadyEvents();
  ASSERT_EQ(ahead.size(), 4);
  Take(ahead[0]);
  Take(ahead[1]);
  EXPECT_TRUE(ReadyEvents().empty());  // two are left: half of four
  Take(ahead[2]);
  EXPECT_EQ(ReadyEvents().size(), 3);
}

TEST_F(FrameSenderTest, BytesLimitRunningAheadToo) {
  FrameOptions options;
  options.max_rows = 1;
  options.run_ahead_bytes = 300 << 10;  // four rows of 64 KiB and a fifth
  Start(LargeRows(100), options);
  Demand();
  EXPECT_EQ(ReadyEvents().size(), 5);
}

// They are allowed more bytes, and not any number of them.
TEST_F(FrameSenderTest, ChosenRowsLimitRunningAhead) {
  FrameOptions options;
  options.max_rows = 1;
  options.run_ahead_bytes = 1;
  Start(LargeRows(100), options);
  sender_->SetRunAheadRows(7);
  Demand();
  EXPECT_EQ(ReadyEvents().size(), 7);
}

TEST_F(FrameSenderTest, ChosenRowsAreBoundedInBytes) {
  FrameOptions options;
  options.max_rows = 1;
  options.chosen_bytes = 300 << 10;  // four rows of 64 KiB and a fifth
  Start(LargeRows(100), options);
  sender_->SetRunAheadRows(7);
  Demand();
  EXPECT_EQ(ReadyEvents().size(), 5);
}

TEST_F(FrameSenderTest, TwoFramesAreAheadHoweverLarge) {
  FrameOptions options;
  options.max_rows = 1;
  options.run_ahead_bytes = 1;
  Start(LargeRows(100), options);
  Demand();
  EXPECT_EQ(ReadyEvents().size(), 2);
}

TEST_F(FrameSenderTest, RowExactComputesWhatWasAskedFor) {
  sources_ = std::make_unique<CountingSources>(CountingSources::Script{});
  Start(RowExact(Generator()));
  uint64_t asked = 0;
  int64_t received = 0;
  for (const uint64_t rows : {1, 1, 3, 10}) {
    Demand(rows);
    asked += rows;
    for (const Event& event : ReadyEvents()) received += event.rows;
    EXPECT_EQ(received, asked);
    EXPECT_EQ(sources_->given(), asked);
  }
}

TEST_F(FrameSenderTest, RowExactRunsAheadByThatManyRows) {
  sources_ = std::make_unique<CountingSources>(CountingSources::Script{});
  Start(RowExact(Generator(), 5));
  EXPECT_TRUE(ReadyEvents().empty());
  uint64_t asked = 0;
  for (const uint64_t rows : {1, 1, 3, 10}) {
    Demand(rows);
    asked += rows;
    ReadyEvents();
    EXPECT_EQ(sources_->given(), asked + 5);
  }
}

TEST_F(FrameSenderTest, AnImpossibleDemandIsOnlyALargeOne) {
  sources_ =
      std::make_unique<CountingSources>(CountingSources::Script{.rows = 10});
  Start(RowExact(Generator()));
  Demand(~uint64_t{0});
  Demand(~uint64_t{0});
  size_t rows = 0;
  for (const Event& event : ReadyEvents()) rows += event.rows;
  EXPECT_EQ(rows, 10);
}

TEST_F(FrameSenderTest, ReleasedFramesAreUsedAgain) {
  FrameOptions options;
  options.max_rows = 1;
  options.run_ahead_frames = 2;
  Start(LargeRows(100), options);
  Demand();
  std::set<uint64_t> places;
  for (int i = 0; i < 100; ++i) {
    const Event event = ReadEvent();
    ASSERT_EQ(event.kind, kFrame);
    places.insert(event.offset);
    Take(event);
    Release(event);
  }
  EXPECT_LE(places.size(), 4);
  EXPECT_EQ(ReadEvent().kind, kEnd);
}

TEST_F(FrameSenderTest, AFullArenaWaitsAndGoesOn) {
  FrameOptions options;
  options.max_rows = 1;
  Start(LargeRows(10), options, 300 << 10);
  Demand();
  std::vector<Event> events = ReadyEvents();
  ASSERT_EQ(events.size(), 4);
  Take(events[0]);
  EXPECT_TRUE(ReadyEvents().empty());
  Release(events[0]);
  EXPECT_EQ(ReadyEvents().size(), 1);
}

TEST_F(FrameSenderTest, HeldFramesNeverStopIt) {
  FrameOptions options;
  options.max_rows = 1;
  Start(LargeRows(20), options, 300 << 10);
  Demand();
  int frames = 0;
  while (true) {
    const Event event = ReadEvent();
    Take(event);  // and never released
    if (event.kind == kEnd) break;
    ASSERT_EQ(event.kind, kFrame);
    ++frames;
  }
  EXPECT_EQ(frames, 20);
}

TEST_F(FrameSenderTest, TheEndWaitsForRoomAndIsNotLost) {
  FrameOptions options;
  options.max_rows = 1;
  Start(LargeRows(4), options, 4 * ((64 << 10) + 256));
  Demand();
  std::vector<Event> events = ReadyEvents();
  ASSERT_EQ(events.size(), 4);
  for (const Event& event : events) Take(event);
  EXPECT_EQ(ReadEvent().kind, kEnd);
}

TEST_F(FrameSenderTest, AFailureWaitsForRoomAndIsNotLost) {
  sources_ = std::make_unique<CountingSources>(CountingSources::Script{
      .rows = 3, .rows_at_once = 1, .failure = absl::DataLossError("torn")});
  FrameOptions options;
  options.max_rows = 1;
  Start(Generator(), options, 3 * 320);
  Event last;
  EXPECT_EQ(Drain(&last), Count(0, 3));
  EXPECT_EQ(last.kind, kFailed);
}

TEST_F(FrameSenderTest, AFrameLargerThanTheArenaFails) {
  FrameOptions options;
  Start(LargeRows(2), options, 10 << 10);
  Demand();
  const Event event = ReadEvent();
  ASSERT_EQ(event.kind, kFailed);
  const Chunk chunk = ChunkOf(event);
  ASSERT_EQ(chunk.errors.size(), 1);
  const absl::Status& status = chunk.errors[0].status;
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("10240 are there"), HasSubstr("smaller"),
                    HasSubstr("take")));
}

TEST_F(FrameSenderTest, RowsBeforeAFailureAreNotLost) {
  sources_ = std::make_unique<CountingSources>(CountingSources::Script{
      .rows = 50, .rows_at_once = 1, .failure = absl::DataLossError("torn")});
  Start(Generator());
  Event last;
  EXPECT_EQ(Drain(&last), Count(0, 50));
  ASSERT_EQ(last.kind, kFailed);
  const Chunk chunk = ChunkOf(last);
  ASSERT_EQ(chunk.errors.size(), 1);
  EXPECT_TRUE(absl::IsDataLoss(chunk.errors[0].status));
}

TEST_F(FrameSenderTest, RowsThatDoNotFitTogetherComeInTurn) {
  sources_ = std::make_unique<CountingSources>(
      CountingSources::Script{.rows = 100, .vectors_from = 37});
  Start(FreeGenerator());
  Event last;
  size_t frames = 0;
  EXPECT_EQ(Drain(&last, &frames), Count(0, 100));
  EXPECT_EQ(last.kind, kEnd);
  EXPECT_GE(frames, 2);
}

class FrameStateTest : public FrameSenderTest,
                       public ::testing::WithParamInterface<const char*> {};

// The first row after each frame's state, and the rows it says to leave out,
// is the frame's first row.
TEST_P(FrameStateTest, Resumes) {
  const std::string name = GetParam();
  Plan plan = name == "Range" ? plan_testing::Range(300)
              : name == "Shuffle"
                  ? plan_testing::Shuffle(plan_testing::Range(300), 50, 3)
                  : FreeGenerator();
  sources_ = std::make_unique<CountingSources>(
      CountingSources::Script{.rows = 300, .vectors_from = 150});
  Start(plan);
  Demand();
  std::vector<int64_t> all;
  std::vector<std::pair<Event, std::string>> frames;
  while (true) {
    const Event event = ReadEvent();
    frames.emplace_back(event,
                        Bytes(event, event.state_offset, event.state_bytes));
    Take(event);
    if (event.kind == kEnd) break;
    const std::vector<int64_t> values = Values(event);
    all.insert(all.end(), values.begin(), values.end());
    Release(event);
  }
  size_t row = 0;
  for (const auto& [event, state] : frames) {
    auto iterator =
        engine::Iterator::Resume(pipeline_, Environment(), instances_, state,
                                 static_cast<int64_t>(event.skip));
    ASSERT_TRUE(iterator.ok()) << iterator.status();
    const engine::Waker waker = std::make_shared<Barrier>(&executor_);
    absl::StatusOr<engine::Pull> pull = (*iterator)->Next({1, waker});
    while (pull.ok() && pull->is_blocked()) {
      pull = (*iterator)->Next({1, waker});
    }
    ASSERT_TRUE(pull.ok()) << pull.status();
    if (event.kind == kEnd) {
      EXPECT_TRUE(pull->is_end());
    } else {
      ASSERT_TRUE(pull->has_rows());
      EXPECT_EQ(*pull->chunk.columns[0].Row<int64_t>(0), all[row]);
    }
    row += event.rows;
  }
  EXPECT_EQ(row, 300);
}

INSTANTIATE_TEST_SUITE_P(All, FrameStateTest,
                         ::testing::Values("Range", "Shuffle", "Misfits"),
                         [](const auto& info) { return info.param; });

TEST_F(FrameSenderTest, LargeElementsAreErrorsInTheirPlaces) {
  FrameOptions options;
  options.max_element_bytes = 100;
  Start(plan_testing::Strings({"short", std::string(200, 'x'), "also short",
                               std::string(101 + 64, 'y')}),
        options);
  Demand();
  std::vector<std::string> texts;
  std::vector<absl::Status> errors;
  while (true) {
    const Event event = ReadEvent();
    Take(event);
    if (event.kind == kEnd) break;
    ASSERT_EQ(event.kind, kFrame);
    const Chunk chunk = ChunkOf(event);
    for (int64_t i = 0; i < chunk.rows; ++i) {
      if (const absl::Status* error = ErrorAt(chunk, i)) {
        errors.push_back(*error);
        texts.emplace_back("error");
      } else {
        texts.emplace_back(chunk.columns[0].Row<StringRef>(i)->view());
      }
    }
  }
  EXPECT_THAT(texts, ElementsAre("short", "error", "also short", "error"));
  ASSERT_EQ(errors.size(), 2);
  EXPECT_TRUE(absl::IsResourceExhausted(errors[0]));
  EXPECT_THAT(std::string(errors[0].message()),
              AllOf(HasSubstr("at most 100 bytes; got 2"),
                    HasSubstr("max_element_bytes"), HasSubstr("rows")));
}

TEST_F(FrameSenderTest, ClosingMidRunFreesTheStreams) {
  sources_ = std::make_unique<CountingSources>(CountingSources::Script{});
  FrameOptions options;
  options.max_rows = 1;
  Start(Generator(), options);
  Demand();
  EXPECT_FALSE(ReadyEvents().empty());
  EXPECT_EQ(sources_->open(), 1);
  trainer_ = Descriptor();
  EXPECT_TRUE(absl::IsCancelled(sender_->OnReadable()));
  sender_->Close();
  Settle();
  EXPECT_EQ(sources_->open(), 0);
  std::weak_ptr<FrameSender> weak = sender_;
  sender_.reset();
  EXPECT_TRUE(weak.expired());
}

TEST_F(FrameSenderTest, ATrainerGoneWhileItSendsClosesIt) {
  sources_ = std::make_unique<CountingSources>(CountingSources::Script{});
  Start(Generator());
  Demand();
  trainer_ = Descriptor();
  Settle();
  sender_->Wake();
  Settle();
  EXPECT_EQ(sources_->open(), 0);
}

TEST_F(FrameSenderTest, UnknownWordsAreRefused) {
  Start(plan_testing::Range(3));
  EXPECT_TRUE(absl::IsInvalidArgument(Tell(9, 0)));
}

TEST_F(FrameSenderTest, WordsMayComeInPieces) {
  Start(plan_testing::Range(3));
  char message[16] = {kDemand};
  message[8] = 1;
  for (char byte : message) {
    ASSERT_TRUE(SendAll(trainer_.get(), {&byte, 1}).ok());
    ASSERT_TRUE(sender_->OnReadable().ok());
  }
  EXPECT_EQ(ReadEvent().kind, kFrame);
}

TEST_F(FrameSenderTest, FramesThatWereNeverSentAreNothing) {
  Start(plan_testing::Range(3));
  EXPECT_TRUE(Tell(kReleased, 77).ok());
  EXPECT_TRUE(Tell(kConsumed, ~uint64_t{0}).ok());
  Event last;
  EXPECT_EQ(Drain(&last), Count(0, 3));
}

}  // namespace
}  // namespace penstock::session

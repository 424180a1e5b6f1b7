// When jobs hear of what would spare workers work.
#include <gmock/gmock.h>

#include "penstock/service/dispatcher/dispatcher_state_testing.h"
#include "penstock/service/dispatcher/work_table.h"

namespace penstock::service {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Ten bundles of a pass, which took so many seconds.
Work PassOf(uint64_t run, uint64_t epoch, double seconds,
            const std::string& fingerprint = "f") {
  Work work;
  work.set_run(run);
  work.set_epoch(epoch);
  work.set_bundles(10);
  work.set_bundles_in_pass(10);
  work.set_cpu_ns(static_cast<uint64_t>(seconds * 1e9));
  Work::Place* place = work.add_places();
  place->set_fingerprint(fingerprint);
  place->set_node("map_1");
  place->set_cpu_ns(work.cpu_ns());
  place->set_bytes(1'000'000);
  place->set_bytes_squared(1e11);
  place->set_is_in_shares(true);
  return work;
}

class OffersTest : public DispatcherStateTest {
 protected:
  void Say(const Work& work) {
    WorkerBeat beat;
    *beat.add_work() = work;
    Beat(beat);
  }
  OpenReply OpenJob(const std::string& job, uint64_t consumer) {
    OpenRequest request = Request(consumer);
    request.set_job(job);
    return *Open(request);
  }
  State Described() {
    State state;
    state_->Describe(now_, state);
    return state;
  }
};

TEST_F(OffersTest, ASecondEpochThatComputesTheSame) {
  const OpenReply opened = OpenEpoch(10);
  const uint64_t run = opened.epoch().run();
  Say(PassOf(run, 0, 5));
  EXPECT_THAT(Beat(opened, 1).offers(), IsEmpty());
  Say(PassOf(run, 1, 5));
  const ClientReply reply = Beat(opened, 1);
  ASSERT_THAT(reply.offers(), SizeIs(1));
  EXPECT_THAT(reply.offers(0).advice(), HasSubstr("after map_1"));
  EXPECT_THAT(reply.offers(0).why(), HasSubstr("job 'train'"));
  ASSERT_THAT(Described().jobs(0).offers(), SizeIs(1));
  std::vector<std::string> events;
  for (const Happening& each : state_->TakeNews().happenings) {
    events.push_back(each.event);
  }
  EXPECT_THAT(events, testing::Contains("offer"));
}

TEST_F(OffersTest, AnotherJobThatComputesTheSame) {
  const OpenReply first = OpenEpoch(10);
  Say(PassOf(first.epoch().run(), 0, 5));
  const uint64_t second = OpenJob("other", 2).epoch().run();
  Say(PassOf(second, 0, 5, "something else"));
  const State before = Described();
  for (const State::Job& job : before.jobs()) {
    EXPECT_THAT(job.offers(), testing::Each(testing::Property(
                                  &plan::Offer::node, IsEmpty())));
  }
  Say(PassOf(second, 0, 5));
  const State state = Described();
  ASSERT_THAT(state.jobs(), SizeIs(2));
  const State::Job& other = state.jobs(0);
  EXPECT_EQ(other.job(), "other");
  // To keep it, and, since both run now, to share it.
  ASSERT_THAT(other.offers(), SizeIs(2));
  EXPECT_THAT(other.offers(0).why(), HasSubstr("for job 'train'"));
  EXPECT_THAT(other.offers(1).advice(), HasSubstr("share=\"auto\""));
}

TEST_F(OffersTest, WorkAndPaddingAreAddedUp) {
  const OpenReply opened = OpenEpoch(10);
  Work work = PassOf(opened.epoch().run(), 0, 2);
  work.mutable_padding()->set_items(6);
  work.mutable_padding()->set_padded_items(10);
  Say(work);
  Say(work);  // said again, not done again
  WorkerBeat beat;
  beat.set_worker(8);
  beat.set_address("w8");
  *beat.add_work() = work;
  state_->OnWorker(beat, now_, writes_);
  const State::Job job = Described().jobs(0);
  EXPECT_EQ(job.padding().items(), 12);
  EXPECT_EQ(job.padding().padded_items(), 20);
  EXPECT_NEAR(job.epochs(0).cpu_seconds(), 4, 1e-9);
}

TEST(WorkTableTest, RemembersTheNewest) {
  WorkTable table;
  for (uint64_t run = 1; run <= WorkTable::kMaxRuns + 5; ++run) {
    for (uint64_t epoch = 0; epoch < WorkTable::kMaxPasses + 3; ++epoch) {
      table.Take(1, PassOf(run, epoch, 1));
    }
  }
  EXPECT_THAT(table.runs(), SizeIs(WorkTable::kMaxRuns));
  EXPECT_THAT(table.Of(1), IsEmpty());
  EXPECT_THAT(table.Of(WorkTable::kMaxRuns), SizeIs(WorkTable::kMaxPasses));
}

}  // namespace
}  // namespace penstock::service

// A dispatcher's state for tests.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "penstock/service/dispatcher/dispatcher_state.h"

namespace penstock::service {

// A dispatcher whose writes all reach the disk, one that can be restarted.
class DispatcherStateTest : public testing::Test {
 protected:
  DispatcherStateTest() { Restart(); }

  void Restart() {
    std::vector<store::Record> records;
    for (const auto& [key, value] : disk_) records.push_back({key, value});
    auto made = DispatcherState::Make(settings_, ++term_, now_, records);
    ASSERT_TRUE(made.ok()) << made.status();
    state_ = *std::move(made);
    state_->AddPlan("p", "plan", false, now_, writes_);
    Write();
  }
  void Write() {
    for (const store::WriteBatch* batch : {&writes_.durable, &writes_.lazy}) {
      for (const auto& [key, value] : *batch) {
        if (value) {
          disk_[key] = *value;
        } else {
          disk_.erase(key);
        }
      }
    }
    writes_ = {};
  }

  OpenRequest Request(uint64_t number, uint32_t slot = 0,
                      uint32_t slots = 1) const {
    OpenRequest request;
    request.mutable_opener()->set_consumer(number);
    request.set_job("train");
    request.set_plan("p");
    request.set_visitation(EXACTLY_ONCE);
    request.set_slot(slot);
    request.set_slots(slots);
    return request;
  }
  // Of a checkpoint of two: each has had the bundle of its number.
  OpenRequest Restoring(const OpenReply& opened, uint32_t slot,
                        uint64_t consumer) const {
    OpenRequest request = Request(consumer, slot, 2);
    ConsumerState* state = request.add_states();
    *state->mutable_epoch() = opened.epoch();
    state->set_job("train");
    state->set_plan("p");
    state->set_manifest(opened.manifest());
    state->set_slot(slot);
    state->set_slots(2);
    state->add_done()->set_begin(slot);
    state->mutable_done(0)->set_end(slot + 1);
    return request;
  }
  absl::StatusOr<OpenReply> Ask(const OpenRequest& request) {
    auto reply = state_->Open(request, now_, writes_);
    Write();
    return reply;
  }
  // Asks again, as readers do, where it would take the place of others.
  absl::StatusOr<OpenReply> Open(OpenRequest request) {
    auto reply = Ask(request);
    if (!reply.ok() || reply->replaces() == 0) return reply;
    request.set_replaces(reply->replaces());
    return Ask(request);
  }
  WorkerReply Beat(WorkerBeat beat = {}) {
    beat.set_worker(9);
    beat.set_address("w9");
    if (beat.room() == 0) beat.set_room(4);
    WorkerReply reply = state_->OnWorker(beat, now_, writes_);
    Write();
    return reply;
  }
  ClientReply Beat(const OpenReply& opened, uint32_t want,
                   std::vector<uint64_t> finished = {}, uint64_t consumer = 1,
                   uint32_t slot = 0) {
    ClientBeat beat;
    *beat.mutable_epoch() = opened.epoch();
    beat.set_slot(slot);
    beat.mutable_opener()->set_consumer(consumer);
    beat.set_want(want);
    for (const uint64_t bundle : finished) {
      beat.add_finished()->set_bundle(bundle);
    }
    ClientReply reply = state_->OnClient(beat, now_, writes_);
    Write();
    return reply;
  }
  // Opens an epoch of `bundles`, with the manifest that a worker makes.
  OpenReply OpenEpoch(uint64_t bundles) {
    const OpenRequest request = Request(1);
    EXPECT_EQ(Open(request)->phase(), OpenReply::WAITING);
    const WorkerReply granted = Beat();
    EXPECT_EQ(granted.leases_size(), 1);
    WorkerBeat beat;
    WorkerBeat::Made* made = beat.add_made();
    *made->mutable_epoch() = granted.leases(0).epoch();
    made->set_attempt(granted.leases(0).attempt());
    made->mutable_manifest()->set_rows(bundles);
    made->mutable_manifest()->set_rows_per_bundle(1);
    made->mutable_manifest()->set_passes(1);
    EXPECT_EQ(Beat(beat).made_taken_size(), 1);
    const auto reply = Open(request);
    EXPECT_EQ(reply->phase(), OpenReply::OPEN);
    return *reply;
  }

  void Tick() {
    state_->Tick(now_, writes_);
    Write();
  }
  // Keys on the disk that begin with `kind`.
  std::vector<std::string> Keys(const std::string& kind) const {
    std::vector<std::string> keys;
    for (const auto& [key, value] : disk_) {
      if (key.substr(0, kind.size()) == kind) keys.push_back(key);
    }
    return keys;
  }

  DispatcherState::Settings settings_;
  std::map<std::string, std::string> disk_;
  std::unique_ptr<DispatcherState> state_;
  Writes writes_;
  uint64_t term_ = 0;
  int64_t now_ = 1'000;
};

}  // namespace penstock::service

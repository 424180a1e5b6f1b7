// For tests: a worker, its dispatcher, and readings of it.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "penstock/data/chunk_testing.h"
#include "penstock/data/encode.h"
#include "penstock/dispatcher.pb.h"
#include "penstock/engine/bundle_for_test.h"
#include "penstock/io/crc32c.h"
#include "penstock/service/worker/fake_dispatcher_testing.h"
#include "penstock/service/worker/manifest.h"
#include "penstock/service/worker/reading_testing.h"
#include "penstock/service/worker/worker_server.h"

namespace penstock::service {

inline constexpr uint64_t kManifest = 55;
inline constexpr uint64_t kPlenty = uint64_t{1} << 40;

struct ReadItem {
  std::string text;
  bool is_loose = false;

  friend bool operator==(const ReadItem&, const ReadItem&) = default;
};
inline void PrintTo(const ReadItem& item, std::ostream* out) {
  *out << (item.is_loose ? "loose " : "") << item.text;
}

// What came of one reading.
struct Got {
  std::vector<ReadItem> items;
  uint64_t first = 0;  // position of the first
  bool has_ended = false;
  uint64_t digest = 0;
  int frames = 0;
  size_t bytes = 0;
  absl::Status status;
};

class WorkerServerTest : public testing::Test {
 protected:
  void Start(WorkerServer::Options options = {}) {
    options.dispatcher = dispatcher_.address();
    if (options.cpus == 0) options.cpus = 2;
    if (options.memory_bytes == 0) options.memory_bytes = int64_t{1} << 30;
    auto worker = WorkerServer::Start(std::move(options));
    ASSERT_TRUE(worker.ok()) << worker.status();
    worker_ = *std::move(worker);
  }

  // Has the dispatcher give out `plan` in bundles of `size` rows.
  void Offer(const plan::Plan& plan, uint64_t rows, uint64_t size,
             uint64_t passes = 1) {
    PlanBundle bundle;
    plan.SerializeToString(bundle.mutable_plan());
    dispatcher_.AddPlan("plan", bundle.SerializeAsString());
    manifest_.set_rows(rows);
    manifest_.set_rows_per_bundle(size);
    manifest_.set_passes(passes);
    dispatcher_.AddManifest(kManifest, manifest_);
    divided_ = std::make_unique<engine_testing::Divided>(engine_, plan);
  }
  Lease LeaseOf(uint64_t bundle) {
    Lease lease;
    lease.mutable_epoch()->set_run(1);
    lease.set_bundle(bundle);
    lease.set_attempt(++attempts_);
    lease.set_plan("plan");
    lease.set_seed(engine_testing::kSeed);
    lease.set_epoch_number(engine_testing::kEpoch);
    lease.set_manifest(kManifest);
    return lease;
  }
  void Grant(uint64_t bundle) { dispatcher_.Grant(LeaseOf(bundle)); }

  // What a plain run of the bundle gives, from `from` on.
  std::vector<ReadItem> Expected(uint64_t bundle, size_t from = 0) {
    const auto part = PartOfBundle(divided_->division(), manifest_, bundle, 0);
    std::vector<ReadItem> items;
    for (const auto& item :
         engine_testing::ReadItems(*divided_->Start(*part), 1'000'000, 1'000)) {
      items.push_back({item.text, item.is_loose});
    }
    items.erase(items.begin(),
                items.begin() + static_cast<std::ptrdiff_t>(from));
    return items;
  }

  static ReadRequest RequestOf(uint64_t bundle, uint64_t from = 0,
                               uint64_t credit = kPlenty, uint64_t run = 1) {
    ReadRequest request;
    request.mutable_epoch()->set_run(run);
    request.set_bundle(bundle);
    request.set_from(from);
    request.set_credit_bytes(credit);
    return request;
  }

  // A whole frame; nothing if the call is over.
  static std::optional<Piece> NextFrame(TestReading& reading) {
    std::optional<Piece> frame = reading.Next();
    if (!frame.has_value() || frame->header.has_place()) return frame;
    Check(*frame, 0);
    while (frame->bytes.size() < frame->header.frame_bytes()) {
      const std::optional<Piece> more = reading.Next();
      if (!more.has_value()) return std::nullopt;
      Check(*more, frame->bytes.size());
      frame->bytes += more->bytes;
    }
    return frame;
  }
  static void Check(const Piece& piece, size_t offset) {
    EXPECT_EQ(piece.header.piece_offset(), offset);
    EXPECT_EQ(piece.header.piece_bytes(), piece.bytes.size());
    EXPECT_LE(piece.bytes.size(), kMaxPieceBytes);
    EXPECT_EQ(piece.header.crc32c(), io::Crc32c(piece.bytes));
  }

  // Adds what the frame has from `from` on.
  static void Add(const FrameHeader& header, const Buffer& bytes, uint64_t from,
                  Got& got) {
    ++got.frames;
    if (header.is_end()) {
      got.has_ended = true;
      got.digest = header.digest();
    }
    if (header.items() == 0) return;
    got.bytes += bytes.size();
    const absl::StatusOr<Chunk> chunk =
        Decode(bytes.Slice(0, header.chunk_bytes()));
    ASSERT_TRUE(chunk.ok()) << chunk.status();
    ASSERT_EQ(chunk->rows, static_cast<int64_t>(header.items()));
    const std::vector<std::string> texts = ToText(*chunk);
    for (size_t i = 0; i < texts.size(); ++i) {
      const uint64_t position = header.position() + i;
      if (position < from) continue;
      if (got.items.empty()) got.first = position;
      ASSERT_EQ(position, got.first + got.items.size()) << "out of step";
      got.items.push_back({texts[i], header.is_loose()});
    }
  }
  static Buffer Copy(const std::string& bytes) {
    Buffer buffer = Buffer::Allocate(bytes.size());
    std::memcpy(buffer.MutableAs<char>(), bytes.data(), bytes.size());
    return buffer;
  }

  // Reads at most `max_frames`, to the end of the call if there are fewer.
  Got Read(uint64_t bundle, uint64_t from = 0, int max_frames = 1 << 30,
           uint64_t run = 1) {
    TestReading reading(worker_->address());
    reading.Send(RequestOf(bundle, from, kPlenty, run));
    Got got;
    while (got.frames < max_frames) {
      const std::optional<Piece> frame = NextFrame(reading);
      if (!frame.has_value()) {
        got.status = reading.Finish();
        break;
      }
      Add(frame->header, Copy(frame->bytes), from, got);
    }
    return got;
  }

  FakeDispatcher dispatcher_;
  engine_testing::TestEngine engine_;
  Manifest manifest_;
  std::unique_ptr<engine_testing::Divided> divided_;
  uint64_t attempts_ = 0;
  std::unique_ptr<WorkerServer> worker_;
};

}  // namespace penstock::service

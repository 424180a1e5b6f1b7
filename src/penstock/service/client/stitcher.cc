#include "penstock/service/client/stitcher.h"

#include <utility>

#include "penstock/base/status.h"
#include "penstock/engine/receiver.h"
#include "penstock/plan/convert.h"

namespace penstock::service {
namespace {

// Gives the rows of a group.
class GroupStream final : public engine::Stream {
 public:
  GroupStream(engine::NodeStats* stats, std::vector<Chunk> chunks)
      : Stream(stats, Counts::kTime), chunks_(std::move(chunks)) {}

 protected:
  absl::StatusOr<engine::Pull> DoNext(const engine::Request& request) override {
    while (at_ < chunks_.size()) {
      const int64_t rows =
          std::min(request.max_rows, chunks_[at_].rows - given_);
      if (rows <= 0) {
        ++at_;
        given_ = 0;
        continue;
      }
      Chunk chunk = Slice(chunks_[at_], given_, rows);
      given_ += rows;
      return engine::Pull::Rows(std::move(chunk));
    }
    return engine::Pull::End();
  }
  // Groups are run from their beginning.
  void DoSave(WireWriter&) const override {}
  absl::Status DoRestore(WireReader&) override {
    return absl::InternalError("a group is not restored");
  }

 private:
  const std::vector<Chunk> chunks_;
  size_t at_ = 0;
  int64_t given_ = 0;
};

class GroupReceiver final : public engine::Receiver {
 public:
  explicit GroupReceiver(std::vector<Chunk> chunks)
      : chunks_(std::move(chunks)) {}
  engine::StreamOr Start(const plan::Received&, const engine::Scope& scope,
                         const engine::OpInfo& info) override {
    return std::make_unique<GroupStream>(engine::StatsOf(scope, info), chunks_);
  }

 private:
  const std::vector<Chunk> chunks_;
};

}  // namespace

Stitcher::Stitcher(const plan::Division& division,
                   engine::Environment environment, const Keys& keys)
    : repeat_(division.stitch->repeat),
      gives_lineage_(division.needs_lineage),
      environment_(std::move(environment)),
      keys_(keys),
      instances_([] { return uint64_t{1}; }) {}

absl::StatusOr<std::unique_ptr<Stitcher>> Stitcher::Make(
    const plan::Division& division, const plan::Options& defaults,
    const engine::Environment& environment, const Keys& keys) {
  std::unique_ptr<Stitcher> stitcher(new Stitcher(division, environment, keys));
  PENSTOCK_ASSIGN_OR_RETURN(
      stitcher->pipeline_,
      engine::Pipeline::Build(division.stitch->after, defaults,
                              environment.sources));
  return stitcher;
}

absl::Status Stitcher::Begin(std::vector<Chunk> loose, uint64_t pass) {
  engine::Environment environment = environment_;
  environment.receiver = std::make_shared<GroupReceiver>(std::move(loose));
  engine::RunPart part;
  part.repeat = repeat_;
  part.pass = pass;
  part.iteration = keys_.iteration;
  part.gives_lineage = gives_lineage_;
  PENSTOCK_ASSIGN_OR_RETURN(
      iterator_, engine::Iterator::Start(pipeline_, environment, instances_,
                                         keys_.epoch, keys_.seed, part));
  return absl::OkStatus();
}

absl::StatusOr<engine::Pull> Stitcher::Next(const engine::Request& request) {
  PENSTOCK_ASSIGN_OR_RETURN(engine::Pull pull, iterator_->Next(request));
  if (pull.is_end()) iterator_.reset();
  return pull;
}

}  // namespace penstock::service

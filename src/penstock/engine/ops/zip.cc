#include "penstock/engine/ops/zip.h"

#include <algorithm>
#include <iterator>

#include "penstock/base/hash.h"
#include "penstock/base/status.h"

namespace penstock::engine {
namespace {

// Puts `from`'s columns, errors and lineage beside those of `to`.
void Join(Chunk from, Chunk& to) {
  for (Column& column : from.columns) to.columns.push_back(std::move(column));
  if (!from.errors.empty()) {
    // The first error of a row is the one that counts.
    std::vector<RowError> errors;
    std::set_union(
        to.errors.begin(), to.errors.end(), from.errors.begin(),
        from.errors.end(), std::back_inserter(errors),
        [](const RowError& a, const RowError& b) { return a.row < b.row; });
    to.errors = std::move(errors);
  }
  if (!to.has_lineage()) return;
  Buffer lineage = Buffer::Allocate(to.lineage.size());
  for (int64_t i = 0; i < to.rows; ++i) {
    lineage.MutableAs<uint64_t>()[i] =
        Combine(to.lineage.As<uint64_t>()[i], from.lineage.As<uint64_t>()[i]);
  }
  to.lineage = std::move(lineage);
}

class ZipStream final : public Stream {
 public:
  ZipStream(NodeStats* stats, std::vector<Input> inputs)
      : Stream(stats), inputs_(std::move(inputs)) {}

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    if (has_ended_) return Pull::End();
    int64_t rows = request.max_rows;
    // Every input is asked before any wait, so that their waits overlap.
    bool is_blocked = false;
    for (Input& input : inputs_) {
      PENSTOCK_ASSIGN_OR_RETURN(const Pull::Kind kind, input.Fill(request));
      if (kind == Pull::Kind::kEnd) {
        has_ended_ = true;
        return Pull::End();
      }
      is_blocked |= kind == Pull::Kind::kBlocked;
      rows = std::min(rows, input.rows_held());
    }
    if (is_blocked) return Pull::Blocked();
    Chunk chunk = inputs_[0].Take(rows);
    for (size_t i = 1; i < inputs_.size(); ++i) {
      Join(inputs_[i].Take(rows), chunk);
    }
    return Pull::Rows(std::move(chunk));
  }

  int64_t DoSkip(int64_t rows) override {
    for (Input& input : inputs_) input.SkipRows(rows);
    return rows;
  }

  void DoSave(WireWriter& writer) const override {
    writer.Bool(has_ended_);
    for (const Input& input : inputs_) input.Save(writer);
  }

  absl::Status DoRestore(WireReader& reader) override {
    PENSTOCK_ASSIGN_OR_RETURN(has_ended_, reader.Bool());
    for (Input& input : inputs_)
      PENSTOCK_RETURN_IF_ERROR(input.Restore(reader));
    return absl::OkStatus();
  }

 private:
  std::vector<Input> inputs_;
  bool has_ended_ = false;
};

}  // namespace

OperatorOr MakeZip(std::vector<OperatorPtr> inputs, OpContext& context) {
  const OpInfo& info = *context.info;
  return MakeOperator([inputs, &info](const Scope& scope) -> StreamOr {
    std::vector<Input> started;
    for (const OperatorPtr& input : inputs) {
      PENSTOCK_ASSIGN_OR_RETURN(auto stream, input->Start(scope));
      started.emplace_back(std::move(stream));
    }
    return std::make_unique<ZipStream>(StatsOf(scope, info),
                                       std::move(started));
  });
}

}  // namespace penstock::engine

#include "penstock/engine/ops/rows.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/data/encode.h"
#include "penstock/data/nested.h"

namespace penstock::engine {
namespace {

class RowsStream final : public Stream {
 public:
  RowsStream(const Scope& scope, const OpInfo& info, Chunk rows)
      : Stream(StatsOf(scope, info)), scope_(scope), rows_(std::move(rows)) {}

  bool IsOver() const override { return next_ >= rows_.rows; }

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    const int64_t count = std::min(request.max_rows, rows_.rows - next_);
    if (count <= 0) return Pull::End();
    Chunk chunk = Slice(rows_, next_, count);
    chunk.lineage = SourceLineage(scope_, next_, count);
    next_ += count;
    return Pull::Rows(std::move(chunk));
  }

  int64_t DoSkip(int64_t rows) override {
    const int64_t skipped = std::min(rows, rows_.rows - next_);
    next_ += skipped;
    return skipped;
  }

  void DoSave(WireWriter& writer) const override { writer.Varint(next_); }

  absl::Status DoRestore(WireReader& reader) override {
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t next, reader.Varint());
    next_ = static_cast<int64_t>(next);
    return absl::OkStatus();
  }

 private:
  const Scope scope_;
  const Chunk rows_;
  int64_t next_ = 0;
};

// Splits every value along its first dimension.
absl::Status SplitFirst(Chunk& chunk) {
  std::optional<int64_t> rows;
  for (Column& column : chunk.columns) {
    if (column.rank() == 0) {
      return absl::InvalidArgumentError(
          "from_tensor_slices needs values of rank 1 or more; got a scalar");
    }
    const int64_t size = column.shape()[0];
    if (rows.has_value() && *rows != size) {
      return absl::InvalidArgumentError(
          absl::StrCat("from_tensor_slices needs one first dimension in all "
                       "components; got ",
                       *rows, " and ", size));
    }
    rows = size;
    column = column.Reshape(
        size, Shape(column.shape().begin() + 1, column.shape().end()));
  }
  chunk.rows = rows.value_or(0);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Chunk> LoadRows(const plan::Rows& spec, const Run& run) {
  Buffer bytes;
  if (spec.source_case() == plan::Rows::kCapture) {
    if (run.environment.sources == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat("array ", spec.capture(), " is not here"));
    }
    PENSTOCK_ASSIGN_OR_RETURN(bytes,
                              run.environment.sources->Capture(spec.capture()));
  } else {
    bytes = Buffer::Allocate(spec.chunk().size());
    std::memcpy(bytes.MutableAs<char>(), spec.chunk().data(),
                spec.chunk().size());
  }
  return Decode(bytes);
}

OperatorOr MakeRows(const plan::Rows& spec, OpContext& context) {
  const OpInfo& info = *context.info;
  if (spec.source_case() == plan::Rows::kChunk) {  // the same for all streams
    PENSTOCK_ASSIGN_OR_RETURN(const Chunk rows, LoadRows(spec, Run()));
    PENSTOCK_RETURN_IF_ERROR(info.Located(CheckColumns(rows, info.leaves)));
    return MakeOperator([rows, &info](const Scope& scope) -> StreamOr {
      return std::make_unique<RowsStream>(scope, info, rows);
    });
  }
  return MakeOperator([spec, &info](const Scope& scope) -> StreamOr {
    PENSTOCK_ASSIGN_OR_RETURN(Chunk rows, LoadRows(spec, *scope.run));
    PENSTOCK_RETURN_IF_ERROR(info.Located(CheckColumns(rows, info.leaves)));
    return std::make_unique<RowsStream>(scope, info, std::move(rows));
  });
}

OperatorOr MakeNestedRows(const plan::NestedRows& spec, OpContext& context) {
  const OpInfo& info = *context.info;
  return MakeOperator([spec, &info](const Scope& scope) -> StreamOr {
    PENSTOCK_ASSIGN_OR_RETURN(const Column column, ValueOf(spec.rows(), scope));
    PENSTOCK_ASSIGN_OR_RETURN(Chunk rows, DecodeNested(column));
    PENSTOCK_RETURN_IF_ERROR(info.Located(CheckColumns(rows, info.leaves)));
    return std::make_unique<RowsStream>(scope, info, std::move(rows));
  });
}

OperatorOr MakeValues(const plan::Values& spec, OpContext& context) {
  const OpInfo& info = *context.info;
  return MakeOperator([spec, &info](const Scope& scope) -> StreamOr {
    Chunk rows;
    rows.rows = 1;
    for (const plan::Value& value : spec.values()) {
      PENSTOCK_ASSIGN_OR_RETURN(Column column, ValueOf(value, scope));
      rows.columns.push_back(std::move(column));
    }
    if (spec.slices()) PENSTOCK_RETURN_IF_ERROR(info.Located(SplitFirst(rows)));
    return std::make_unique<RowsStream>(scope, info, std::move(rows));
  });
}

}  // namespace penstock::engine

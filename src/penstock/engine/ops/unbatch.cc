#include "penstock/engine/ops/unbatch.h"

#include <algorithm>

#include "penstock/base/hash.h"
#include "penstock/base/status.h"
#include "penstock/data/builder.h"
#include "penstock/data/composite.h"

namespace penstock::engine {
namespace {

Buffer SplitLineage(const Chunk& chunk, int64_t row, int64_t count,
                    int64_t size) {
  if (!chunk.has_lineage()) return Buffer();
  Buffer lineage = Buffer::Allocate(count * size * sizeof(uint64_t));
  uint64_t* to = lineage.MutableAs<uint64_t>();
  for (int64_t r = row; r < row + count; ++r) {
    for (int64_t i = 0; i < size; ++i) {
      *to++ =
          Combine(chunk.lineage.As<uint64_t>()[r], static_cast<uint64_t>(i));
    }
  }
  return lineage;
}

// Row `row` (or, of dense chunks, all rows from `row` on) split up.
Chunk Split(const Chunk& chunk, int64_t row, int64_t count, int64_t size) {
  Chunk out;
  out.rows = count * size;
  for (const Column& column : chunk.columns) {
    const Column rows =
        column.is_dense() ? column.Slice(row, count) : RowOf(column, row);
    out.columns.push_back(rows.Reshape(
        out.rows, Shape(rows.shape().begin() + 1, rows.shape().end())));
  }
  out.lineage = SplitLineage(chunk, row, count, size);
  return out;
}

class UnbatchStream final : public Stream {
 public:
  UnbatchStream(const Scope& scope, const OpInfo& info, Counts counts,
                const ElementSpec& spec, std::vector<TensorSpec> leaves,
                std::unique_ptr<Stream> input)
      : Stream(StatsOf(scope, info), counts),
        is_row_exact_(scope.run->options.is_row_exact),
        info_(info),
        parts_(PartsOf(spec)),
        is_plain_(!HasComposite(spec)),
        leaves_(std::move(leaves)),
        input_(std::move(input)) {}

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    for (int tries = 0; tries < 64; ++tries) {
      if (begin_ < rows_.rows) {
        const int64_t count = std::min(request.max_rows, rows_.rows - begin_);
        Chunk chunk = Slice(rows_, begin_, count);
        begin_ += count;
        return Pull::Rows(std::move(chunk));
      }
      // Enough batches for the demand, judging by the last one.
      const int64_t wanted =
          is_row_exact_
              ? 1
              : std::max<int64_t>(
                    1, request.max_rows / std::max<int64_t>(1, last_size_));
      PENSTOCK_ASSIGN_OR_RETURN(const Pull::Kind kind,
                                input_.Fill({wanted, request.waker}));
      if (kind == Pull::Kind::kBlocked) return Pull::Blocked();
      if (kind == Pull::Kind::kEnd) return Pull::End();
      NextRows();
    }
    return Yield(request);
  }

  void DoSave(WireWriter& writer) const override {
    // The chunk's rows were taken from the input as they were split: say where
    // the rows in rows_ began, and how many of them were given.
    if (begin_ < rows_.rows) {
      writer.Varint(begin_);
      writer.Bytes(position_);
      return;
    }
    WireWriter position;
    input_.Save(position);
    writer.Varint(0);
    writer.Bytes(position.bytes());
  }

  absl::Status DoRestore(WireReader& reader) override {
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t rows, reader.Varint());
    PENSTOCK_ASSIGN_OR_RETURN(const std::string_view position, reader.Bytes());
    WireReader position_reader(position);
    PENSTOCK_RETURN_IF_ERROR(input_.Restore(position_reader));
    SkipRows(static_cast<int64_t>(rows));
    return absl::OkStatus();
  }

 private:
  // Splits the next held row, or all of them where that is one relabelling.
  void NextRows() {
    WireWriter position;
    input_.Save(position);
    position_ = position.Take();
    begin_ = 0;
    const Chunk& chunk = input_.chunk();
    const int64_t row = input_.begin();
    if (const absl::Status* error = ErrorAt(chunk, row)) {
      Fail(*error, chunk, row);
      return;
    }
    const absl::StatusOr<int64_t> size = BatchSizeOf(parts_, chunk, row);
    if (!size.ok()) {
      Fail(info_.Located(size.status()), chunk, row);
      return;
    }
    last_size_ = *size;
    if (!is_plain_) {
      absl::StatusOr<Chunk> rows = SplitRow(parts_, chunk, row, *size);
      if (!rows.ok()) {
        Fail(info_.Located(rows.status()), chunk, row);
        return;
      }
      rows_ = *std::move(rows);
      rows_.lineage = SplitLineage(chunk, row, 1, *size);
      input_.Consume(1);
      return;
    }
    const bool is_dense =
        std::all_of(chunk.columns.begin(), chunk.columns.end(),
                    [](const Column& column) { return column.is_dense(); });
    const int64_t count =
        is_dense && chunk.errors.empty() ? input_.rows_held() : 1;
    rows_ = Split(chunk, row, count, *size);
    input_.Consume(count);
  }

  void Fail(const absl::Status& status, const Chunk& chunk, int64_t row) {
    rows_ = ErrorChunk(status, PlaceholderColumns(leaves_, 1));
    if (chunk.has_lineage()) {
      rows_.lineage = Slice(chunk, row, 1).lineage;
    }
    input_.Consume(1);
  }

  const bool is_row_exact_;
  const OpInfo& info_;
  const std::vector<Part> parts_;
  const bool is_plain_;  // no part is ragged or sparse
  const std::vector<TensorSpec> leaves_;
  Input input_;
  Chunk rows_;  // split, of which those from begin_ on are still to be given
  int64_t begin_ = 0;
  std::string position_;  // of the input before what rows_ was made from
  int64_t last_size_ = 1;
};

OperatorPtr MakeSplitter(OperatorPtr input, const OpInfo& info,
                         Stream::Counts counts, const ElementSpec& spec,
                         std::vector<TensorSpec> leaves) {
  return MakeOperator([=, &info](const Scope& scope) -> StreamOr {
    PENSTOCK_ASSIGN_OR_RETURN(auto stream, input->Start(scope));
    return std::make_unique<UnbatchStream>(scope, info, counts, spec, leaves,
                                           std::move(stream));
  });
}

}  // namespace

OperatorOr MakeUnbatch(OperatorPtr input, OpContext& context) {
  return MakeSplitter(std::move(input), *context.info, Stream::Counts::kAll,
                      context.input_specs[0], context.info->leaves);
}

OperatorOr MakeUnbatchRows(OperatorPtr input, OpContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const ElementSpec element,
                            Unbatched(context.input_specs[0]));
  return MakeSplitter(std::move(input), *context.info, Stream::Counts::kTime,
                      context.input_specs[0], element.Flatten());
}

}  // namespace penstock::engine

#include "penstock/engine/ops/batch.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "penstock/base/status.h"
#include "penstock/data/builder.h"
#include "penstock/data/composite.h"
#include "penstock/data/stack.h"
#include "penstock/engine/ops/padding.h"
#include "penstock/engine/ops/unbatch.h"
#include "penstock/plan/convert.h"

namespace penstock::engine {
namespace {

// Makes groups of `size` > 0 rows of a chunk into one row each.
using Assemble =
    std::function<absl::StatusOr<Chunk>(const Chunk& chunk, int64_t size)>;

struct BatchConfig {
  std::vector<int64_t> sizes;  // in turn; not all 0
  bool drop_remainder = false;
  // Whether Assemble takes several groups at once.
  bool takes_groups = true;
  Assemble assemble;
};

class BatchStream final : public Stream {
 public:
  BatchStream(const Scope& scope, const OpInfo& info,
              std::unique_ptr<Stream> input,
              std::shared_ptr<const BatchConfig> config)
      : Stream(StatsOf(scope, info)),
        scope_(scope),
        info_(info),
        config_(std::move(config)),
        input_(std::move(input)) {}

  bool IsOver() const override { return open_rows_ == 0 && input_.IsOver(); }

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    while (true) {
      const int64_t size = config_->sizes[turn_ % config_->sizes.size()];
      if (size > 0 && open_rows_ == size) return EmitOpen(request.group);
      const int64_t wanted = size == 0 ? 1 : WantedRows(request, size);
      PENSTOCK_ASSIGN_OR_RETURN(
          const Pull::Kind kind,
          input_.Fill({wanted, request.waker, OpenGroup(request.group, size)}));
      if (kind == Pull::Kind::kBlocked) return Pull::Blocked();
      if (kind == Pull::Kind::kEnd) {
        if (open_rows_ == 0) return Pull::End();
        const bool is_stitched = scope_.run->part_ops.stitch == info_.id;
        // Those that do not go together are the error that they are with any
        // others.
        if (is_stitched && misfit_.rows == 0) return HandOver();
        if (config_->drop_remainder && !is_stitched) return Pull::End();
        return EmitOpen(request.group);
      }
      if (size == 0) {
        ++turn_;
        return Pull::Rows(EmptyBatch());
      }
      if (open_rows_ == 0 && input_.rows_held() >= size &&
          input_.chunk().errors.empty()) {
        int64_t groups = std::min(request.max_rows, input_.rows_held() / size);
        if (config_->sizes.size() > 1 || !config_->takes_groups) groups = 1;
        return Pull::Rows(EmitHeld(groups, size));
      }
      std::optional<Chunk> error = Gather(size);
      if (error.has_value()) return Pull::Rows(*std::move(error));
    }
  }

  void DoSave(WireWriter& writer) const override {
    writer.Varint(turn_);
    writer.Varint(errors_given_ + errors_to_drop_);
    if (open_rows_ > 0 || errors_given_ > 0) {
      writer.Raw(open_position_);
    } else {
      input_.Save(writer);
    }
  }

  absl::Status DoRestore(WireReader& reader) override {
    PENSTOCK_ASSIGN_OR_RETURN(turn_, reader.Varint());
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t errors, reader.Varint());
    errors_to_drop_ = static_cast<int64_t>(errors);
    return input_.Restore(reader);
  }

 private:
  // The rows that are left go elsewhere. They stay open: the position is still
  // the one before them.
  Pull HandOver() {
    if (open_.rows() > 0) scope_.run->loose.Set(open_.Build());
    return Pull::End();
  }

  int64_t WantedRows(const Request& request, int64_t size) const {
    if (open_rows_ > 0) return size - open_rows_;
    const int64_t batches = config_->sizes.size() > 1 ? 1 : request.max_rows;
    // Whole batches, as many as a chunk may hold; one at least.
    const int64_t fitting = std::max<int64_t>(1, kMaxChunkRows / size);
    return std::min(batches, fitting) * size;
  }

  // Rows of this batch, or of what it is to be a part of.
  Group OpenGroup(const Group& outer, int64_t size) const {
    return {outer.rows * size, outer.filled * size + open_rows_};
  }

  // Moves held rows into the open batch, up to an error or its end. Gives the
  // error, if one comes next.
  std::optional<Chunk> Gather(int64_t size) {
    const Chunk& chunk = input_.chunk();
    int64_t rows = std::min(input_.rows_held(), size - open_rows_);
    bool is_error_next = false;
    for (const RowError& error : chunk.errors) {
      if (error.row < input_.begin()) continue;
      if (error.row < input_.begin() + rows) {
        rows = error.row - input_.begin();
        is_error_next = true;
      }
      break;
    }
    if (open_rows_ == 0 && errors_given_ == 0) {
      WireWriter position;
      input_.Save(position);
      open_position_ = position.Take();
    }
    if (rows > 0) {
      // Of rows that do not go together, only the number and the first are of
      // use.
      if (open_.Fits(chunk)) {
        open_.Append(chunk, input_.begin(), rows);
      } else if (misfit_.rows == 0) {
        misfit_ = Slice(chunk, input_.begin(), 1);
      }
      open_rows_ += rows;
      input_.Consume(rows);
    }
    if (!is_error_next) return std::nullopt;
    absl::Status status = *ErrorAt(input_.chunk(), input_.begin());
    Buffer lineage = input_.Take(1).lineage;
    ++errors_given_;
    if (errors_to_drop_ > 0) {
      --errors_to_drop_;
      return std::nullopt;
    }
    Chunk error = Failed(status);
    error.lineage = std::move(lineage);
    // Nothing open: the position after the error is as good as any.
    if (open_rows_ == 0) errors_given_ = 0;
    return error;
  }

  Chunk EmptyBatch() const {
    Chunk chunk;
    chunk.rows = 1;
    chunk.columns = PlaceholderColumns(info_.leaves, 1);
    chunk.lineage = SourceLineage(scope_, static_cast<int64_t>(turn_), 1);
    return chunk;
  }

  Chunk Failed(const absl::Status& status) const {
    return ErrorChunk(status, PlaceholderColumns(info_.leaves, 1));
  }

  // One batch of all of `rows`, or why there is none.
  Chunk Assembled(const Chunk& rows) const {
    absl::StatusOr<Chunk> batch = config_->assemble(rows, rows.rows);
    if (!batch.ok()) batch = Failed(info_.Located(batch.status()));
    batch->lineage = GroupLineage(rows, rows.rows);
    return *std::move(batch);
  }

  // The open batch, which becomes part of `outer`.
  Pull EmitOpen(const Group& outer) {
    const int64_t rows = std::exchange(open_rows_, 0);
    ++turn_;
    errors_given_ = 0;
    const bool is_frame = outer.rows == 1;
    const Chunk open =
        open_.Build(is_frame ? scope_.run->environment.frames.get() : nullptr);
    Chunk batch = Assembled(open);
    if (open.rows < rows) {
      Buffer lineage = batch.lineage;
      batch = Failed(info_.Located(
          UnequalRanks("batch", open, std::exchange(misfit_, Chunk()))));
      batch.lineage = std::move(lineage);
    }
    return Pull::Rows(std::move(batch));
  }

  // Up to `groups` batches of held rows.
  Chunk EmitHeld(int64_t groups, int64_t size) {
    ++turn_;
    errors_given_ = 0;
    const Chunk rows = Slice(input_.chunk(), input_.begin(), groups * size);
    if (groups > 1) {
      absl::StatusOr<Chunk> batches = config_->assemble(rows, size);
      if (batches.ok()) {
        batches->lineage = GroupLineage(rows, size);
        input_.Consume(groups * size);
        return *std::move(batches);
      }
    }
    // Not all of one shape, or one of them fails.
    ChunkBuilder out;
    for (int64_t begin = 0; begin < rows.rows; begin += size) {
      const Chunk batch = Assembled(Slice(rows, begin, size));
      if (!out.Fits(batch)) break;
      out.Append(batch, 0, 1);
      input_.Consume(size);
    }
    return out.Build();
  }

  const Scope scope_;
  const OpInfo& info_;
  const std::shared_ptr<const BatchConfig> config_;
  Input input_;
  uint64_t turn_ = 0;  // batches begun: which size is next
  // Of a batch that is not full yet: its rows, and how many they are (more than
  // are there if some did not fit).
  ChunkBuilder open_;
  int64_t open_rows_ = 0;
  Chunk misfit_;                // the first of them whose rank is another
  std::string open_position_;   // of the input before them
  int64_t errors_given_ = 0;    // since open_position_
  int64_t errors_to_drop_ = 0;  // after a restore: given before the save
};

absl::StatusOr<Chunk> StackAll(const Chunk& chunk, int64_t size) {
  Chunk out;
  out.rows = chunk.rows / size;
  for (size_t c = 0; c < chunk.columns.size(); ++c) {
    absl::StatusOr<Column> stacked = Stack(chunk.columns[c], size);
    if (!stacked.ok()) {
      return OfComponent(c, chunk.columns.size(), stacked.status());
    }
    out.columns.push_back(*std::move(stacked));
  }
  return out;
}

// What makes a batch of rows with `parts`, of a dataset of `spec`, and whether
// it takes several groups at once.
std::pair<Assemble, bool> AssembleOf(const ElementSpec& spec,
                                     std::vector<Part> parts) {
  if (!HasComposite(spec)) return {StackAll, true};
  return {[parts = std::move(parts)](const Chunk& chunk, int64_t) {
            return StackRows(parts, chunk);
          },
          false};
}

OperatorPtr MakeBatching(
    OperatorPtr input, const OpInfo& info,
    std::function<absl::StatusOr<BatchConfig>(const Scope&)> configure) {
  return MakeOperator(
      [input, &info, configure](const Scope& scope) -> StreamOr {
        PENSTOCK_ASSIGN_OR_RETURN(BatchConfig config, configure(scope));
        PENSTOCK_ASSIGN_OR_RETURN(auto stream, input->Start(scope));
        return std::make_unique<BatchStream>(
            scope, info, std::move(stream),
            std::make_shared<const BatchConfig>(std::move(config)));
      });
}

}  // namespace

OperatorOr MakeBatch(const plan::Batch& spec, OperatorPtr input,
                     OpContext& context) {
  const auto [assemble, takes_groups] =
      AssembleOf(context.input_specs[0], PartsOf(context.input_specs[0]));
  return MakeBatching(
      std::move(input), *context.info,
      [spec, assemble = assemble, takes_groups = takes_groups](
          const Scope& scope) -> absl::StatusOr<BatchConfig> {
        PENSTOCK_ASSIGN_OR_RETURN(
            const int64_t size, IntegerOf(spec.size(), scope, "batch.size", 1));
        return BatchConfig{
            {size}, spec.drop_remainder(), takes_groups, assemble};
      });
}

OperatorOr MakePaddedBatch(const plan::PaddedBatch& spec, OperatorPtr input,
                           OpContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(
      const Padding made,
      MakePadding(spec.shapes(), spec.padding(), context.input_leaves[0]));
  const auto padding = std::make_shared<const Padding>(made);
  return MakeBatching(
      std::move(input), *context.info,
      [spec, padding, &info = *context.info](
          const Scope& scope) -> absl::StatusOr<BatchConfig> {
        PENSTOCK_ASSIGN_OR_RETURN(
            const int64_t size,
            IntegerOf(spec.size(), scope, "padded_batch.size", 1));
        Assemble pad = [padding, stats = StatsOf(scope, info)](
                           const Chunk& chunk, int64_t) {
          return PadRows(chunk, *padding, /*lengths=*/{}, *stats);
        };
        return BatchConfig{{size}, spec.drop_remainder(), false, pad};
      });
}

OperatorOr MakeRaggedBatch(const plan::RaggedBatch& spec, OperatorPtr input,
                           OpContext& context) {
  std::vector<int> levels;
  for (const TensorSpec& leaf : context.input_leaves[0]) {
    levels.push_back(RaggedLevels(leaf.shape));
  }
  const auto splits = static_cast<DType>(spec.row_splits_dtype());
  Assemble assemble = [levels, splits](const Chunk& chunk,
                                       int64_t size) -> absl::StatusOr<Chunk> {
    Chunk out;
    out.rows = 1;
    for (size_t c = 0; c < levels.size(); ++c) {
      if (levels[c] == 0) {
        PENSTOCK_ASSIGN_OR_RETURN(out.columns.emplace_back(),
                                  Stack(chunk.columns[c], size));
        continue;
      }
      PENSTOCK_ASSIGN_OR_RETURN(
          const std::vector<Column> columns,
          StackRagged(chunk.columns[c], levels[c], splits));
      out.columns.insert(out.columns.end(), columns.begin(), columns.end());
    }
    return out;
  };
  return MakeBatching(
      std::move(input), *context.info,
      [spec, assemble](const Scope& scope) -> absl::StatusOr<BatchConfig> {
        PENSTOCK_ASSIGN_OR_RETURN(
            const int64_t size,
            IntegerOf(spec.size(), scope, "ragged_batch.size", 1));
        return BatchConfig{{size}, spec.drop_remainder(), false, assemble};
      });
}

OperatorOr MakeSparseBatch(const plan::SparseBatch& spec, OperatorPtr input,
                           OpContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const PartialShape shape,
                            plan::FromProto(spec.row_shape()));
  Assemble assemble = [shape](const Chunk& chunk,
                              int64_t) -> absl::StatusOr<Chunk> {
    Chunk out;
    out.rows = 1;
    PENSTOCK_ASSIGN_OR_RETURN(out.columns,
                              StackSparse(chunk.columns[0], shape));
    return out;
  };
  return MakeBatching(
      std::move(input), *context.info,
      [spec, assemble](const Scope& scope) -> absl::StatusOr<BatchConfig> {
        PENSTOCK_ASSIGN_OR_RETURN(
            const int64_t size,
            IntegerOf(spec.size(), scope, "sparse_batch.size", 1));
        return BatchConfig{{size}, false, false, assemble};
      });
}

OperatorOr MakeRebatch(const plan::Rebatch& spec, OperatorPtr input,
                       OpContext& context) {
  const auto [assemble, takes_groups] =
      AssembleOf(context.input_specs[0], RowPartsOf(context.input_specs[0]));
  BatchConfig config{{spec.sizes().begin(), spec.sizes().end()},
                     spec.drop_remainder(),
                     takes_groups,
                     assemble};
  PENSTOCK_ASSIGN_OR_RETURN(OperatorPtr rows,
                            MakeUnbatchRows(std::move(input), context));
  return MakeBatching(
      std::move(rows), *context.info,
      [config](const Scope&) -> absl::StatusOr<BatchConfig> { return config; });
}

}  // namespace penstock::engine

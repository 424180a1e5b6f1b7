#include "penstock/engine/ops/dataset_map.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/data/builder.h"
#include "penstock/data/nested.h"
#include "penstock/engine/evaluate.h"
#include "penstock/engine/memory_budget.h"
#include "penstock/engine/ops/subplan.h"
#include "penstock/plan/convert.h"

namespace penstock::engine {
namespace {

// Elements read at once from the input.
constexpr int64_t kOuterRows = 256;
// Chunks of datasets before others get their turn.
constexpr int kMaxChunks = 64;
// What a row costs besides its values.
constexpr int64_t kRowBytes = 16;

struct DatasetMapConfig {
  OperatorPtr input;
  std::shared_ptr<const Evaluator> function;  // element -> bound values
  OperatorPtr inner;
  std::vector<TensorSpec> leaves;  // of the datasets' elements
};

class DatasetMapStream final : public Stream {
 public:
  DatasetMapStream(const Scope& scope, const OpInfo& info,
                   std::shared_ptr<const DatasetMapConfig> config,
                   std::unique_ptr<Stream> input)
      : Stream(StatsOf(scope, info)),
        scope_(scope),
        info_(info),
        config_(std::move(config)),
        input_(std::move(input)),
        reservation_(scope.run->environment.memory) {}

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    for (int chunks = 0; chunks < kMaxChunks; ++chunks) {
      if (out_.rows() >= request.max_rows || given_bytes_ > kMaxChunkBytes) {
        return Flush();
      }
      if (inner_ == nullptr) {
        PENSTOCK_ASSIGN_OR_RETURN(const Pull::Kind kind, Open(request));
        if (kind != Pull::Kind::kRows) {
          if (out_.rows() > 0) return Flush();
          return kind == Pull::Kind::kEnd ? Pull::End() : Pull::Blocked();
        }
        continue;
      }
      absl::StatusOr<Pull> pull = inner_->Next({kMaxChunkRows, request.waker});
      if (!pull.ok()) {
        Give(ErrorChunk(pull.status(), PlaceholderColumns(info_.leaves, 1)));
      } else if (pull->is_end()) {
        Give(Nested());
      } else if (pull->is_blocked()) {
        if (out_.rows() > 0) return Flush();
        return Pull::Blocked();
      } else {
        PENSTOCK_RETURN_IF_ERROR(Keep(pull->chunk));
      }
    }
    if (out_.rows() > 0) return Flush();
    return Yield(request);
  }

  void DoSave(WireWriter& writer) const override { input_.Save(writer); }
  absl::Status DoRestore(WireReader& reader) override {
    return input_.Restore(reader);
  }

 private:
  // Starts the next element's dataset, or gives its error.
  absl::StatusOr<Pull::Kind> Open(const Request& request) {
    if (input_.rows_held() == 0) {
      const bool is_exact = scope_.run->options.is_row_exact;
      PENSTOCK_ASSIGN_OR_RETURN(
          const Pull::Kind kind,
          input_.Fill({is_exact ? 1 : kOuterRows, request.waker}));
      if (kind != Pull::Kind::kRows) return kind;
      PENSTOCK_ASSIGN_OR_RETURN(
          values_, config_->function->Apply(input_.chunk(), scope_));
    }
    const int64_t row = input_.begin();
    absl::Status error;
    if (const absl::Status* found = ErrorAt(values_, row)) {
      error = *found;
    } else {
      StreamOr inner =
          StartSubplan(*config_->inner, values_, row, scope_, info_);
      if (inner.ok()) {
        inner_ = *std::move(inner);
      } else {
        error = inner.status();
      }
    }
    if (!error.ok()) {
      Give(ErrorChunk(error, PlaceholderColumns(info_.leaves, 1)));
    }
    return Pull::Kind::kRows;
  }

  // Adds rows to those of the dataset being read.
  absl::Status Keep(const Chunk& chunk) {
    int64_t bytes = kRowBytes * chunk.rows;
    for (const Column& column : chunk.columns) bytes += column.NumBytes();
    bytes_ += bytes;
    const int64_t limit = scope_.run->options.max_element_bytes;
    absl::Status error;
    if (bytes_ > limit) {
      error = absl::ResourceExhaustedError(absl::StrCat(
          "a dataset in an element must take at most ", limit,
          " bytes; got more after ", rows_.rows() + chunk.rows,
          " elements\n  Use flat_map() to read it as it comes, or raise "
          "Options(max_element_bytes=...)."));
    } else if (!rows_.Fits(chunk)) {
      error = absl::InvalidArgumentError(
          "elements of a dataset in an element must have one rank; got "
          "different ones");
    }
    if (!error.ok()) {
      Give(ErrorChunk(info_.Located(error),
                      PlaceholderColumns(info_.leaves, 1)));
      return absl::OkStatus();
    }
    rows_.Append(chunk, 0, chunk.rows);
    return info_.Located(reservation_.Resize(bytes_ + given_bytes_));
  }

  Chunk Nested() {
    Chunk rows = rows_.Build();
    if (rows.rows == 0) rows.columns = PlaceholderColumns(config_->leaves, 0);
    rows.lineage = Buffer();
    Chunk element;
    element.rows = 1;
    element.columns = {EncodeNested({rows})};
    given_bytes_ += element.columns[0].NumBytes();
    return element;
  }

  // `element` is what came of the input's next row.
  void Give(Chunk element) {
    element.lineage = Slice(values_, input_.begin(), 1).lineage;
    out_.Append(element, 0, 1);
    input_.Consume(1);
    inner_.reset();
    rows_ = ChunkBuilder();
    bytes_ = 0;
  }

  absl::StatusOr<Pull> Flush() {
    given_bytes_ = 0;
    PENSTOCK_RETURN_IF_ERROR(info_.Located(reservation_.Resize(bytes_)));
    return Pull::Rows(out_.Build());
  }

  const Scope scope_;
  const OpInfo& info_;
  const std::shared_ptr<const DatasetMapConfig> config_;
  Input input_;
  Chunk values_;                   // of the function, for input_.chunk()
  std::unique_ptr<Stream> inner_;  // of the input's next row, being read
  ChunkBuilder rows_;              // what it gave
  int64_t bytes_ = 0;              // in rows_
  ChunkBuilder out_;               // empty between calls
  int64_t given_bytes_ = 0;        // in out_
  Reservation reservation_;
};

}  // namespace

OperatorOr MakeDatasetMap(const plan::Map& spec, OperatorPtr input,
                          OpContext& context) {
  const OpInfo& info = *context.info;
  const plan::Plan& dataset = spec.function().dataset();
  auto config = std::make_shared<DatasetMapConfig>();
  config->input = std::move(input);
  PENSTOCK_ASSIGN_OR_RETURN(
      config->function,
      Evaluator::Make(spec.function(), context.input_leaves[0], context));
  PENSTOCK_ASSIGN_OR_RETURN(config->inner, context.build_subplan(dataset));
  PENSTOCK_ASSIGN_OR_RETURN(
      const ElementSpec element,
      plan::FromProto(dataset.nodes(dataset.nodes_size() - 1).output()));
  config->leaves = element.Flatten();
  return MakeOperator(
      [shared = std::shared_ptr<const DatasetMapConfig>(std::move(config)),
       &info](const Scope& scope) -> StreamOr {
        PENSTOCK_ASSIGN_OR_RETURN(auto stream, shared->input->Start(scope));
        return std::make_unique<DatasetMapStream>(scope, info, shared,
                                                  std::move(stream));
      });
}

}  // namespace penstock::engine

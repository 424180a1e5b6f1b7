#include "penstock/engine/ops/generator.h"

#include "penstock/base/status.h"

namespace penstock::engine {
namespace {

class GeneratorStream final : public Stream {
 public:
  GeneratorStream(const Scope& scope, const OpInfo& info,
                  std::unique_ptr<RowSource> source)
      : Stream(StatsOf(scope, info)),
        scope_(scope),
        info_(info),
        source_(std::move(source)) {}

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    if (source_ == nullptr) return Pull::End();
    PENSTOCK_ASSIGN_OR_RETURN(Pull pull, source_->Next(request));
    if (pull.is_end()) source_.reset();
    if (!pull.has_rows()) return pull;
    Chunk& chunk = pull.chunk;
    PENSTOCK_RETURN_IF_ERROR(info_.Located(CheckColumns(chunk, info_.leaves)));
    for (RowError& error : chunk.errors) {
      error.status = info_.Located(error.status);
    }
    chunk.lineage = SourceLineage(scope_, rows_, chunk.rows);
    rows_ += chunk.rows;
    return pull;
  }

  void DoSave(WireWriter& writer) const override { writer.Varint(rows_); }

  absl::Status DoRestore(WireReader& reader) override {
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t rows, reader.Varint());
    SkipRows(static_cast<int64_t>(rows));
    return absl::OkStatus();
  }

 private:
  const Scope scope_;
  const OpInfo& info_;
  std::unique_ptr<RowSource> source_;
  int64_t rows_ = 0;
};

}  // namespace

OperatorOr MakeGenerator(const plan::Generator& spec, OpContext& context) {
  const OpInfo& info = *context.info;
  return MakeOperator([spec, &info](const Scope& scope) -> StreamOr {
    Chunk args;
    args.rows = 1;
    for (const plan::Value& value : spec.args()) {
      PENSTOCK_ASSIGN_OR_RETURN(Column column, ValueOf(value, scope));
      args.columns.push_back(std::move(column));
    }
    RowSources* sources = scope.run->environment.sources;
    if (sources == nullptr) {
      return info.Located(absl::FailedPreconditionError(
          "a Python generator can run beside its trainer only"));
    }
    PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<RowSource> source,
                              sources->Open(spec.capture(), args));
    return std::make_unique<GeneratorStream>(scope, info, std::move(source));
  });
}

}  // namespace penstock::engine

#include "penstock/engine/ops/enumerate.h"

#include <limits>
#include <numeric>

#include "penstock/base/status.h"

namespace penstock::engine {
namespace {

class EnumerateStream final : public Stream {
 public:
  EnumerateStream(NodeStats* stats, std::unique_ptr<Stream> input,
                  int64_t start)
      : Stream(stats), input_(std::move(input)), next_(start) {}

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    PENSTOCK_ASSIGN_OR_RETURN(Pull pull, input_->Next(request));
    if (!pull.has_rows()) return pull;
    const int64_t rows = pull.chunk.rows;
    Buffer numbers = Buffer::Allocate(rows * sizeof(int64_t));
    std::iota(numbers.MutableAs<int64_t>(), numbers.MutableAs<int64_t>() + rows,
              next_);
    next_ += rows;
    pull.chunk.columns.insert(
        pull.chunk.columns.begin(),
        Column::Dense(DType::kInt64, {}, rows, std::move(numbers)));
    return pull;
  }

  int64_t DoSkip(int64_t rows) override {
    input_->SkipRows(rows);
    next_ += rows;
    return rows;
  }

  void DoSave(WireWriter& writer) const override {
    writer.Signed(next_);
    input_->Save(writer);
  }

  absl::Status DoRestore(WireReader& reader) override {
    PENSTOCK_ASSIGN_OR_RETURN(next_, reader.Signed());
    return input_->Restore(reader);
  }

 private:
  const std::unique_ptr<Stream> input_;
  int64_t next_;
};

}  // namespace

OperatorOr MakeEnumerate(const plan::Enumerate& spec, OperatorPtr input,
                         OpContext& context) {
  const OpInfo& info = *context.info;
  return MakeOperator([spec, &info, input](const Scope& scope) -> StreamOr {
    PENSTOCK_ASSIGN_OR_RETURN(const int64_t start,
                              IntegerOf(spec.start(), scope, "enumerate.start",
                                        std::numeric_limits<int64_t>::min()));
    PENSTOCK_ASSIGN_OR_RETURN(auto stream, input->Start(scope));
    return std::make_unique<EnumerateStream>(StatsOf(scope, info),
                                             std::move(stream), start);
  });
}

}  // namespace penstock::engine

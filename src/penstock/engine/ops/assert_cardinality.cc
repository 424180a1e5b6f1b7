#include "penstock/engine/ops/assert_cardinality.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"

namespace penstock::engine {
namespace {

class AssertCardinalityStream final : public Stream {
 public:
  // Without `expected`, the input must not end.
  AssertCardinalityStream(const Scope& scope, const OpInfo& info,
                          std::optional<int64_t> expected,
                          std::unique_ptr<Stream> input)
      : Stream(StatsOf(scope, info)),
        scope_(scope),
        info_(info),
        expected_(expected),
        input_(std::move(input)) {}

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    if (has_failed_) return Pull::End();
    const bool is_full = given_ == expected_;
    const int64_t left = is_full                 ? 1
                         : expected_.has_value() ? *expected_ - given_
                                                 : request.max_rows;
    PENSTOCK_ASSIGN_OR_RETURN(
        Pull pull,
        input_->Next({std::min(request.max_rows, left), request.waker}));
    if (pull.is_blocked()) return pull;
    if (pull.is_end()) return is_full ? Pull::End() : Fail("only ");
    if (is_full) return Fail("more than ");
    given_ += pull.chunk.rows;
    return pull;
  }

  void DoSave(WireWriter& writer) const override {
    writer.Varint(given_);
    writer.Bool(has_failed_);
    input_->Save(writer);
  }

  absl::Status DoRestore(WireReader& reader) override {
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t given, reader.Varint());
    given_ = static_cast<int64_t>(given);
    PENSTOCK_ASSIGN_OR_RETURN(has_failed_, reader.Bool());
    return input_->Restore(reader);
  }

 private:
  Pull Fail(absl::string_view found) {
    has_failed_ = true;
    const std::string expected = expected_.has_value()
                                     ? absl::StrCat(*expected_, " elements")
                                     : "elements without end";
    Chunk error = ErrorChunk(
        info_.Located(absl::FailedPreconditionError(absl::StrCat(
            "the dataset must have ", expected, "; got ", found, given_))),
        PlaceholderColumns(info_.leaves, 1));
    error.lineage = SourceLineage(scope_, given_, 1);
    return Pull::Rows(std::move(error));
  }

  const Scope scope_;
  const OpInfo& info_;
  const std::optional<int64_t> expected_;
  const std::unique_ptr<Stream> input_;
  int64_t given_ = 0;
  bool has_failed_ = false;
};

}  // namespace

OperatorOr MakeAssertCardinality(const plan::AssertCardinality& spec,
                                 OperatorPtr input, OpContext& context) {
  const OpInfo& info = *context.info;
  if (spec.expected().has_unknown()) return input;
  std::optional<int64_t> expected;
  if (spec.expected().has_finite()) expected = spec.expected().finite();
  return MakeOperator([=, &info](const Scope& scope) -> StreamOr {
    PENSTOCK_ASSIGN_OR_RETURN(auto stream, input->Start(scope));
    return std::make_unique<AssertCardinalityStream>(scope, info, expected,
                                                     std::move(stream));
  });
}

}  // namespace penstock::engine

#include "penstock/engine/operator.h"

#include "absl/strings/str_cat.h"
#include "penstock/base/hash.h"
#include "penstock/base/status.h"
#include "penstock/functions/program.h"
#include "penstock/plan/convert.h"
#include "penstock/plan/print.h"

namespace penstock::engine {

uint64_t Run::RandomKey(const OpInfo& info, bool with_epoch) const {
  const RandomState& state = random[info.id];
  const uint64_t key =
      Combine(Combine(0x70656e73746f636b, state.seed), info.key);
  return with_epoch ? Combine(key, state.epoch) : key;
}

uint64_t Run::PartKey(const OpInfo& info) const {
  // Inputs come before their users: what is after the source has a later id.
  if (info.id <= part_ops.source || part_ops.source < 0 ||
      info.described.has_inside()) {
    return 0;
  }
  const RunPart& part = *options.part;
  const uint64_t key = Combine(0x7061727473, static_cast<uint64_t>(part.begin));
  return part.piece == 0 ? key
                         : Combine(key, static_cast<uint64_t>(part.piece));
}

std::shared_ptr<io::FileSystem> Run::FilesOf(const OpInfo& info) const {
  const auto found = file_logs.find(info.id);
  if (found != file_logs.end()) return found->second;
  // Without an owner: the environment's outlive every run.
  return std::shared_ptr<io::FileSystem>(std::shared_ptr<void>(),
                                         environment.files);
}

namespace {

class FunctionOperator final : public Operator {
 public:
  explicit FunctionOperator(std::function<StreamOr(const Scope&)> start)
      : start_(std::move(start)) {}
  StreamOr Start(const Scope& scope) const override { return start_(scope); }

 private:
  const std::function<StreamOr(const Scope&)> start_;
};

}  // namespace

OperatorPtr MakeOperator(std::function<StreamOr(const Scope&)> start) {
  return std::make_shared<FunctionOperator>(std::move(start));
}

absl::Status OpInfo::Located(const absl::Status& status) const {
  // A function of several nodes has said which of them it was.
  if (status.ok() || status.GetPayload(functions::kLocated).has_value()) {
    absl::Status located = status;
    located.ErasePayload(functions::kLocated);
    return located;
  }
  return absl::Status(
      status.code(),
      absl::StrCat(status.message(), "\n", plan::LineOfNode(name, made_at)));
}

absl::StatusOr<Column> ValueOf(const plan::Value& value, const Scope& scope) {
  switch (value.kind_case()) {
    case plan::Value::kConstant:
      return plan::FromProto(value.constant());
    case plan::Value::kBound:
      if (scope.bound == nullptr || value.bound() >= scope.bound->size()) {
        return absl::InternalError(
            absl::StrCat("no bound value ", value.bound()));
      }
      return (*scope.bound)[value.bound()];
    case plan::Value::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("a parameter has no value");
}

absl::StatusOr<int64_t> IntegerOf(const plan::Value& value, const Scope& scope,
                                  absl::string_view what, int64_t min) {
  PENSTOCK_ASSIGN_OR_RETURN(const Column column, ValueOf(value, scope));
  if (column.rank() != 0 || !IsInteger(column.dtype())) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " must be an integer scalar"));
  }
  const int64_t integer = VisitDType(column.dtype(), [&](auto zero) -> int64_t {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T>) {
      return static_cast<int64_t>(*column.Row<T>(0));
    } else {
      return 0;
    }
  });
  if (integer < min) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " must be at least ", min, "; got ", integer));
  }
  return integer;
}

Buffer SourceLineage(const Scope& scope, int64_t first, int64_t rows) {
  return SourceLineage(scope, scope.lineage, first, rows);
}

Buffer SourceLineage(const Scope& scope, uint64_t lineage, int64_t first,
                     int64_t rows) {
  if (!scope.run->options.needs_lineage) return Buffer();
  Buffer words = Buffer::Allocate(rows * sizeof(uint64_t));
  uint64_t* out = words.MutableAs<uint64_t>();
  for (int64_t i = 0; i < rows; ++i) {
    out[i] = Combine(lineage, static_cast<uint64_t>(first + i));
  }
  return words;
}

Buffer GroupLineage(const Chunk& chunk, int64_t size) {
  if (!chunk.has_lineage()) return Buffer();
  const int64_t groups = chunk.rows / size;
  Buffer lineage = Buffer::Allocate(groups * sizeof(uint64_t));
  const uint64_t* in = chunk.lineage.As<uint64_t>();
  for (int64_t g = 0; g < groups; ++g) {
    uint64_t hash = static_cast<uint64_t>(size);
    for (int64_t i = 0; i < size; ++i) hash = Combine(hash, *in++);
    lineage.MutableAs<uint64_t>()[g] = hash;
  }
  return lineage;
}

void SaltLineage(Chunk& chunk, uint64_t salt) {
  if (!chunk.has_lineage()) return;
  Buffer salted = Buffer::Allocate(chunk.lineage.size());
  for (int64_t i = 0; i < chunk.rows; ++i) {
    salted.MutableAs<uint64_t>()[i] =
        Combine(chunk.lineage.As<uint64_t>()[i], salt);
  }
  chunk.lineage = std::move(salted);
}

}  // namespace penstock::engine

#include <cmath>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/data/encode.h"
#include "penstock/plan/cardinality.h"
#include "penstock/plan/convert.h"
#include "penstock/plan/distribute.h"
#include "penstock/plan/expect.h"
#include "penstock/plan/infer.h"

namespace penstock::plan::infer {
namespace {

using penstock::PartialShape;

penstock::ElementSpec Scalar(penstock::DType dtype) {
  penstock::ElementSpec spec;
  spec.kind = penstock::ElementSpec::Kind::kTensor;
  spec.tensor.dtype = dtype;
  return spec;
}

absl::StatusOr<penstock::DType> NumericDType(int dtype) {
  const auto known = static_cast<penstock::DType>(dtype);
  if (IsDType(dtype) && (IsInteger(known) || IsFloat(known))) return known;
  const std::string name = DType_Name(dtype);
  return TypeError(
      absl::StrCat("dtype must be integer or floating; got ",
                   name.empty() ? absl::StrCat("number ", dtype) : name));
}

// A bound of a sequence of `dtype`: an integer, or for floating sequences a
// floating number too.
absl::Status CheckBound(absl::string_view name, const Value& value,
                        penstock::DType dtype, const Place& place) {
  PENSTOCK_ASSIGN_OR_RETURN(penstock::TensorSpec spec,
                            SpecOf(name, value, place.bound));
  const bool is_number =
      IsInteger(spec.dtype) || (IsFloat(spec.dtype) && IsFloat(dtype));
  if (!is_number || !spec.shape.Accepts(Shape{})) {
    return TypeError(absl::StrCat(name, " must be a scalar ",
                                  IsFloat(dtype) ? "number" : "integer",
                                  "; got ", spec.ToString()));
  }
  if (!value.has_constant()) return absl::OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(Number number, NumberOf(value.constant()));
  if (std::isfinite(number.number)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " must be finite; got ", number.number));
}

absl::Status CheckRows(const Rows& op, const penstock::ElementSpec& spec) {
  PENSTOCK_RETURN_IF_ERROR(AtLeast("rows", op.rows(), 0));
  if (op.kind().size() > 40) {
    return absl::InvalidArgumentError(
        "the kind of rows must be the name of a call; got a longer text");
  }
  switch (op.source_case()) {
    case Rows::kCapture:
      if (!op.capture().empty()) return absl::OkStatus();
      return absl::InvalidArgumentError("a capture must have an id; got none");
    case Rows::kChunk:
      break;
    case Rows::SOURCE_NOT_SET:
      return absl::InvalidArgumentError(
          "rows must come from a chunk or a capture; got neither");
  }
  // Decode() wants alignment that a message's bytes do not promise.
  Buffer bytes = Buffer::Allocate(op.chunk().size());
  if (!op.chunk().empty()) {
    std::memcpy(bytes.MutableAs<char>(), op.chunk().data(), op.chunk().size());
  }
  PENSTOCK_ASSIGN_OR_RETURN(Chunk chunk, Decode(bytes));
  if (chunk.rows != op.rows()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the chunk must have as many rows as are promised, ",
                     op.rows(), "; got ", chunk.rows));
  }
  return CheckColumns(chunk, spec.Flatten());
}

}  // namespace

Result Of(const Range& op, const Place& place) {
  PENSTOCK_ASSIGN_OR_RETURN(penstock::DType dtype, NumericDType(op.dtype()));
  PENSTOCK_RETURN_IF_ERROR(CheckBound("start", op.start(), dtype, place));
  PENSTOCK_RETURN_IF_ERROR(CheckBound("stop", op.stop(), dtype, place));
  PENSTOCK_RETURN_IF_ERROR(CheckBound("step", op.step(), dtype, place));
  if (op.step().has_constant()) {
    PENSTOCK_ASSIGN_OR_RETURN(Number step, NumberOf(op.step().constant()));
    if (step.number == 0) {
      return absl::InvalidArgumentError("step must not be 0; got 0");
    }
  }
  PENSTOCK_RETURN_IF_ERROR(CountRange(op).status());
  return Scalar(dtype);
}

Result Of(const Counter& op, const Place& place) {
  PENSTOCK_ASSIGN_OR_RETURN(penstock::DType dtype, NumericDType(op.dtype()));
  PENSTOCK_RETURN_IF_ERROR(CheckBound("start", op.start(), dtype, place));
  PENSTOCK_RETURN_IF_ERROR(CheckBound("step", op.step(), dtype, place));
  return Scalar(dtype);
}

Result Of(const Random& op, const Place& place) {
  return Scalar(penstock::DType::kInt64);
}

Result Of(const Rows& op, const Place& place) {
  PENSTOCK_ASSIGN_OR_RETURN(penstock::ElementSpec spec, FromProto(op.spec()));
  PENSTOCK_RETURN_IF_ERROR(CheckRows(op, spec));
  return spec;
}

Result Of(const Values& op, const Place& place) {
  PENSTOCK_ASSIGN_OR_RETURN(penstock::ElementSpec structure,
                            FromProto(op.structure()));
  std::vector<penstock::TensorSpec> leaves = structure.Flatten();
  if (leaves.size() != static_cast<size_t>(op.values_size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("there must be one value per component of ",
                     structure.ToString(), "; got ", op.values_size()));
  }
  for (size_t i = 0; i < leaves.size(); ++i) {
    PENSTOCK_ASSIGN_OR_RETURN(
        leaves[i], SpecOf(absl::StrCat("component ", i),
                          op.values(static_cast<int>(i)), place.bound));
  }
  if (op.slices()) {
    PENSTOCK_RETURN_IF_ERROR(
        CommonFirstDimension("from_tensor_slices", leaves).status());
    for (penstock::TensorSpec& leaf : leaves) {
      leaf.shape = leaf.shape.DropFirst();
    }
  }
  return structure.WithLeaves(leaves);
}

Result Of(const NestedRows& op, const Place& place) {
  PENSTOCK_ASSIGN_OR_RETURN(penstock::TensorSpec rows,
                            SpecOf("rows", op.rows(), place.bound));
  if (rows.dtype != penstock::DType::kString || !rows.shape.Accepts(Shape{})) {
    return TypeError(
        absl::StrCat("the rows of a dataset must be a scalar string; got ",
                     rows.ToString()));
  }
  return FromProto(op.spec());
}

Result Of(const Received& op, const Place& place) {
  PENSTOCK_ASSIGN_OR_RETURN(penstock::ElementSpec spec, FromProto(op.spec()));
  if (!op.has_distribution()) {
    if (place.depth == 0) return spec;
    return absl::InvalidArgumentError(
        "rows that another engine computes must not be asked for inside a "
        "function, but by a distribute(); got them there");
  }
  PENSTOCK_ASSIGN_OR_RETURN(const ElementSpec found,
                            CheckDistribution(op.distribution()));
  PENSTOCK_ASSIGN_OR_RETURN(const penstock::ElementSpec sent, FromProto(found));
  if (sent == spec) return spec;
  return absl::InvalidArgumentError(absl::StrCat(
      "workers send ", sent.ToString(), "; got a plan for ", spec.ToString()));
}

Result Of(const Generator& op, const Place& place) {
  if (op.capture().empty()) {
    return absl::InvalidArgumentError("a generator must have an id; got none");
  }
  for (int i = 0; i < op.args_size(); ++i) {
    PENSTOCK_RETURN_IF_ERROR(
        SpecOf(absl::StrCat("args[", i, "]"), op.args(i), place.bound)
            .status());
  }
  return FromProto(op.spec());
}

Result Of(const ListFiles& op, const Place& place) {
  PENSTOCK_RETURN_IF_ERROR(
      CheckStrings("file_pattern", op.patterns(), place.bound));
  return Scalar(penstock::DType::kString);
}

Result Of(const ReadFiles& op, const Place& place) {
  PENSTOCK_RETURN_IF_ERROR(CheckStrings("filenames", op.files(), place.bound));
  if (!ReadFiles::Compression_IsValid(op.compression())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "compression must be NONE, GZIP, ZLIB or ZSTD; got number ",
        static_cast<int>(op.compression())));
  }
  if (op.has_buffer_bytes()) {
    PENSTOCK_RETURN_IF_ERROR(AtLeast("buffer_size", op.buffer_bytes(), 0));
  }
  switch (op.format_case()) {
    case ReadFiles::kText: {
      const std::string& delim = op.text().field_delim();
      if (delim.size() > 1 || delim == "\"" || delim == "\n" || delim == "\r") {
        return absl::InvalidArgumentError(absl::StrCat(
            "field_delim must be one character, no quote and no end of a line; "
            "got \"",
            delim, "\""));
      }
      break;
    }
    case ReadFiles::kTfRecord:
    case ReadFiles::kWhole:
    case ReadFiles::kTar:
      break;
    case ReadFiles::kFixedLength: {
      const ReadFiles::FixedLength& format = op.fixed_length();
      PENSTOCK_RETURN_IF_ERROR(
          CheckCount("record_bytes", format.record_bytes(), 1, place.bound));
      PENSTOCK_RETURN_IF_ERROR(
          CheckCount("header_bytes", format.header_bytes(), 0, place.bound));
      PENSTOCK_RETURN_IF_ERROR(
          CheckCount("footer_bytes", format.footer_bytes(), 0, place.bound));
      break;
    }
    case ReadFiles::FORMAT_NOT_SET:
      return absl::InvalidArgumentError(
          "files must be read as text, TFRecord, fixed-length records, whole "
          "files or tar archives; got no format");
  }
  return Scalar(penstock::DType::kString);
}

}  // namespace penstock::plan::infer

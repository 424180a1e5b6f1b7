// Bytes as numbers, as text, and as records of files.
#include <isa-l/crc.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/base/vector_state.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/promote.h"
#include "penstock/functions/rows.h"

namespace penstock::functions {
namespace {

absl::Status CheckStrings(std::string_view function, const ArgSpec& arg) {
  if (arg.spec.dtype == DType::kString) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      Text(function), " takes strings; got ", arg.spec.ToString()));
}

// ---- decode_raw

// Bytes of every string, or -1: as many as it has.
absl::StatusOr<int64_t> FixedLength(const Attrs& attrs, DType dtype) {
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t length,
                            IntAttr(attrs, "fixed_length", -1));
  if (length == -1) return length;
  const auto item_size = static_cast<int64_t>(ItemSize(dtype));
  if (length <= 0 || length % item_size != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "fixed_length must be a multiple of the ", item_size, " bytes of ",
        Text(Name(dtype)), ", above 0; got ", length));
  }
  return length;
}

absl::StatusOr<TensorSpec> InferDecodeRaw(absl::Span<const ArgSpec> args,
                                          const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckStrings("decode_raw", args[0]));
  TensorSpec result;
  PENSTOCK_ASSIGN_OR_RETURN(result.dtype,
                            DTypeAttr(attrs, "out_type", DType::kUint8));
  if (result.dtype == DType::kString) {
    return absl::InvalidArgumentError(
        "decode_raw's out_type must be a type of numbers; got string");
  }
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t length,
                            FixedLength(attrs, result.dtype));
  PENSTOCK_RETURN_IF_ERROR(BoolAttr(attrs, "little_endian", true).status());
  const PartialShape& shape = args[0].spec.shape;
  if (!shape.has_rank()) {
    result.shape = PartialShape::UnknownRank();
    return result;
  }
  PartialShape::Dims dims = shape.dims();
  dims.push_back(length == -1 ? std::nullopt
                              : std::optional<int64_t>(
                                    length / static_cast<int64_t>(
                                                 ItemSize(result.dtype))));
  result.shape = PartialShape(std::move(dims));
  return result;
}

// Halves of complex numbers are turned each for itself.
void TurnBytes(std::byte* data, size_t bytes, DType dtype) {
  const size_t size = ItemSize(dtype) / (IsComplex(dtype) ? 2 : 1);
  if (size == 1) return;
  for (size_t at = 0; at < bytes; at += size) {
    std::reverse(data + at, data + at + size);
  }
}

absl::StatusOr<Column> EvalDecodeRaw(absl::Span<const Arg> args,
                                     const Attrs& attrs,
                                     const TensorSpec& result,
                                     EvalContext& context) {
  const Arg& x = args[0];
  const int64_t rows = ResultRows(args, context);
  const auto item_size = static_cast<int64_t>(ItemSize(result.dtype));
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t fixed,
                            FixedLength(attrs, result.dtype));
  PENSTOCK_ASSIGN_OR_RETURN(const bool is_little,
                            BoolAttr(attrs, "little_endian", true));
  const int rank = x.column->rank() + 1;
  return MakeRows(
      result.dtype, rank, rows, /*has_one_shape=*/false, {}, context,
      [&](int64_t row, int64_t* dims) -> absl::Status {
        const absl::Span<const int64_t> shape = x.column->RowShape(row);
        std::copy(shape.begin(), shape.end(), dims);
        const auto* items = x.column->Row<StringRef>(row);
        const int64_t count = NumItems(shape);
        if (fixed != -1) {
          dims[rank - 1] = fixed / item_size;
          return absl::OkStatus();
        }
        const uint64_t length = count == 0 ? 0 : items[0].size;
        for (int64_t i = 0; i < count; ++i) {
          if (items[i].size != length) {
            return absl::InvalidArgumentError(absl::StrCat(
                "the strings of decode_raw must have one length; got ", length,
                " and ", items[i].size, " bytes"));
          }
        }
        if (length % item_size != 0) {
          return absl::InvalidArgumentError(absl::StrCat(
              "decode_raw needs a multiple of the ", item_size, " bytes of ",
              Text(Name(result.dtype)), "; got ", length, " bytes"));
        }
        dims[rank - 1] = static_cast<int64_t>(length) / item_size;
        return absl::OkStatus();
      },
      [&](int64_t row, absl::Span<const int64_t> shape, std::byte* out) {
        const auto* items = x.column->Row<StringRef>(row);
        const int64_t count = NumItems(shape.first(rank - 1));
        const size_t bytes = shape[rank - 1] * item_size;
        for (int64_t i = 0; i < count; ++i, out += bytes) {
          const size_t own = std::min<size_t>(bytes, items[i].size);
          if (own > 0) std::memcpy(out, items[i].data, own);
          if (bytes > own) std::memset(out + own, 0, bytes - own);
          if (!is_little) TurnBytes(out, bytes, result.dtype);
          if (result.dtype == DType::kBool) {
            // Any other byte would be no bool.
            for (size_t at = 0; at < bytes; ++at) {
              out[at] = std::byte{out[at] != std::byte{0}};
            }
          }
        }
      });
}

// ---- base64

absl::StatusOr<TensorSpec> InferSame(absl::Span<const ArgSpec> args,
                                     const Attrs&) {
  PENSTOCK_RETURN_IF_ERROR(CheckStrings("this function", args[0]));
  return args[0].spec;
}

// Each string put through change(view, std::string& out) -> absl::Status.
template <typename Change>
absl::StatusOr<Column> ChangeStrings(absl::Span<const Arg> args,
                                     EvalContext& context, Change&& change) {
  const Arg& x = args[0];
  const int64_t rows = ResultRows(args, context);
  const auto texts = std::make_shared<std::deque<std::string>>();
  return MakeRows(
      DType::kString, x.column->rank(), rows, x.column->is_dense(), Pins{texts},
      context,
      [&](int64_t row, int64_t* dims) {
        const absl::Span<const int64_t> shape = x.column->RowShape(row);
        std::copy(shape.begin(), shape.end(), dims);
        return absl::OkStatus();
      },
      [&](int64_t row, absl::Span<const int64_t> shape, std::byte* out) {
        const auto* items = x.column->Row<StringRef>(row);
        auto* made = reinterpret_cast<StringRef*>(out);
        bool is_wrong = false;
        for (int64_t i = 0; i < NumItems(shape); ++i) {
          std::string& text = texts->emplace_back();
          absl::Status status = change(items[i].view(), text);
          if (!status.ok() && !is_wrong) {
            ReportRow(context, row, std::move(status));
            is_wrong = true;
          }
          made[i] = {text.data(), text.size()};
        }
      });
}

absl::StatusOr<Column> EvalEncodeBase64(absl::Span<const Arg> args,
                                        const Attrs& attrs, const TensorSpec&,
                                        EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const bool pad, BoolAttr(attrs, "pad", false));
  return ChangeStrings(
      args, context, [&](std::string_view view, std::string& text) {
        absl::WebSafeBase64Escape(absl::string_view(view.data(), view.size()),
                                  &text);
        while (pad && text.size() % 4 != 0) text += '=';
        return absl::OkStatus();
      });
}

bool IsBase64(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '-' || c == '_';
}

absl::StatusOr<Column> EvalDecodeBase64(absl::Span<const Arg> args,
                                        const Attrs&, const TensorSpec&,
                                        EvalContext& context) {
  return ChangeStrings(
      args, context,
      [&](std::string_view view, std::string& text) -> absl::Status {
        // Padding only fills up the last four characters.
        std::string_view body = view;
        if (view.size() % 4 == 0) {
          for (int i = 0; i < 2 && !body.empty() && body.back() == '='; ++i) {
            body.remove_suffix(1);
          }
        }
        if (!std::all_of(body.begin(), body.end(), IsBase64) ||
            !absl::WebSafeBase64Unescape(
                absl::string_view(body.data(), body.size()), &text)) {
          text.clear();
          return absl::InvalidArgumentError(absl::StrCat(
              "decode_base64 takes the letters, digits, - and _ of web-safe "
              "base64; got ",
              view.size(), " bytes that are none"));
        }
        return absl::OkStatus();
      });
}

// ---- TFRecord

// TFRecord's checksum of `bytes`, in its order of bytes.
std::string MaskedCrc(std::string_view bytes) {
  auto* data = const_cast<unsigned char*>(
      reinterpret_cast<const unsigned char*>(bytes.data()));
  uint32_t crc = ~uint32_t{0};
  for (size_t at = 0; at < bytes.size();) {
    const size_t part = std::min<size_t>(bytes.size() - at, size_t{1} << 30);
    crc = crc32_iscsi(data + at, static_cast<int>(part), crc);
    at += part;
  }
  ClearUpperVectors();
  crc = ~crc;
  crc = ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
  return std::string(reinterpret_cast<const char*>(&crc), sizeof(crc));
}

absl::StatusOr<Column> EvalFrameRecord(absl::Span<const Arg> args, const Attrs&,
                                       const TensorSpec&,
                                       EvalContext& context) {
  return ChangeStrings(
      args, context, [](std::string_view view, std::string& text) {
        const uint64_t size = view.size();
        const std::string_view length(reinterpret_cast<const char*>(&size), 8);
        text.reserve(view.size() + 16);
        text += length;
        text += MaskedCrc(length);
        text += view;
        text += MaskedCrc(view);
        return absl::OkStatus();
      });
}

// ---- zstd

absl::StatusOr<Column> EvalCompressZstd(absl::Span<const Arg> args,
                                        const Attrs&, const TensorSpec&,
                                        EvalContext& context) {
  return ChangeStrings(
      args, context,
      [](std::string_view view, std::string& text) -> absl::Status {
        text.resize(ZSTD_compressBound(view.size()));
        const size_t size = ZSTD_compress(text.data(), text.size(), view.data(),
                                          view.size(), ZSTD_CLEVEL_DEFAULT);
        if (ZSTD_isError(size) != 0) {
          text.clear();
          return absl::InternalError(
              absl::StrCat("zstd cannot compress: ", ZSTD_getErrorName(size)));
        }
        text.resize(size);
        return absl::OkStatus();
      });
}

}  // namespace

std::vector<Function> RawFunctions() {
  return {
      {.name = "io.compress_zstd",
       .params = {{"x", ParamKind::kTensor, "", "Strings."}},
       .doc = "Each string as a frame of a zstd file.",
       .example = "",
       .infer = InferSame,
       .eval = EvalCompressZstd,
       .is_internal = true},
      {.name = "io.frame_record",
       .params = {{"x", ParamKind::kTensor, "", "Strings."}},
       .doc = "Strings as records of a TFRecord file.",
       .example = "",
       .infer = InferSame,
       .eval = EvalFrameRecord,
       .is_internal = true},
      {.name = "io.decode_raw",
       .params = {{"input_bytes", ParamKind::kTensor, "",
                   "Strings, all of one length in an element."},
                  {"out_type", ParamKind::kDType, "", "Of the numbers."},
                  {"little_endian", ParamKind::kBool, "True",
                   "Whether the bytes of a number go from low to high."},
                  {"fixed_length", ParamKind::kInt, "None",
                   "Bytes to take of each string, which is cut or filled up "
                   "with zeros."}},
       .doc = "The bytes of strings as numbers, in a new last dimension.",
       .example = ">>> ps.io.decode_raw(b'\\1\\0\\2\\0', ps.int16)\n"
                  "array([1, 2], dtype=int16)",
       .infer = InferDecodeRaw,
       .eval = EvalDecodeRaw},
      {.name = "io.encode_base64",
       .params = {{"x", ParamKind::kTensor, "", "Strings."},
                  {"pad", ParamKind::kBool, "False",
                   "Whether = fills up the last four characters."}},
       .doc = "Strings in web-safe base64.",
       .example = ">>> ps.io.encode_base64(b'penstock')\nb'cGVuc3RvY2s'",
       .infer = InferSame,
       .eval = EvalEncodeBase64},
      {.name = "io.decode_base64",
       .params = {{"x", ParamKind::kTensor, "",
                   "Strings in web-safe base64, with or without padding."}},
       .doc = "What encode_base64 was given.",
       .example = ">>> ps.io.decode_base64(b'cGVuc3RvY2s')\nb'penstock'",
       .infer = InferSame,
       .eval = EvalDecodeBase64},
  };
}

}  // namespace penstock::functions

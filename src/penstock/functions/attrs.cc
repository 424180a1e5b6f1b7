#include "penstock/functions/attrs.h"

#include "absl/strings/str_cat.h"
#include "penstock/functions/promote.h"

namespace penstock::functions {
namespace {

const Attr* Find(const Attrs& attrs, std::string_view name) {
  const auto at = attrs.find(std::string(name));
  if (at == attrs.end() || std::holds_alternative<None>(at->second)) {
    return nullptr;
  }
  return &at->second;
}

absl::Status Wrong(std::string_view name, std::string_view wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat(Text(name), " must be ", Text(wanted)));
}

}  // namespace

absl::StatusOr<bool> BoolAttr(const Attrs& attrs, std::string_view name,
                              bool otherwise) {
  const Attr* attr = Find(attrs, name);
  if (attr == nullptr) return otherwise;
  if (const bool* value = std::get_if<bool>(attr)) return *value;
  if (const int64_t* value = std::get_if<int64_t>(attr)) return *value != 0;
  return Wrong(name, "a bool");
}

absl::StatusOr<int64_t> IntAttr(const Attrs& attrs, std::string_view name,
                                int64_t otherwise) {
  const Attr* attr = Find(attrs, name);
  if (attr == nullptr) return otherwise;
  if (const int64_t* value = std::get_if<int64_t>(attr)) return *value;
  return Wrong(name, "an int");
}

absl::StatusOr<double> FloatAttr(const Attrs& attrs, std::string_view name,
                                 double otherwise) {
  const Attr* attr = Find(attrs, name);
  if (attr == nullptr) return otherwise;
  if (const double* value = std::get_if<double>(attr)) return *value;
  if (const bool* value = std::get_if<bool>(attr)) return *value ? 1.0 : 0.0;
  if (const int64_t* value = std::get_if<int64_t>(attr)) {
    return static_cast<double>(*value);
  }
  return Wrong(name, "a float");
}

absl::StatusOr<DType> DTypeAttr(const Attrs& attrs, std::string_view name,
                                DType otherwise) {
  const Attr* attr = Find(attrs, name);
  if (attr == nullptr) return otherwise;
  if (const DType* value = std::get_if<DType>(attr)) return *value;
  return Wrong(name, "a dtype");
}

absl::StatusOr<std::string_view> TextAttr(const Attrs& attrs,
                                          std::string_view name) {
  const Attr* attr = Find(attrs, name);
  if (attr != nullptr) {
    if (const auto* value = std::get_if<std::string>(attr)) return *value;
  }
  return Wrong(name, "text");
}

absl::StatusOr<std::optional<Ints>> AxisAttr(const Attrs& attrs,
                                             std::string_view name) {
  const Attr* attr = Find(attrs, name);
  if (attr == nullptr) return std::nullopt;
  if (const int64_t* value = std::get_if<int64_t>(attr)) return Ints{*value};
  if (const auto* values = std::get_if<std::vector<int64_t>>(attr)) {
    return Ints(values->begin(), values->end());
  }
  return Wrong(name, "None, an int or a tuple of ints");
}

absl::StatusOr<int> NormalAxis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    return absl::InvalidArgumentError(absl::StrCat(
        "axis ", axis, " is out of bounds for array of dimension ", rank));
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Ints ReadInts(const Column& column, int64_t row) {
  const int64_t count = column.RowItems(row);
  if (column.dtype() == DType::kInt64) {
    const int64_t* items = column.Row<int64_t>(row);
    return Ints(items, items + count);
  }
  Ints ints(count);
  VisitDType(column.dtype(), [&](auto item) {
    using T = decltype(item);
    if constexpr (std::is_integral_v<T>) {
      const T* items = column.Row<T>(row);
      for (int64_t i = 0; i < count; ++i) {
        ints[i] = static_cast<int64_t>(items[i]);
      }
    }
  });
  return ints;
}

int64_t ReadInt(const Column& column, int64_t row) {
  if (column.dtype() == DType::kInt64) return *column.Row<int64_t>(row);
  const Ints ints = ReadInts(column, row);
  return ints.empty() ? 0 : ints[0];
}

std::optional<Ints> ConstantInts(const ArgSpec& arg) {
  if (arg.constant == nullptr) return std::nullopt;
  return ReadInts(*arg.constant, 0);
}

absl::Status CheckInts(std::string_view what, const ArgSpec& arg, int rank) {
  if (arg.constant != nullptr && arg.constant->RowItems(0) == 0 &&
      arg.constant->rank() <= rank) {
    return absl::OkStatus();
  }
  const PartialShape& shape = arg.spec.shape;
  if (!IsInteger(arg.spec.dtype) || (shape.has_rank() && shape.rank() > rank)) {
    return absl::InvalidArgumentError(absl::StrCat(
        Text(what), rank == 0 ? " must be an integer" : " must be integers",
        "; got ", arg.spec.ToString()));
  }
  return absl::OkStatus();
}

std::optional<int64_t> KnownCount(const ArgSpec& arg) {
  const PartialShape& shape = arg.spec.shape;
  if (!shape.has_rank()) return std::nullopt;
  return shape.rank() == 0 ? 1 : shape.dims()[0];
}

}  // namespace penstock::functions

// Lines of comma-separated values, by tf.io.decode_csv's rules.
#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/parse_number.h"
#include "penstock/functions/promote.h"
#include "penstock/functions/rows.h"

namespace penstock::functions {
namespace {

// Longer values are shown by their beginning.
constexpr size_t kShownBytes = 40;

struct Fields final : Prepared {
  char delimiter = ',';
  bool has_quotes = true;
  std::string na_value;
  std::vector<int64_t> selected;  // ascending; empty for all
  std::vector<DType> dtypes;
  std::vector<size_t> sizes;  // of an item
  // Ends a field that is not quoted, or must not be in one.
  bool is_special[256] = {};
  std::vector<Column> defaults;  // no item: the field must have a value
};

using Texts = std::deque<std::string>;

absl::Status CheckDefaults(absl::Span<const ArgSpec> defaults) {
  if (defaults.empty()) {
    return absl::InvalidArgumentError(
        "decode_csv needs a default for each field; got none");
  }
  for (const ArgSpec& arg : defaults) {
    const DType dtype = arg.spec.dtype;
    if (dtype != DType::kInt32 && dtype != DType::kInt64 &&
        dtype != DType::kFloat32 && dtype != DType::kFloat64 &&
        dtype != DType::kString) {
      return absl::InvalidArgumentError(absl::StrCat(
          "fields of decode_csv may be int32, int64, float32, float64 or "
          "string; got ",
          Text(Name(dtype))));
    }
    if (!arg.spec.shape.is_fully_known() ||
        NumItems(arg.spec.shape.ToShape()) > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("a default of decode_csv must be a scalar, or empty if "
                       "the field must have a value; got ",
                       arg.spec.ToString()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Fields>> FieldsFrom(
    absl::Span<const ArgSpec> args, const Attrs& attrs) {
  auto fields = std::make_shared<Fields>();
  PENSTOCK_ASSIGN_OR_RETURN(const std::string_view delimiter,
                            TextAttr(attrs, "field_delim"));
  if (delimiter.size() != 1 || delimiter[0] == '\n' || delimiter[0] == '\r' ||
      delimiter[0] == '"') {
    return absl::InvalidArgumentError(absl::StrCat(
        "field_delim must be one character, no quote and no end of a line; "
        "got \"",
        Text(delimiter), "\""));
  }
  fields->delimiter = delimiter[0];
  PENSTOCK_ASSIGN_OR_RETURN(fields->has_quotes,
                            BoolAttr(attrs, "use_quote_delim", true));
  PENSTOCK_ASSIGN_OR_RETURN(const std::string_view na_value,
                            TextAttr(attrs, "na_value"));
  fields->na_value = std::string(na_value);
  fields->is_special[static_cast<uint8_t>(fields->delimiter)] = true;
  fields->is_special['\n'] = fields->is_special['\r'] = true;
  fields->is_special['"'] = fields->has_quotes;
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<Ints> selected,
                            AxisAttr(attrs, "select_cols"));
  if (selected && !selected->empty()) {
    fields->selected.assign(selected->begin(), selected->end());
    for (size_t i = 0; i < fields->selected.size(); ++i) {
      if (fields->selected[i] < (i == 0 ? 0 : fields->selected[i - 1] + 1)) {
        return absl::InvalidArgumentError(
            "select_cols must be ascending numbers from 0 on");
      }
    }
    if (fields->selected.size() != args.size() - 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("select_cols must have a number for each default, ",
                       args.size() - 1, "; got ", fields->selected.size()));
    }
  }
  for (const ArgSpec& arg : args.subspan(1)) {
    fields->dtypes.push_back(arg.spec.dtype);
    fields->sizes.push_back(ItemSize(arg.spec.dtype));
    fields->defaults.push_back(arg.constant == nullptr ? Column()
                                                       : *arg.constant);
  }
  return fields;
}

absl::StatusOr<std::vector<TensorSpec>> InferCsv(absl::Span<const ArgSpec> args,
                                                 const Attrs& attrs) {
  const TensorSpec& records = args[0].spec;
  if (records.dtype != DType::kString) {
    return absl::InvalidArgumentError(
        absl::StrCat("decode_csv takes strings; got ", records.ToString()));
  }
  PENSTOCK_RETURN_IF_ERROR(CheckDefaults(args.subspan(1)));
  PENSTOCK_RETURN_IF_ERROR(FieldsFrom(args, attrs).status());
  std::vector<TensorSpec> specs;
  for (const ArgSpec& arg : args.subspan(1)) {
    specs.push_back({arg.spec.dtype, records.shape});
  }
  return specs;
}

absl::StatusOr<PreparedPtr> PrepareCsv(absl::Span<const ArgSpec> args,
                                       const Attrs& attrs) {
  for (const ArgSpec& arg : args.subspan(1)) {
    if (arg.constant == nullptr) {
      return absl::InvalidArgumentError(
          "defaults of decode_csv must be constants; got one that is computed");
    }
  }
  PENSTOCK_ASSIGN_OR_RETURN(std::shared_ptr<Fields> fields,
                            FieldsFrom(args, attrs));
  return fields;
}

// One record's fields. Those with escaped quotes are copied to `texts`.
class Splitter final {
 public:
  Splitter(const Fields& fields, std::string_view record, Texts& texts)
      : fields_(fields), record_(record), texts_(texts) {}

  absl::Status Split(std::vector<std::string_view>& found) {
    found.clear();
    size_t number = 0;
    while (at_ < record_.size()) {
      if (record_[at_] == '\n' || record_[at_] == '\r') {
        ++at_;
        continue;
      }
      std::string_view field;
      PENSTOCK_RETURN_IF_ERROR(fields_.has_quotes && record_[at_] == '"'
                                   ? TakeQuoted(field)
                                   : TakePlain(field));
      if (IsWanted(number++, found.size())) found.push_back(field);
      if (!fields_.selected.empty() &&
          found.size() == fields_.selected.size()) {
        return absl::OkStatus();
      }
    }
    if (!record_.empty() && record_.back() == fields_.delimiter &&
        IsWanted(number, found.size())) {
      found.push_back({});
    }
    return absl::OkStatus();
  }

 private:
  bool IsWanted(size_t number, size_t found) const {
    return fields_.selected.empty() ||
           fields_.selected[found] == static_cast<int64_t>(number);
  }

  absl::Status TakePlain(std::string_view& field) {
    const size_t begin = at_;
    while (at_ < record_.size() &&
           !fields_.is_special[static_cast<uint8_t>(record_[at_])]) {
      ++at_;
    }
    if (at_ < record_.size() && record_[at_] != fields_.delimiter) {
      return absl::InvalidArgumentError(
          "a field with a quote or an end of a line in it must be quoted");
    }
    field = record_.substr(begin, at_ - begin);
    ++at_;
    return absl::OkStatus();
  }

  // Up to a quote that the delimiter follows, or the end.
  absl::Status TakeQuoted(std::string_view& field) {
    const size_t begin = ++at_;
    std::string* text = nullptr;  // once there is an escaped quote
    size_t copied = begin;
    while (true) {
      const size_t quote = record_.find('"', at_);
      if (quote == std::string_view::npos) {
        return absl::InvalidArgumentError(
            "a quoted field must end with a quote before the next field");
      }
      const bool is_last = quote + 1 == record_.size();
      if (is_last || record_[quote + 1] == fields_.delimiter) {
        if (text == nullptr) {
          field = record_.substr(begin, quote - begin);
        } else {
          *text += record_.substr(copied, quote - copied);
          field = *text;
        }
        at_ = quote + 2;
        return absl::OkStatus();
      }
      if (record_[quote + 1] != '"') {
        return absl::InvalidArgumentError(
            "a quote inside a quoted field must be written twice");
      }
      if (text == nullptr) text = &texts_.emplace_back();
      *text += record_.substr(copied, quote + 1 - copied);
      at_ = copied = quote + 2;
    }
  }

  const Fields& fields_;
  std::string_view record_;
  Texts& texts_;
  size_t at_ = 0;
};

absl::Status WriteField(const Fields& fields, size_t index,
                        std::string_view field, std::byte* out) {
  const DType dtype = fields.dtypes[index];
  const size_t size = fields.sizes[index];
  if (field.empty() || field == fields.na_value) {
    const Column& fallback = fields.defaults[index];
    if (fallback.RowItems(0) == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("field ", index,
                       " must have a value; found none. Give "
                       "it a default if it may be missing."));
    }
    std::memcpy(out, fallback.RowData(0), size);
    return absl::OkStatus();
  }
  if (dtype == DType::kString) {
    const StringRef item = {field.data(), field.size()};
    std::memcpy(out, &item, size);
    return absl::OkStatus();
  }
  bool is_number = false;
  VisitDType(dtype, [&](auto item) {
    using T = decltype(item);
    if constexpr (std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t> ||
                  std::is_same_v<T, float> || std::is_same_v<T, double>) {
      is_number = ParseNumber(field, item);
      std::memcpy(out, &item, sizeof(T));
    }
  });
  if (is_number) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("field ", index, " must be ", Text(Name(dtype)),
                   "; found \"", Text(field.substr(0, kShownBytes)), "\""));
}

// Rows of x's shapes whose items lie in `values`, row after row.
Column LikeRows(const Column& x, int64_t rows, DType dtype, Buffer values,
                Pins pins) {
  if (x.is_dense()) {
    return Column::Dense(dtype, x.shape(), rows, std::move(values),
                         std::move(pins));
  }
  Buffer pointers = Buffer::Allocate(rows * sizeof(void*));
  const std::byte* at = values.data();
  for (int64_t row = 0; row < rows; ++row) {
    pointers.MutableAs<const std::byte*>()[row] = at;
    at += x.RowItems(row) * ItemSize(dtype);
  }
  pins.push_back(values.owner());
  return Column::Ragged(dtype, x.rank(), rows, std::move(pointers), x.dims(),
                        std::move(pins));
}

absl::StatusOr<std::vector<Column>> EvalCsv(absl::Span<const Arg> args,
                                            const Attrs&,
                                            absl::Span<const TensorSpec>,
                                            EvalContext& context) {
  const auto& fields = *static_cast<const Fields*>(context.prepared);
  const Column& records = *args[0].column;
  const int64_t rows = ResultRows(args.first(1), context);
  int64_t items = 0;
  for (int64_t row = 0; row < rows; ++row) items += records.RowItems(row);
  const size_t count = fields.dtypes.size();
  std::vector<Buffer> values;
  std::vector<std::byte*> next;
  for (DType dtype : fields.dtypes) {
    values.push_back(Buffer::Allocate(items * ItemSize(dtype)));
    next.push_back(values.back().MutableAs<std::byte>());
  }
  const auto texts = std::make_shared<Texts>();
  std::vector<std::string_view> found;
  const auto decode = [&](std::string_view record) -> absl::Status {
    PENSTOCK_RETURN_IF_ERROR(Splitter(fields, record, *texts).Split(found));
    if (found.size() != count) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a record must have ", count, " fields; found ", found.size(),
          " in \"", Text(record.substr(0, kShownBytes)), "\""));
    }
    for (size_t i = 0; i < count; ++i) {
      PENSTOCK_RETURN_IF_ERROR(WriteField(fields, i, found[i], next[i]));
    }
    return absl::OkStatus();
  };
  for (int64_t row = 0; row < rows; ++row) {
    const auto* own = records.Row<StringRef>(row);
    bool is_wrong = false;
    for (int64_t i = 0; i < records.RowItems(row); ++i) {
      absl::Status status = decode(own[i].view());
      if (!status.ok()) {
        if (!is_wrong) ReportRow(context, row, std::move(status));
        is_wrong = true;
        for (size_t field = 0; field < count; ++field) {
          std::memset(next[field], 0, fields.sizes[field]);
        }
      }
      for (size_t field = 0; field < count; ++field) {
        next[field] += fields.sizes[field];
      }
    }
  }
  std::vector<Column> columns;
  for (size_t i = 0; i < count; ++i) {
    Pins pins;
    if (fields.dtypes[i] == DType::kString) {
      pins = records.pins();
      AddPins(pins, fields.defaults[i].pins());
      if (!texts->empty()) pins.push_back(texts);
    }
    columns.push_back(LikeRows(records, rows, fields.dtypes[i],
                               std::move(values[i]), std::move(pins)));
  }
  return columns;
}

}  // namespace

std::vector<Function> CsvFunctions() {
  return {
      {.name = "io.decode_csv",
       .params = {{"values", ParamKind::kTensors, "",
                   "Records, and a default for each field."},
                  {"field_delim", ParamKind::kText, "\",\"",
                   "The character between fields."},
                  {"use_quote_delim", ParamKind::kBool, "True",
                   "Whether a field may be in double quotes."},
                  {"na_value", ParamKind::kText, "\"\"",
                   "What stands for no value, as an empty field does."},
                  {"select_cols", ParamKind::kInts, "None",
                   "The fields that are wanted, ascending."}},
       .doc = "The fields of comma-separated records.",
       .example = "",
       .infer = nullptr,
       .eval = nullptr,
       .infer_parts = InferCsv,
       .eval_parts = EvalCsv,
       .prepare = PrepareCsv,
       .is_internal = true},
  };
}

}  // namespace penstock::functions

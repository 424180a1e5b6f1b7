// JSON texts as typed values.
#include <simdjson.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "penstock/base/status.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/example_columns.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/promote.h"
#include "penstock/functions/rows.h"

namespace penstock::functions {
namespace {

namespace dom = simdjson::dom;
using simdjson::error_code;

// Texts nested deeper are errors.
constexpr size_t kMaxDepth = 128;
// Larger texts are errors: simdjson counts their bytes in 32 bits.
constexpr size_t kMaxTextBytes = size_t{1} << 30;

// A value that is wanted.
struct Leaf {
  std::string pointer;            // for messages: "/user/id"
  std::vector<std::string> keys;  // from the outside in
  DType dtype = DType::kInt64;
  PartialShape::Dims dims;
  std::optional<Column> fallback;

  int rank() const { return static_cast<int>(dims.size()); }
};

struct Leaves final : Prepared {
  std::vector<Leaf> leaves;
};

using Texts = std::deque<std::string>;

absl::StatusOr<std::vector<std::string>> TextsAttr(const Attrs& attrs,
                                                   const std::string& name) {
  const auto at = attrs.find(name);
  const std::vector<std::string>* texts =
      at == attrs.end() ? nullptr
                        : std::get_if<std::vector<std::string>>(&at->second);
  if (texts == nullptr || texts->empty()) {
    return absl::InvalidArgumentError(
        "decode_json needs at least one value in its schema; got none");
  }
  return *texts;
}

absl::Status Malformed(const std::string& line) {
  return absl::InvalidArgumentError(absl::StrCat(
      "a value of decode_json must be written as dtype, shape and default; "
      "got \"",
      line, "\""));
}

// "float32 2,-1 1": dtype, shape (- for a scalar), which argument is the
// default (- for none).
absl::StatusOr<Leaf> ParseLeaf(const std::string& pointer,
                               const std::string& line,
                               absl::Span<const ArgSpec> args,
                               bool needs_values) {
  const std::vector<std::string> words = absl::StrSplit(line, ' ');
  Leaf leaf;
  leaf.pointer = pointer;
  for (absl::string_view key : absl::StrSplit(pointer, '/')) {
    leaf.keys.push_back(absl::StrReplaceAll(key, {{"~1", "/"}, {"~0", "~"}}));
  }
  leaf.keys.erase(leaf.keys.begin());  // what is before the first slash
  const std::optional<DType> dtype =
      words.size() == 3 ? ParseDType(words[0]) : std::nullopt;
  if (!dtype || IsComplex(*dtype) || *dtype == DType::kFloat16 ||
      *dtype == DType::kBfloat16) {
    return absl::InvalidArgumentError(absl::StrCat(
        "values of decode_json may be bool, integers, float32, float64 or "
        "string; got ",
        words[0], " for \"", pointer, "\". Cast the result."));
  }
  leaf.dtype = *dtype;
  if (words[1] != "-") {
    for (absl::string_view word : absl::StrSplit(words[1], ',')) {
      int64_t dim;
      if (!absl::SimpleAtoi(word, &dim) || dim < -1) return Malformed(line);
      leaf.dims.push_back(dim == -1 ? std::nullopt
                                    : std::optional<int64_t>(dim));
    }
  }
  if (leaf.rank() > 8) {
    return absl::InvalidArgumentError(
        "values of decode_json may have 8 dimensions");
  }
  if (words[2] == "-") return leaf;
  size_t at;
  if (!absl::SimpleAtoi(words[2], &at) || at >= args.size()) {
    return Malformed(line);
  }
  if (args[at].spec.dtype != leaf.dtype ||
      !PartialShape(leaf.dims).Accepts(args[at].spec.shape)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the default of \"", pointer, "\" must be ",
                     TensorSpec{leaf.dtype, PartialShape(leaf.dims)}.ToString(),
                     "; got ", args[at].spec.ToString()));
  }
  if (args[at].constant != nullptr) {
    leaf.fallback = *args[at].constant;
  } else if (needs_values) {
    return absl::InvalidArgumentError(
        absl::StrCat("the default of \"", pointer,
                     "\" must be a constant; got a value that is computed"));
  }
  return leaf;
}

absl::StatusOr<std::shared_ptr<Leaves>> LeavesFrom(
    absl::Span<const ArgSpec> args, const Attrs& attrs, bool needs_values) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<std::string> pointers,
                            TextsAttr(attrs, "pointers"));
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<std::string> lines,
                            TextsAttr(attrs, "values_wanted"));
  if (pointers.size() != lines.size()) {
    return absl::InvalidArgumentError("decode_json needs a line per pointer");
  }
  auto leaves = std::make_shared<Leaves>();
  for (size_t i = 0; i < lines.size(); ++i) {
    PENSTOCK_ASSIGN_OR_RETURN(
        Leaf leaf, ParseLeaf(pointers[i], lines[i], args, needs_values));
    leaves->leaves.push_back(std::move(leaf));
  }
  return leaves;
}

absl::StatusOr<std::vector<TensorSpec>> InferJson(
    absl::Span<const ArgSpec> args, const Attrs& attrs) {
  const TensorSpec& text = args[0].spec;
  if (text.dtype != DType::kString || !text.shape.has_rank() ||
      text.shape.rank() != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("decode_json takes one text, string(); got ",
                     text.ToString(), ". Decode before batch()."));
  }
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<Leaves> leaves,
                            LeavesFrom(args, attrs, /*needs_values=*/false));
  std::vector<TensorSpec> specs;
  for (const Leaf& leaf : leaves->leaves) {
    specs.push_back({leaf.dtype, PartialShape(leaf.dims)});
  }
  return specs;
}

absl::StatusOr<PreparedPtr> PrepareJson(absl::Span<const ArgSpec> args,
                                        const Attrs& attrs) {
  PENSTOCK_ASSIGN_OR_RETURN(std::shared_ptr<Leaves> leaves,
                            LeavesFrom(args, attrs, /*needs_values=*/true));
  return leaves;
}

std::string_view KindOf(const dom::element& element) {
  switch (element.type()) {
    case dom::element_type::ARRAY:
      return "an array";
    case dom::element_type::OBJECT:
      return "an object";
    case dom::element_type::INT64:
    case dom::element_type::UINT64:
      return "a number";
    case dom::element_type::DOUBLE:
      return "a number with a fraction";
    case dom::element_type::STRING:
      return "a string";
    case dom::element_type::BOOL:
      return "a bool";
    case dom::element_type::NULL_VALUE:
      return "null";
  }
  return "something";
}

// One item; false if the element is no value of type T.
template <typename T>
bool ReadItem(const dom::element& element, Texts& texts, std::byte* out) {
  T item{};
  if constexpr (std::is_same_v<T, bool>) {
    if (element.get_bool().get(item) != simdjson::SUCCESS) return false;
  } else if constexpr (std::is_floating_point_v<T>) {
    double number;
    if (element.get_double().get(number) != simdjson::SUCCESS) return false;
    item = static_cast<T>(number);
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    if (element.get_uint64().get(item) != simdjson::SUCCESS) return false;
  } else if constexpr (std::is_integral_v<T>) {
    int64_t number;
    if (element.get_int64().get(number) != simdjson::SUCCESS ||
        number < static_cast<int64_t>(std::numeric_limits<T>::min()) ||
        number > static_cast<int64_t>(std::numeric_limits<T>::max())) {
      return false;
    }
    item = static_cast<T>(number);
  } else if constexpr (std::is_same_v<T, StringRef>) {
    std::string_view view;
    if (element.get_string().get(view) != simdjson::SUCCESS) return false;
    const std::string& text = texts.emplace_back(view);
    item = {text.data(), text.size()};
  } else {
    return false;
  }
  std::memcpy(out, &item, sizeof(T));
  return true;
}

// What is found where a value is missing; its few first names are enough.
std::string Missing(const dom::element& element) {
  constexpr size_t kNames = 8;
  constexpr size_t kNameBytes = 64;
  std::string found = "no such value";
  dom::object object;
  if (element.get_object().get(object) != simdjson::SUCCESS) return found;
  size_t count = 0;
  for (const dom::key_value_pair& field : object) {
    if (count == kNames) {
      found += ", ...";
      break;
    }
    absl::StrAppend(&found, count == 0 ? "; there are " : ", ", "\"",
                    Text(field.key.substr(0, kNameBytes)), "\"");
    ++count;
  }
  return found;
}

// The values of one leaf over rows.
class LeafWriter final {
 public:
  LeafWriter(const Leaf& leaf, int64_t rows)
      : leaf_(leaf), values_(ItemSize(leaf.dtype)) {
    dims_.reserve(rows * leaf.rank());
    ends_.reserve(rows + 1);
    ends_.push_back(0);
  }

  absl::Status Add(const dom::element& root, Texts& texts) {
    dom::element element = root;
    for (const std::string& key : leaf_.keys) {
      error_code error = simdjson::NO_SUCH_FIELD;
      if (element.is_object()) {
        error = element.at_key(key).get(element);
      } else if (element.is_array()) {
        size_t index;
        if (absl::SimpleAtoi(key, &index)) {
          error = element.at(index).get(element);
        }
      }
      if (error != simdjson::SUCCESS) {
        return AddDefault(leaf_.fallback ? "" : Missing(element));
      }
    }
    if (element.is_null()) return AddDefault("null");
    Shape shape(leaf_.rank(), -1);
    PENSTOCK_RETURN_IF_ERROR(AddArray(element, 0, shape, texts));
    for (int i = 0; i < leaf_.rank(); ++i) {
      // Below an empty array, what is not known is 0.
      dims_.push_back(shape[i] != -1 ? shape[i] : leaf_.dims[i].value_or(0));
    }
    ends_.push_back(values_.size());
    return absl::OkStatus();
  }

  void FailRow(int64_t row) {
    values_.Truncate(ends_[row]);
    ends_.resize(row + 1);
    dims_.resize(row * leaf_.rank());
    int64_t items = 1;
    for (const std::optional<int64_t>& dim : leaf_.dims) {
      dims_.push_back(dim.value_or(0));
      items *= dims_.back();
    }
    std::memset(values_.Room(items), 0, items * ItemSize(leaf_.dtype));
    values_.Commit(items);
    ends_.push_back(values_.size());
  }

  Column Finish(const std::shared_ptr<Texts>& texts) && {
    const auto rows = static_cast<int64_t>(ends_.size()) - 1;
    const int rank = leaf_.rank();
    Pins pins;
    if (leaf_.dtype == DType::kString) {
      pins.push_back(texts);
      if (leaf_.fallback) AddPins(pins, leaf_.fallback->pins());
    }
    bool is_even = rows > 0;
    for (size_t i = rank; i < dims_.size() && is_even; ++i) {
      is_even = dims_[i] == dims_[i - rank];
    }
    Buffer values = std::move(values_).Take();
    if (is_even) {
      return Column::Dense(leaf_.dtype,
                           Shape(dims_.begin(), dims_.begin() + rank), rows,
                           std::move(values), std::move(pins));
    }
    Buffer pointers = Buffer::Allocate(rows * sizeof(void*));
    for (int64_t row = 0; row < rows; ++row) {
      pointers.MutableAs<const std::byte*>()[row] =
          values.data() + ends_[row] * ItemSize(leaf_.dtype);
    }
    Buffer dims = Buffer::Allocate(dims_.size() * sizeof(int64_t));
    std::copy(dims_.begin(), dims_.end(), dims.MutableAs<int64_t>());
    pins.push_back(values.owner());
    return Column::Ragged(leaf_.dtype, rank, rows, std::move(pointers),
                          std::move(dims), std::move(pins));
  }

 private:
  absl::Status Wrong(std::string_view expected, std::string_view found) const {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", leaf_.pointer, "\" must be ", Text(expected),
                     "; found ", Text(found)));
  }
  std::string Expected() const {
    return TensorSpec{leaf_.dtype, PartialShape(leaf_.dims)}.ToString();
  }

  absl::Status AddDefault(std::string_view found) {
    if (!leaf_.fallback) return Wrong(Expected(), found);
    const Column& column = *leaf_.fallback;
    const int64_t items = column.RowItems(0);
    if (items > 0) {
      std::memcpy(values_.Room(items), column.RowData(0),
                  items * ItemSize(leaf_.dtype));
    } else {
      values_.Room(0);
    }
    values_.Commit(items);
    const absl::Span<const int64_t> shape = column.RowShape(0);
    dims_.insert(dims_.end(), shape.begin(), shape.end());
    ends_.push_back(values_.size());
    return absl::OkStatus();
  }

  absl::Status AddArray(const dom::element& element, int axis, Shape& shape,
                        Texts& texts) {
    if (axis == leaf_.rank()) {
      std::byte* out = values_.Room(1);
      const bool is_read = VisitDType(leaf_.dtype, [&](auto item) {
        return ReadItem<decltype(item)>(element, texts, out);
      });
      if (!is_read) return Wrong(Expected(), KindOf(element));
      values_.Commit(1);
      return absl::OkStatus();
    }
    dom::array array;
    if (element.get_array().get(array) != simdjson::SUCCESS) {
      return Wrong(Expected(), KindOf(element));
    }
    int64_t count = 0;
    for (const dom::element item : array) {
      PENSTOCK_RETURN_IF_ERROR(AddArray(item, axis + 1, shape, texts));
      ++count;
    }
    if (count != leaf_.dims[axis].value_or(count)) {
      return Wrong(Expected(), absl::StrCat("an array of ", count));
    }
    if (shape[axis] != -1 && shape[axis] != count) {
      return Wrong("made of arrays of one length",
                   absl::StrCat(shape[axis], " and ", count));
    }
    shape[axis] = count;
    return absl::OkStatus();
  }

  const Leaf& leaf_;
  GrowingItems values_;
  std::vector<int64_t> dims_;  // rows x rank
  std::vector<int64_t> ends_;  // in values_, after each row; first 0
};

absl::Status ParseText(std::string_view text, dom::parser& parser,
                       std::vector<LeafWriter>& writers, Texts& texts) {
  if (text.size() > kMaxTextBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a JSON text may have 1 GiB; found ", text.size(), " bytes"));
  }
  if (parser.capacity() < text.size()) {
    const size_t capacity = std::max<size_t>(4096, 2 * text.size());
    if (parser.allocate(capacity, kMaxDepth) != simdjson::SUCCESS) {
      return absl::ResourceExhaustedError("no memory for a JSON text");
    }
  }
  dom::element root;
  const error_code error =
      parser.parse(text.data(), text.size(), /*realloc_if_needed=*/true)
          .get(root);
  if (error != simdjson::SUCCESS) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a JSON text; found ", text.size(),
                     " bytes that are none: ", simdjson::error_message(error)));
  }
  for (LeafWriter& writer : writers) {
    PENSTOCK_RETURN_IF_ERROR(writer.Add(root, texts));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Column>> EvalJson(absl::Span<const Arg> args,
                                             const Attrs&,
                                             absl::Span<const TensorSpec>,
                                             EvalContext& context) {
  const auto& leaves = static_cast<const Leaves*>(context.prepared)->leaves;
  const Column& column = *args[0].column;
  const int64_t rows = ResultRows(args.first(1), context);
  std::vector<LeafWriter> writers;
  writers.reserve(leaves.size());
  for (const Leaf& leaf : leaves) writers.emplace_back(leaf, rows);
  const auto texts = std::make_shared<Texts>();
  dom::parser parser;
  for (int64_t row = 0; row < rows; ++row) {
    absl::Status status =
        ParseText(column.Row<StringRef>(row)->view(), parser, writers, *texts);
    if (status.ok()) continue;
    ReportRow(context, row, std::move(status));
    for (LeafWriter& writer : writers) writer.FailRow(row);
  }
  std::vector<Column> columns;
  for (LeafWriter& writer : writers) {
    columns.push_back(std::move(writer).Finish(texts));
  }
  return columns;
}

}  // namespace

std::vector<Function> JsonFunctions() {
  return {
      {.name = "io.decode_json",
       .params = {{"values", ParamKind::kTensors, "",
                   "A JSON text, and the defaults of values."},
                  {"pointers", ParamKind::kTexts, "",
                   "Where the values are: JSON pointers."},
                  {"values_wanted", ParamKind::kTexts, "",
                   "Their dtypes, shapes and defaults: see json.cc."}},
       .doc = "Values of JSON texts.",
       .example = "",
       .infer = nullptr,
       .eval = nullptr,
       .infer_parts = InferJson,
       .eval_parts = EvalJson,
       .prepare = PrepareJson,
       .is_internal = true},
  };
}

}  // namespace penstock::functions

// Calling functions in tests: values as columns, results as text.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/data/column.h"
#include "penstock/functions/function.h"
#include "penstock/functions/program.h"

namespace penstock::functions {

// An argument of a call under test.
struct TestArg {
  enum class Kind { kRows, kConstant, kWeak, kBound };
  Kind kind = Kind::kRows;
  Column column;
  // What the program is told of a row's shape; the column's if it is dense.
  PartialShape shape;
};

// Rows that are scalars.
template <typename T>
TestArg Rows(std::initializer_list<T> values) {
  return {TestArg::Kind::kRows,
          MakeColumn<T>(absl::MakeConstSpan(values.begin(), values.size())),
          {}};
}
TestArg Strings(std::initializer_list<std::string_view> values);
// Rows of `shape`, one after another.
template <typename T>
TestArg Dense(Shape shape, std::initializer_list<T> values) {
  const int64_t items = NumItems(shape);
  const Column flat =
      MakeColumn<T>(absl::MakeConstSpan(values.begin(), values.size()));
  const int64_t rows =
      items == 0 ? 1 : static_cast<int64_t>(values.size()) / items;
  return {TestArg::Kind::kRows, flat.Reshape(rows, shape),
          PartialShape(absl::Span<const int64_t>(shape))};
}
// Rows that are vectors of different lengths.
template <typename T>
TestArg Ragged(std::initializer_list<std::vector<T>> rows) {
  std::vector<T> items;
  for (const std::vector<T>& row : rows) {
    items.insert(items.end(), row.begin(), row.end());
  }
  Column values = MakeColumn<T>(absl::MakeConstSpan(items));
  Buffer pointers = Buffer::Allocate(rows.size() * sizeof(void*));
  Buffer dims = Buffer::Allocate(rows.size() * sizeof(int64_t));
  const T* at = values.template Row<T>(0);
  int64_t i = 0;
  for (const std::vector<T>& row : rows) {
    pointers.MutableAs<const T*>()[i] = at;
    dims.MutableAs<int64_t>()[i++] = static_cast<int64_t>(row.size());
    at += row.size();
  }
  Pins pins = values.pins();
  pins.push_back(values.values().owner());
  return {TestArg::Kind::kRows,
          Column::Ragged(kDTypeOf<T>, 1, i, std::move(pointers),
                         std::move(dims), std::move(pins)),
          PartialShape(PartialShape::Dims{std::nullopt})};
}
// A Python scalar.
template <typename T>
TestArg Weak(T value) {
  return {
      TestArg::Kind::kWeak, MakeColumn<T>(absl::MakeConstSpan(&value, 1)), {}};
}
// One value for all rows, known at once (Constant) or when run (Bound).
TestArg Constant(TestArg one_row);
TestArg Bound(TestArg one_row);

// A row as text: "3", "[1 2]", "[[1 2] [3 4]]"; floats in the fewest digits
// that read back, strings in quotes.
std::string RowText(const Column& column, int64_t row);
// The rows' texts, separated by "; ", after the dtype: "int64: 1; 2". A row
// error is its message in angle brackets.
std::string Text(const Column& column, const std::vector<RowError>& errors);

struct CallOptions {
  int64_t rows = -1;  // of the run; the arguments' if they have any
  std::vector<uint64_t> lineage;
  uint64_t random_key = 0;
  std::vector<RowError> known_errors;
};

// Runs a program of one call. Checks that the columns keep the promised spec.
absl::StatusOr<std::string> Call(std::string_view function,
                                 std::vector<TestArg> args, Attrs attrs = {},
                                 CallOptions options = {});

// As Call(); an error's message instead of its status.
std::string Got(std::string_view function, std::vector<TestArg> args,
                Attrs attrs = {}, CallOptions options = {});

}  // namespace penstock::functions

// What the string functions share: checks of their arguments, columns made item
// by item, and memory for bytes that did not exist before.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/data/column.h"
#include "penstock/functions/function.h"
#include "penstock/functions/rows.h"

namespace penstock::functions {

inline StringRef Ref(std::string_view text) {
  return {text.data(), text.size()};
}

// The bytes that isspace() of the C locale holds to be space.
inline bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
std::string_view StripSpace(std::string_view text);

// InvalidArgument unless `arg` holds strings.
absl::Status CheckStrings(std::string_view function, const ArgSpec& arg);
// InvalidArgument unless `arg` has this rank, or one that is not known.
absl::Status CheckRank(std::string_view function, const ArgSpec& arg, int rank);

// As TextAttr(), with a default for an attribute that is absent or None.
absl::StatusOr<std::string_view> TextAttrOr(const Attrs& attrs,
                                            std::string_view name,
                                            std::string_view otherwise);

// A text as an error shows it: in quotes, printable, and not too long of it.
std::string Quoted(std::string_view text);

// New bytes that StringRefs point to, in a few large blocks. Held by a
// shared_ptr, which is the pin of the column that points here.
class ByteBlocks final {
 public:
  static std::shared_ptr<ByteBlocks> Make() {
    return std::make_shared<ByteBlocks>();
  }

  // `size` bytes to be filled by the caller.
  char* Allocate(size_t size) {
    if (size > left_) Grow(size);
    char* at = next_;
    next_ += size;
    left_ -= size;
    return at;
  }
  // Gives back the last `size` of the bytes allocated last.
  void GiveBack(size_t size) {
    next_ -= size;
    left_ += size;
  }
  StringRef Copy(std::string_view text) {
    char* at = Allocate(text.size());
    if (!text.empty()) std::memcpy(at, text.data(), text.size());
    return {at, text.size()};
  }

 private:
  void Grow(size_t size);

  char* next_ = nullptr;
  size_t left_ = 0;
  size_t block_bytes_ = 4096;
  std::vector<Buffer> blocks_;
};

// Reports errors of rows, one for each: the first item's.
class RowReporter final {
 public:
  explicit RowReporter(EvalContext& context) : context_(context) {}

  // make() gives the status; not called for a row that has one.
  template <typename Make>
  void Report(int64_t row, Make&& make) {
    if (row == last_) return;
    last_ = row;
    ReportRow(context_, row, make());
  }

 private:
  EvalContext& context_;
  int64_t last_ = -1;
};

// A column of x's shapes. f(row, const In* in, int64_t count, Out* out) makes
// the items of one row.
template <typename In, typename Out, typename F>
Column MapRows(const Arg& x, int64_t rows, Pins pins, F&& f) {
  const Column& from = *x.column;
  if (from.is_dense()) {
    const int64_t items = NumItems(from.shape());
    Buffer values = Buffer::Allocate(rows * items * sizeof(Out));
    Out* out = values.MutableAs<Out>();
    for (int64_t row = 0; row < rows; ++row, out += items) {
      f(row, from.Row<In>(RowIndex(x, row)), items, out);
    }
    return Column::Dense(kDTypeOf<Out>, from.shape(), rows, std::move(values),
                         std::move(pins));
  }
  RowsWriter writer(kDTypeOf<Out>, from.rank(), rows);
  for (int64_t row = 0; row < rows; ++row) {
    writer.SetShape(row, from.RowShape(RowIndex(x, row)));
  }
  writer.Allocate();
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t own = RowIndex(x, row);
    f(row, from.Row<In>(own), from.RowItems(own),
      reinterpret_cast<Out*>(writer.RowData(row)));
  }
  return std::move(writer).Finish(std::move(pins));
}

// As MapRows(), item by item: f(row, const In& item) -> Out.
template <typename In, typename Out, typename F>
Column MapItems(const Arg& x, int64_t rows, Pins pins, F&& f) {
  return MapRows<In, Out>(
      x, rows, std::move(pins),
      [&](int64_t row, const In* in, int64_t count, Out* out) {
        for (int64_t i = 0; i < count; ++i) out[i] = f(row, in[i]);
      });
}

// Items appended one by one, whose number is not known before.
template <typename T>
class GrowingItems final {
 public:
  void push_back(const T& item) {
    if (size_ == capacity_) Grow(size_ + 1);
    items_[size_++] = item;
  }
  // Room for `more` items after those that there are.
  T* Reserve(size_t more) {
    if (size_ + more > capacity_) Grow(size_ + more);
    return items_ + size_;
  }
  // `end`: one behind the last item that was written into what Reserve() gave.
  void FinishAt(const T* end) { size_ = end - items_; }
  void resize(size_t size) { size_ = size; }  // REQUIRES: not more
  size_t size() const { return size_; }
  const T* data() const { return items_; }
  Buffer Finish() && { return std::move(buffer_); }

 private:
  void Grow(size_t wanted) {
    size_t larger = capacity_ < 1024 ? 1024 : capacity_ * 2;
    if (larger < wanted) larger = wanted;
    Buffer buffer = Buffer::Allocate(larger * sizeof(T));
    T* to = buffer.template MutableAs<T>();
    if (size_ > 0) std::memcpy(to, items_, size_ * sizeof(T));
    buffer_ = std::move(buffer);
    items_ = to;
    capacity_ = larger;
  }

  Buffer buffer_;
  T* items_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

// A column of vectors: row i has the items [ends[i - 1], ends[i]).
Column VectorRows(DType dtype, Buffer items, absl::Span<const size_t> ends,
                  Pins pins);

// The longest string of which several items are made: one for each byte would
// just be an element.
inline constexpr uint64_t kMaxSplitBytes = kMaxElementBytes / sizeof(StringRef);
absl::Status SplitTooLong(uint64_t size);

// What makes several items of one string: append(row, text, GrowingItems<Out>&)
// for each row's scalar, at most one for a byte. The result's rows are vectors.
template <typename Out, typename Append>
absl::StatusOr<Column> SplitScalars(const Arg& x, int64_t rows, Pins pins,
                                    EvalContext& context, Append&& append) {
  if (x.column->rank() != 0) {
    return absl::InvalidArgumentError("a scalar string is needed");
  }
  GrowingItems<Out> items;
  std::vector<size_t> ends(rows);
  for (int64_t row = 0; row < rows; ++row) {
    const StringRef item = *x.column->Row<StringRef>(RowIndex(x, row));
    if (item.size > kMaxSplitBytes) {
      ReportRow(context, row, SplitTooLong(item.size));
    } else {
      append(row, item, items);
    }
    ends[row] = items.size();
  }
  return VectorRows(kDTypeOf<Out>, std::move(items).Finish(), ends,
                    std::move(pins));
}

// The same of vectors of strings: the values of a row's strings one after
// another, and the places where each string's begin, and one more.
template <typename Out, typename Append>
absl::StatusOr<std::vector<Column>> SplitVectors(const Arg& x, int64_t rows,
                                                 Pins pins,
                                                 EvalContext& context,
                                                 Append&& append) {
  if (x.column->rank() != 1) {
    return absl::InvalidArgumentError("a vector of strings is needed");
  }
  GrowingItems<Out> items;
  GrowingItems<int64_t> splits;
  std::vector<size_t> item_ends(rows);
  std::vector<size_t> split_ends(rows);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t own = RowIndex(x, row);
    const StringRef* in = x.column->Row<StringRef>(own);
    const int64_t count = x.column->RowItems(own);
    const size_t begin = items.size();
    splits.push_back(0);
    uint64_t bytes = 0;
    for (int64_t i = 0; i < count; ++i) {
      bytes += in[i].size;
      if (bytes <= kMaxSplitBytes) append(row, in[i], items);
      splits.push_back(static_cast<int64_t>(items.size() - begin));
    }
    if (bytes > kMaxSplitBytes) ReportRow(context, row, SplitTooLong(bytes));
    item_ends[row] = items.size();
    split_ends[row] = splits.size();
  }
  std::vector<Column> parts;
  parts.push_back(VectorRows(kDTypeOf<Out>, std::move(items).Finish(),
                             item_ends, std::move(pins)));
  parts.push_back(
      VectorRows(DType::kInt64, std::move(splits).Finish(), split_ends, {}));
  return parts;
}

// The specs of the two: (values, row_splits).
std::vector<TensorSpec> RaggedSpecs(DType dtype, const ArgSpec& x);

}  // namespace penstock::functions

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/broadcast.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/promote.h"
#include "penstock/functions/rows.h"

namespace penstock::functions {
namespace {

// One entry between the brackets of x[...].
struct Entry {
  enum class Kind : uint8_t { kIndex, kSlice, kEllipsis, kNewAxis };
  Kind kind;
  bool has_start = false;
  bool has_stop = false;
  bool has_step = false;
};
using Entries = absl::InlinedVector<Entry, 4>;

// See the documentation of getitem for the text.
absl::StatusOr<Entries> ParseEntries(const Attrs& attrs, size_t num_values) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string_view text,
                            TextAttr(attrs, "spec"));
  Entries entries;
  size_t wanted = 1;
  int ellipses = 0;
  for (char c : text) {
    Entry* last = entries.empty() ? nullptr : &entries.back();
    const bool in_slice = last != nullptr && last->kind == Entry::Kind::kSlice;
    bool is_valid = true;
    switch (c) {
      case 'i':
        entries.push_back({Entry::Kind::kIndex});
        ++wanted;
        break;
      case 's':
        entries.push_back({Entry::Kind::kSlice});
        break;
      case 'e':
        entries.push_back({Entry::Kind::kEllipsis});
        is_valid = ++ellipses == 1;
        break;
      case 'n':
        entries.push_back({Entry::Kind::kNewAxis});
        break;
      case 'a':
        is_valid =
            in_slice && !last->has_start && !last->has_stop && !last->has_step;
        if (is_valid) last->has_start = true;
        ++wanted;
        break;
      case 'b':
        is_valid = in_slice && !last->has_stop && !last->has_step;
        if (is_valid) last->has_stop = true;
        ++wanted;
        break;
      case 'c':
        is_valid = in_slice && !last->has_step;
        if (is_valid) last->has_step = true;
        ++wanted;
        break;
      default:
        is_valid = false;
    }
    if (!is_valid) {
      return absl::InvalidArgumentError(absl::StrCat(
          "getitem's spec must be entries i, s[a][b][c], e (once) or n; got \"",
          Text(text), "\""));
    }
  }
  if (wanted != num_values) {
    return absl::InvalidArgumentError(
        absl::StrCat("getitem's spec \"", Text(text), "\" needs ", wanted,
                     " values; got ", num_values));
  }
  if (ellipses == 0) entries.push_back({Entry::Kind::kEllipsis});
  return entries;
}

// How many dimensions of x the entries speak of, the ellipsis aside.
int NumNamed(const Entries& entries) {
  return static_cast<int>(
      std::count_if(entries.begin(), entries.end(), [](const Entry& entry) {
        return entry.kind == Entry::Kind::kIndex ||
               entry.kind == Entry::Kind::kSlice;
      }));
}

int ResultRank(const Entries& entries, int rank) {
  for (const Entry& entry : entries) {
    if (entry.kind == Entry::Kind::kIndex) --rank;
    if (entry.kind == Entry::Kind::kNewAxis) ++rank;
  }
  return rank;
}

absl::Status CheckRank(const Entries& entries, int rank) {
  const int named = NumNamed(entries);
  if (named <= rank) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("too many indices for array: array is ", rank,
                   "-dimensional, but ", named, " were indexed"));
}

absl::Status CheckIndex(int64_t& index, int axis, int64_t size) {
  if (index < -size || index >= size) {
    return absl::InvalidArgumentError(
        absl::StrCat("index ", index, " is out of bounds for axis ", axis,
                     " with size ", size));
  }
  if (index < 0) index += size;
  return absl::OkStatus();
}

struct SliceValues {
  std::optional<int64_t> start;
  std::optional<int64_t> stop;
  std::optional<int64_t> step;
};

// Python's slice.indices(): the first index, the step and how many there are.
struct Range {
  int64_t start;
  int64_t step;
  int64_t count;
};
absl::StatusOr<Range> ResolveSlice(const SliceValues& slice, int64_t size) {
  // A step beyond the size takes one item, whatever it is exactly.
  const int64_t limit = int64_t{1} << 40;
  const int64_t step = std::clamp(slice.step.value_or(1), -limit, limit);
  if (step == 0) return absl::InvalidArgumentError("slice step cannot be zero");
  const int64_t low = step < 0 ? -1 : 0;
  const int64_t high = step < 0 ? size - 1 : size;
  auto clamp = [&](std::optional<int64_t> value, int64_t otherwise) {
    if (!value) return otherwise;
    const int64_t from_start = *value < 0 ? *value + size : *value;
    return std::clamp(from_start, low, std::max(low, high));
  };
  const int64_t start = clamp(slice.start, step < 0 ? high : low);
  const int64_t stop = clamp(slice.stop, step < 0 ? low : high);
  int64_t count = 0;
  if (step > 0 && start < stop) count = (stop - start - 1) / step + 1;
  if (step < 0 && start > stop) count = (start - stop - 1) / -step + 1;
  return Range{start, step, count};
}

absl::StatusOr<TensorSpec> InferGetItem(absl::Span<const ArgSpec> args,
                                        const Attrs& attrs) {
  PENSTOCK_ASSIGN_OR_RETURN(const Entries entries,
                            ParseEntries(attrs, args.size()));
  for (const ArgSpec& arg : args.subspan(1)) {
    PENSTOCK_RETURN_IF_ERROR(CheckInts("an index", arg, 0));
  }
  TensorSpec result = args[0].spec;
  const PartialShape& shape = args[0].spec.shape;
  if (!shape.has_rank()) return result;
  PENSTOCK_RETURN_IF_ERROR(CheckRank(entries, shape.rank()));
  PartialShape::Dims dims;
  int axis = 0;
  size_t next = 1;
  for (const Entry& entry : entries) {
    switch (entry.kind) {
      case Entry::Kind::kNewAxis:
        dims.push_back(1);
        break;
      case Entry::Kind::kEllipsis:
        for (int i = shape.rank() - NumNamed(entries); i > 0; --i) {
          dims.push_back(shape.dims()[axis++]);
        }
        break;
      case Entry::Kind::kIndex: {
        const std::optional<Ints> index = ConstantInts(args[next++]);
        const std::optional<int64_t> size = shape.dims()[axis];
        if (index && size) {
          int64_t at = index->at(0);
          PENSTOCK_RETURN_IF_ERROR(CheckIndex(at, axis, *size));
        }
        ++axis;
        break;
      }
      case Entry::Kind::kSlice: {
        SliceValues slice;
        bool is_known = true;
        auto read = [&](bool has, std::optional<int64_t>& value) {
          if (!has) return;
          const std::optional<Ints> ints = ConstantInts(args[next++]);
          is_known = is_known && ints.has_value();
          if (ints) value = ints->at(0);
        };
        read(entry.has_start, slice.start);
        read(entry.has_stop, slice.stop);
        read(entry.has_step, slice.step);
        if (slice.step == 0) {
          return absl::InvalidArgumentError("slice step cannot be zero");
        }
        const std::optional<int64_t> size = shape.dims()[axis++];
        std::optional<int64_t> dim;
        if (is_known && size) {
          PENSTOCK_ASSIGN_OR_RETURN(const Range range,
                                    ResolveSlice(slice, *size));
          dim = range.count;
        }
        dims.push_back(dim);
        break;
      }
    }
  }
  result.shape = PartialShape(std::move(dims));
  return result;
}

// Where the items of a result lie in a row.
struct View {
  int64_t offset = 0;
  Shape dims;
  Shape strides;
};

absl::Status MakeView(const Entries& entries, absl::Span<const int64_t> shape,
                      size_t item_size, absl::Span<const int64_t> numbers,
                      View& view) {
  view.offset = 0;
  view.dims.clear();
  view.strides.clear();
  const Shape strides = ContiguousStrides(shape, item_size);
  const int rank = static_cast<int>(shape.size());
  int axis = 0;
  auto next = numbers.begin();
  for (const Entry& entry : entries) {
    switch (entry.kind) {
      case Entry::Kind::kNewAxis:
        view.dims.push_back(1);
        view.strides.push_back(0);
        break;
      case Entry::Kind::kEllipsis:
        for (int i = rank - NumNamed(entries); i > 0; --i, ++axis) {
          view.dims.push_back(shape[axis]);
          view.strides.push_back(strides[axis]);
        }
        break;
      case Entry::Kind::kIndex: {
        int64_t index = *next++;
        PENSTOCK_RETURN_IF_ERROR(CheckIndex(index, axis, shape[axis]));
        view.offset += index * strides[axis++];
        break;
      }
      case Entry::Kind::kSlice: {
        SliceValues slice;
        if (entry.has_start) slice.start = *next++;
        if (entry.has_stop) slice.stop = *next++;
        if (entry.has_step) slice.step = *next++;
        PENSTOCK_ASSIGN_OR_RETURN(const Range range,
                                  ResolveSlice(slice, shape[axis]));
        if (range.count > 0) view.offset += range.start * strides[axis];
        view.dims.push_back(range.count);
        view.strides.push_back(range.step * strides[axis++]);
        break;
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Column> EvalGetItem(absl::Span<const Arg> args,
                                   const Attrs& attrs, const TensorSpec&,
                                   EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const Entries entries,
                            ParseEntries(attrs, args.size()));
  const Arg& x = args[0];
  const Column& from = *x.column;
  PENSTOCK_RETURN_IF_ERROR(CheckRank(entries, from.rank()));
  const size_t item_size = ItemSize(from.dtype());
  const int64_t rows = ResultRows(args, context);
  Ints numbers(args.size() - 1);
  auto read_numbers = [&](int64_t row) {
    for (size_t k = 1; k < args.size(); ++k) {
      numbers[k - 1] = ReadInt(*args[k].column, RowIndex(args[k], row));
    }
  };
  const bool is_one_view =
      std::all_of(args.begin() + 1, args.end(),
                  [](const Arg& arg) { return arg.is_uniform; });
  if (is_one_view) read_numbers(0);
  View view;
  if (is_one_view && from.is_dense() &&
      MakeView(entries, from.shape(), item_size, numbers, view).ok()) {
    const Shape shape = view.dims;
    Buffer values = Buffer::Allocate(rows * NumItems(shape) * item_size);
    view.dims.insert(view.dims.begin(), rows);
    view.strides.insert(view.strides.begin(), from.row_bytes());
    if (rows > 0) {
      CopyStrided(from.values().data() + view.offset, view.dims, view.strides,
                  item_size, values.MutableAs<std::byte>());
    }
    return Column::Dense(from.dtype(), shape, rows, std::move(values),
                         StringPins(args));
  }
  auto view_of = [&](int64_t row) {
    if (!is_one_view) read_numbers(row);
    return MakeView(entries, from.RowShape(RowIndex(x, row)), item_size,
                    numbers, view);
  };
  return MakeRows(
      from.dtype(), ResultRank(entries, from.rank()), rows,
      /*has_one_shape=*/false, StringPins(args), context,
      [&](int64_t row, int64_t* dims) {
        absl::Status status = view_of(row);
        if (status.ok()) std::copy(view.dims.begin(), view.dims.end(), dims);
        return status;
      },
      [&](int64_t row, absl::Span<const int64_t>, std::byte* out) {
        (void)view_of(row);
        CopyStrided(from.RowData(RowIndex(x, row)) + view.offset, view.dims,
                    view.strides, item_size, out);
      });
}

}  // namespace

std::vector<Function> IndexFunctions() {
  return {
      {.name = "getitem",
       .params = {{"values", ParamKind::kTensors, "",
                   "The array, then the numbers that the spec asks for."},
                  {"spec", ParamKind::kText, "",
                   "One entry per index: i an index, s a slice (followed by a, "
                   "b, c if it has a start, a stop, a step), e an ellipsis, n "
                   "a new axis. Each i, a, b and c takes the next value."}},
       .doc = "Indexing and slicing, as numpy's: x[...].",
       .example = ">>> ps.getitem([np.arange(6), 1, 2], 'sac')\n"
                  "array([1, 3, 5])",
       .infer = InferGetItem,
       .eval = EvalGetItem},
  };
}

}  // namespace penstock::functions

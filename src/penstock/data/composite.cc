#include "penstock/data/composite.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/data/stack.h"

namespace penstock {
namespace {

using Integers = std::vector<int64_t>;

Pins AllPins(const Column& column) {
  Pins pins = column.pins();
  if (column.is_dense()) pins.push_back(column.values().owner());
  return pins;
}

// The integers of a vector, of dtype int32 or int64.
absl::StatusOr<Integers> ReadIntegers(const Column& column, int64_t row,
                                      absl::string_view what) {
  if (column.rank() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, " must be a vector; got ", column.rank(), " dimensions"));
  }
  const int64_t items = column.RowItems(row);
  if (column.dtype() == DType::kInt64) {
    const int64_t* data = column.Row<int64_t>(row);
    return Integers(data, data + items);
  }
  if (column.dtype() == DType::kInt32) {
    const int32_t* data = column.Row<int32_t>(row);
    return Integers(data, data + items);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(what, " must be int32 or int64"));
}

Column WriteIntegers(const Integers& integers, DType dtype, Shape shape) {
  Buffer buffer = Buffer::Allocate(integers.size() * ItemSize(dtype));
  if (dtype == DType::kInt32) {
    std::copy(integers.begin(), integers.end(), buffer.MutableAs<int32_t>());
  } else {
    std::copy(integers.begin(), integers.end(), buffer.MutableAs<int64_t>());
  }
  return Column::Dense(dtype, std::move(shape), 1, std::move(buffer));
}

Column WriteVector(const Integers& integers, DType dtype) {
  return WriteIntegers(integers, dtype,
                       {static_cast<int64_t>(integers.size())});
}

// Row splits as they must be: from 0 up to `items`.
absl::Status CheckSplits(const Integers& splits, int64_t items) {
  const bool is_good = !splits.empty() && splits.front() == 0 &&
                       splits.back() == items &&
                       std::is_sorted(splits.begin(), splits.end());
  if (is_good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("row_splits must ascend from 0 to the number of values, ",
                   items, "; got others"));
}

// Rows of at least one dimension, one after another along the first.
absl::StatusOr<Column> Concatenated(const Column& column) {
  if (column.rank() == 0) {
    return absl::InvalidArgumentError(
        "the values of a ragged tensor must have a dimension; got a scalar");
  }
  Shape shape(column.RowShape(0).begin(), column.RowShape(0).end());
  int64_t items = 0;
  shape[0] = 0;
  for (int64_t row = 0; row < column.rows(); ++row) {
    const absl::Span<const int64_t> dims = column.RowShape(row);
    if (dims.subspan(1) != absl::Span<const int64_t>(shape).subspan(1)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "ragged elements of a batch must have values of one shape; got ",
          ToString(column.RowShape(0)), " and ", ToString(dims),
          " at position ", row, " of the batch"));
    }
    shape[0] += dims[0];
    items += column.RowItems(row);
  }
  const size_t item_size = ItemSize(column.dtype());
  Buffer values = Buffer::Allocate(items * item_size);
  std::byte* to = values.MutableAs<std::byte>();
  for (int64_t row = 0; row < column.rows(); ++row) {
    const size_t bytes = column.RowItems(row) * item_size;
    if (bytes > 0) std::memcpy(to, column.RowData(row), bytes);
    to += bytes;
  }
  return Column::Dense(column.dtype(), std::move(shape), 1, std::move(values),
                       AllPins(column));
}

absl::Status StackRaggedPart(const Part& part, const Chunk& rows,
                             std::vector<Column>& out) {
  const Column& values = rows.columns[part.first];
  PENSTOCK_ASSIGN_OR_RETURN(Column joined, Concatenated(values));
  out.push_back(std::move(joined));
  // Of each row, the items of the level below.
  Integers items(rows.rows);
  for (int64_t row = 0; row < rows.rows; ++row) {
    items[row] = values.RowShape(row)[0];
  }
  DType dtype = DType::kInt64;
  for (int level = 1; level < part.columns; ++level) {
    const Column& column = rows.columns[part.first + level];
    dtype = column.dtype();
    Integers splits = {0};
    for (int64_t row = 0; row < rows.rows; ++row) {
      PENSTOCK_ASSIGN_OR_RETURN(const Integers here,
                                ReadIntegers(column, row, "row_splits"));
      PENSTOCK_RETURN_IF_ERROR(CheckSplits(here, items[row]));
      const int64_t base = splits.back();
      for (size_t i = 1; i < here.size(); ++i) {
        splits.push_back(base + here[i]);
      }
      items[row] = static_cast<int64_t>(here.size()) - 1;
    }
    out.push_back(WriteVector(splits, dtype));
  }
  Integers splits = {0};
  for (const int64_t count : items) splits.push_back(splits.back() + count);
  out.push_back(WriteVector(splits, dtype));
  return absl::OkStatus();
}

struct SparseRow {
  int64_t items = 0;
  int64_t rank = 0;
  const int64_t* indices = nullptr;
  const int64_t* shape = nullptr;
};

absl::StatusOr<SparseRow> ReadSparse(const Part& part, const Chunk& chunk,
                                     int64_t row) {
  const Column& indices = chunk.columns[part.first];
  const Column& values = chunk.columns[part.first + 1];
  const Column& shape = chunk.columns[part.first + 2];
  const bool is_good = indices.dtype() == DType::kInt64 &&
                       shape.dtype() == DType::kInt64 && indices.rank() == 2 &&
                       values.rank() == 1 && shape.rank() == 1 &&
                       indices.RowShape(row)[0] == values.RowShape(row)[0] &&
                       indices.RowShape(row)[1] == shape.RowShape(row)[0];
  if (!is_good) {
    return absl::InvalidArgumentError(
        "a sparse tensor must have indices int64(items, rank), "
        "values(items,) and dense_shape int64(rank,); got others");
  }
  return SparseRow{values.RowItems(row), shape.RowItems(row),
                   indices.Row<int64_t>(row), shape.Row<int64_t>(row)};
}

absl::Status StackSparsePart(const Part& part, const Chunk& rows,
                             std::vector<Column>& out) {
  Integers indices;
  Integers shape = {rows.rows};
  int64_t items = 0;
  for (int64_t row = 0; row < rows.rows; ++row) {
    PENSTOCK_ASSIGN_OR_RETURN(const SparseRow sparse,
                              ReadSparse(part, rows, row));
    if (row == 0) shape.resize(sparse.rank + 1, 0);
    if (sparse.rank + 1 != static_cast<int64_t>(shape.size())) {
      return absl::InvalidArgumentError(
          absl::StrCat("sparse elements of a batch must have one rank; got ",
                       shape.size() - 1, " and ", sparse.rank));
    }
    for (int64_t d = 0; d < sparse.rank; ++d) {
      shape[d + 1] = std::max(shape[d + 1], sparse.shape[d]);
    }
    for (int64_t i = 0; i < sparse.items; ++i) {
      indices.push_back(row);
      indices.insert(indices.end(), sparse.indices + i * sparse.rank,
                     sparse.indices + (i + 1) * sparse.rank);
    }
    items += sparse.items;
  }
  out.push_back(WriteIntegers(indices, DType::kInt64,
                              {items, static_cast<int64_t>(shape.size())}));
  PENSTOCK_ASSIGN_OR_RETURN(Column values,
                            Concatenated(rows.columns[part.first + 1]));
  out.push_back(std::move(values));
  out.push_back(WriteVector(shape, DType::kInt64));
  return absl::OkStatus();
}

// A ragged column of vectors, one for each of `rows`.
Column ColumnOfVectors(const std::vector<Integers>& rows, DType dtype) {
  Integers all;
  Buffer data = Buffer::Allocate(rows.size() * sizeof(void*));
  Buffer dims = Buffer::Allocate(rows.size() * sizeof(int64_t));
  for (size_t i = 0; i < rows.size(); ++i) {
    dims.MutableAs<int64_t>()[i] = static_cast<int64_t>(rows[i].size());
    all.insert(all.end(), rows[i].begin(), rows[i].end());
  }
  const Column values = WriteVector(all, dtype);
  const std::byte* at = values.values().data();
  for (size_t i = 0; i < rows.size(); ++i) {
    data.MutableAs<const std::byte*>()[i] = at;
    at += rows[i].size() * ItemSize(dtype);
  }
  return Column::Ragged(dtype, 1, static_cast<int64_t>(rows.size()),
                        std::move(data), std::move(dims),
                        {values.values().owner()});
}

// The runs [begin, end) along the first dimension of a row, each a row.
Column Runs(const Column& column, int64_t row,
            absl::Span<const std::pair<int64_t, int64_t>> runs) {
  const int rank = column.rank();
  const absl::Span<const int64_t> shape = column.RowShape(row);
  const size_t stride = NumItems(shape.subspan(1)) * ItemSize(column.dtype());
  Buffer data = Buffer::Allocate(runs.size() * sizeof(void*));
  Buffer dims = Buffer::Allocate(runs.size() * rank * sizeof(int64_t));
  int64_t* dim = dims.MutableAs<int64_t>();
  for (size_t i = 0; i < runs.size(); ++i) {
    data.MutableAs<const std::byte*>()[i] =
        column.RowData(row) + runs[i].first * stride;
    *dim++ = runs[i].second - runs[i].first;
    dim = std::copy(shape.begin() + 1, shape.end(), dim);
  }
  return Column::Ragged(column.dtype(), rank, static_cast<int64_t>(runs.size()),
                        std::move(data), std::move(dims), AllPins(column));
}

absl::Status SplitRagged(const Part& part, const Chunk& chunk, int64_t row,
                         int64_t size, std::vector<Column>& out) {
  const Column& values = chunk.columns[part.first];
  std::vector<std::pair<int64_t, int64_t>> runs;
  for (int64_t i = 0; i < size; ++i) runs.emplace_back(i, i + 1);
  std::vector<Column> splits;  // from the outermost in
  for (int level = part.columns - 1; level >= 1; --level) {
    const Column& column = chunk.columns[part.first + level];
    PENSTOCK_ASSIGN_OR_RETURN(const Integers all,
                              ReadIntegers(column, row, "row_splits"));
    int64_t items = values.rank() > 0 ? values.RowShape(row)[0] : 0;
    if (level > 1) {
      PENSTOCK_ASSIGN_OR_RETURN(
          const Integers below,
          ReadIntegers(chunk.columns[part.first + level - 1], row,
                       "row_splits"));
      items = static_cast<int64_t>(below.size()) - 1;
    }
    PENSTOCK_RETURN_IF_ERROR(CheckSplits(all, items));
    if (level < part.columns - 1) {
      std::vector<Integers> rows;
      for (const auto& [begin, end] : runs) {
        Integers& mine = rows.emplace_back();
        for (int64_t i = begin; i <= end; ++i) {
          mine.push_back(all[i] - all[begin]);
        }
      }
      splits.push_back(ColumnOfVectors(rows, column.dtype()));
    }
    for (auto& [begin, end] : runs) {
      begin = all[begin];
      end = all[end];
    }
  }
  out.push_back(Runs(values, row, runs));
  out.insert(out.end(), splits.rbegin(), splits.rend());
  return absl::OkStatus();
}

absl::Status SplitSparse(const Part& part, const Chunk& chunk, int64_t row,
                         int64_t size, std::vector<Column>& out) {
  PENSTOCK_ASSIGN_OR_RETURN(const SparseRow sparse,
                            ReadSparse(part, chunk, row));
  const int64_t rank = sparse.rank - 1;
  std::vector<Integers> indices(size);
  std::vector<std::pair<int64_t, int64_t>> runs(size);
  int64_t next = 0;
  for (int64_t i = 0; i < size; ++i) {
    const int64_t begin = next;
    for (; next < sparse.items && sparse.indices[next * sparse.rank] == i;
         ++next) {
      const int64_t* index = sparse.indices + next * sparse.rank;
      indices[i].insert(indices[i].end(), index + 1, index + sparse.rank);
    }
    runs[i] = {begin, next};
  }
  if (next < sparse.items) {
    return absl::InvalidArgumentError(
        "the indices of a sparse tensor must ascend, and be inside its "
        "dense_shape; got others");
  }
  // As vectors, then as tables of `rank` columns.
  const Column flat = ColumnOfVectors(indices, DType::kInt64);
  Buffer dims = Buffer::Allocate(size * 2 * sizeof(int64_t));
  for (int64_t i = 0; i < size; ++i) {
    dims.MutableAs<int64_t>()[2 * i] = runs[i].second - runs[i].first;
    dims.MutableAs<int64_t>()[2 * i + 1] = rank;
  }
  out.push_back(Column::Ragged(DType::kInt64, 2, size, flat.values(),
                               std::move(dims), flat.pins()));
  out.push_back(Runs(chunk.columns[part.first + 1], row, runs));
  Integers shapes;
  for (int64_t i = 0; i < size; ++i) {
    shapes.insert(shapes.end(), sparse.shape + 1, sparse.shape + sparse.rank);
  }
  out.push_back(WriteVector(shapes, DType::kInt64).Reshape(size, {rank}));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Chunk> StackRows(absl::Span<const Part> parts,
                                const Chunk& rows) {
  Chunk out;
  out.rows = 1;
  for (const Part& part : parts) {
    switch (part.kind) {
      case Part::Kind::kTensor: {
        PENSTOCK_ASSIGN_OR_RETURN(Column stacked,
                                  Stack(rows.columns[part.first], rows.rows));
        out.columns.push_back(std::move(stacked));
        break;
      }
      case Part::Kind::kRagged:
        PENSTOCK_RETURN_IF_ERROR(StackRaggedPart(part, rows, out.columns));
        break;
      case Part::Kind::kSparse:
        PENSTOCK_RETURN_IF_ERROR(StackSparsePart(part, rows, out.columns));
        break;
      case Part::Kind::kRaggedRow: {
        PENSTOCK_ASSIGN_OR_RETURN(
            const std::vector<Column> columns,
            StackRagged(rows.columns[part.first], 1, part.splits));
        out.columns.insert(out.columns.end(), columns.begin(), columns.end());
        break;
      }
    }
  }
  return out;
}

absl::StatusOr<int64_t> BatchSizeOf(absl::Span<const Part> parts,
                                    const Chunk& chunk, int64_t row) {
  std::optional<int64_t> rows;
  for (const Part& part : parts) {
    const Column& last = chunk.columns[part.first + part.columns - 1];
    int64_t size = 0;
    if (last.rank() == 0) {
      return absl::InvalidArgumentError(
          "unbatch needs components of rank 1 or more; got a scalar");
    }
    switch (part.kind) {
      case Part::Kind::kTensor:
      case Part::Kind::kRaggedRow:
        size = last.RowShape(row)[0];
        break;
      case Part::Kind::kRagged:
        size = last.RowShape(row)[0] - 1;
        break;
      case Part::Kind::kSparse: {
        PENSTOCK_ASSIGN_OR_RETURN(const SparseRow sparse,
                                  ReadSparse(part, chunk, row));
        size = sparse.rank > 0 ? sparse.shape[0] : -1;
        break;
      }
    }
    if (size < 0) {
      return absl::InvalidArgumentError(
          "unbatch needs ragged and sparse values of at least one dimension; "
          "got none");
    }
    if (rows.has_value() && size != *rows) {
      return absl::InvalidArgumentError(
          absl::StrCat("unbatch needs one first dimension in all components; "
                       "got ",
                       *rows, " and ", size));
    }
    rows = size;
  }
  return rows.value_or(0);
}

absl::StatusOr<Chunk> SplitRow(absl::Span<const Part> parts, const Chunk& chunk,
                               int64_t row, int64_t size) {
  Chunk out;
  out.rows = size;
  for (const Part& part : parts) {
    switch (part.kind) {
      case Part::Kind::kTensor:
      case Part::Kind::kRaggedRow: {
        const Column whole = RowOf(chunk.columns[part.first], row);
        out.columns.push_back(whole.Reshape(
            size, Shape(whole.shape().begin() + 1, whole.shape().end())));
        break;
      }
      case Part::Kind::kRagged:
        PENSTOCK_RETURN_IF_ERROR(
            SplitRagged(part, chunk, row, size, out.columns));
        break;
      case Part::Kind::kSparse:
        // A shape may be far larger than what is in it.
        if (size > (int64_t{1} << 24)) {
          return absl::InvalidArgumentError(absl::StrCat(
              "unbatch takes sparse tensors of at most 2^24 rows; got ", size));
        }
        PENSTOCK_RETURN_IF_ERROR(
            SplitSparse(part, chunk, row, size, out.columns));
        break;
    }
  }
  return out;
}

absl::StatusOr<std::vector<Column>> StackRagged(const Column& rows, int levels,
                                                DType splits) {
  if (rows.rank() < levels) {
    return absl::InvalidArgumentError(
        absl::StrCat("elements of a ragged batch must have at least ", levels,
                     " dimensions; got ", rows.rank()));
  }
  // Values first: the dimensions that are ragged become one.
  const int rank = rows.rank() - levels + 1;
  Buffer data = Buffer::Allocate(rows.rows() * sizeof(void*));
  Buffer dims = Buffer::Allocate(rows.rows() * rank * sizeof(int64_t));
  int64_t* dim = dims.MutableAs<int64_t>();
  std::vector<Integers> lists(levels, Integers{0});
  for (int64_t row = 0; row < rows.rows(); ++row) {
    const absl::Span<const int64_t> shape = rows.RowShape(row);
    data.MutableAs<const std::byte*>()[row] = rows.RowData(row);
    int64_t items = 1;
    for (int level = 0; level < levels; ++level) {
      for (int64_t i = 0; i < items; ++i) {
        lists[level].push_back(lists[level].back() + shape[level]);
      }
      items *= shape[level];
    }
    *dim++ = items;
    dim = std::copy(shape.begin() + levels, shape.end(), dim);
  }
  std::vector<Column> columns;
  PENSTOCK_ASSIGN_OR_RETURN(
      columns.emplace_back(),
      Concatenated(Column::Ragged(rows.dtype(), rank, rows.rows(),
                                  std::move(data), std::move(dims),
                                  AllPins(rows))));
  for (int level = levels - 1; level >= 0; --level) {
    if (splits == DType::kInt32 && lists[level].back() > INT32_MAX) {
      return absl::InvalidArgumentError(
          "row_splits of dtype int32 must be less than 2^31; got more\n  "
          "Use row_splits_dtype=ps.int64.");
    }
    columns.push_back(WriteVector(lists[level], splits));
  }
  return columns;
}

absl::StatusOr<std::vector<Column>> StackSparse(const Column& rows,
                                                const PartialShape& shape) {
  const int rank = rows.rank();
  if (rank != shape.rank()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "elements of a sparse batch must have the rank of row_shape ",
        shape.ToString(), "; got ", rank, " dimensions"));
  }
  Integers dense = {rows.rows()};
  for (int d = 0; d < rank; ++d) dense.push_back(shape.dims()[d].value_or(0));
  Integers indices;
  int64_t items = 0;
  for (int64_t row = 0; row < rows.rows(); ++row) {
    const absl::Span<const int64_t> dims = rows.RowShape(row);
    for (int d = 0; d < rank; ++d) {
      if (dims[d] <= dense[d + 1]) continue;
      if (shape.dims()[d].has_value()) {
        return absl::DataLossError(
            absl::StrCat("elements of a sparse batch must fit row_shape ",
                         shape.ToString(), "; got shape ", ToString(dims)));
      }
      dense[d + 1] = dims[d];
    }
    const int64_t count = rows.RowItems(row);
    for (int64_t i = 0; i < count; ++i) {
      indices.push_back(row);
      const size_t at = indices.size();
      indices.resize(at + rank);
      int64_t rest = i;
      for (int d = rank - 1; d >= 0; --d) {
        indices[at + d] = rest % dims[d];
        rest /= dims[d];
      }
    }
    items += count;
  }
  // The values, as vectors one after another.
  Buffer data = Buffer::Allocate(rows.rows() * sizeof(void*));
  Buffer sizes = Buffer::Allocate(rows.rows() * sizeof(int64_t));
  for (int64_t row = 0; row < rows.rows(); ++row) {
    data.MutableAs<const std::byte*>()[row] = rows.RowData(row);
    sizes.MutableAs<int64_t>()[row] = rows.RowItems(row);
  }
  PENSTOCK_ASSIGN_OR_RETURN(
      Column values,
      Concatenated(Column::Ragged(rows.dtype(), 1, rows.rows(), std::move(data),
                                  std::move(sizes), AllPins(rows))));
  return std::vector<Column>{
      WriteIntegers(indices, DType::kInt64, {items, rank + 1}),
      std::move(values), WriteVector(dense, DType::kInt64)};
}

}  // namespace penstock

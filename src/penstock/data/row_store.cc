#include "penstock/data/row_store.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace penstock {

// One column's cells.
class RowStore::Cells {
 public:
  virtual ~Cells() = default;
  virtual void Reserve(int64_t size) = 0;
  virtual void Resize(int64_t size) = 0;
  virtual void Put(int64_t place, const Column& column, int64_t row) = 0;
  virtual void Move(int64_t from, int64_t to) = 0;
  virtual int64_t num_bytes() const = 0;

  // Between Begin(n) and End(), each Give() appends a cell to the output.
  virtual void Begin(int64_t rows) = 0;
  virtual void Give(int64_t place) = 0;
  virtual Column End() = 0;

  // Give() and Put() for each place in turn.
  virtual void Swap(absl::Span<const int64_t> places, const Column& column,
                    int64_t begin) {
    for (size_t i = 0; i < places.size(); ++i) {
      Give(places[i]);
      Put(places[i], column, begin + static_cast<int64_t>(i));
    }
  }
};

// Cells of one known size, in one piece of memory.
class RowStore::FixedCells final : public RowStore::Cells {
 public:
  FixedCells(DType dtype, Shape shape)
      : dtype_(dtype),
        shape_(std::move(shape)),
        cell_bytes_(NumItems(shape_) * ItemSize(dtype)) {}

  void Reserve(int64_t size) override { cells_.reserve(size * cell_bytes_); }
  void Resize(int64_t size) override { cells_.resize(size * cell_bytes_); }
  void Put(int64_t place, const Column& column, int64_t row) override {
    // Meaningless values of error rows may have another shape.
    const size_t bytes =
        std::min<size_t>(cell_bytes_, column.RowItems(row) * ItemSize(dtype_));
    if (bytes > 0) std::memcpy(Cell(place), column.RowData(row), bytes);
  }
  void Move(int64_t from, int64_t to) override {
    if (cell_bytes_ > 0 && from != to) {
      std::memcpy(Cell(to), Cell(from), cell_bytes_);
    }
  }
  int64_t num_bytes() const override {
    return static_cast<int64_t>(cells_.size());
  }

  void Begin(int64_t rows) override {
    rows_ = rows;
    out_ = Buffer::Allocate(rows * cell_bytes_);
    next_ = out_.MutableAs<std::byte>();
  }
  void Give(int64_t place) override {
    if (cell_bytes_ > 0) std::memcpy(next_, Cell(place), cell_bytes_);
    next_ += cell_bytes_;
  }
  Column End() override {
    return Column::Dense(dtype_, shape_, rows_, std::move(out_));
  }

  void Swap(absl::Span<const int64_t> places, const Column& column,
            int64_t begin) override {
    const bool fits = column.is_dense() && column.shape() == shape_;
    if (fits && cell_bytes_ == 8)
      return SwapWords<uint64_t>(places, column, begin);
    if (fits && cell_bytes_ == 4)
      return SwapWords<uint32_t>(places, column, begin);
    Cells::Swap(places, column, begin);
  }

 private:
  std::byte* Cell(int64_t place) { return cells_.data() + place * cell_bytes_; }

  template <typename Word>
  void SwapWords(absl::Span<const int64_t> places, const Column& column,
                 int64_t begin) {
    Word* cells = reinterpret_cast<Word*>(cells_.data());
    const Word* in = column.Row<Word>(begin);
    Word* out = reinterpret_cast<Word*>(next_);
    for (size_t i = 0; i < places.size(); ++i) {
      out[i] = cells[places[i]];
      cells[places[i]] = in[i];
    }
    next_ += places.size() * sizeof(Word);
  }

  const DType dtype_;
  const Shape shape_;
  const size_t cell_bytes_;
  std::vector<std::byte> cells_;
  int64_t rows_ = 0;
  Buffer out_;
  std::byte* next_ = nullptr;
};

// Cells of any size: each has its own bytes. Strings are kept as their sizes
// and then their characters.
class RowStore::LooseCells final : public RowStore::Cells {
 public:
  explicit LooseCells(DType dtype) : dtype_(dtype) {}

  void Reserve(int64_t size) override { cells_.reserve(size); }
  void Resize(int64_t size) override { cells_.resize(size); }

  void Put(int64_t place, const Column& column, int64_t row) override {
    Cell& cell = cells_[place];
    num_bytes_ -= static_cast<int64_t>(cell.bytes.size());
    const absl::Span<const int64_t> dims = column.RowShape(row);
    cell.dims.assign(dims.begin(), dims.end());
    cell.bytes.clear();
    const int64_t items = column.RowItems(row);
    if (dtype_ != DType::kString) {
      cell.bytes.assign(reinterpret_cast<const char*>(column.RowData(row)),
                        items * ItemSize(dtype_));
    } else {
      const StringRef* refs = column.Row<StringRef>(row);
      if (items == 1) {
        cell.bytes.assign(refs[0].data, refs[0].size);
      } else {
        for (int64_t i = 0; i < items; ++i) {
          cell.bytes.append(reinterpret_cast<const char*>(&refs[i].size),
                            sizeof(uint64_t));
        }
        for (int64_t i = 0; i < items; ++i) {
          cell.bytes.append(refs[i].data, refs[i].size);
        }
      }
    }
    num_bytes_ += static_cast<int64_t>(cell.bytes.size());
  }

  void Move(int64_t from, int64_t to) override {
    if (from == to) return;
    num_bytes_ -= static_cast<int64_t>(cells_[to].bytes.size());
    cells_[to] = std::move(cells_[from]);
    cells_[from] = Cell();
  }

  int64_t num_bytes() const override {
    return num_bytes_ + static_cast<int64_t>(cells_.size() * sizeof(Cell));
  }

  void Begin(int64_t rows) override {
    given_.clear();
    given_.reserve(rows);
  }

  // The cell is about to be replaced or moved over, so it is given away whole.
  void Give(int64_t place) override {
    Cell& cell = cells_[place];
    num_bytes_ -= static_cast<int64_t>(cell.bytes.size());
    given_.push_back(std::move(cell));
    cell = Cell();
  }

  Column End() override {
    size_t bytes = 0;
    int64_t items = 0;
    bool is_dense = true;
    for (const Cell& cell : given_) {
      bytes += cell.bytes.size() + 8;
      items += NumItems(cell.dims);
      is_dense &= cell.dims == given_.front().dims;
    }
    Buffer data = Buffer::Allocate(bytes);
    Buffer refs = Buffer::Allocate(
        dtype_ == DType::kString ? items * sizeof(StringRef) : 0);
    const auto rows = static_cast<int64_t>(given_.size());
    const size_t rank = given_.empty() ? 0 : given_.front().dims.size();
    Buffer pointers = Buffer::Allocate(rows * sizeof(void*));
    Buffer dims = Buffer::Allocate(rows * rank * sizeof(int64_t));
    char* to = data.MutableAs<char>();
    StringRef* ref = refs.MutableAs<StringRef>();
    int64_t* dim = dims.MutableAs<int64_t>();
    for (int64_t row = 0; row < rows; ++row) {
      const Cell& cell = given_[row];
      const int64_t count = NumItems(cell.dims);
      const void* start = to;
      if (dtype_ == DType::kString) {
        start = ref;
        to = WriteStrings(cell, count, ref, to);
        ref += count;
      } else {
        std::memcpy(to, cell.bytes.data(), cell.bytes.size());
        to += cell.bytes.size();
        if (!is_dense) to = AlignUp(data, to);
      }
      pointers.MutableAs<const void*>()[row] = start;
      dim =
          std::copy_n(cell.dims.begin(), std::min(rank, cell.dims.size()), dim);
    }
    const Shape shape = given_.empty() ? Shape{} : given_.front().dims;
    given_.clear();
    if (is_dense && dtype_ == DType::kString) {
      return Column::Dense(dtype_, shape, rows, std::move(refs),
                           Pins{data.owner()});
    }
    if (is_dense) return Column::Dense(dtype_, shape, rows, std::move(data));
    return Column::Ragged(dtype_, static_cast<int>(rank), rows,
                          std::move(pointers), std::move(dims),
                          Pins{data.owner(), refs.owner()});
  }

 private:
  struct Cell {
    Shape dims;
    std::string bytes;
  };

  // The next multiple of 8: rows must be aligned for their items.
  static char* AlignUp(const Buffer& base, char* at) {
    const auto offset =
        static_cast<size_t>(at - reinterpret_cast<const char*>(base.data()));
    return at + ((8 - offset % 8) % 8);
  }

  static char* WriteStrings(const Cell& cell, int64_t count, StringRef* refs,
                            char* to) {
    const char* from = cell.bytes.data();
    if (count == 1) {
      std::memcpy(to, from, cell.bytes.size());
      refs[0] = StringRef{to, cell.bytes.size()};
      return to + cell.bytes.size();
    }
    const char* characters = from + count * sizeof(uint64_t);
    for (int64_t i = 0; i < count; ++i) {
      uint64_t size;
      std::memcpy(&size, from + i * sizeof(uint64_t), sizeof(size));
      if (size > 0) std::memcpy(to, characters, size);
      refs[i] = StringRef{to, size};
      to += size;
      characters += size;
    }
    return to;
  }

  const DType dtype_;
  std::vector<Cell> cells_;
  std::vector<Cell> given_;
  int64_t num_bytes_ = 0;
};

RowStore::RowStore(std::vector<TensorSpec> leaves, bool has_lineage)
    : leaves_(std::move(leaves)), has_lineage_(has_lineage) {
  for (const TensorSpec& leaf : leaves_) {
    if (leaf.dtype != DType::kString && leaf.shape.is_fully_known()) {
      columns_.push_back(
          std::make_unique<FixedCells>(leaf.dtype, leaf.shape.ToShape()));
    } else {
      columns_.push_back(std::make_unique<LooseCells>(leaf.dtype));
    }
  }
}

RowStore::~RowStore() = default;

void RowStore::Reserve(int64_t size) {
  for (auto& column : columns_) column->Reserve(size);
  if (has_lineage_) lineage_.reserve(size);
}

void RowStore::Resize(int64_t size) {
  size_ = size;
  for (auto& column : columns_) column->Resize(size);
  if (has_lineage_) lineage_.resize(size);
}

void RowStore::Put(int64_t place, const Chunk& chunk, int64_t row) {
  for (size_t c = 0; c < columns_.size(); ++c) {
    columns_[c]->Put(place, chunk.columns[c], row);
  }
  if (has_lineage_) lineage_[place] = chunk.lineage.As<uint64_t>()[row];
  if (const absl::Status* error = ErrorAt(chunk, row)) {
    errors_[place] = *error;
  } else if (!errors_.empty()) {
    errors_.erase(place);
  }
}

void RowStore::Append(const Chunk& chunk, int64_t begin, int64_t count) {
  const int64_t first = size_;
  Resize(size_ + count);
  for (int64_t i = 0; i < count; ++i) Put(first + i, chunk, begin + i);
}

int64_t RowStore::num_bytes() const {
  int64_t bytes = 0;
  for (const auto& column : columns_) bytes += column->num_bytes();
  return bytes;
}

Chunk RowStore::Swap(absl::Span<const int64_t> places, const Chunk& chunk,
                     int64_t begin) {
  Chunk out;
  out.rows = static_cast<int64_t>(places.size());
  for (size_t c = 0; c < columns_.size(); ++c) {
    columns_[c]->Begin(out.rows);
    columns_[c]->Swap(places, chunk.columns[c], begin);
    out.columns.push_back(columns_[c]->End());
  }
  if (has_lineage_) {
    out.lineage = Buffer::Allocate(places.size() * sizeof(uint64_t));
    for (size_t i = 0; i < places.size(); ++i) {
      out.lineage.MutableAs<uint64_t>()[i] = std::exchange(
          lineage_[places[i]], chunk.lineage.As<uint64_t>()[begin + i]);
    }
  }
  if (!errors_.empty() || !chunk.errors.empty()) {
    for (size_t i = 0; i < places.size(); ++i) {
      auto held = errors_.find(places[i]);
      if (held != errors_.end()) {
        out.errors.push_back({static_cast<int64_t>(i), held->second});
        errors_.erase(held);
      }
      if (const absl::Status* error =
              ErrorAt(chunk, begin + static_cast<int64_t>(i))) {
        errors_[places[i]] = *error;
      }
    }
  }
  return out;
}

Chunk RowStore::Remove(absl::Span<const int64_t> places) {
  Chunk out;
  out.rows = static_cast<int64_t>(places.size());
  for (auto& column : columns_) {
    column->Begin(out.rows);
    int64_t last = size_ - 1;
    for (int64_t place : places) {
      column->Give(place);
      column->Move(last--, place);
    }
    out.columns.push_back(column->End());
  }
  if (has_lineage_) {
    out.lineage = Buffer::Allocate(places.size() * sizeof(uint64_t));
  }
  int64_t last = size_ - 1;
  for (size_t i = 0; i < places.size(); ++i, --last) {
    if (has_lineage_) {
      out.lineage.MutableAs<uint64_t>()[i] = lineage_[places[i]];
      lineage_[places[i]] = lineage_[last];
    }
    if (errors_.empty()) continue;
    auto held = errors_.find(places[i]);
    if (held != errors_.end()) {
      out.errors.push_back({static_cast<int64_t>(i), held->second});
      errors_.erase(held);
    }
    auto moved = errors_.find(last);
    if (moved != errors_.end()) {
      errors_[places[i]] = moved->second;
      errors_.erase(moved);
    }
  }
  Resize(size_ - out.rows);
  return out;
}

}  // namespace penstock

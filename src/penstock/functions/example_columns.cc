#include "penstock/functions/example_columns.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/functions/promote.h"
#include "penstock/functions/rows.h"

namespace penstock::functions {
namespace {

using Kind = FeatureSpec::Kind;

absl::Status Damaged(const std::string& key) {
  return absl::InvalidArgumentError(
      absl::StrCat("feature \"", key,
                   "\" must be a serialized Feature; found damaged bytes"));
}

absl::Status WrongList(const std::string& key, ListKind wanted,
                       ListKind found) {
  return absl::InvalidArgumentError(
      absl::StrCat("feature \"", key, "\" must be a list of ",
                   Text(Name(wanted)), "; found ", Text(Name(found))));
}

}  // namespace

std::byte* GrowingItems::Room(int64_t items) {
  const int64_t needed = size_ + items;
  if (needed > capacity_) {
    capacity_ = std::max<int64_t>({64, needed, 2 * capacity_});
    Buffer larger = Buffer::Allocate(capacity_ * item_size_);
    if (size_ > 0) {
      std::memcpy(larger.MutableAs<std::byte>(), buffer_.data(),
                  size_ * item_size_);
    }
    buffer_ = std::move(larger);
  }
  return buffer_.MutableAs<std::byte>() + size_ * item_size_;
}

ExampleRows RowsOfExamples(const Arg& serialized, bool is_batch,
                           const EvalContext& context) {
  const int64_t rows = ResultRows({&serialized, 1}, context);
  ExampleRows result;
  result.is_batch = is_batch;
  result.begins.resize(rows + 1, 0);
  for (int64_t row = 0; row < rows; ++row) {
    result.begins[row + 1] =
        result.begins[row] +
        (is_batch ? serialized.column->RowItems(row) : int64_t{1});
  }
  return result;
}

Column CutRows(DType dtype, Buffer values, absl::Span<const int64_t> begins,
               const Shape& tail, Pins pins) {
  const auto rows = static_cast<int64_t>(begins.size()) - 1;
  bool is_even = rows > 0;
  for (int64_t row = 0; row < rows && is_even; ++row) {
    is_even = begins[row + 1] - begins[row] == begins[1] - begins[0];
  }
  if (is_even) {
    Shape shape = tail;
    shape.insert(shape.begin(), begins[1] - begins[0]);
    return Column::Dense(dtype, std::move(shape), rows, std::move(values),
                         std::move(pins));
  }
  const int rank = static_cast<int>(tail.size()) + 1;
  const size_t step = NumItems(tail) * ItemSize(dtype);
  Buffer pointers = Buffer::Allocate(rows * sizeof(void*));
  Buffer dims = Buffer::Allocate(rows * rank * sizeof(int64_t));
  int64_t* dim = dims.MutableAs<int64_t>();
  for (int64_t row = 0; row < rows; ++row) {
    pointers.MutableAs<const std::byte*>()[row] =
        values.data() + begins[row] * step;
    *dim++ = begins[row + 1] - begins[row];
    dim = std::copy(tail.begin(), tail.end(), dim);
  }
  pins.push_back(values.owner());
  return Column::Ragged(dtype, rank, rows, std::move(pointers), std::move(dims),
                        std::move(pins));
}

int FeatureFinder::PlaceOf(std::string_view key) {
  const int place = keys_.Find(key);
  if (position_ < order_.size()) {
    order_[position_] = place;
  } else if (order_.size() < kMaxOrder) {
    order_.push_back(place);
  }
  return place;
}

bool FeatureFinder::Add(Wire entries) {
  for (; !entries.is_done(); ++position_) {
    Wire entry;
    if (*entries.at++ != DelimitedTag(1) || !ReadDelimited(entries, entry)) {
      return false;
    }
    if (position_ < order_.size() && order_[position_] != KeyTable::kAbsent &&
        static_cast<size_t>(entries.end - entry.at) >= KeyTable::kMaxHead) {
      // What was expected, with a value of less than 128 bytes to its end.
      const int place = order_[position_];
      const uint8_t* at = entry.at;
      if (keys_.SkipHead(place, at) && at < entry.end && *at < 0x80 &&
          at + 1 + *at == entry.end) {
        if (*at != 0 || found_[place].at == nullptr) {
          found_[place] = {at + 1, entry.end};
        }
        continue;
      }
    }
    std::string_view key;
    Wire value;
    if (!ReadEntry(entry, key, value)) return false;
    const int place = PlaceOf(key);
    if (place != KeyTable::kAbsent &&
        (!value.is_done() || found_[place].at == nullptr)) {
      found_[place] = value;
    }
  }
  return true;
}

FeatureWriter::Way FeatureWriter::WayOf(const FeatureSpec& spec) {
  if (spec.kind != Kind::kFixed || spec.items != 1) return Way::kOther;
  switch (spec.list) {
    case ListKind::kFloat:
      return Way::kOneFloat;
    case ListKind::kInt64:
      return Way::kOneInt64;
    case ListKind::kBytes:
      return Way::kOneString;
    case ListKind::kNone:
      break;
  }
  return Way::kOther;
}

FeatureWriter::FeatureWriter(const FeatureSpec& spec, const KeyTable& keys,
                             const ExampleRows& rows)
    : way_(WayOf(spec)),
      place_(spec.place),
      spec_(spec),
      keys_(keys),
      rows_(rows),
      values_(spec.item_size()),
      indices_(sizeof(int64_t)) {
  if (spec.kind == Kind::kFixed) {
    row_bytes_ = spec.items * static_cast<int64_t>(spec.item_size());
    fixed_ = Buffer::Allocate(rows.examples() * row_bytes_);
    next_ = fixed_.MutableAs<std::byte>();
  } else {
    ends_.reserve(rows.examples() + 1);
    ends_.push_back(0);
  }
}

absl::Status FeatureWriter::Missing() const {
  return absl::InvalidArgumentError(absl::StrCat(
      "feature \"", keys_.key(spec_.place), "\" (", Text(Name(spec_.dtype)),
      ") must be there; found none. Give it a default_value if it may be "
      "missing."));
}

// What the short ways did not take.
absl::Status FeatureWriter::AddOther(const FeatureFinder& finder) {
  const Wire& feature = finder.found(spec_.place);
  const std::string& key = keys_.key(spec_.place);
  if (spec_.kind == Kind::kSparse) return AddSparse(finder);
  if (spec_.kind != Kind::kFixed) {
    const int64_t before = values_.size();
    PENSTOCK_RETURN_IF_ERROR(
        AddList(feature, spec_.place, spec_.list, values_));
    const int64_t count = values_.size() - before;
    if (spec_.kind == Kind::kSequence) {
      if (count % spec_.items != 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            "feature \"", key, "\" must have a multiple of ", spec_.items,
            " values, shape ", ToString(spec_.shape), " each; found ", count));
      }
      if (count == 0 && feature.is_done() && !spec_.may_miss) return Missing();
    }
    ends_.push_back(values_.size());
    return absl::OkStatus();
  }
  ListKind kind = ListKind::kNone;
  Wire list;
  if (feature.at != nullptr && !OpenFeature(feature, kind, list)) {
    return Damaged(key);
  }
  if (kind == ListKind::kNone) {
    if (!spec_.has_default) return Missing();
    std::memcpy(next_, spec_.fallback.RowData(0), row_bytes_);
    next_ += row_bytes_;
    return absl::OkStatus();
  }
  if (kind != spec_.list) return WrongList(key, spec_.list, kind);
  int64_t count;
  if (!ReadList(kind, list, next_, spec_.items, count)) return Damaged(key);
  if (count == spec_.items) {
    next_ += row_bytes_;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "feature \"", key, "\" must have ", spec_.items, " values, shape ",
      ToString(spec_.shape), "; found ", count));
}

absl::Status FeatureWriter::AddList(const Wire& feature, int place,
                                    ListKind wanted, GrowingItems& items) {
  const std::string& key = keys_.key(place);
  ListKind kind = ListKind::kNone;
  Wire list;
  if (feature.at != nullptr && !OpenFeature(feature, kind, list)) {
    return Damaged(key);
  }
  if (kind == ListKind::kNone) return absl::OkStatus();
  if (kind != wanted) return WrongList(key, wanted, kind);
  const int64_t room = MostValues(kind, list);
  int64_t count;
  if (!ReadList(kind, list, items.Room(room), room, count)) {
    return Damaged(key);
  }
  items.Commit(count);
  return absl::OkStatus();
}

absl::Status FeatureWriter::AddSparse(const FeatureFinder& finder) {
  const int64_t begin = values_.size();
  PENSTOCK_RETURN_IF_ERROR(
      AddList(finder.found(spec_.place), spec_.place, spec_.list, values_));
  PENSTOCK_RETURN_IF_ERROR(AddList(finder.found(spec_.index_place),
                                   spec_.index_place, ListKind::kInt64,
                                   indices_));
  if (values_.size() != indices_.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "feature \"", keys_.key(spec_.index_place),
        "\" must have an index for each value of \"", keys_.key(spec_.place),
        "\", which has ", values_.size() - begin, "; found ",
        indices_.size() - begin));
  }
  bool is_sorted = true;
  const int64_t* indices = indices_.As<int64_t>();
  for (int64_t i = begin; i < indices_.size(); ++i) {
    if (indices[i] < 0 || indices[i] >= spec_.size) {
      return absl::InvalidArgumentError(
          absl::StrCat("feature \"", keys_.key(spec_.index_place),
                       "\" must have indices from 0 to below ", spec_.size,
                       "; found ", indices[i]));
    }
    is_sorted = is_sorted && (i == begin || indices[i - 1] <= indices[i]);
  }
  if (!is_sorted) SortSparse(begin);
  ends_.push_back(values_.size());
  return absl::OkStatus();
}

void FeatureWriter::SortSparse(int64_t begin) {
  const int64_t count = values_.size() - begin;
  const size_t item_size = spec_.item_size();
  int64_t* indices = indices_.As<int64_t>() + begin;
  std::byte* values = values_.As<std::byte>() + begin * item_size;
  std::vector<int64_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return indices[a] < indices[b];
  });
  const std::vector<int64_t> old_indices(indices, indices + count);
  const std::vector<std::byte> old(values, values + count * item_size);
  for (int64_t i = 0; i < count; ++i) {
    indices[i] = old_indices[order[i]];
    std::memcpy(values + i * item_size, &old[order[i] * item_size], item_size);
  }
}

void FeatureWriter::FailRow(int64_t begin, int64_t end) {
  if (spec_.kind == Kind::kFixed) {
    std::byte* base = fixed_.MutableAs<std::byte>();
    std::memset(base + begin * row_bytes_, 0, (end - begin) * row_bytes_);
    next_ = base + end * row_bytes_;
    return;
  }
  const int64_t kept = ends_[begin];
  values_.Truncate(kept);
  if (spec_.kind == Kind::kSparse) indices_.Truncate(kept);
  ends_.resize(begin + 1);
  ends_.resize(end + 1, kept);
}

void FeatureWriter::Finish(const Pins& all_pins,
                           std::vector<Column>& columns) && {
  const Pins pins = spec_.dtype == DType::kString ? all_pins : Pins();
  switch (spec_.kind) {
    case Kind::kFixed: {
      Pins own = pins;
      if (spec_.has_default && spec_.dtype == DType::kString) {
        AddPins(own, spec_.fallback.pins());
      }
      columns.push_back(
          rows_.is_batch ? CutRows(spec_.dtype, std::move(fixed_), rows_.begins,
                                   spec_.shape, std::move(own))
                         : Column::Dense(spec_.dtype, spec_.shape, rows_.rows(),
                                         std::move(fixed_), std::move(own)));
      return;
    }
    case Kind::kSequence:
      if (rows_.is_batch) {
        columns.push_back(Padded(pins));
        return;
      }
      for (int64_t& end : ends_) end /= spec_.items;
      columns.push_back(CutRows(spec_.dtype, std::move(values_).Take(), ends_,
                                spec_.shape, pins));
      return;
    case Kind::kVar:
    case Kind::kSparse:
      FinishSparse(pins, columns);
      return;
    case Kind::kRagged:
      FinishRagged(pins, columns);
      return;
  }
}

std::vector<int64_t> FeatureWriter::RowBegins() const {
  std::vector<int64_t> begins(rows_.begins.size());
  for (size_t i = 0; i < begins.size(); ++i) {
    begins[i] = ends_[rows_.begins[i]];
  }
  return begins;
}

// Sequences of a batch have one length: the longest, filled up with the
// default.
Column FeatureWriter::Padded(const Pins& pins) {
  const size_t item_size = spec_.item_size();
  RowsWriter writer(spec_.dtype, static_cast<int>(spec_.shape.size()) + 2,
                    rows_.rows());
  for (int64_t row = 0; row < rows_.rows(); ++row) {
    const int64_t begin = rows_.begins[row];
    const int64_t end = rows_.begins[row + 1];
    int64_t longest = 0;
    for (int64_t i = begin; i < end; ++i) {
      longest = std::max(longest, CountOf(i) / spec_.items);
    }
    int64_t* dims = writer.dims(row);
    dims[0] = end - begin;
    dims[1] = longest;
    std::copy(spec_.shape.begin(), spec_.shape.end(), dims + 2);
  }
  writer.Allocate();
  Pins own = pins;
  if (spec_.has_default) AddPins(own, spec_.fallback.pins());
  const std::byte* pad =
      spec_.has_default ? spec_.fallback.RowData(0) : kZeroItem;
  const std::byte* values = values_.As<std::byte>();
  for (int64_t row = 0; row < rows_.rows(); ++row) {
    std::byte* out = writer.RowData(row);
    const int64_t items = writer.dims(row)[1] * spec_.items;
    for (int64_t i = rows_.begins[row]; i < rows_.begins[row + 1]; ++i) {
      const int64_t count = CountOf(i);
      if (count > 0) {
        std::memcpy(out, values + ends_[i] * item_size, count * item_size);
      }
      for (int64_t at = count; at < items; ++at) {
        std::memcpy(out + at * item_size, pad, item_size);
      }
      out += items * item_size;
    }
  }
  return std::move(writer).Finish(std::move(own));
}

void FeatureWriter::FinishSparse(const Pins& pins,
                                 std::vector<Column>& columns) {
  const int64_t rank = rows_.is_batch ? 2 : 1;
  const std::vector<int64_t> begins = RowBegins();
  Buffer shapes = Buffer::Allocate(rows_.rows() * rank * sizeof(int64_t));
  int64_t* shape = shapes.MutableAs<int64_t>();
  Buffer indices = Buffer::Allocate(values_.size() * rank * sizeof(int64_t));
  int64_t* index = indices.MutableAs<int64_t>();
  const int64_t* own = indices_.As<int64_t>();
  for (int64_t row = 0; row < rows_.rows(); ++row) {
    int64_t longest = 0;
    for (int64_t i = rows_.begins[row]; i < rows_.begins[row + 1]; ++i) {
      const int64_t count = CountOf(i);
      longest = std::max(longest, count);
      for (int64_t at = 0; at < count; ++at) {
        if (rows_.is_batch) *index++ = i - rows_.begins[row];
        *index++ = spec_.kind == Kind::kSparse ? own[ends_[i] + at] : at;
      }
    }
    if (rows_.is_batch) *shape++ = rows_.begins[row + 1] - rows_.begins[row];
    *shape++ = spec_.kind == Kind::kSparse ? spec_.size : longest;
  }
  columns.push_back(
      CutRows(DType::kInt64, std::move(indices), begins, Shape{rank}, {}));
  columns.push_back(
      CutRows(spec_.dtype, std::move(values_).Take(), begins, {}, pins));
  columns.push_back(Column::Dense(DType::kInt64, Shape{rank}, rows_.rows(),
                                  std::move(shapes)));
}

void FeatureWriter::FinishRagged(const Pins& pins,
                                 std::vector<Column>& columns) {
  const std::vector<int64_t> begins = RowBegins();
  columns.push_back(
      CutRows(spec_.dtype, std::move(values_).Take(), begins, {}, pins));
  if (!rows_.is_batch) return;
  // A row of n Examples has n + 1 splits.
  std::vector<int64_t> splits_begins(begins.size());
  for (size_t i = 0; i < begins.size(); ++i) {
    splits_begins[i] = rows_.begins[i] + static_cast<int64_t>(i);
  }
  Buffer splits =
      Buffer::Allocate(splits_begins.back() * ItemSize(spec_.splits));
  int64_t at = 0;
  for (int64_t row = 0; row < rows_.rows(); ++row) {
    for (int64_t i = rows_.begins[row]; i <= rows_.begins[row + 1]; ++i, ++at) {
      const int64_t split = ends_[i] - begins[row];
      if (spec_.splits == DType::kInt64) {
        splits.MutableAs<int64_t>()[at] = split;
      } else {
        splits.MutableAs<int32_t>()[at] = static_cast<int32_t>(split);
      }
    }
  }
  columns.push_back(
      CutRows(spec_.splits, std::move(splits), splits_begins, {}, {}));
}

}  // namespace penstock::functions

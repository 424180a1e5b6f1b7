#include "penstock/functions/example_lists.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/functions/promote.h"
#include "penstock/functions/rows.h"

namespace penstock::functions {
namespace {

using Kind = FeatureSpec::Kind;

// Splits or lengths, of the dtype that was asked for.
Column CutSplits(DType dtype, const std::vector<int64_t>& splits,
                 const std::vector<int64_t>& begins) {
  Buffer buffer = Buffer::Allocate(splits.size() * ItemSize(dtype));
  for (size_t i = 0; i < splits.size(); ++i) {
    if (dtype == DType::kInt64) {
      buffer.MutableAs<int64_t>()[i] = splits[i];
    } else {
      buffer.MutableAs<int32_t>()[i] = static_cast<int32_t>(splits[i]);
    }
  }
  return CutRows(dtype, std::move(buffer), begins, {}, {});
}

}  // namespace

absl::Status CheckListFeature(const FeatureSpec& feature) {
  if (feature.kind == Kind::kSequence || feature.kind == Kind::kVar ||
      feature.kind == Kind::kRagged) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "a sequence feature must be a FixedLenSequenceFeature, VarLenFeature or "
      "RaggedFeature");
}

void AppendListSpecs(const FeatureSpec& feature, bool is_batch,
                     std::optional<int64_t> batch,
                     std::vector<TensorSpec>& specs) {
  using Dims = PartialShape::Dims;
  const int64_t rank = is_batch ? 3 : 2;
  switch (feature.kind) {
    case Kind::kFixed:
    case Kind::kSparse:
      return;
    case Kind::kSequence: {
      Dims dims;
      if (is_batch) dims.push_back(batch);
      dims.push_back(std::nullopt);
      dims.insert(dims.end(), feature.shape.begin(), feature.shape.end());
      specs.push_back({feature.dtype, PartialShape(dims)});
      if (is_batch) specs.push_back({DType::kInt64, PartialShape(Dims{batch})});
      return;
    }
    case Kind::kVar:
      specs.push_back({DType::kInt64, PartialShape(Dims{std::nullopt, rank})});
      specs.push_back({feature.dtype, PartialShape(Dims{std::nullopt})});
      specs.push_back({DType::kInt64, PartialShape(Dims{rank})});
      return;
    case Kind::kRagged:
      specs.push_back({feature.dtype, PartialShape(Dims{std::nullopt})});
      specs.push_back({feature.splits, PartialShape(Dims{std::nullopt})});
      if (is_batch) {
        if (batch) ++*batch;
        specs.push_back({feature.splits, PartialShape(Dims{batch})});
      }
      return;
  }
}

ListWriter::ListWriter(const FeatureSpec& spec, const KeyTable& keys,
                       const ExampleRows& rows)
    : spec_(spec),
      keys_(keys),
      rows_(rows),
      values_(spec.item_size()),
      frame_ends_{0},
      example_ends_{0} {
  example_ends_.reserve(rows.examples() + 1);
}

absl::Status ListWriter::Add(const FeatureFinder& finder) {
  Wire list = finder.found(spec_.place);
  if (list.at == nullptr && spec_.kind == Kind::kSequence && !spec_.may_miss) {
    return absl::InvalidArgumentError(absl::StrCat(
        "feature list \"", keys_.key(spec_.place), "\" (",
        Text(Name(spec_.dtype)),
        ") must be there; found none. Set allow_missing=True if it may be "
        "missing."));
  }
  while (!list.is_done()) {
    Wire feature;
    if (*list.at++ != DelimitedTag(1) || !ReadDelimited(list, feature)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "feature list \"", keys_.key(spec_.place),
          "\" must be a serialized FeatureList; found damaged bytes"));
    }
    PENSTOCK_RETURN_IF_ERROR(AddFrame(feature));
  }
  example_ends_.push_back(num_frames());
  return absl::OkStatus();
}

absl::Status ListWriter::AddFrame(const Wire& feature) {
  const auto wrong = [&](auto... words) {
    return absl::InvalidArgumentError(absl::StrCat(
        "feature list \"", keys_.key(spec_.place), "\", Feature ",
        num_frames() - example_ends_.back(), ", must be ", words...));
  };
  ListKind kind;
  Wire list;
  if (!OpenFeature(feature, kind, list)) {
    return wrong("a serialized Feature; found damaged bytes");
  }
  int64_t count = 0;
  if (kind == spec_.list) {
    const int64_t room = MostValues(kind, list);
    if (!ReadList(kind, list, values_.Room(room), room, count)) {
      return wrong("a serialized Feature; found damaged bytes");
    }
    values_.Commit(count);
  } else if (kind != ListKind::kNone || spec_.kind == Kind::kSequence) {
    return wrong("a list of ", Text(Name(spec_.list)), "; found ",
                 Text(Name(kind)));
  }
  if (spec_.kind == Kind::kSequence && count != spec_.items) {
    return wrong("of ", spec_.items, " values, shape ", ToString(spec_.shape),
                 "; found ", count);
  }
  frame_ends_.push_back(values_.size());
  return absl::OkStatus();
}

void ListWriter::FailRow(int64_t begin, int64_t end) {
  const int64_t frames = example_ends_[begin];
  values_.Truncate(frame_ends_[frames]);
  frame_ends_.resize(frames + 1);
  example_ends_.resize(begin + 1);
  example_ends_.resize(end + 1, frames);
}

void ListWriter::Finish(const Pins& all_pins, std::vector<Column>& columns) && {
  const Pins pins = spec_.dtype == DType::kString ? all_pins : Pins();
  switch (spec_.kind) {
    case Kind::kFixed:
    case Kind::kSparse:
      return;
    case Kind::kSequence:
      FinishSequence(pins, columns);
      return;
    case Kind::kVar:
      FinishVar(pins, columns);
      return;
    case Kind::kRagged:
      FinishRagged(pins, columns);
      return;
  }
}

std::vector<int64_t> ListWriter::ValueBegins() const {
  std::vector<int64_t> begins(rows_.begins.size());
  for (size_t i = 0; i < begins.size(); ++i) {
    begins[i] = frame_ends_[example_ends_[rows_.begins[i]]];
  }
  return begins;
}

void ListWriter::FinishSequence(const Pins& pins,
                                std::vector<Column>& columns) {
  if (!rows_.is_batch) {
    columns.push_back(CutRows(spec_.dtype, std::move(values_).Take(),
                              example_ends_, spec_.shape, pins));
    return;
  }
  columns.push_back(Padded(pins));
  std::vector<int64_t> lengths(rows_.examples());
  for (int64_t i = 0; i < rows_.examples(); ++i) {
    lengths[i] = example_ends_[i + 1] - example_ends_[i];
  }
  columns.push_back(CutSplits(DType::kInt64, lengths, rows_.begins));
}

// Of a batch: as many frames as the longest has, filled up with zeros.
Column ListWriter::Padded(const Pins& pins) {
  RowsWriter writer(spec_.dtype, static_cast<int>(spec_.shape.size()) + 2,
                    rows_.rows());
  for (int64_t row = 0; row < rows_.rows(); ++row) {
    int64_t longest = 0;
    for (int64_t i = rows_.begins[row]; i < rows_.begins[row + 1]; ++i) {
      longest = std::max(longest, example_ends_[i + 1] - example_ends_[i]);
    }
    int64_t* dims = writer.dims(row);
    dims[0] = rows_.begins[row + 1] - rows_.begins[row];
    dims[1] = longest;
    std::copy(spec_.shape.begin(), spec_.shape.end(), dims + 2);
  }
  writer.Allocate();
  const size_t frame_bytes = spec_.items * spec_.item_size();
  const std::byte* values = values_.As<std::byte>();
  for (int64_t row = 0; row < rows_.rows(); ++row) {
    std::byte* out = writer.RowData(row);
    const size_t bytes = writer.dims(row)[1] * frame_bytes;
    for (int64_t i = rows_.begins[row]; i < rows_.begins[row + 1]; ++i) {
      const size_t own =
          (example_ends_[i + 1] - example_ends_[i]) * frame_bytes;
      if (own > 0) {
        std::memcpy(out, values + example_ends_[i] * frame_bytes, own);
      }
      if (bytes > own) std::memset(out + own, 0, bytes - own);
      out += bytes;
    }
  }
  return std::move(writer).Finish(pins);
}

void ListWriter::FinishVar(const Pins& pins, std::vector<Column>& columns) {
  const int64_t rank = rows_.is_batch ? 3 : 2;
  const std::vector<int64_t> begins = ValueBegins();
  Buffer shapes = Buffer::Allocate(rows_.rows() * rank * sizeof(int64_t));
  int64_t* shape = shapes.MutableAs<int64_t>();
  Buffer indices = Buffer::Allocate(values_.size() * rank * sizeof(int64_t));
  int64_t* index = indices.MutableAs<int64_t>();
  for (int64_t row = 0; row < rows_.rows(); ++row) {
    int64_t most_frames = 0;
    int64_t most_values = 0;
    for (int64_t i = rows_.begins[row]; i < rows_.begins[row + 1]; ++i) {
      const int64_t first = example_ends_[i];
      const int64_t frames = example_ends_[i + 1] - first;
      most_frames = std::max(most_frames, frames);
      for (int64_t frame = 0; frame < frames; ++frame) {
        const int64_t count =
            frame_ends_[first + frame + 1] - frame_ends_[first + frame];
        most_values = std::max(most_values, count);
        for (int64_t at = 0; at < count; ++at) {
          if (rows_.is_batch) *index++ = i - rows_.begins[row];
          *index++ = frame;
          *index++ = at;
        }
      }
    }
    if (rows_.is_batch) *shape++ = rows_.begins[row + 1] - rows_.begins[row];
    *shape++ = most_frames;
    *shape++ = most_values;
  }
  columns.push_back(
      CutRows(DType::kInt64, std::move(indices), begins, Shape{rank}, {}));
  columns.push_back(
      CutRows(spec_.dtype, std::move(values_).Take(), begins, {}, pins));
  columns.push_back(Column::Dense(DType::kInt64, Shape{rank}, rows_.rows(),
                                  std::move(shapes)));
}

void ListWriter::FinishRagged(const Pins& pins, std::vector<Column>& columns) {
  const std::vector<int64_t> begins = ValueBegins();
  columns.push_back(
      CutRows(spec_.dtype, std::move(values_).Take(), begins, {}, pins));
  // A row's splits of values by frames, then of frames by Examples.
  std::vector<int64_t> inner;
  std::vector<int64_t> inner_begins = {0};
  std::vector<int64_t> outer;
  std::vector<int64_t> outer_begins = {0};
  for (int64_t row = 0; row < rows_.rows(); ++row) {
    const int64_t first = example_ends_[rows_.begins[row]];
    const int64_t last = example_ends_[rows_.begins[row + 1]];
    for (int64_t frame = first; frame <= last; ++frame) {
      inner.push_back(frame_ends_[frame] - begins[row]);
    }
    inner_begins.push_back(static_cast<int64_t>(inner.size()));
    for (int64_t i = rows_.begins[row]; i <= rows_.begins[row + 1]; ++i) {
      outer.push_back(example_ends_[i] - first);
    }
    outer_begins.push_back(static_cast<int64_t>(outer.size()));
  }
  columns.push_back(CutSplits(spec_.splits, inner, inner_begins));
  if (rows_.is_batch) {
    columns.push_back(CutSplits(spec_.splits, outer, outer_begins));
  }
}

}  // namespace penstock::functions

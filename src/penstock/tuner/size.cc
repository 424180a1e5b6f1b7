#include "penstock/tuner/size.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace penstock::tuner {
namespace {

constexpr double kErrors = 2;
// Under so many rows or files, variance is not known well enough for an end.
constexpr double kFewest = 2;
// Rows under way between a cache and those above it.
constexpr double kCacheError = 0.02;

Size Around(double middle, double error, double least) {
  return {std::max(least, middle - kErrors * error), middle,
          middle + kErrors * error};
}

double ErrorOf(const Size& size) {
  return size.high ? (*size.high - size.middle) / kErrors : 0;
}

// The product of two sizes that err independently.
Size Times(const Size& size, double factor, double factor_error) {
  const double middle = size.middle * factor;
  const double error =
      std::hypot(ErrorOf(size) * factor, size.middle * factor_error);
  Size result = Around(middle, error, 0);
  if (!size.high) result.high.reset();
  if (!size.high) result.low = std::min(result.low, size.low * factor);
  return result;
}

// Bytes in all files below a node, and how many of them a root element needs.
struct Sources {
  Size bytes;
  Estimate read;
  bool is_known = false;
};

Sources SourcesBelow(const Model& model, int place) {
  std::vector<bool> is_below(model.nodes.size(), false);
  is_below[place] = true;
  Sources sources;
  double error = 0;
  bool has_high = true;
  for (int i = place; i >= 0; --i) {
    if (!is_below[i]) continue;
    for (int input : model.nodes[i].inputs) is_below[input] = true;
    const Measured& measured = (*model.measured)[i];
    if (!measured.files) continue;
    const std::optional<Size> files = FileBytes(*measured.files);
    if (!files) return {};
    sources.is_known = true;
    sources.bytes.low += files->low;
    sources.bytes.middle += files->middle;
    error = std::hypot(error, ErrorOf(*files));
    has_high &= files->high.has_value();
    sources.read.value += model.nodes[i].file_bytes.value;
    sources.read.error =
        std::hypot(sources.read.error, model.nodes[i].file_bytes.error);
  }
  if (has_high) sources.bytes.high = sources.bytes.middle + kErrors * error;
  sources.is_known &= sources.read.value > 0;
  return sources;
}

std::optional<Size> RowsAfter(const Model& model, int place) {
  const Measured& measured = (*model.measured)[place];
  if (measured.cardinality.has_infinite()) return std::nullopt;
  if (measured.cardinality.has_finite()) {
    const double rows = static_cast<double>(measured.cardinality.finite());
    return Size{rows, rows, rows};
  }
  // Where a cache is full nobody reads any more, but its rows were counted.
  for (int below = place; below >= 0;) {
    const Measured& cache = (*model.measured)[below];
    if (cache.is_cache_complete) {
      const NodeModel& node = model.nodes[below];
      if (cache.cached_rows <= 0 || node.visits <= 0) return std::nullopt;
      const double rows =
          cache.cached_rows * model.nodes[place].visits / node.visits;
      return Around(rows, kCacheError * rows, 0);
    }
    const std::vector<int>& inputs = model.nodes[below].inputs;
    below = inputs.size() == 1 ? inputs[0] : -1;
  }
  const Sources sources = SourcesBelow(model, place);
  if (!sources.is_known) return std::nullopt;
  // Rows per byte that was read.
  const double per_byte = model.nodes[place].visits / sources.read.value;
  const double error = per_byte * sources.read.error / sources.read.value;
  return Times(sources.bytes, per_byte, error);
}

}  // namespace

std::optional<Size> FileBytes(const plan::FileCounts& files) {
  if (files.has_total_bytes()) {
    const double bytes = static_cast<double>(files.total_bytes());
    return Size{bytes, bytes, bytes};
  }
  const double seen = static_cast<double>(files.opened());
  if (!files.has_total() || seen < 1) return std::nullopt;
  const double total = static_cast<double>(files.total());
  const double mean = files.opened_bytes() / seen;
  const double least = files.opened_bytes();
  // All of them, some perhaps in more than one epoch.
  if (seen >= total) return Size{mean * total, mean * total, mean * total};
  if (seen < kFewest) return Size{least, mean * total, std::nullopt};
  const double variance = std::max(
      0.0, (files.opened_bytes_squared() - seen * mean * mean) / (seen - 1));
  const double error = total * std::sqrt(variance / seen * (1 - seen / total));
  return Around(mean * total, error, least);
}

std::optional<RowsAndBytes> SizeAfter(const Model& model, int place) {
  const Measured& measured = (*model.measured)[place];
  if (measured.rows <= 0 || model.nodes[place].is_cached) return std::nullopt;
  const std::optional<Size> rows = RowsAfter(model, place);
  if (!rows) return std::nullopt;
  RowsAndBytes result;
  result.rows = *rows;
  // No row is larger than the largest that was seen, as far as we know; of few
  // rows we do not.
  const double error = measured.row_bytes * measured.row_bytes_cv /
                       std::sqrt(std::max(1.0, measured.rows));
  result.bytes = Times(*rows, measured.row_bytes, error);
  if (measured.rows < kFewest && rows->middle > measured.rows) {
    result.bytes.high.reset();
  }
  return result;
}

}  // namespace penstock::tuner

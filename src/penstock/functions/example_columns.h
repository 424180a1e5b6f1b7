// Columns made of the features of many Examples, one writer for each feature.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "penstock/data/column.h"
#include "penstock/functions/example_spec.h"
#include "penstock/functions/function.h"

namespace penstock::functions {

// Items of one size, as many as come.
class GrowingItems final {
 public:
  explicit GrowingItems(size_t item_size) : item_size_(item_size) {}

  int64_t size() const { return size_; }
  // Room for `items` more after those that there are.
  std::byte* Room(int64_t items);
  void Commit(int64_t items) { size_ += items; }
  void Truncate(int64_t size) { size_ = size; }
  template <typename T>
  T* As() {
    return buffer_.MutableAs<T>();
  }
  Buffer Take() && { return std::move(buffer_); }

 private:
  size_t item_size_;
  int64_t size_ = 0;
  int64_t capacity_ = 0;
  Buffer buffer_;
};

// Which Examples belong to which row: one each, or a vector of them.
struct ExampleRows {
  std::vector<int64_t> begins;  // of each row, and the end of the last
  bool is_batch = false;

  int64_t rows() const { return static_cast<int64_t>(begins.size()) - 1; }
  int64_t examples() const { return begins.back(); }
};

// `serialized` as it arrives, one or a vector of strings in a row.
ExampleRows RowsOfExamples(const Arg& serialized, bool is_batch,
                           const EvalContext& context);

// A column of rows cut from `values`: row r has begins[r + 1] - begins[r] times
// the items of `tail`. Dense where all have as many.
Column CutRows(DType dtype, Buffer values, absl::Span<const int64_t> begins,
               const Shape& tail, Pins pins);

// Where the features of one map are in the bytes of one message. Writers of
// records mostly keep one order of keys, so the key that was at a position
// before is tried first.
class FeatureFinder final {
 public:
  explicit FeatureFinder(const KeyTable& keys)
      : keys_(keys), found_(keys.size()) {}

  void Clear() {
    position_ = 0;
    std::fill(found_.begin(), found_.end(), Wire());
  }
  // Adds what a message of entries has; the last of equal keys counts, unless
  // it is empty. False if it is damaged.
  bool Add(Wire entries);
  // Bytes at null if there is none.
  const Wire& found(int place) const { return found_[place]; }

 private:
  static constexpr size_t kMaxOrder = 4096;

  int PlaceOf(std::string_view key);

  const KeyTable& keys_;
  std::vector<Wire> found_;
  std::vector<int32_t> order_;  // places, by position in the message
  size_t position_ = 0;
};

class FeatureWriter final {
 public:
  // Both must outlive it. `keys` is for messages.
  FeatureWriter(const FeatureSpec& spec, const KeyTable& keys,
                const ExampleRows& rows);

  // The next Example's. Else the error of its row: then FailRow().
  absl::Status Add(const FeatureFinder& finder) {
    const Wire& feature = finder.found(place_);
    bool is_done = false;
    switch (way_) {
      case Way::kOneFloat:
        is_done = ReadOneFloat(feature, next_);
        break;
      case Way::kOneInt64:
        is_done = ReadOneInt64(feature, next_);
        break;
      case Way::kOneString:
        is_done = ReadOneString(feature, next_);
        break;
      case Way::kOther:
        break;
    }
    if (!is_done) return AddOther(finder);
    next_ += row_bytes_;
    return absl::OkStatus();
  }
  // Makes the Examples [begin, end) meaningless; those of them that were added
  // are forgotten.
  void FailRow(int64_t begin, int64_t end);
  // `pins` keep the strings alive.
  void Finish(const Pins& pins, std::vector<Column>& columns) &&;

 private:
  enum class Way : uint8_t { kOneFloat, kOneInt64, kOneString, kOther };

  static Way WayOf(const FeatureSpec& spec);
  absl::Status AddOther(const FeatureFinder& finder);
  absl::Status AddList(const Wire& feature, int place, ListKind wanted,
                       GrowingItems& items);
  absl::Status AddSparse(const FeatureFinder& finder);
  absl::Status Missing() const;
  void SortSparse(int64_t begin);
  Column Padded(const Pins& pins);
  void FinishSparse(const Pins& pins, std::vector<Column>& columns);
  void FinishRagged(const Pins& pins, std::vector<Column>& columns);
  // Where each row begins, counted in values.
  std::vector<int64_t> RowBegins() const;
  int64_t CountOf(int64_t example) const {
    return ends_[example + 1] - ends_[example];
  }

  Way way_;
  int place_;
  int64_t row_bytes_ = 0;      // kFixed
  std::byte* next_ = nullptr;  // kFixed: of the next Example
  const FeatureSpec& spec_;
  const KeyTable& keys_;
  const ExampleRows& rows_;
  Buffer fixed_;               // kFixed
  GrowingItems values_;        // all others
  GrowingItems indices_;       // kSparse
  std::vector<int64_t> ends_;  // in values_, after each Example; first 0
};

}  // namespace penstock::functions

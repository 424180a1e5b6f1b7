// What io.parse_example and io.parse_sequence_example are asked for: features
// by key, as attributes say them, and a table that finds a key's place.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "penstock/functions/example_wire.h"
#include "penstock/functions/function.h"

namespace penstock::functions {

// A place for each of some keys.
class KeyTable final {
 public:
  static constexpr int kAbsent = -1;

  // REQUIRES: every key is there once.
  explicit KeyTable(std::vector<std::string> keys);

  int size() const { return static_cast<int>(keys_.size()); }
  const std::string& key(int place) const { return keys_[place]; }
  int Find(std::string_view key) const;
  // Whether `key` is the one of `place`: cheaper than Find().
  bool Is(int place, std::string_view key) const {
    const std::string& own = keys_[place];
    return own.size() == key.size() &&
           std::memcmp(own.data(), key.data(), key.size()) == 0;
  }
  // Whether an entry begins with the key of `place`, written as usual (length
  // in a byte, before the value), of which `at` is then set behind the value's
  // tag. REQUIRES: kMaxHead bytes can be read.
  static constexpr size_t kMaxHead = 32;
  bool SkipHead(int place, const uint8_t*& at) const {
    const Head& head = heads_[place];
    for (int i = 0; i < head.num_words; ++i) {
      uint64_t word;
      std::memcpy(&word, at + 8 * i, 8);
      if (((word ^ head.words[i]) & head.masks[i]) != 0) return false;
    }
    at += head.size;
    return head.size != 0;
  }

 private:
  // What an entry begins with: tag, length and bytes of the key, tag of the
  // value. Size 0 if it is too long for this.
  struct Head {
    uint64_t words[kMaxHead / 8] = {};
    uint64_t masks[kMaxHead / 8] = {};
    int32_t num_words = 0;
    int32_t size = 0;
  };

  static Head HeadOf(const std::string& key);
  static uint64_t HashOf(std::string_view key);

  std::vector<Head> heads_;

  std::vector<std::string> keys_;
  std::vector<int32_t> places_;  // open addressing, at most a quarter full
  uint64_t mask_ = 0;
};

struct FeatureSpec {
  enum class Kind : uint8_t {
    kFixed,     // a value of `shape`, in every Example or by default
    kSequence,  // values of `shape`, any number: one more dimension
    kVar,       // ps.Sparse: indices, values, dense_shape
    kRagged,    // values; in a batch with row_splits
    kSparse,    // ps.Sparse, indices being the values of another key
  };
  Kind kind = Kind::kFixed;
  int place = 0;        // of its key in the table
  int index_place = 0;  // kSparse: of the key that has the indices
  int64_t size = 0;     // kSparse: of the dense shape
  DType dtype = DType::kInt64;
  ListKind list = ListKind::kInt64;
  DType splits = DType::kInt32;  // of row_splits
  Shape shape;                   // kFixed, kSequence
  int64_t items = 1;             // of `shape`
  bool may_miss = false;         // kSequence
  bool has_default = false;
  Column fallback;  // kFixed: of `shape`; kSequence: a scalar to pad with

  size_t item_size() const { return ItemSize(dtype); }
  int num_parts(bool is_batch) const;
};

// The features of one map: an Example's, a SequenceExample's context, or its
// feature lists.
struct FeatureGroup {
  KeyTable keys;
  std::vector<FeatureSpec> features;
};

// `features` has a line for each: the place of its key, its kind and dtype:
//   "0 fixed float32 2,3 1"  shape (2, 3); argument 1 is its default
//   "1 sequence int64 - - optional"  a scalar, no default, may be missing
//   "2 var string", "3 ragged int64 int32" (the dtype of row_splits)
//   "4 sparse float32 5 100"  the indices' key; the size
// `args`: all of the call. `needs_values`: defaults must be known by now.
absl::StatusOr<FeatureGroup> MakeGroup(const std::vector<std::string>& keys,
                                       const std::vector<std::string>& features,
                                       absl::Span<const ArgSpec> args,
                                       bool needs_values);

// The attributes `<prefix>keys` and `<prefix>features`; empty if absent.
absl::StatusOr<FeatureGroup> GroupFromAttrs(const Attrs& attrs,
                                            std::string_view prefix,
                                            absl::Span<const ArgSpec> args,
                                            bool needs_values);

// The spec of the parts of one feature, for one Example or a batch of them.
void AppendSpecs(const FeatureSpec& feature, bool is_batch,
                 std::optional<int64_t> batch, std::vector<TensorSpec>& specs);

// InvalidArgument unless `serialized` is what `function` takes: a string, or a
// vector of them.
absl::Status CheckSerialized(std::string_view function,
                             const ArgSpec& serialized, bool is_batch);

}  // namespace penstock::functions

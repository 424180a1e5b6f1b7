#include "penstock/functions/example_spec.h"

#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "penstock/base/status.h"
#include "penstock/functions/promote.h"
#include "penstock/functions/rows.h"

namespace penstock::functions {
namespace {

using Kind = FeatureSpec::Kind;
using Words = std::vector<std::string>;

absl::Status Malformed(std::string_view line) {
  return absl::InvalidArgumentError(absl::StrCat(
      "a feature must be written as its kind, dtype and shape; got \"",
      Text(line), "\""));
}

absl::StatusOr<Kind> ParseKind(const std::string& word) {
  if (word == "fixed") return Kind::kFixed;
  if (word == "sequence") return Kind::kSequence;
  if (word == "var") return Kind::kVar;
  if (word == "ragged") return Kind::kRagged;
  if (word == "sparse") return Kind::kSparse;
  return Malformed(word);
}

absl::Status ParseShape(const std::string& word, FeatureSpec& feature) {
  if (word != "-") {
    for (absl::string_view part : absl::StrSplit(word, ',')) {
      int64_t dim;
      if (!absl::SimpleAtoi(part, &dim)) return Malformed(word);
      feature.shape.push_back(dim);
    }
  }
  if (feature.shape.size() > 30) {
    return absl::InvalidArgumentError("a feature may have 30 dimensions");
  }
  PENSTOCK_RETURN_IF_ERROR(CheckElementSize(feature.shape, feature.dtype));
  feature.items = NumItems(feature.shape);
  return absl::OkStatus();
}

// Words 2 and 3 of "fixed" and "sequence": the shape, and which argument is
// the default.
absl::Status ParseDense(const Words& words, absl::Span<const ArgSpec> args,
                        bool needs_values, const std::string& key,
                        FeatureSpec& feature) {
  if (words.size() < 4) return Malformed(absl::StrJoin(words, " "));
  PENSTOCK_RETURN_IF_ERROR(ParseShape(words[2], feature));
  if (words[3] == "-") return absl::OkStatus();
  size_t at;
  if (!absl::SimpleAtoi(words[3], &at) || at >= args.size()) {
    return Malformed(absl::StrJoin(words, " "));
  }
  const TensorSpec& spec = args[at].spec;
  const int64_t wanted = feature.kind == Kind::kFixed ? feature.items : 1;
  if (spec.dtype != feature.dtype || !spec.shape.is_fully_known() ||
      NumItems(spec.shape.ToShape()) != wanted) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the default of feature \"", key, "\" must be ",
        Text(Name(feature.dtype)), " of shape ",
        ToString(feature.kind == Kind::kFixed ? feature.shape : Shape()),
        "; got ", spec.ToString()));
  }
  feature.has_default = true;
  if (args[at].constant != nullptr) {
    feature.fallback = *args[at].constant;
  } else if (needs_values) {
    return absl::InvalidArgumentError(
        absl::StrCat("the default of feature \"", key,
                     "\" must be a constant; got a value that is computed"));
  }
  return absl::OkStatus();
}

absl::StatusOr<FeatureSpec> ParseFeature(const std::string& line, int place,
                                         const std::string& key, int num_keys,
                                         absl::Span<const ArgSpec> args,
                                         bool needs_values) {
  const Words words = absl::StrSplit(line, ' ');
  if (words.size() < 2) return Malformed(line);
  FeatureSpec feature;
  feature.place = place;
  PENSTOCK_ASSIGN_OR_RETURN(feature.kind, ParseKind(words[0]));
  const std::optional<DType> dtype = ParseDType(words[1]);
  feature.list = dtype ? ListOf(*dtype) : ListKind::kNone;
  if (feature.list == ListKind::kNone) {
    return absl::InvalidArgumentError(
        absl::StrCat("feature \"", key,
                     "\" must be float32, int64 or string, which are what an "
                     "Example can hold; got ",
                     words[1], ". Cast the result."));
  }
  feature.dtype = *dtype;
  switch (feature.kind) {
    case Kind::kFixed:
    case Kind::kSequence:
      PENSTOCK_RETURN_IF_ERROR(
          ParseDense(words, args, needs_values, key, feature));
      feature.may_miss = words.size() > 4 && words[4] == "optional";
      if (feature.kind == Kind::kSequence && feature.items == 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("the shape of feature \"", key,
                         "\" must not have a size of 0; "
                         "got ",
                         ToString(feature.shape)));
      }
      break;
    case Kind::kVar:
      break;
    case Kind::kRagged: {
      const std::optional<DType> splits =
          words.size() > 2 ? ParseDType(words[2]) : std::nullopt;
      if (splits != DType::kInt32 && splits != DType::kInt64) {
        return Malformed(line);
      }
      feature.splits = *splits;
      break;
    }
    case Kind::kSparse:
      if (words.size() < 4 ||
          !absl::SimpleAtoi(words[2], &feature.index_place) ||
          !absl::SimpleAtoi(words[3], &feature.size) ||
          feature.index_place < 0 || feature.index_place >= num_keys) {
        return Malformed(line);
      }
      if (feature.size < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("the size of a sparse feature must not be negative; "
                         "got ",
                         feature.size));
      }
      break;
  }
  return feature;
}

absl::StatusOr<std::vector<std::string>> Texts(const Attrs& attrs,
                                               std::string name) {
  const auto at = attrs.find(name);
  if (at == attrs.end() || std::holds_alternative<None>(at->second)) {
    return std::vector<std::string>();
  }
  if (const auto* texts = std::get_if<std::vector<std::string>>(&at->second)) {
    return *texts;
  }
  // An empty list has no kind of its own.
  if (const auto* ints = std::get_if<std::vector<int64_t>>(&at->second)) {
    if (ints->empty()) return std::vector<std::string>();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(name, " must be a list of strings"));
}

}  // namespace

KeyTable::KeyTable(std::vector<std::string> keys) : keys_(std::move(keys)) {
  const uint64_t wanted = std::bit_ceil(keys_.size() * 4 + 1);
  mask_ = wanted - 1;
  places_.assign(wanted, kAbsent);
  for (int place = 0; place < size(); ++place) {
    uint64_t at = HashOf(keys_[place]) & mask_;
    while (places_[at] != kAbsent) at = (at + 1) & mask_;
    places_[at] = place;
    heads_.push_back(HeadOf(keys_[place]));
  }
}

KeyTable::Head KeyTable::HeadOf(const std::string& key) {
  Head head;
  if (key.size() + 3 > kMaxHead) return head;
  std::string bytes = {DelimitedTag(1), static_cast<char>(key.size())};
  bytes += key;
  bytes += static_cast<char>(DelimitedTag(2));
  head.size = static_cast<int32_t>(bytes.size());
  head.num_words = (head.size + 7) / 8;
  std::memcpy(head.words, bytes.data(), bytes.size());
  std::memset(head.masks, 0xff, bytes.size());
  return head;
}

uint64_t KeyTable::HashOf(std::string_view key) {
  // Keys differ in their first or last bytes, or in length, as good as always;
  // where not, a probe more finds them.
  uint64_t first = 0;
  uint64_t last = 0;
  const size_t size = key.size();
  if (size >= 8) {
    std::memcpy(&first, key.data(), 8);
    std::memcpy(&last, key.data() + size - 8, 8);
  } else if (size >= 4) {
    std::memcpy(&first, key.data(), 4);
    std::memcpy(&last, key.data() + size - 4, 4);
  } else if (size > 0) {
    first = static_cast<uint8_t>(key[0]);
    last = static_cast<uint8_t>(key[size / 2]) |
           static_cast<uint64_t>(static_cast<uint8_t>(key[size - 1])) << 8;
  }
  const auto product =
      static_cast<unsigned __int128>(first ^ (size * 0x9e3779b97f4a7c15u)) *
      (last ^ 0xe7037ed1a0b428dbu);
  const uint64_t mixed =
      static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  return mixed ^ mixed >> 32;
}

int KeyTable::Find(std::string_view key) const {
  uint64_t at = HashOf(key) & mask_;
  while (places_[at] != kAbsent) {
    if (Is(places_[at], key)) return places_[at];
    at = (at + 1) & mask_;
  }
  return kAbsent;
}

int FeatureSpec::num_parts(bool is_batch) const {
  switch (kind) {
    case Kind::kFixed:
    case Kind::kSequence:
      return 1;
    case Kind::kVar:
    case Kind::kSparse:
      return 3;
    case Kind::kRagged:
      return is_batch ? 2 : 1;
  }
  return 1;
}

absl::StatusOr<FeatureGroup> MakeGroup(const std::vector<std::string>& keys,
                                       const std::vector<std::string>& features,
                                       absl::Span<const ArgSpec> args,
                                       bool needs_values) {
  absl::flat_hash_set<std::string> seen;
  for (const std::string& key : keys) {
    if (!seen.insert(key).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("a key may be there once; got \"", key, "\" twice"));
    }
  }
  FeatureGroup group{KeyTable(keys), {}};
  for (const std::string& line : features) {
    // "PLACE kind dtype ..."
    const size_t space = line.find(' ');
    int place;
    if (space == std::string::npos ||
        !absl::SimpleAtoi(line.substr(0, space), &place) || place < 0 ||
        place >= group.keys.size()) {
      return Malformed(line);
    }
    PENSTOCK_ASSIGN_OR_RETURN(
        FeatureSpec feature,
        ParseFeature(line.substr(space + 1), place, keys[place],
                     group.keys.size(), args, needs_values));
    group.features.push_back(std::move(feature));
  }
  return group;
}

absl::StatusOr<FeatureGroup> GroupFromAttrs(const Attrs& attrs,
                                            std::string_view prefix,
                                            absl::Span<const ArgSpec> args,
                                            bool needs_values) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<std::string> keys,
                            Texts(attrs, absl::StrCat(Text(prefix), "keys")));
  PENSTOCK_ASSIGN_OR_RETURN(
      const std::vector<std::string> features,
      Texts(attrs, absl::StrCat(Text(prefix), "features")));
  return MakeGroup(keys, features, args, needs_values);
}

void AppendSpecs(const FeatureSpec& feature, bool is_batch,
                 std::optional<int64_t> batch, std::vector<TensorSpec>& specs) {
  using Dims = PartialShape::Dims;
  Dims dims;
  if (is_batch) dims.push_back(batch);
  const int64_t sparse_rank = is_batch ? 2 : 1;
  switch (feature.kind) {
    case Kind::kSequence:
      dims.push_back(std::nullopt);
      [[fallthrough]];
    case Kind::kFixed:
      dims.insert(dims.end(), feature.shape.begin(), feature.shape.end());
      specs.push_back({feature.dtype, PartialShape(dims)});
      return;
    case Kind::kVar:
    case Kind::kSparse:
      specs.push_back(
          {DType::kInt64, PartialShape(Dims{std::nullopt, sparse_rank})});
      specs.push_back({feature.dtype, PartialShape(Dims{std::nullopt})});
      specs.push_back({DType::kInt64, PartialShape(Dims{sparse_rank})});
      return;
    case Kind::kRagged:
      specs.push_back({feature.dtype, PartialShape(Dims{std::nullopt})});
      if (is_batch) {
        if (batch) ++*batch;
        specs.push_back({feature.splits, PartialShape(Dims{batch})});
      }
      return;
  }
}

absl::Status CheckSerialized(std::string_view function,
                             const ArgSpec& serialized, bool is_batch) {
  const TensorSpec& spec = serialized.spec;
  if (spec.dtype == DType::kString && spec.shape.has_rank() &&
      spec.shape.rank() == (is_batch ? 1 : 0)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      Text(function), " takes ",
      is_batch ? "a vector of serialized messages" : "one serialized message",
      ", ", is_batch ? "string(None,)" : "string()", "; got ",
      spec.ToString()));
}

}  // namespace penstock::functions

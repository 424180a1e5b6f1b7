#include "penstock/functions/string_hash.h"

#include <farmhash.h>

#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/string_items.h"

namespace penstock::functions {
namespace {

uint64_t Load64(const char* at) {
  uint64_t word;
  std::memcpy(&word, at, 8);
  return word;
}

// The last 0 to 7 bytes as the low bytes of a word.
uint64_t LoadRest(const char* at, size_t size) {
  uint64_t word = 0;
  for (size_t i = 0; i < size; ++i) {
    word |= uint64_t{static_cast<uint8_t>(at[i])} << (8 * i);
  }
  return word;
}

}  // namespace

uint64_t Fingerprint64(std::string_view text) {
  return util::Fingerprint64(text.data(), text.size());
}

uint64_t MurmurHash64(std::string_view text) {
  constexpr uint64_t kSeed = 0xDECAFCAFFE;
  constexpr uint64_t kTimes = 0xc6a4a7935bd1e995;
  constexpr int kShift = 47;
  uint64_t hash = kSeed ^ (text.size() * kTimes);
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t word = Load64(text.data() + at) * kTimes;
    word = (word ^ (word >> kShift)) * kTimes;
    hash = (hash ^ word) * kTimes;
  }
  if (at < text.size()) {
    hash = (hash ^ LoadRest(text.data() + at, text.size() - at)) * kTimes;
  }
  hash = (hash ^ (hash >> kShift)) * kTimes;
  return hash ^ (hash >> kShift);
}

uint64_t SipHash64(uint64_t key0, uint64_t key1, std::string_view text) {
  uint64_t v0 = key0 ^ 0x736f6d6570736575;
  uint64_t v1 = key1 ^ 0x646f72616e646f6d;
  uint64_t v2 = key0 ^ 0x6c7967656e657261;
  uint64_t v3 = key1 ^ 0x7465646279746573;
  const auto rounds = [&](int count) {
    for (; count > 0; --count) {
      v0 += v1;
      v1 = std::rotl(v1, 13) ^ v0;
      v0 = std::rotl(v0, 32);
      v2 += v3;
      v3 = std::rotl(v3, 16) ^ v2;
      v0 += v3;
      v3 = std::rotl(v3, 21) ^ v0;
      v2 += v1;
      v1 = std::rotl(v1, 17) ^ v2;
      v2 = std::rotl(v2, 32);
    }
  };
  const auto take = [&](uint64_t word) {
    v3 ^= word;
    rounds(2);
    v0 ^= word;
  };
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) take(Load64(text.data() + at));
  take(LoadRest(text.data() + at, text.size() - at) |
       uint64_t{text.size() & 0xFF} << 56);
  v2 ^= 0xFF;
  rounds(4);
  return v0 ^ v1 ^ v2 ^ v3;
}

namespace {

struct Fast {
  static constexpr std::string_view kName = "strings.to_hash_bucket_fast";
  static uint64_t Hash(std::string_view text, const Ints&) {
    return Fingerprint64(text);
  }
};
struct Plain {
  static constexpr std::string_view kName = "strings.to_hash_bucket";
  static uint64_t Hash(std::string_view text, const Ints&) {
    return MurmurHash64(text);
  }
};
struct Strong {
  static constexpr std::string_view kName = "strings.to_hash_bucket_strong";
  static uint64_t Hash(std::string_view text, const Ints& key) {
    return SipHash64(static_cast<uint64_t>(key[0]),
                     static_cast<uint64_t>(key[1]), text);
  }
};

template <typename Op>
absl::StatusOr<TensorSpec> InferBucket(absl::Span<const ArgSpec> args,
                                       const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckStrings(Op::kName, args[0]));
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t buckets,
                            IntAttr(attrs, "num_buckets", 0));
  if (buckets < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_buckets must be positive; got ", buckets));
  }
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<Ints> key,
                            AxisAttr(attrs, "key"));
  if (std::same_as<Op, Strong> && (!key || key->size() != 2)) {
    return absl::InvalidArgumentError(
        absl::StrCat("key must be two integers; got ", key ? key->size() : 0));
  }
  return TensorSpec{DType::kInt64, args[0].spec.shape};
}

template <typename Op>
absl::StatusOr<Column> EvalBucket(absl::Span<const Arg> args,
                                  const Attrs& attrs, const TensorSpec&,
                                  EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t buckets,
                            IntAttr(attrs, "num_buckets", 0));
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<Ints> key,
                            AxisAttr(attrs, "key"));
  const Ints words = key.value_or(Ints{});
  return MapItems<StringRef, int64_t>(
      args[0], ResultRows(args, context), {}, [&](int64_t, StringRef item) {
        return static_cast<int64_t>(Op::Hash(item.view(), words) %
                                    static_cast<uint64_t>(buckets));
      });
}

template <typename Op>
Function Bucket(std::string_view doc, std::string_view example) {
  Function function = {
      .name = Op::kName,
      .params = {{"input", ParamKind::kTensor, "", "Strings."},
                 {"num_buckets", ParamKind::kInt, "", "How many there are."}},
      .doc = doc,
      .example = example,
      .infer = InferBucket<Op>,
      .eval = EvalBucket<Op>};
  if (std::same_as<Op, Strong>) {
    function.params.push_back(
        {"key", ParamKind::kInts, "", "Two integers that nobody can guess."});
  }
  return function;
}

}  // namespace

std::vector<Function> StringHashFunctions() {
  return {
      Bucket<Fast>("A number below num_buckets for each string, by FarmHash.",
                   ">>> ps.strings.to_hash_bucket_fast([\"a\", \"b\"], 100)\n"
                   "array([39, 22])"),
      Bucket<Plain>("As to_hash_bucket_fast, by TensorFlow's older hash.",
                    ">>> ps.strings.to_hash_bucket([\"a\", \"b\"], 100)\n"
                    "array([68, 70])"),
      Bucket<Strong>(
          "As to_hash_bucket_fast, by SipHash under a key: who does not know "
          "it cannot aim at a bucket.",
          ">>> ps.strings.to_hash_bucket_strong([\"a\"], 100, (1, 2))\n"
          "array([46])"),
  };
}

}  // namespace penstock::functions

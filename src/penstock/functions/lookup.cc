#include <algorithm>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/cast.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/lookup_table.h"
#include "penstock/functions/promote.h"
#include "penstock/functions/string_hash.h"
#include "penstock/functions/string_items.h"

namespace penstock::functions {

namespace {

std::string KeyText(const StringRef& key) { return Quoted(key.view()); }
std::string KeyText(int64_t key) { return absl::StrCat(key); }

}  // namespace

template <typename Key>
absl::Status LookupTable<Key>::Fill(absl::Span<const Key> keys) {
  // At most half full: runs of slots stay short.
  const uint64_t count = std::bit_ceil(keys.size() * 2 + 2);
  slots_.assign(count, Slot{});
  mask_ = count - 1;
  keys_ = keys;
  for (size_t i = 0; i < keys.size(); ++i) {
    const uint32_t found = Find(keys[i]);
    if (found != kNone) {
      return absl::InvalidArgumentError(
          absl::StrCat("keys of a table must differ; got ", KeyText(keys[i]),
                       " at ", found, " and ", i));
    }
    const uint64_t word = WordOf(View(keys[i]));
    const uint32_t size = SizeOf(keys[i]);
    uint64_t at = Start(word, size);
    while (slots_[at].place != kNone) at = (at + 1) & mask_;
    slots_[at] = {word, static_cast<uint32_t>(i), size};
  }
  return absl::OkStatus();
}

namespace {

// The table of a call, and the columns that it points into.
class Filled final : public Prepared {
 public:
  Column keys;
  LookupTable<StringRef> strings;
  LookupTable<int64_t> integers;
};

absl::Status CheckKeys(const ArgSpec& keys) {
  if (keys.spec.dtype != DType::kString && keys.spec.dtype != DType::kInt64) {
    return absl::InvalidArgumentError(
        absl::StrCat("keys of a table must be strings or int64; got ",
                     keys.spec.ToString()));
  }
  return CheckRank("a table's keys", keys, 1);
}

absl::Status CheckLookedUp(const ArgSpec& x, const ArgSpec& keys) {
  if (x.spec.dtype == keys.spec.dtype ||
      (IsInteger(x.spec.dtype) && keys.spec.dtype == DType::kInt64)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "a table of ", Text(Name(keys.spec.dtype)),
      " keys looks up values of that type; got ", x.spec.ToString()));
}

absl::StatusOr<PreparedPtr> Prepare(absl::Span<const ArgSpec> args,
                                    const Attrs&) {
  for (size_t i = 1; i < args.size(); ++i) {
    if (args[i].constant == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a table's keys and values must be constants; got ",
          args[i].spec.ToString(), " that is known only with an element"));
    }
  }
  auto filled = std::make_shared<Filled>();
  filled->keys = *args[1].constant;
  const int64_t count = filled->keys.RowItems(0);
  if (count > kMaxKeys) {
    return absl::InvalidArgumentError(
        absl::StrCat("a table may have ", kMaxKeys, " keys; got ", count));
  }
  if (filled->keys.dtype() == DType::kString) {
    PENSTOCK_RETURN_IF_ERROR(filled->strings.Fill(
        absl::MakeConstSpan(filled->keys.Row<StringRef>(0), count)));
  } else {
    PENSTOCK_RETURN_IF_ERROR(filled->integers.Fill(
        absl::MakeConstSpan(filled->keys.Row<int64_t>(0), count)));
  }
  return PreparedPtr(std::move(filled));
}

// Calls f(table, x with keys of the table's type).
template <typename F>
Column WithTable(const Arg& x, const EvalContext& context, F&& f) {
  const auto& filled = *static_cast<const Filled*>(context.prepared);
  if (filled.keys.dtype() == DType::kString) return f(filled.strings, x);
  if (x.column->dtype() == DType::kInt64) return f(filled.integers, x);
  const Column cast = Cast(*x.column, DType::kInt64);
  Arg own = x;
  own.column = &cast;
  return f(filled.integers, own);
}

template <typename Key>
Key KeyOf(const LookupTable<Key>&);

absl::StatusOr<TensorSpec> InferFind(absl::Span<const ArgSpec> args,
                                     const Attrs&) {
  PENSTOCK_RETURN_IF_ERROR(CheckKeys(args[1]));
  PENSTOCK_RETURN_IF_ERROR(CheckLookedUp(args[0], args[1]));
  PENSTOCK_RETURN_IF_ERROR(CheckRank("a table's values", args[2], 1));
  PENSTOCK_RETURN_IF_ERROR(CheckRank("a table's default", args[3], 0));
  if (args[2].spec.dtype != args[3].spec.dtype) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a table's default must be of its values' type; got ",
        args[3].spec.ToString(), " for ", args[2].spec.ToString()));
  }
  const auto keys = KnownCount(args[1]);
  const auto values = KnownCount(args[2]);
  if (keys && values && *keys != *values) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a table needs as many values as keys; got ", *values, " and ", *keys));
  }
  return TensorSpec{args[2].spec.dtype, args[0].spec.shape};
}

absl::StatusOr<Column> EvalFind(absl::Span<const Arg> args, const Attrs&,
                                const TensorSpec& result,
                                EvalContext& context) {
  const int64_t rows = ResultRows(args, context);
  return VisitDType(result.dtype, [&](auto item) -> Column {
    using T = decltype(item);
    const T* values = args[2].column->Row<T>(0);
    const T otherwise = *args[3].column->Row<T>(0);
    return WithTable(args[0], context, [&](const auto& table, const Arg& x) {
      using Key = decltype(KeyOf(table));
      return MapRows<Key, T>(
          x, rows, StringPins(args.subspan(2)),
          [&](int64_t, const Key* in, int64_t count, T* out) {
            table.FindAll(in, count, [&](int64_t i, uint32_t place) {
              out[i] = place == table.kNone ? otherwise : values[place];
            });
          });
    });
  });
}

absl::StatusOr<TensorSpec> InferPlace(absl::Span<const ArgSpec> args,
                                      const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckKeys(args[1]));
  PENSTOCK_RETURN_IF_ERROR(CheckLookedUp(args[0], args[1]));
  PENSTOCK_RETURN_IF_ERROR(IntAttr(attrs, "default", -1).status());
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t buckets,
                            IntAttr(attrs, "num_oov_buckets", 0));
  if (buckets < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_oov_buckets must not be negative; got ", buckets));
  }
  return TensorSpec{DType::kInt64, args[0].spec.shape};
}

uint64_t FingerprintOf(const StringRef& key) {
  return Fingerprint64(key.view());
}
// As TensorFlow has it: of its decimal digits.
uint64_t FingerprintOf(int64_t key) {
  const std::string digits = absl::StrCat(key);
  return Fingerprint64(digits);
}

absl::StatusOr<Column> EvalPlace(absl::Span<const Arg> args, const Attrs& attrs,
                                 const TensorSpec&, EvalContext& context) {
  const int64_t rows = ResultRows(args, context);
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t otherwise,
                            IntAttr(attrs, "default", -1));
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t buckets,
                            IntAttr(attrs, "num_oov_buckets", 0));
  return WithTable(args[0], context, [&](const auto& table, const Arg& x) {
    using Key = decltype(KeyOf(table));
    const int64_t count = static_cast<int64_t>(table.size());
    return MapRows<Key, int64_t>(
        x, rows, {}, [&](int64_t, const Key* in, int64_t items, int64_t* out) {
          table.FindAll(in, items, [&](int64_t i, uint32_t place) {
            if (place != table.kNone) {
              out[i] = place;
            } else if (buckets == 0) {
              out[i] = otherwise;
            } else {
              out[i] =
                  count + static_cast<int64_t>(FingerprintOf(in[i]) %
                                               static_cast<uint64_t>(buckets));
            }
          });
        });
  });
}

}  // namespace

std::vector<Function> LookupFunctions() {
  const Param x = {"x", ParamKind::kTensor, "", "What to look up."};
  const Param keys = {"keys", ParamKind::kTensor, "", "A constant vector."};
  return {
      {.name = "lookup.find",
       .params = {x,
                  keys,
                  {"values", ParamKind::kTensor, "", "One for each key."},
                  {"default", ParamKind::kTensor, "", "For other keys."}},
       .doc = "The values of keys in a table.",
       .example = "",
       .infer = InferFind,
       .eval = EvalFind,
       .prepare = Prepare,
       .is_internal = true},
      {.name = "lookup.place",
       .params = {x,
                  keys,
                  {"num_oov_buckets", ParamKind::kInt, "0",
                   "Numbers behind the last key's, for keys not in the table."},
                  {"default", ParamKind::kInt, "-1",
                   "For keys not in the table, if there are no buckets."}},
       .doc = "Where keys stand in a list.",
       .example = "",
       .infer = InferPlace,
       .eval = EvalPlace,
       .prepare = Prepare,
       .is_internal = true},
  };
}

}  // namespace penstock::functions

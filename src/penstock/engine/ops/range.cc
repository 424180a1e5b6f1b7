#include "penstock/engine/ops/range.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "penstock/base/status.h"

namespace penstock::engine {
namespace {

// Converts any numeric scalar.
template <typename T>
absl::StatusOr<T> Scalar(const plan::Value& value, const Scope& scope) {
  PENSTOCK_ASSIGN_OR_RETURN(const Column column, ValueOf(value, scope));
  return VisitDType(column.dtype(), [&](auto zero) -> T {
    using From = decltype(zero);
    if constexpr (std::is_arithmetic_v<From>) {
      return static_cast<T>(*column.Row<From>(0));
    } else if constexpr (std::is_same_v<From, Half> ||
                         std::is_same_v<From, Bfloat16>) {
      return static_cast<T>(static_cast<float>(*column.Row<From>(0)));
    } else {
      return T{};
    }
  });
}

// How many terms there are from start to stop; needs a step that is not 0.
int64_t CountOf(__int128 start, __int128 stop, __int128 step) {
  const __int128 span = stop - start;
  if (span == 0 || (span > 0) != (step > 0)) return 0;
  const __int128 magnitude = span > 0 ? span : -span;
  const __int128 stride = step > 0 ? step : -step;
  const __int128 count = (magnitude + stride - 1) / stride;
  return static_cast<int64_t>(
      std::min<__int128>(count, std::numeric_limits<int64_t>::max()));
}

int64_t CountOf(double start, double stop, double step) {
  const double count = std::ceil((stop - start) / step);
  if (!(count > 0)) return 0;
  constexpr double kTooMany = 9.2e18;  // fits an int64
  return count < kTooMany ? static_cast<int64_t>(count)
                          : std::numeric_limits<int64_t>::max();
}

// `Wide` is int64_t or double: the arithmetic's type, whatever the output's.
template <typename Wide>
class RangeStream final : public Stream {
 public:
  RangeStream(const Scope& scope, const OpInfo& info, Wide start, Wide step,
              std::optional<int64_t> count)
      : Stream(StatsOf(scope, info)),
        scope_(scope),
        dtype_(info.leaves[0].dtype),
        start_(start),
        step_(step),
        count_(count.value_or(std::numeric_limits<int64_t>::max())) {}

  bool IsOver() const override { return next_ >= count_; }

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    const int64_t rows = std::min(request.max_rows, count_ - next_);
    if (rows <= 0) return Pull::End();
    Chunk chunk;
    chunk.rows = rows;
    Buffer values = Buffer::Allocate(rows * ItemSize(dtype_));
    VisitDType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      if constexpr (!std::is_same_v<T, StringRef>) {
        Fill(values.MutableAs<T>(), rows);
      }
    });
    chunk.columns.push_back(Column::Dense(dtype_, {}, rows, std::move(values)));
    chunk.lineage = SourceLineage(scope_, next_, rows);
    next_ += rows;
    return Pull::Rows(std::move(chunk));
  }

  int64_t DoSkip(int64_t rows) override {
    const int64_t skipped = std::min(rows, count_ - next_);
    next_ += skipped;
    return skipped;
  }

  void DoSave(WireWriter& writer) const override { writer.Varint(next_); }

  absl::Status DoRestore(WireReader& reader) override {
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t next, reader.Varint());
    next_ = static_cast<int64_t>(next);
    return absl::OkStatus();
  }

 private:
  // Wraps around where the type does.
  Wide Term(int64_t ordinal) const {
    if constexpr (std::is_same_v<Wide, int64_t>) {
      return static_cast<int64_t>(static_cast<uint64_t>(start_) +
                                  static_cast<uint64_t>(ordinal) *
                                      static_cast<uint64_t>(step_));
    } else {
      return start_ + static_cast<double>(ordinal) * step_;
    }
  }

  template <typename T>
  void Fill(T* out, int64_t rows) const {
    for (int64_t i = 0; i < rows; ++i) {
      if constexpr (std::is_arithmetic_v<T>) {
        out[i] = static_cast<T>(Term(next_ + i));
      } else if constexpr (std::is_same_v<T, Half> ||
                           std::is_same_v<T, Bfloat16>) {
        out[i] = T(static_cast<float>(Term(next_ + i)));
      } else {
        out[i] = T(static_cast<typename T::value_type>(Term(next_ + i)));
      }
    }
  }

  const Scope scope_;
  const DType dtype_;
  const Wide start_;
  const Wide step_;
  const int64_t count_;
  int64_t next_ = 0;
};

template <typename Wide>
StreamOr StartRange(const plan::Range& spec, const OpInfo& info,
                    const Scope& scope) {
  // Wide enough for all integers, signed and unsigned.
  using Exact =
      std::conditional_t<std::is_same_v<Wide, double>, double, __int128>;
  PENSTOCK_ASSIGN_OR_RETURN(const Exact start,
                            Scalar<Exact>(spec.start(), scope));
  PENSTOCK_ASSIGN_OR_RETURN(const Exact stop,
                            Scalar<Exact>(spec.stop(), scope));
  PENSTOCK_ASSIGN_OR_RETURN(const Exact step,
                            Scalar<Exact>(spec.step(), scope));
  if (step == Exact{0}) {
    return info.Located(
        absl::InvalidArgumentError("range: step must not be 0; got 0"));
  }
  return std::make_unique<RangeStream<Wide>>(
      scope, info, static_cast<Wide>(start), static_cast<Wide>(step),
      CountOf(start, stop, step));
}

template <typename Wide>
StreamOr StartCounter(const plan::Counter& spec, const OpInfo& info,
                      const Scope& scope) {
  PENSTOCK_ASSIGN_OR_RETURN(const Wide start,
                            Scalar<Wide>(spec.start(), scope));
  PENSTOCK_ASSIGN_OR_RETURN(const Wide step, Scalar<Wide>(spec.step(), scope));
  return std::make_unique<RangeStream<Wide>>(scope, info, start, step,
                                             std::nullopt);
}

}  // namespace

OperatorOr MakeRange(const plan::Range& spec, OpContext& context) {
  const OpInfo& info = *context.info;
  if (IsFloat(info.leaves[0].dtype)) {
    return MakeOperator([spec, &info](const Scope& scope) {
      return StartRange<double>(spec, info, scope);
    });
  }
  return MakeOperator([spec, &info](const Scope& scope) {
    return StartRange<int64_t>(spec, info, scope);
  });
}

OperatorOr MakeCounter(const plan::Counter& spec, OpContext& context) {
  const OpInfo& info = *context.info;
  if (IsFloat(info.leaves[0].dtype)) {
    return MakeOperator([spec, &info](const Scope& scope) {
      return StartCounter<double>(spec, info, scope);
    });
  }
  return MakeOperator([spec, &info](const Scope& scope) {
    return StartCounter<int64_t>(spec, info, scope);
  });
}

}  // namespace penstock::engine

#include "penstock/functions/cast.h"

#include <bit>
#include <complex>
#include <cstring>
#include <type_traits>

#include "penstock/functions/rows.h"

namespace penstock::functions {
namespace {

template <typename T>
inline constexpr bool kIsComplex = false;
template <typename T>
inline constexpr bool kIsComplex<std::complex<T>> = true;
template <typename T>
inline constexpr bool kIsSmallFloat =
    std::is_same_v<T, Half> || std::is_same_v<T, Bfloat16>;

// Rounds to odd, so that a second rounding, to fewer bits, comes out as if it
// had been the only one.
float RoundToOdd(double value) {
  const float rounded = static_cast<float>(value);
  if (!(static_cast<double>(rounded) != value) || std::isinf(rounded)) {
    return rounded;
  }
  auto bits = std::bit_cast<uint32_t>(rounded);
  if ((bits & 1) == 0) {
    const bool is_away =
        (std::abs(static_cast<double>(rounded)) > std::abs(value));
    bits += is_away ? -1 : 1;
  }
  return std::bit_cast<float>(bits);
}

template <typename To, typename From>
To Convert(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (kIsSmallFloat<From>) {
    return Convert<To>(static_cast<float>(value));
  } else if constexpr (kIsComplex<From>) {
    if constexpr (std::is_same_v<To, bool>) {
      return value != From{};
    } else if constexpr (kIsComplex<To>) {
      return To(static_cast<typename To::value_type>(value.real()),
                static_cast<typename To::value_type>(value.imag()));
    } else {
      return Convert<To>(value.real());
    }
  } else if constexpr (std::is_same_v<To, Half> &&
                       std::is_same_v<From, double>) {
    return Half(RoundToOdd(value));
  } else if constexpr (kIsSmallFloat<To>) {
    return To(static_cast<float>(value));
  } else if constexpr (kIsComplex<To>) {
    return To(static_cast<typename To::value_type>(value), 0);
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From{};
  } else {
    return static_cast<To>(value);
  }
}

template <typename To, typename From>
void CastLoop(const std::byte* in, std::byte* out, int64_t count) {
  const From* from = reinterpret_cast<const From*>(in);
  To* __restrict to = reinterpret_cast<To*>(out);
  for (int64_t i = 0; i < count; ++i) to[i] = Convert<To>(from[i]);
}

}  // namespace

void CastItems(DType from, const std::byte* in, DType to, std::byte* out,
               int64_t count) {
  if (from == to) {
    if (count > 0) std::memcpy(out, in, count * ItemSize(from));
    return;
  }
  VisitDType(from, [&](auto from_item) {
    VisitDType(to, [&](auto to_item) {
      using From = decltype(from_item);
      using To = decltype(to_item);
      if constexpr (!std::is_same_v<From, StringRef> &&
                    !std::is_same_v<To, StringRef> &&
                    !std::is_same_v<From, To>) {
        CastLoop<To, From>(in, out, count);
      }
    });
  });
}

Column Cast(const Column& column, DType to) {
  if (column.dtype() == to) return column;
  if (column.is_dense()) {
    const int64_t count = column.rows() * NumItems(column.shape());
    Buffer values = Buffer::Allocate(count * ItemSize(to));
    CastItems(column.dtype(), column.values().data(), to,
              values.MutableAs<std::byte>(), count);
    return Column::Dense(to, column.shape(), column.rows(), std::move(values));
  }
  RowsWriter writer(to, column.rank(), column.rows());
  for (int64_t row = 0; row < column.rows(); ++row) {
    writer.SetShape(row, column.RowShape(row));
  }
  writer.Allocate();
  for (int64_t row = 0; row < column.rows(); ++row) {
    CastItems(column.dtype(), column.RowData(row), to, writer.RowData(row),
              column.RowItems(row));
  }
  return std::move(writer).Finish({});
}

}  // namespace penstock::functions

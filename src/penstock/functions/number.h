// Arithmetic on single items, as numpy 2 does it: integers wrap, division by
// zero gives 0 (integers) or inf and nan (floats), // and % follow Python's
// signs, complex numbers are multiplied and divided without C's rescues.
#pragma once

#include <cmath>
#include <complex>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace penstock::functions {

template <typename T>
concept Bool = std::same_as<T, bool>;
template <typename T>
concept Integer = std::integral<T> && !Bool<T>;
template <typename T>
concept Floating = std::floating_point<T>;
template <typename T>
concept Complex = std::same_as<T, std::complex<float>> ||
    std::same_as<T, std::complex<double>>;
template <typename T>
concept Real = Integer<T> || Floating<T>;
template <typename T>
concept Number = Bool<T> || Real<T> || Complex<T>;

// An unsigned type in which T's arithmetic neither overflows nor is promoted to
// a signed one.
template <Integer T>
using Wrapping =
    std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;

template <Integer T>
T WrapAdd(T a, T b) {
  return static_cast<T>(static_cast<Wrapping<T>>(a) +
                        static_cast<Wrapping<T>>(b));
}
template <Integer T>
T WrapSubtract(T a, T b) {
  return static_cast<T>(static_cast<Wrapping<T>>(a) -
                        static_cast<Wrapping<T>>(b));
}
template <Integer T>
T WrapMultiply(T a, T b) {
  return static_cast<T>(static_cast<Wrapping<T>>(a) *
                        static_cast<Wrapping<T>>(b));
}

template <Integer T>
T FloorDivide(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return WrapSubtract<T>(0, a);
    const T quotient = static_cast<T>(a / b);
    return static_cast<T>(quotient - ((a % b != 0) && ((a < 0) != (b < 0))));
  } else {
    return static_cast<T>(a / b);
  }
}

template <Integer T>
T FloorMod(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return 0;
    const T rest = static_cast<T>(a % b);
    return static_cast<T>(rest != 0 && ((rest < 0) != (b < 0)) ? rest + b
                                                               : rest);
  } else {
    return static_cast<T>(a % b);
  }
}

// The quotient and the rest together, for b != 0.
template <Floating T>
T DivMod(T a, T b, T* rest) {
  T mod = std::fmod(a, b);
  T div = (a - mod) / b;
  if (mod != 0) {
    if ((b < 0) != (mod < 0)) {
      mod += b;
      div -= 1;
    }
  } else {
    mod = std::copysign(T{0}, b);
  }
  *rest = mod;
  if (div == 0) return std::copysign(T{0}, a / b);
  const T floored = std::floor(div);
  return div - floored > T{0.5} ? floored + 1 : floored;
}

template <Floating T>
T FloorDivide(T a, T b) {
  if (b == 0) return a / b;
  T rest;
  return DivMod(a, b, &rest);
}

template <Floating T>
T FloorMod(T a, T b) {
  if (b == 0) return std::fmod(a, b);
  T rest;
  DivMod(a, b, &rest);
  return rest;
}

template <Complex T>
T Times(T a, T b) {
  return T(a.real() * b.real() - a.imag() * b.imag(),
           a.real() * b.imag() + a.imag() * b.real());
}

// Smith's method.
template <Complex T>
T Divided(T a, T b) {
  using R = typename T::value_type;
  const R abs_real = std::abs(b.real());
  const R abs_imag = std::abs(b.imag());
  if (abs_real >= abs_imag) {
    if (abs_real == 0 && abs_imag == 0) {
      return T(a.real() / abs_real, a.imag() / abs_real);
    }
    const R ratio = b.imag() / b.real();
    const R scale = R{1} / (b.real() + b.imag() * ratio);
    return T((a.real() + a.imag() * ratio) * scale,
             (a.imag() - a.real() * ratio) * scale);
  }
  const R ratio = b.real() / b.imag();
  const R scale = R{1} / (b.imag() + b.real() * ratio);
  return T((a.real() * ratio + a.imag()) * scale,
           (a.imag() * ratio - a.real()) * scale);
}

// By squaring; negative exponents give 0 (the caller makes errors of them).
template <Integer T>
T Power(T base, T exponent) {
  if constexpr (std::is_signed_v<T>) {
    if (exponent < 0) return 0;
  }
  T result = 1;
  while (exponent != 0) {
    if (exponent & 1) result = WrapMultiply(result, base);
    exponent = static_cast<T>(exponent >> 1);
    if (exponent != 0) base = WrapMultiply(base, base);
  }
  return result;
}

template <typename T>
bool IsNan(T value) {
  if constexpr (Complex<T>) {
    return std::isnan(value.real()) || std::isnan(value.imag());
  } else if constexpr (Floating<T>) {
    return std::isnan(value);
  } else {
    return false;
  }
}

// Complex numbers are ordered by real part, then by imaginary part.
template <typename T>
bool Less(T a, T b) {
  if constexpr (Complex<T>) {
    return a.real() < b.real() || (a.real() == b.real() && a.imag() < b.imag());
  } else {
    return a < b;
  }
}

template <Number T>
T Minimum(T a, T b) {
  if constexpr (Complex<T>) {
    return IsNan(a) || (!IsNan(b) && !Less(b, a)) ? a : b;
  } else if constexpr (Floating<T>) {
    return a < b || a != a ? a : b;
  } else {
    return a < b ? a : b;
  }
}

template <Number T>
T Maximum(T a, T b) {
  if constexpr (Complex<T>) {
    return IsNan(a) || (!IsNan(b) && !Less(a, b)) ? a : b;
  } else if constexpr (Floating<T>) {
    return a > b || a != a ? a : b;
  } else {
    return a > b ? a : b;
  }
}

}  // namespace penstock::functions

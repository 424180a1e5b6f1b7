// The element types, their sizes, names and C++ types.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace penstock {

// The numbers are part of the wire format and of saved plans: never reuse one.
enum class DType : uint8_t {
  kBool = 1,
  kInt8 = 2,
  kInt16 = 3,
  kInt32 = 4,
  kInt64 = 5,
  kUint8 = 6,
  kUint16 = 7,
  kUint32 = 8,
  kUint64 = 9,
  kFloat16 = 10,
  kBfloat16 = 11,
  kFloat32 = 12,
  kFloat64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kString = 16,
};

inline constexpr DType kAllDTypes[] = {
    DType::kBool,    DType::kInt8,      DType::kInt16,      DType::kInt32,
    DType::kInt64,   DType::kUint8,     DType::kUint16,     DType::kUint32,
    DType::kUint64,  DType::kFloat16,   DType::kBfloat16,   DType::kFloat32,
    DType::kFloat64, DType::kComplex64, DType::kComplex128, DType::kString};

// A string item in memory: a view of bytes that the column pins.
struct StringRef {
  const char* data = nullptr;
  uint64_t size = 0;

  std::string_view view() const { return {data, static_cast<size_t>(size)}; }
};

// IEEE binary16. Arithmetic is done in float and rounded back to even.
struct Half {
  uint16_t bits = 0;

  Half() = default;
  explicit Half(float value);
  explicit operator float() const;
};

// The upper half of a float32, rounded to even.
struct Bfloat16 {
  uint16_t bits = 0;

  Bfloat16() = default;
  explicit Bfloat16(float value);
  explicit operator float() const;
};

// Bytes of one item in a column's value buffer (16 for a string: a StringRef).
size_t ItemSize(DType dtype);
// "int64", "bool", "string", …: numpy's names.
std::string_view Name(DType dtype);
std::optional<DType> ParseDType(std::string_view name);
// Whether `value`, as read from a wire or a plan, is one of the enumerators.
bool IsDType(int value);

bool IsInteger(DType dtype);   // signed or unsigned; not bool
bool IsUnsigned(DType dtype);  // not bool
bool IsFloat(DType dtype);     // the four real floating types
bool IsComplex(DType dtype);

template <typename T>
inline constexpr DType kDTypeOf = DType{};
template <>
inline constexpr DType kDTypeOf<bool> = DType::kBool;
template <>
inline constexpr DType kDTypeOf<int8_t> = DType::kInt8;
template <>
inline constexpr DType kDTypeOf<int16_t> = DType::kInt16;
template <>
inline constexpr DType kDTypeOf<int32_t> = DType::kInt32;
template <>
inline constexpr DType kDTypeOf<int64_t> = DType::kInt64;
template <>
inline constexpr DType kDTypeOf<uint8_t> = DType::kUint8;
template <>
inline constexpr DType kDTypeOf<uint16_t> = DType::kUint16;
template <>
inline constexpr DType kDTypeOf<uint32_t> = DType::kUint32;
template <>
inline constexpr DType kDTypeOf<uint64_t> = DType::kUint64;
template <>
inline constexpr DType kDTypeOf<Half> = DType::kFloat16;
template <>
inline constexpr DType kDTypeOf<Bfloat16> = DType::kBfloat16;
template <>
inline constexpr DType kDTypeOf<float> = DType::kFloat32;
template <>
inline constexpr DType kDTypeOf<double> = DType::kFloat64;
template <>
inline constexpr DType kDTypeOf<std::complex<float>> = DType::kComplex64;
template <>
inline constexpr DType kDTypeOf<std::complex<double>> = DType::kComplex128;
template <>
inline constexpr DType kDTypeOf<StringRef> = DType::kString;

// Calls `f(T{})` with the C++ type of `dtype`.
template <typename F>
auto VisitDType(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kBool:
      return f(bool{});
    case DType::kInt8:
      return f(int8_t{});
    case DType::kInt16:
      return f(int16_t{});
    case DType::kInt32:
      return f(int32_t{});
    case DType::kInt64:
      return f(int64_t{});
    case DType::kUint8:
      return f(uint8_t{});
    case DType::kUint16:
      return f(uint16_t{});
    case DType::kUint32:
      return f(uint32_t{});
    case DType::kUint64:
      return f(uint64_t{});
    case DType::kFloat16:
      return f(Half{});
    case DType::kBfloat16:
      return f(Bfloat16{});
    case DType::kFloat32:
      return f(float{});
    case DType::kFloat64:
      return f(double{});
    case DType::kComplex64:
      return f(std::complex<float>{});
    case DType::kComplex128:
      return f(std::complex<double>{});
    case DType::kString:
      return f(StringRef{});
  }
  __builtin_unreachable();
}

}  // namespace penstock

#include "penstock/data/dtype.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace penstock {

// Rounds to nearest even by letting the float adder do it: scaling by powers
// of two places the binary16 rounding point at the end of the float mantissa.
Half::Half(float value) {
  const auto raw = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((raw >> 16) & 0x8000);
  const uint32_t magnitude = raw & 0x7fffffff;
  if (magnitude >= 0x7f800000) {
    const bool is_nan = magnitude > 0x7f800000;
    const auto payload = static_cast<uint16_t>((magnitude >> 13) & 0x3ff);
    bits =
        static_cast<uint16_t>(sign | 0x7c00 | (is_nan ? (payload | 0x200) : 0));
    return;
  }
  if (magnitude >= 0x47800000) {  // 65536 and above
    bits = sign | 0x7c00;
    return;
  }
  if (magnitude < 0x38800000) {  // below 2^-14: subnormal
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    bits = static_cast<uint16_t>(
        sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000));
    return;
  }
  const uint32_t odd = (magnitude >> 13) & 1;
  bits = static_cast<uint16_t>(sign |
                               ((magnitude - 0x38000000 + 0xfff + odd) >> 13));
}

Half::operator float() const {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1f;
  const uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0x1f) {
    return std::bit_cast<float>(sign | 0x7f800000 | (mantissa << 13));
  }
  if (exponent == 0) {
    const float value = std::ldexp(static_cast<float>(mantissa), -24);
    return sign ? -value : value;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) |
                              (mantissa << 13));
}

Bfloat16::Bfloat16(float value) {
  const auto raw = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) {
    bits = static_cast<uint16_t>((raw >> 16) | 0x40);
    return;
  }
  const uint32_t odd = (raw >> 16) & 1;
  bits = static_cast<uint16_t>((raw + 0x7fff + odd) >> 16);
}

Bfloat16::operator float() const {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

size_t ItemSize(DType dtype) {
  return VisitDType(dtype, [](auto value) { return sizeof(value); });
}

std::string_view Name(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return "bool";
    case DType::kInt8:
      return "int8";
    case DType::kInt16:
      return "int16";
    case DType::kInt32:
      return "int32";
    case DType::kInt64:
      return "int64";
    case DType::kUint8:
      return "uint8";
    case DType::kUint16:
      return "uint16";
    case DType::kUint32:
      return "uint32";
    case DType::kUint64:
      return "uint64";
    case DType::kFloat16:
      return "float16";
    case DType::kBfloat16:
      return "bfloat16";
    case DType::kFloat32:
      return "float32";
    case DType::kFloat64:
      return "float64";
    case DType::kComplex64:
      return "complex64";
    case DType::kComplex128:
      return "complex128";
    case DType::kString:
      return "string";
  }
  return "unknown";
}

std::optional<DType> ParseDType(std::string_view name) {
  for (DType dtype : kAllDTypes) {
    if (Name(dtype) == name) return dtype;
  }
  return std::nullopt;
}

bool IsDType(int value) {
  return value >= static_cast<int>(DType::kBool) &&
         value <= static_cast<int>(DType::kString);
}

bool IsUnsigned(DType dtype) {
  return dtype >= DType::kUint8 && dtype <= DType::kUint64;
}
bool IsInteger(DType dtype) {
  return dtype >= DType::kInt8 && dtype <= DType::kUint64;
}
bool IsFloat(DType dtype) {
  return dtype >= DType::kFloat16 && dtype <= DType::kFloat64;
}
bool IsComplex(DType dtype) {
  return dtype == DType::kComplex64 || dtype == DType::kComplex128;
}

}  // namespace penstock

#include "penstock/base/wire.h"

#include "penstock/base/status.h"

namespace penstock {

void WireWriter::Varint(uint64_t value) {
  while (value >= 0x80) {
    bytes_.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  bytes_.push_back(static_cast<char>(value));
}

void WireWriter::Signed(int64_t value) {
  Varint((static_cast<uint64_t>(value) << 1) ^
         static_cast<uint64_t>(value >> 63));
}

void WireWriter::Bytes(std::string_view bytes) {
  Varint(bytes.size());
  bytes_.append(bytes);
}

absl::StatusOr<uint64_t> WireReader::Varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (rest_.empty()) return absl::DataLossError("record ends inside a field");
    const auto byte = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    // One bit of the tenth byte is left; others would go unnoticed.
    if (shift == 63 && byte > 1) break;
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return absl::DataLossError("malformed number in a record");
}

absl::StatusOr<int64_t> WireReader::Signed() {
  PENSTOCK_ASSIGN_OR_RETURN(uint64_t raw, Varint());
  return static_cast<int64_t>(raw >> 1) ^ -static_cast<int64_t>(raw & 1);
}

absl::StatusOr<bool> WireReader::Bool() {
  PENSTOCK_ASSIGN_OR_RETURN(uint64_t raw, Varint());
  if (raw > 1) return absl::DataLossError("malformed flag in a record");
  return raw == 1;
}

absl::StatusOr<std::string_view> WireReader::Bytes() {
  PENSTOCK_ASSIGN_OR_RETURN(uint64_t size, Varint());
  if (size > rest_.size()) {
    return absl::DataLossError("record ends inside a byte string");
  }
  std::string_view bytes = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return bytes;
}

}  // namespace penstock

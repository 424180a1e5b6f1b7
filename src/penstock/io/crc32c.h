// CRC-32C (Castagnoli), the checksum of TFRecord files.
#pragma once

#include <cstdint>
#include <string_view>

namespace penstock::io {

uint32_t Crc32c(std::string_view bytes);

// What TFRecord stores in place of a crc, so that the crc of data that itself
// holds crcs does not degenerate.
constexpr uint32_t MaskedCrc(uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

inline uint32_t MaskedCrc32c(std::string_view bytes) {
  return MaskedCrc(Crc32c(bytes));
}

}  // namespace penstock::io

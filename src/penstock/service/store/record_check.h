// Checksums of a store's records: one for each, and one for all together.
#pragma once

#include <cstdint>
#include <string_view>

namespace penstock::store {

// CRC-32C over the lengths, the term, the key and the value.
uint32_t RecordCrc(std::string_view key, std::string_view value, uint64_t term);

// CRC-32C of bytes.
uint32_t Crc32c(std::string_view bytes);

// What a record adds to the digest of its store, which is the sum over all
// records modulo 2^64: it can be kept up to date write by write, and shows a
// record that is missing or old, which no checksum of a record can.
uint64_t DigestOf(std::string_view key, uint32_t crc);

}  // namespace penstock::store

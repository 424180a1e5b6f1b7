#include "penstock/service/store/record_check.h"

#include <isa-l/crc.h>

#include <cstring>

#include "penstock/base/hash.h"
#include "penstock/base/vector_state.h"

namespace penstock::store {
namespace {

// Keys and values are far below the 2 GiB that the library counts to.
uint32_t Update(uint32_t crc, std::string_view bytes) {
  if (bytes.empty()) return crc;
  auto* data =
      reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));
  return crc32_iscsi(data, static_cast<int>(bytes.size()), crc);
}

}  // namespace

uint32_t Crc32c(std::string_view bytes) {
  const uint32_t crc = ~Update(0xffffffffU, bytes);
  ClearUpperVectors();
  return crc;
}

uint32_t RecordCrc(std::string_view key, std::string_view value,
                   uint64_t term) {
  const uint64_t words[] = {key.size(), value.size(), term};
  char head[sizeof(words)];
  std::memcpy(head, words, sizeof(words));
  uint32_t crc = Update(0xffffffffU, {head, sizeof(head)});
  crc = ~Update(Update(crc, key), value);
  ClearUpperVectors();
  return crc;
}

uint64_t DigestOf(std::string_view key, uint32_t crc) {
  return Combine(HashBytes(key), crc);
}

}  // namespace penstock::store

// Hashes of strings whose values other systems know. They never change.
#pragma once

#include <cstdint>
#include <string_view>

namespace penstock::functions {

// FarmHash's Fingerprint64, as TensorFlow's to_hash_bucket_fast and its tables.
uint64_t Fingerprint64(std::string_view text);
// TensorFlow's own: a variant of MurmurHash64A.
uint64_t MurmurHash64(std::string_view text);
// SipHash-2-4 under a key of two words.
uint64_t SipHash64(uint64_t key0, uint64_t key1, std::string_view text);

}  // namespace penstock::functions

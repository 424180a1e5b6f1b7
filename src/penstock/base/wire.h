// Small binary records: varints and byte strings, written in order and read
// back in the same order. Used for saved states.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace penstock {

class WireWriter final {
 public:
  void Varint(uint64_t value);
  void Signed(int64_t value);  // zigzag, then a varint
  void Bytes(std::string_view bytes);
  void Bool(bool value) { Varint(value ? 1 : 0); }
  // Appends what another writer wrote.
  void Raw(std::string_view record) { bytes_.append(record); }

  const std::string& bytes() const { return bytes_; }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Every read past the end or of a malformed varint is a DataLoss error: the
// bytes may come from a file that someone edited.
class WireReader final {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  absl::StatusOr<uint64_t> Varint();
  absl::StatusOr<int64_t> Signed();
  absl::StatusOr<bool> Bool();
  // A view into the bytes given to the constructor.
  absl::StatusOr<std::string_view> Bytes();
  bool is_at_end() const { return rest_.empty(); }
  // What was not read yet.
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

}  // namespace penstock

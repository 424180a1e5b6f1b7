#include "penstock/service/store/meta_store.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace penstock::store {

absl::Status ValidateBatch(const WriteBatch& batch) {
  for (const Write& write : batch) {
    if (write.key.empty() || write.key.size() > kMaxKeyBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("a key must have 1 to ", kMaxKeyBytes, " bytes; got ",
                       write.key.size()));
    }
    if (write.value && write.value->size() > kMaxValueBytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a value must have at most ", kMaxValueBytes, " bytes; got ",
          write.value->size(), " for key ", ReadableKey(write.key)));
    }
  }
  const size_t num_bytes = BatchBytes(batch);
  if (num_bytes <= kMaxBatchBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a batch must have at most ", kMaxBatchBytes,
                   " bytes of keys and values; got ", num_bytes));
}

absl::Status ValidateHolder(std::string_view holder) {
  if (holder.size() <= kMaxHolderBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the holder's name must have at most ", kMaxHolderBytes,
                   " bytes; got ", holder.size()));
}

absl::Status CheckTerm(uint64_t term, uint64_t current) {
  if (term < current) {
    return absl::AbortedError(
        absl::StrCat("expected to hold the store's term, ", current, "; got ",
                     term, ": another dispatcher has taken over"));
  }
  if (term > current || term == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a term that Campaign() gave; got ", term,
                     ", and the store is at ", current));
  }
  return absl::OkStatus();
}

bool OnlyDeletes(const WriteBatch& batch) {
  return std::none_of(batch.begin(), batch.end(), [](const Write& write) {
    return write.value.has_value();
  });
}

size_t BatchBytes(const WriteBatch& batch) {
  size_t num_bytes = 0;
  for (const Write& write : batch) {
    num_bytes += write.key.size() + (write.value ? write.value->size() : 0);
  }
  return num_bytes;
}

std::optional<std::string> AfterPrefix(std::string_view prefix) {
  std::string after(prefix);
  while (!after.empty() && after.back() == '\xff') after.pop_back();
  if (after.empty()) return std::nullopt;
  after.back() = static_cast<char>(after.back() + 1);
  return after;
}

std::string ReadableKey(std::string_view key) {
  constexpr size_t kShown = 80;
  const std::string shown(key.substr(0, kShown));
  return absl::StrCat("\"", absl::CHexEscape(shown), "\"",
                      key.size() > kShown ? "..." : "");
}

}  // namespace penstock::store

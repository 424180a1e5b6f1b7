// What a dispatcher must not forget: keys and values that survive its death.
//
// A store has one writer at a time. Who wants to write begins a term, and every
// write names the writer's: once a higher term has begun, no lower one can
// write, whatever its holder believes about locks, leases or the time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock::store {

// What a store accepts. Keys are any bytes, at least one.
inline constexpr size_t kMaxKeyBytes = 4096;
inline constexpr size_t kMaxValueBytes = size_t{64} << 20;
inline constexpr size_t kMaxBatchBytes = size_t{256} << 20;
inline constexpr size_t kMaxHolderBytes = 1024;

struct Write {
  std::string key;
  std::optional<std::string> value;  // none: the key is deleted, if it is there

  bool operator==(const Write&) const = default;
};

// Applied in order: of two writes of one key, the later stays.
using WriteBatch = std::vector<Write>;

struct Record {
  std::string key;
  std::string value;

  bool operator==(const Record&) const = default;
};

// Thread-safe.
class MetaStore {
 public:
  virtual ~MetaStore() = default;

  // Begins a term: higher than all before, durable when it is returned. Who
  // held one before cannot write any more. `holder` says who it is to people;
  // at most kMaxHolderBytes. Errors are those of Commit().
  virtual absl::StatusOr<uint64_t> Campaign(std::string_view holder) = 0;

  // Writes all of `batch` or nothing; durable when it returns OK.
  //
  //   Aborted            a higher term has begun; nothing was written
  //   InvalidArgument    over a limit, or a term that never began; nothing was
  //                      written
  //   ResourceExhausted  the disk is full; nothing was written. Batches that
  //                      only delete may still pass
  //   any other          whether it was written is unknown. The caller must end
  //                      its process and open the store anew: a second fsync
  //                      may say OK to what the first one lost. All that
  //                      follows fails the same way
  virtual absl::Status Commit(const WriteBatch& batch, uint64_t term) = 0;

  // The records whose keys begin with `prefix`, in the order of their bytes.
  // DataLoss names the record that is damaged.
  virtual absl::StatusOr<std::vector<Record>> Scan(std::string_view prefix) = 0;
};

// InvalidArgument if `batch` or `holder` is over a limit.
absl::Status ValidateBatch(const WriteBatch& batch);
absl::Status ValidateHolder(std::string_view holder);

// Of a store that is at `current`: OK if `term` is the one that may write.
absl::Status CheckTerm(uint64_t term, uint64_t current);

// Whether `batch` asks for no space: it has no values.
bool OnlyDeletes(const WriteBatch& batch);

// The bytes of keys and values.
size_t BatchBytes(const WriteBatch& batch);

// The first key after all that begin with `prefix`; none if there is no such
// key.
std::optional<std::string> AfterPrefix(std::string_view prefix);

// A key as people read it: bytes that do not print as \x.., shortened if long.
std::string ReadableKey(std::string_view key);

}  // namespace penstock::store

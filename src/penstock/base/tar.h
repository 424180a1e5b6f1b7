// The members of a tar archive, found by their headers.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace penstock {

inline constexpr size_t kTarBlockBytes = 512;

struct TarMember {
  std::string name;  // with "/" between folders
  // Where its bytes are, and the next member's header.
  size_t data_begin = 0;
  size_t data_size = 0;
  size_t end = 0;
  bool is_file = false;  // else a folder, a link, …

  // WebDataset's parts of a name: what is before the first dot of its last
  // part, and what is behind it.
  std::string_view key() const;
  std::string_view extension() const;
};

enum class TarState {
  kMember,
  kEnd,   // a block of zeros, which ends an archive
  kMore,  // the header goes on behind the bytes
};

// Reads the member whose header begins at `begin` of `bytes`; its data need not
// be there. With kMore, member.end says how many bytes are needed to go on.
// ustar, GNU and pax headers (long names). DataLoss for a damaged header,
// InvalidArgument for a name that leads out of its folder.
absl::StatusOr<TarState> ReadTarMember(std::string_view bytes, size_t begin,
                                       TarMember& member);

}  // namespace penstock

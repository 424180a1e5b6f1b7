// Places in a reader's journal, as saved states hold them.
//
// What is between a stream and the iterator keeps and combines saved bytes as
// it likes, and nobody can ask it which places they name. So a place is written
// in a form that can be found wherever it ends up: no other bytes look like it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace penstock::service {

struct Place {
  uint64_t stream = 0;  // 0: of the journal as a whole
  uint64_t row = 0;
};

std::string ToBytes(const Place& place);
// Nothing if that is not what ToBytes() gave.
std::optional<Place> ReadPlace(std::string_view bytes);

// Of all places in `state`, the least row of each stream.
std::map<uint64_t, uint64_t> FindPlaces(std::string_view state);

}  // namespace penstock::service

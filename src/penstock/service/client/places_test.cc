#include "penstock/service/client/places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::service {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(PlacesTest, AreFoundWhereverTheyEndedUp) {
  const std::string state = "abc" + ToBytes({7, 30}) + ToBytes({9, 1}) +
                            std::string(5, '\0') + ToBytes({7, 12}) + "\xd1";
  EXPECT_THAT(FindPlaces(state), ElementsAre(Pair(7, 12), Pair(9, 1)));
}

TEST(PlacesTest, OtherBytesAreNotTakenForOne) {
  std::string damaged = ToBytes({7, 30});
  damaged[12] = static_cast<char>(damaged[12] ^ 1);
  EXPECT_THAT(FindPlaces(damaged), IsEmpty());
  EXPECT_THAT(FindPlaces(ToBytes({7, 30}).substr(0, 20)), IsEmpty());
  EXPECT_FALSE(ReadPlace("").has_value());
  EXPECT_EQ(ReadPlace(ToBytes({7, 30}))->row, 30);
}

}  // namespace
}  // namespace penstock::service

#include "penstock/service/dispatcher/worker_places.h"

#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::service {
namespace {

using testing::HasSubstr;

class WorkerPlacesTest : public testing::Test {
 protected:
  std::optional<uint64_t> Come(WorkerPlaces& places,
                               const std::string& address) {
    const auto found = places.Take(address, is_there_);
    there_.insert(address);
    return found;
  }

  std::set<std::string> there_;
  const WorkerPlaces::IsThere is_there_ = [this](const std::string& address) {
    return there_.contains(address);
  };
};

TEST_F(WorkerPlacesTest, AnAddressSaysWhich) {
  WorkerPlaces places({"a:1", "b:1", "a:2"});
  EXPECT_EQ(places.size(), 3);
  EXPECT_EQ(Come(places, "a:2"), 2);
  EXPECT_EQ(Come(places, "a:1"), 0);
  EXPECT_EQ(places.Find("a:2"), 2);
  EXPECT_EQ(places.Find("b:1"), std::nullopt) << "it has not come";
}

TEST_F(WorkerPlacesTest, AnyPortIsWhoeverComesFirst) {
  WorkerPlaces places({"a:%port%", "b", "a:%port%"});
  EXPECT_EQ(Come(places, "a:7"), 0);
  EXPECT_EQ(Come(places, "a:5"), 2);
  EXPECT_EQ(Come(places, "b:5"), 1);
  EXPECT_EQ(Come(places, "a:7"), 0) << "it is back";
  EXPECT_TRUE(absl::IsFailedPrecondition(places.Check("a:9", is_there_)));
  there_.erase("a:5");
  EXPECT_TRUE(places.Check("a:9", is_there_).ok());
  EXPECT_EQ(Come(places, "a:9"), 2) << "in the place of one that is lost";
}

TEST_F(WorkerPlacesTest, OthersAreRefusedUnlessTheyAreWelcome) {
  const WorkerPlaces few({"a:1"});
  EXPECT_TRUE(few.Check("a:1", is_there_).ok());
  const absl::Status refused = few.Check("c:1", is_there_);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_THAT(refused.message(), HasSubstr("a:1"));
  EXPECT_THAT(refused.message(), HasSubstr("got c:1"));
  WorkerPlaces all({"a:1", "*"});
  EXPECT_TRUE(all.Check("c:1", is_there_).ok());
  EXPECT_EQ(Come(all, "c:1"), std::nullopt);
  EXPECT_EQ(all.size(), 1);
  EXPECT_TRUE(WorkerPlaces({}).Check("c:1", is_there_).ok());
}

TEST_F(WorkerPlacesTest, WhatIsNoAddressIsNamed) {
  EXPECT_TRUE(
      WorkerPlaces::Validate({"a:1", "[::1]:2", "b", "c:%port%", "*"}).ok());
  for (const std::string wrong : {"a:", ":1", "a:x", "a:123456"}) {
    EXPECT_THAT(WorkerPlaces::Validate({wrong}).message(),
                HasSubstr("got '" + wrong + "'"));
  }
  EXPECT_THAT(WorkerPlaces::Validate({"a:1", "a:1"}).message(),
              HasSubstr("twice"));
  EXPECT_TRUE(WorkerPlaces::Validate({"a:%port%", "a:%port%"}).ok());
}

}  // namespace
}  // namespace penstock::service

#include "penstock/main/admin_command.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

TEST(AdminCommand, WhatTopCountsIsInItsHead) {
  service::State before;
  service::State::Job& job = *before.add_jobs();
  job.set_job("train");
  service::State::Epoch& epoch = *job.add_epochs();
  epoch.set_bundles(100);
  epoch.set_done(10);
  service::State now = before;
  now.mutable_jobs(0)->mutable_epochs(0)->set_done(30);
  const std::string screen = TopScreen(before, now, /*seconds=*/2);
  EXPECT_THAT(screen, HasSubstr("BUNDLES/S"));
  EXPECT_THAT(screen, ContainsRegex("train .* 30/100 .* 10\\.0"));
}

}  // namespace
}  // namespace penstock

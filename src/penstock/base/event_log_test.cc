#include "penstock/base/event_log.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class EventLogTest : public testing::Test {
 protected:
  EventLog Make(bool is_json) {
    return EventLog(
        {.part = "worker",
         .is_json = is_json,
         .write = [this](const std::string& line) { lines_.push_back(line); },
         .now = [this] { return now_; }});
  }

  absl::Time now_ = absl::FromUnixMillis(1'700'000'000'123);
  std::vector<std::string> lines_;
};

TEST_F(EventLogTest, Words) {
  EventLog log = Make(/*is_json=*/false);
  log.Write("joined", {{"worker", "w:1"}, {"tags", ""}, {"job", "a \"b\"\n"}});
  EXPECT_THAT(lines_,
              ElementsAre("2023-11-14T22:13:20.123Z worker joined worker=w:1 "
                          "tags=\"\" job=\"a \\\"b\\\"\\u000a\"\n"));
}

TEST_F(EventLogTest, Json) {
  EventLog log = Make(/*is_json=*/true);
  log.Write("joined", {{"worker", "w\xff:1"}});
  EXPECT_THAT(lines_, ElementsAre("{\"time\": \"2023-11-14T22:13:20.123Z\", "
                                  "\"part\": \"worker\", \"event\": \"joined\","
                                  " \"worker\": \"w\\u00ff:1\"}\n"));
}

TEST_F(EventLogTest, LongValuesAreCut) {
  EventLog log = Make(/*is_json=*/false);
  log.Write("joined", {{"worker", std::string(10'000, 'x')}});
  EXPECT_LT(lines_[0].size(), 500);
}

TEST_F(EventLogTest, AFloodIsHeldBack) {
  EventLog log = Make(/*is_json=*/false);
  for (int i = 0; i < 1'000; ++i) log.Write("refused", {});
  log.Write("joined", {});
  EXPECT_THAT(lines_, SizeIs(21));
  now_ += absl::Seconds(1);
  log.Write("refused", {});
  EXPECT_THAT(lines_.back(), HasSubstr("refused left_out=980\n"));
}

}  // namespace
}  // namespace penstock

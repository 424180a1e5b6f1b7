#include "penstock/main/settings.h"

#include <unistd.h>

#include <fstream>
#include <map>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Schema& TestSchema() {
  static const Schema* const schema = new Schema{
      "dispatcher",
      "",
      "Runs.",
      "penstock dispatcher",
      "PENSTOCK_DISPATCHER_",
      "dispatcher",
      {
          {"listen", SettingKind::kText, "ADDRESS", "127.0.0.1:5050", "where"},
          {"state-dir", SettingKind::kText, "DIR", "", "what it keeps"},
          {"lease-ms", SettingKind::kNumber, "N", "5000", "how long"},
          {"reflection", SettingKind::kSwitch, "", "", "shows its calls"},
          {"host", SettingKind::kTexts, "NAME", "", "a name"},
      }};
  return *schema;
}

class SettingsTest : public testing::Test {
 protected:
  ~SettingsTest() override { unlink(file_.c_str()); }

  absl::StatusOr<Settings> Read(const std::vector<std::string>& args) const {
    return Settings::Read(
        TestSchema(), args,
        [this](const std::string& name) -> std::optional<std::string> {
          const auto it = environment_.find(name);
          if (it == environment_.end()) return std::nullopt;
          return it->second;
        });
  }
  std::string Why(const std::vector<std::string>& args) const {
    const auto settings = Read(args);
    EXPECT_FALSE(settings.ok());
    return std::string(settings.status().message());
  }
  std::string File(const std::string& text) const {
    std::ofstream(file_) << text;
    return file_;
  }

  std::map<std::string, std::string> environment_;
  const std::string file_ =
      absl::StrCat(testing::TempDir(), "settings", getpid(), ".toml");
};

TEST_F(SettingsTest, Defaults) {
  const auto settings = Read({});
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->text("listen"), "127.0.0.1:5050");
  EXPECT_EQ(settings->number("lease-ms"), 5000);
  EXPECT_FALSE(settings->is_on("reflection"));
  EXPECT_EQ(settings->source("listen"), "");
}

TEST_F(SettingsTest, FlagsBeforeVariablesBeforeTheFile) {
  environment_ = {{"PENSTOCK_DISPATCHER_STATE_DIR", "/variable"},
                  {"PENSTOCK_DISPATCHER_LEASE_MS", "2"}};
  const std::string file = File(
      "[dispatcher]\nlisten = 'file:1'\nstate_dir = '/file'\nlease_ms = 3\n"
      "reflection = true\nhost = ['a', 'b']\n[worker]\nanything = 1\n");
  const auto settings = Read({"--lease-ms=1", "word", "--config", file});
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->number("lease-ms"), 1);
  EXPECT_EQ(settings->source("lease-ms"), "--lease-ms");
  EXPECT_EQ(settings->text("state-dir"), "/variable");
  EXPECT_EQ(settings->source("state-dir"), "PENSTOCK_DISPATCHER_STATE_DIR");
  EXPECT_EQ(settings->text("listen"), "file:1");
  EXPECT_THAT(settings->source("listen"), HasSubstr(".toml:2"));
  EXPECT_TRUE(settings->is_on("reflection"));
  EXPECT_THAT(settings->texts("host"), ElementsAre("a", "b"));
  EXPECT_THAT(settings->words(), ElementsAre("word"));
}

TEST_F(SettingsTest, FlagsMayComeAgain) {
  const auto settings =
      Read({"--host", "a", "--host=b", "--listen", "x:1", "--listen", "y:2"});
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_THAT(settings->texts("host"), ElementsAre("a", "b"));
  EXPECT_EQ(settings->text("listen"), "y:2");
}

TEST_F(SettingsTest, ErrorsSayWhere) {
  EXPECT_EQ(Why({"--lisen", "x"}),
            "there is no --lisen; did you mean --listen?");
  EXPECT_EQ(Why({"--state-dir"}), "--state-dir: expected DIR after it");
  EXPECT_EQ(Why({"--lease-ms", "soon"}),
            "--lease-ms: expected a whole number, at least 0; got 'soon'");
  EXPECT_THAT(Why({"--config", File("[dispatcher]\nstate_dri = 'x'\n")}),
              HasSubstr(".toml:2: there is no key state_dri; did you mean "
                        "state_dir?"));
  EXPECT_THAT(Why({"--config", File("[dispatchr]\n")}),
              HasSubstr("did you mean dispatcher?"));
  EXPECT_THAT(Why({"--config", File("[dispatcher]\nreflection = 'on'\n")}),
              HasSubstr("expected true or false; got 'on'"));
  EXPECT_THAT(Why({"--config", File("[dispatcher\n")}), HasSubstr(".toml:1"));
  EXPECT_THAT(Why({"--config", "/nowhere.toml"}), HasSubstr("/nowhere.toml"));
  environment_ = {{"PENSTOCK_DISPATCHER_LEASE_MS", "-1"}};
  EXPECT_THAT(Why({}), HasSubstr("PENSTOCK_DISPATCHER_LEASE_MS: expected"));
}

TEST_F(SettingsTest, HelpIsMadeOfTheTable) {
  const std::string help = HelpOf(TestSchema());
  for (const Setting& setting : TestSchema().settings) {
    EXPECT_THAT(help, HasSubstr(absl::StrCat("--", std::string(setting.name))));
    EXPECT_THAT(help, HasSubstr(std::string(setting.doc)));
  }
  EXPECT_THAT(help, HasSubstr("PENSTOCK_DISPATCHER_LISTEN"));
  EXPECT_THAT(help, HasSubstr("--config FILE"));
}

}  // namespace
}  // namespace penstock

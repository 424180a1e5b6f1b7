// What a command can be told, by flags, by its environment and by a file: all
// three from one table, which --help is made of too.
//
//   a flag       --state-dir DIR, or --state-dir=DIR
//   a variable   PENSTOCK_DISPATCHER_STATE_DIR
//   a key        state_dir = "DIR" under [dispatcher] in the file of --config
//
// The first of them that says something is in force, in this order.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock {

enum class SettingKind {
  kText,
  kNumber,  // at least 0
  kSwitch,  // a flag alone; elsewhere true or false
  kTexts,   // a flag may come again; in a variable, separated by commas
};

struct Setting {
  std::string_view name;  // as the flag, without --
  SettingKind kind;
  std::string_view value;          // what help calls it: ADDRESS
  std::string_view default_value;  // as it would be written
  std::string_view doc;            // one line
};

struct Schema {
  std::string_view command;  // "dispatcher"
  std::string_view words;    // what comes without flags: "ADDRESS"
  std::string_view summary;  // what the command does, in lines
  std::string_view example;
  std::string_view prefix;  // of variables; empty: none are read
  std::string_view table;   // of the file; empty: there is no --config
  std::vector<Setting> settings;
};

// The value of a variable; unset: there is none.
using Environment =
    std::function<std::optional<std::string>(const std::string& name)>;
Environment ProcessEnvironment();

// What is in force. Names that the schema does not have end the process.
class Settings final {
 public:
  // InvalidArgument names the flag, the variable, or the file and line, and
  // what was expected there. `schema` outlives it.
  static absl::StatusOr<Settings> Read(const Schema& schema,
                                       const std::vector<std::string>& args,
                                       const Environment& environment);

  std::string text(std::string_view name) const;
  int64_t number(std::string_view name) const;
  bool is_on(std::string_view name) const;
  std::vector<std::string> texts(std::string_view name) const;
  // Where it was said: "--listen", "PENSTOCK_…", "listen in FILE"; empty: it is
  // the default.
  std::string source(std::string_view name) const;
  const std::vector<std::string>& words() const { return words_; }
  bool wants_help() const { return wants_help_; }

 private:
  struct Value {
    std::vector<std::string> texts;
    std::string source;
  };

  explicit Settings(const Schema& schema) : schema_(&schema) {}
  absl::Status ReadArgs(const std::vector<std::string>& args);
  absl::Status ReadVariables(const Environment& environment);
  absl::Status ReadFile(const std::string& path);
  // Checks and takes a value, unless something before has said one.
  absl::Status Take(const Setting& setting, const Value& value);
  const Value* Find(std::string_view name) const;

  const Schema* schema_;
  std::map<std::string, Value, std::less<>> values_;
  std::vector<std::string> words_;
  bool wants_help_ = false;
};

std::string HelpOf(const Schema& schema);

// The one of `names` that is most like `name`, if any is.
std::optional<std::string> Nearest(std::string_view name,
                                   const std::vector<std::string>& names);

// For commands: settings to run with, or the exit code to end with, after help
// or an error was printed.
struct ReadResult {
  std::optional<Settings> settings;
  int exit_code = 0;
};
ReadResult ReadSettings(const Schema& schema,
                        const std::vector<std::string>& args);

}  // namespace penstock

#include "penstock/main/settings.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <utility>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "penstock/base/status.h"

namespace penstock {
namespace {

constexpr char kConfig[] = "config";
// The tables that a file may have: commands share one.
constexpr const char* kTables[] = {"dispatcher", "worker", "up"};

std::string KeyOf(std::string_view name) {
  return absl::StrReplaceAll(std::string(name), {{"-", "_"}});
}

std::string VariableOf(const Schema& schema, std::string_view name) {
  return absl::StrCat(std::string(schema.prefix),
                      absl::AsciiStrToUpper(KeyOf(name)));
}

const Setting& ConfigSetting() {
  static constexpr Setting kSetting = {kConfig, SettingKind::kText, "FILE", "",
                                       "reads settings from a TOML file"};
  return kSetting;
}

const Setting* FindSetting(const Schema& schema, std::string_view name) {
  if (name == kConfig && !schema.table.empty()) return &ConfigSetting();
  for (const Setting& setting : schema.settings) {
    if (setting.name == name) return &setting;
  }
  return nullptr;
}

std::string MeantInstead(const std::string& wrong,
                         const std::vector<std::string>& names) {
  if (const auto nearest = Nearest(wrong, names)) {
    return absl::StrCat("; did you mean ", *nearest, "?");
  }
  return absl::StrCat("; expected one of ", absl::StrJoin(names, ", "));
}

size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1,
                         diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

// A value of the file as it would be written on the command line.
std::optional<std::vector<std::string>> TextsOf(const toml::node& node) {
  if (const auto* text = node.as_string()) {
    return std::vector<std::string>{text->get()};
  }
  if (const auto* number = node.as_integer()) {
    return std::vector<std::string>{absl::StrCat(number->get())};
  }
  if (const auto* is_on = node.as_boolean()) {
    return std::vector<std::string>{is_on->get() ? "true" : "false"};
  }
  const auto* list = node.as_array();
  if (list == nullptr) return std::nullopt;
  std::vector<std::string> texts;
  for (const toml::node& each : *list) {
    const auto* text = each.as_string();
    if (text == nullptr) return std::nullopt;
    texts.push_back(text->get());
  }
  return texts;
}

}  // namespace

Environment ProcessEnvironment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

std::optional<std::string> Nearest(std::string_view name,
                                   const std::vector<std::string>& names) {
  std::optional<std::string> nearest;
  size_t least = name.size() / 2 + 1;
  for (const std::string& each : names) {
    const size_t distance = Distance(name, each);
    if (distance < least) {
      least = distance;
      nearest = each;
    }
  }
  return nearest;
}

absl::Status Settings::Take(const Setting& setting, const Value& value) {
  const auto expected = [&](const std::string& what) {
    return absl::InvalidArgumentError(
        absl::StrCat(value.source, ": expected ", what, "; got '",
                     absl::StrJoin(value.texts, ","), "'"));
  };
  int64_t number;
  switch (setting.kind) {
    case SettingKind::kText:
      if (value.texts.size() != 1) return expected("one text");
      break;
    case SettingKind::kNumber:
      if (value.texts.size() != 1 ||
          !absl::SimpleAtoi(value.texts[0], &number) || number < 0) {
        return expected("a whole number, at least 0");
      }
      break;
    case SettingKind::kSwitch:
      if (value.texts.size() != 1 ||
          (value.texts[0] != "true" && value.texts[0] != "false")) {
        return expected("true or false");
      }
      break;
    case SettingKind::kTexts:
      break;
  }
  values_.try_emplace(std::string(setting.name), value);
  return absl::OkStatus();
}

absl::Status Settings::ReadArgs(const std::vector<std::string>& args) {
  std::map<std::string, Value> lists;
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string& arg = args[i];
    if (arg == "--help" || arg == "-h") {
      wants_help_ = true;
      continue;
    }
    if (!absl::StartsWith(arg, "--")) {
      words_.push_back(arg);
      continue;
    }
    const size_t equals = arg.find('=');
    const std::string flag = arg.substr(0, equals);
    const Setting* setting = FindSetting(*schema_, flag.substr(2));
    if (setting == nullptr) {
      std::vector<std::string> flags;
      for (const Setting& each : schema_->settings) {
        flags.push_back(absl::StrCat("--", std::string(each.name)));
      }
      return absl::InvalidArgumentError(
          absl::StrCat("there is no ", flag, MeantInstead(flag, flags)));
    }
    std::string text;
    if (equals != std::string::npos) {
      text = arg.substr(equals + 1);
    } else if (setting->kind == SettingKind::kSwitch) {
      text = "true";
    } else if (i + 1 < args.size()) {
      text = args[++i];
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          flag, ": expected ", std::string(setting->value), " after it"));
    }
    if (setting->kind == SettingKind::kTexts) {
      Value& list = lists[std::string(setting->name)];
      list.texts.push_back(text);
      list.source = flag;
    } else {
      values_.erase(std::string(setting->name));  // the last one is in force
      PENSTOCK_RETURN_IF_ERROR(Take(*setting, {{text}, flag}));
    }
  }
  for (const auto& [name, value] : lists) {
    PENSTOCK_RETURN_IF_ERROR(Take(*FindSetting(*schema_, name), value));
  }
  return absl::OkStatus();
}

absl::Status Settings::ReadVariables(const Environment& environment) {
  if (schema_->prefix.empty()) return absl::OkStatus();
  const auto read = [&](const Setting& setting) {
    const std::string name = VariableOf(*schema_, setting.name);
    const std::optional<std::string> text = environment(name);
    if (!text) return absl::OkStatus();
    Value value{{*text}, name};
    if (setting.kind == SettingKind::kTexts) {
      value.texts = absl::StrSplit(*text, ',', absl::SkipEmpty());
    }
    return Take(setting, value);
  };
  if (!schema_->table.empty()) {
    PENSTOCK_RETURN_IF_ERROR(read(ConfigSetting()));
  }
  for (const Setting& setting : schema_->settings) {
    PENSTOCK_RETURN_IF_ERROR(read(setting));
  }
  return absl::OkStatus();
}

absl::Status Settings::ReadFile(const std::string& path) {
  const toml::parse_result parsed = toml::parse_file(path);
  const auto at = [&](const toml::source_region& place) {
    return absl::StrCat(path, ":", place.begin.line);
  };
  if (!parsed) {
    return absl::InvalidArgumentError(
        absl::StrCat(at(parsed.error().source()), ": ",
                     std::string(parsed.error().description())));
  }
  for (const auto& [key, node] : parsed.table()) {
    const std::vector<std::string> tables(std::begin(kTables),
                                          std::end(kTables));
    const std::string name(key.str());
    if (std::ranges::find(tables, name) != tables.end() && node.is_table()) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat(at(node.source()), ": there is no table [", name, "]",
                     MeantInstead(name, tables)));
  }
  const toml::table* table = parsed.table()[schema_->table].as_table();
  if (table == nullptr) return absl::OkStatus();
  for (const auto& [key, node] : *table) {
    const std::string name =
        absl::StrReplaceAll(std::string(key.str()), {{"_", "-"}});
    const Setting* setting = FindSetting(*schema_, name);
    if (setting == nullptr || setting->name == kConfig) {
      std::vector<std::string> keys;
      for (const Setting& each : schema_->settings) {
        keys.push_back(KeyOf(each.name));
      }
      return absl::InvalidArgumentError(absl::StrCat(
          at(node.source()), ": there is no key ", std::string(key.str()),
          MeantInstead(std::string(key.str()), keys)));
    }
    const std::string source =
        absl::StrCat(std::string(key.str()), " in ", at(node.source()));
    const auto texts = TextsOf(node);
    if (!texts) {
      return absl::InvalidArgumentError(absl::StrCat(
          source, ": expected a text, a number, true, false or a list"));
    }
    PENSTOCK_RETURN_IF_ERROR(Take(*setting, {*texts, source}));
  }
  return absl::OkStatus();
}

absl::StatusOr<Settings> Settings::Read(const Schema& schema,
                                        const std::vector<std::string>& args,
                                        const Environment& environment) {
  Settings settings(schema);
  PENSTOCK_RETURN_IF_ERROR(settings.ReadArgs(args));
  if (settings.wants_help_) return settings;
  PENSTOCK_RETURN_IF_ERROR(settings.ReadVariables(environment));
  const auto config = settings.values_.find(kConfig);
  if (config != settings.values_.end()) {
    PENSTOCK_RETURN_IF_ERROR(settings.ReadFile(config->second.texts[0]));
  }
  return settings;
}

const Settings::Value* Settings::Find(std::string_view name) const {
  if (FindSetting(*schema_, name) == nullptr) {
    std::cerr << "penstock: no setting is called " << name << "\n";
    std::abort();
  }
  const auto it = values_.find(name);
  return it == values_.end() ? nullptr : &it->second;
}

std::string Settings::text(std::string_view name) const {
  const Value* value = Find(name);
  return value != nullptr
             ? value->texts[0]
             : std::string(FindSetting(*schema_, name)->default_value);
}

int64_t Settings::number(std::string_view name) const {
  int64_t number = 0;
  // Take() has looked at it, and defaults are ours.
  (void)absl::SimpleAtoi(text(name), &number);
  return number;
}

bool Settings::is_on(std::string_view name) const {
  return text(name) == "true";
}

std::vector<std::string> Settings::texts(std::string_view name) const {
  const Value* value = Find(name);
  return value == nullptr ? std::vector<std::string>() : value->texts;
}

std::string Settings::source(std::string_view name) const {
  const Value* value = Find(name);
  return value == nullptr ? "" : value->source;
}

std::string HelpOf(const Schema& schema) {
  std::vector<Setting> settings = schema.settings;
  if (!schema.table.empty()) settings.push_back(ConfigSetting());
  size_t width = 0;
  std::vector<std::string> flags;
  for (const Setting& setting : settings) {
    std::string flag = absl::StrCat("--", std::string(setting.name));
    if (setting.kind != SettingKind::kSwitch) {
      absl::StrAppend(&flag, " ", std::string(setting.value));
    }
    width = std::max(width, flag.size());
    flags.push_back(std::move(flag));
  }
  std::string out =
      absl::StrCat("penstock ", std::string(schema.command),
                   schema.words.empty() ? "" : " ", std::string(schema.words),
                   " [options]\n\n", std::string(schema.summary), "\n");
  for (size_t i = 0; i < settings.size(); ++i) {
    absl::StrAppend(&out, "  ", flags[i],
                    std::string(width - flags[i].size() + 2, ' '),
                    std::string(settings[i].doc));
    if (!settings[i].default_value.empty()) {
      absl::StrAppend(&out, " (", std::string(settings[i].default_value), ")");
    }
    out += "\n";
  }
  if (!schema.prefix.empty()) {
    const std::string name(settings[0].name);
    absl::StrAppend(&out, "\nInstead of --", name, ", also ",
                    VariableOf(schema, name), " in the environment");
    if (!schema.table.empty()) {
      absl::StrAppend(&out, ",\nor ", KeyOf(name), " under [",
                      std::string(schema.table), "] in the file of --config");
    }
    absl::StrAppend(&out, "; and so for the others.\n");
  }
  absl::StrAppend(&out, "\nExample:\n  ", std::string(schema.example), "\n");
  return out;
}

ReadResult ReadSettings(const Schema& schema,
                        const std::vector<std::string>& args) {
  absl::StatusOr<Settings> settings =
      Settings::Read(schema, args, ProcessEnvironment());
  if (!settings.ok()) {
    const std::string command(schema.command);
    std::cerr << "penstock " << command << ": " << settings.status().message()
              << "\nTry `penstock " << command << " --help`.\n";
    return {std::nullopt, 2};
  }
  if (settings->wants_help()) {
    std::cout << HelpOf(schema);
    return {std::nullopt, 0};
  }
  return {*std::move(settings), 0};
}

}  // namespace penstock

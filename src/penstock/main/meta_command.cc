#include "penstock/main/meta_command.h"

#include <cstdint>
#include <iostream>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "penstock/service/store/check.h"
#include "penstock/service/store/meta_store.h"

namespace penstock {
namespace {

constexpr char kHelp[] =
    R"(penstock meta: the store of a dispatcher

  penstock meta check DIR [--json]         is it whole? It may be in use
  penstock meta salvage DIR NEW [--json]   makes a new store, in the directory
                                           NEW, of all records that are whole,
                                           and lists what is lost

Neither changes the store in DIR. With --json, keys are strings in which each
character is a byte.

Example:
  penstock meta check /var/lib/penstock
  penstock meta salvage /var/lib/penstock /var/lib/penstock.new

Exit codes: 0 all is whole, 1 damaged or failed, 2 wrong usage.
)";

int Usage(const std::string& problem) {
  std::cerr << "penstock meta: " << problem
            << "\nTry `penstock meta --help`.\n";
  return 2;
}

int Failed(const absl::Status& status) {
  std::cerr << "penstock meta: " << status.message() << "\n";
  const bool is_usage =
      absl::IsNotFound(status) || absl::IsAlreadyExists(status);
  return is_usage ? 2 : 1;
}

// Bytes as a JSON string whose characters are the bytes.
std::string Quoted(std::string_view bytes) {
  std::string text = "\"";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += {'\\', c};
    } else if (byte < 0x20 || byte >= 0x7f) {
      absl::StrAppend(&text, absl::StrFormat("\\u%04x", byte));
    } else {
      text += c;
    }
  }
  return text + "\"";
}

std::string QuotedList(const std::vector<std::string>& list) {
  return absl::StrCat(
      "[",
      absl::StrJoin(list, ", ",
                    [](std::string* out, const std::string& each) {
                      absl::StrAppend(out, Quoted(each));
                    }),
      "]");
}

std::string QuotedOrNull(const std::optional<std::string>& bytes) {
  return bytes ? Quoted(*bytes) : "null";
}

std::string TermsOf(const store::CheckReport& report, const char* quote) {
  return absl::StrJoin(report.records_by_term, ", ",
                       [quote](std::string* out, const auto& each) {
                         absl::StrAppend(out, quote, each.first, quote, ": ",
                                         each.second);
                       });
}

void ShowKeys(const std::vector<std::string>& keys, uint64_t num_keys) {
  for (const std::string& key : keys) {
    std::cout << "  " << store::ReadableKey(key) << "\n";
  }
  if (num_keys > keys.size()) {
    std::cout << "  and " << num_keys - keys.size() << " more\n";
  }
}

void ShowJson(const std::string& directory, const store::CheckReport& report) {
  std::cout << "{\"directory\": " << Quoted(directory) << ", \"is_whole\": "
            << (report.problems.empty() ? "true" : "false")
            << ", \"records\": " << report.num_records
            << ", \"live_bytes\": " << report.live_bytes
            << ", \"file_bytes\": " << report.file_bytes
            << ", \"term\": " << report.term
            << ", \"holder\": " << Quoted(report.holder)
            << ", \"last_commit\": " << report.sequence
            << ", \"acknowledged_commit\": " << report.acknowledged
            << ", \"records_by_term\": {" << TermsOf(report, "\"")
            << "}, \"damaged\": " << report.num_damaged
            << ", \"damaged_keys\": " << QuotedList(report.damaged_keys)
            << ", \"problems\": " << QuotedList(report.problems) << "}\n";
}

void ShowText(const std::string& directory, const store::CheckReport& report) {
  std::cout << directory << ": "
            << (report.problems.empty() ? "whole" : "damaged") << "\n"
            << "  records  " << report.num_records << ", of "
            << report.live_bytes << " bytes, in files of " << report.file_bytes
            << "\n"
            << "  term     " << report.term << ", of "
            << store::ReadableKey(report.holder) << "\n"
            << "  commits  " << report.sequence << "\n"
            << "  by term  " << TermsOf(report, "") << "\n";
  for (const std::string& problem : report.problems) {
    std::cout << "problem: " << problem << "\n";
  }
  if (report.num_damaged > 0) {
    std::cout << "damaged records:\n";
    ShowKeys(report.damaged_keys, report.num_damaged);
  }
  if (!report.problems.empty()) {
    std::cout << "`penstock meta salvage " << directory
              << " NEW` makes a new store of what is whole.\n";
  }
}

int RunCheck(const std::string& directory, bool is_json) {
  const absl::StatusOr<store::CheckReport> report = store::Check(directory);
  if (!report.ok()) return Failed(report.status());
  if (is_json) {
    ShowJson(directory, *report);
  } else {
    ShowText(directory, *report);
  }
  return report->problems.empty() ? 0 : 1;
}

// Whether all that was ever acknowledged is in the new store, as far as can be
// known.
bool IsComplete(const store::SalvageReport& report) {
  return report.num_damaged == 0 && !report.gap &&
         report.num_expected == report.num_salvaged &&
         report.num_lost_commits == 0;
}

void ShowJson(const std::string& to, const store::SalvageReport& report) {
  std::cout << "{\"directory\": " << Quoted(to)
            << ", \"is_complete\": " << (IsComplete(report) ? "true" : "false")
            << ", \"records\": " << report.num_salvaged
            << ", \"expected_records\": "
            << (report.num_expected ? absl::StrCat(*report.num_expected)
                                    : "null")
            << ", \"term\": " << report.term
            << ", \"damaged\": " << report.num_damaged
            << ", \"damaged_keys\": " << QuotedList(report.damaged_keys)
            << ", \"lost_commits\": " << report.num_lost_commits
            << ", \"gap\": ";
  if (report.gap) {
    std::cout << "{\"after\": " << QuotedOrNull(report.gap->after)
              << ", \"before\": " << QuotedOrNull(report.gap->before) << "}";
  } else {
    std::cout << "null";
  }
  std::cout << "}\n";
}

void ShowText(const std::string& to, const store::SalvageReport& report) {
  std::cout << to << ": " << report.num_salvaged << " records, term "
            << report.term << "\n";
  if (!report.num_expected) {
    std::cout << "lost: the head; how many records there were is not known\n";
  } else if (*report.num_expected > report.num_salvaged) {
    std::cout << "lost: " << *report.num_expected - report.num_salvaged
              << " of " << *report.num_expected << " records\n";
  }
  if (report.num_lost_commits > 0) {
    std::cout << "lost: the last " << report.num_lost_commits << " commits\n";
  }
  if (report.gap) {
    std::cout << "lost: all records after "
              << (report.gap->after ? store::ReadableKey(*report.gap->after)
                                    : "the beginning")
              << " and before "
              << (report.gap->before ? store::ReadableKey(*report.gap->before)
                                     : "the end")
              << "\n";
  }
  if (report.num_damaged > 0) {
    std::cout << "lost, their checksums are wrong:\n";
    ShowKeys(report.damaged_keys, report.num_damaged);
  }
}

int RunSalvage(const std::string& directory, const std::string& to,
               bool is_json) {
  const absl::StatusOr<store::SalvageReport> report =
      store::Salvage(directory, to);
  if (!report.ok()) return Failed(report.status());
  if (is_json) {
    ShowJson(to, *report);
  } else {
    ShowText(to, *report);
  }
  return IsComplete(*report) ? 0 : 1;
}

}  // namespace

int RunMeta(const std::vector<std::string>& args) {
  std::vector<std::string> words;
  bool is_json = false;
  for (const std::string& arg : args) {
    if (arg == "--help") {
      std::cout << kHelp;
      return 0;
    }
    if (arg == "--json") {
      is_json = true;
    } else if (arg.size() > 1 && arg[0] == '-') {
      return Usage("expected --json or --help; got " + arg);
    } else {
      words.push_back(arg);
    }
  }
  if (words.size() == 2 && words[0] == "check") {
    return RunCheck(words[1], is_json);
  }
  if (words.size() == 3 && words[0] == "salvage") {
    return RunSalvage(words[1], words[2], is_json);
  }
  return Usage("expected `check DIR` or `salvage DIR NEW`; got `" +
               absl::StrJoin(words, " ") + "`");
}

}  // namespace penstock

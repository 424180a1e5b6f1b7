#include "penstock/base/event_log.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"

namespace penstock {
namespace {

constexpr size_t kMaxValueBytes = 300;
constexpr int kMaxPerSecond = 20;

void WriteToStandardError(const std::string& line) {
  // Whoever cannot be told misses it.
  (void)!write(STDERR_FILENO, line.data(), line.size());
}

// As a text of JSON, which any bytes become.
std::string Quoted(std::string_view value) {
  std::string out = "\"";
  for (const char c : value.substr(0, kMaxValueBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte >= 0x7f) {
      absl::StrAppendFormat(&out, "\\u%04x", byte);
    } else {
      out += c;
    }
  }
  return absl::StrCat(out, value.size() > kMaxValueBytes ? "..." : "", "\"");
}

bool IsWord(std::string_view value) {
  return !value.empty() && value.size() <= kMaxValueBytes &&
         std::ranges::all_of(value, [](char c) {
           return c > ' ' && c < 0x7f && c != '"' && c != '=' && c != '\\';
         });
}

}  // namespace

EventLog::EventLog(Options options)
    : options_([&] {
        if (!options.write) options.write = WriteToStandardError;
        if (!options.now) options.now = absl::Now;
        return std::move(options);
      }()) {}

EventLog& EventLog::Silent() {
  static auto* const log = [] {
    Options options;
    options.write = [](const std::string&) {};
    return new EventLog(std::move(options));
  }();
  return *log;
}

void EventLog::Write(std::string_view event, const EventFacts& facts) {
  const absl::Time now = options_.now();
  uint64_t left_out = 0;
  {
    MutexLock lock(&mutex_);
    Flow& flow = flows_[std::string(event)];
    const int64_t second = absl::ToUnixSeconds(now);
    if (flow.second != second) {
      flow.second = second;
      flow.written = 0;
    }
    if (flow.written >= kMaxPerSecond) {
      ++flow.left_out;
      return;
    }
    ++flow.written;
    left_out = std::exchange(flow.left_out, 0);
  }
  EventFacts all = facts;
  if (left_out > 0) all.emplace_back("left_out", absl::StrCat(left_out));
  const std::string time =
      absl::FormatTime("%E4Y-%m-%dT%H:%M:%E3SZ", now, absl::UTCTimeZone());
  const std::string name(event);
  std::string line;
  if (options_.is_json) {
    line = absl::StrCat("{\"time\": \"", time,
                        "\", \"part\": ", Quoted(options_.part),
                        ", \"event\": ", Quoted(name));
    for (const auto& [key, value] : all) {
      absl::StrAppend(&line, ", ", Quoted(key), ": ", Quoted(value));
    }
    line += "}\n";
  } else {
    line = absl::StrCat(time, " ", options_.part, " ", name);
    for (const auto& [key, value] : all) {
      absl::StrAppend(&line, " ", key, "=",
                      IsWord(value) ? value : Quoted(value));
    }
    line += "\n";
  }
  options_.write(line);
}

}  // namespace penstock

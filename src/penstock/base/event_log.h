// What a server does that people need to know of, one line each: words or JSON.
//
//   2026-01-31T12:00:00.123Z dispatcher worker_lost worker=10.0.0.7:5051
//   {"time": "2026-01-31T12:00:00.123Z", "part": "dispatcher", ...}
//
// Names, addresses, numbers and codes go in. Rows, tokens, and messages that
// may quote either do not.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "penstock/base/mutex.h"

namespace penstock {

// Names and values.
using EventFacts = std::vector<std::pair<std::string, std::string>>;

// Thread-safe. Who is called a thousand times a second writes twenty lines a
// second: the next line of that event says how many were left out.
class EventLog final {
 public:
  struct Options {
    std::string part;  // "dispatcher"
    bool is_json = false;
    // Unset: one write to standard error for each line, so that those of
    // several processes do not mix.
    std::function<void(const std::string& line)> write;
    std::function<absl::Time()> now;  // unset: the machine's
  };

  explicit EventLog(Options options);

  // Values are cut after 300 bytes, and what is not printable is escaped.
  void Write(std::string_view event, const EventFacts& facts)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Says nothing; lives for ever.
  static EventLog& Silent();

 private:
  struct Flow {
    int64_t second = 0;
    int written = 0;  // in that second
    uint64_t left_out = 0;
  };

  const Options options_;
  Mutex mutex_;
  std::map<std::string, Flow, std::less<>> flows_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace penstock

// What all processes of the machine use of the processors that this one may
// run on: what is not ours is others'.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/strings/string_view.h"

namespace penstock::session {

// CPU time since the machine began, of the processors that `is_ours` names, by
// /proc/stat's text. Nothing if it has none of them.
std::optional<int64_t> BusyNanos(absl::string_view stat,
                                 const std::function<bool(int cpu)>& is_ours,
                                 int64_t ticks_per_second);

// Of the real machine. Nothing where this process has `cpus` processors' worth
// of time, and may run on more: what others do is then no matter of ours.
std::optional<int64_t> MachineCpuNanos(int64_t cpus);

}  // namespace penstock::session

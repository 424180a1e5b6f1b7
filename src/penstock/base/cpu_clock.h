// The processor time that this thread, or this process, has used so far.
#pragma once

#include <cstdint>

namespace penstock {

int64_t ThreadCpuNanos();
int64_t ProcessCpuNanos();

}  // namespace penstock

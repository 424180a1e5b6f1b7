// How often a run is looked at to tune it.
#pragma once

#include <cstdint>

namespace penstock::session {

// Nanoseconds; of the last look, and of the time since the one before it.
struct Look {
  int64_t cpu = 0;      // that it took
  int64_t run_cpu = 0;  // that the run used in the meantime
  int64_t elapsed = 0;
};

// Until the next look at a run that is `age` nanoseconds old: often while it is
// new, as much is decided then; later once a second. Less often where that
// would cost more than a few thousandths of what the run itself uses: half as
// often while it is new, and later down to twice a minute.
int64_t NanosToNextLook(int64_t age, const Look& last);

}  // namespace penstock::session

#include "penstock/base/random_name.h"

#include <sys/random.h>

#include "absl/strings/escaping.h"

namespace penstock {

std::string RandomName(size_t bytes) {
  std::string random(bytes, '\0');
  size_t done = 0;
  while (done < bytes) {
    const ssize_t n = getrandom(random.data() + done, bytes - done, 0);
    if (n > 0) done += static_cast<size_t>(n);
  }
  return absl::BytesToHexString(random);
}

}  // namespace penstock

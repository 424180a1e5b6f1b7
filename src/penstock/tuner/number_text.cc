#include "penstock/tuner/number_text.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace penstock::tuner {

std::string NumberText(double number) {
  // What four digits would make a thousand of is one.
  constexpr double kThousand = 999.95;
  const char* unit = "";
  for (const char* next : {" k", " M", " G", " T"}) {
    if (!(std::abs(number) >= kThousand)) break;
    number /= 1000;
    unit = next;
  }
  return absl::StrCat(absl::StrFormat("%.4g", number), unit);
}

}  // namespace penstock::tuner

// Numbers of any size as people read them.
#pragma once

#include <string>

namespace penstock::tuner {

// Four digits, in thousands, millions, … where they are more: "25.85",
// "2.451 k", "10 M".
std::string NumberText(double number);

}  // namespace penstock::tuner

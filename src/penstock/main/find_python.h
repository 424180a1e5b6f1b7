// Which Python a command starts.
#pragma once

#include <string>

namespace penstock {

// PENSTOCK_PYTHON, else the interpreter beside the binary, else python3; as a
// path if it is found in PATH.
std::string FindPython();

// The same for one that was named; as it is if it is nowhere.
std::string FindProgram(const std::string& name);

}  // namespace penstock

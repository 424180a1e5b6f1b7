// The list of native functions as the Python module that wraps them.
#pragma once

#include <string>

namespace penstock {

// The text of python/penstock/_functions.py.
std::string FunctionsAsPython();

}  // namespace penstock

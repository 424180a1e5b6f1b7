// The list of native functions as the Python module that wraps them.
#pragma once

#include <string>
#include <string_view>

namespace penstock {

// The text of the module for those whose names begin with "<space>."; with an
// empty `space`, for those without a dot.
std::string FunctionsAsPython(std::string_view space);

}  // namespace penstock

// Numbers as TensorFlow reads them from texts.
#pragma once

#include <charconv>
#include <string_view>
#include <system_error>
#include <type_traits>

#include "absl/strings/numbers.h"

namespace penstock::functions {

// Whether all of `text` is a number of type T, which may have spaces around it.
template <typename T>
bool ParseNumber(std::string_view text, T& value) {
  // Nearly all are plain digits, and from_chars is several times as fast.
  const char* const end = text.data() + text.size();
  const size_t digit = text.size() > 1 && text[0] == '-' ? 1 : 0;
  if (!text.empty() && text[digit] >= '0' && text[digit] <= '9') {
    const auto [last, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && last == end) return true;
  }
  const absl::string_view any(text.data(), text.size());
  if constexpr (std::is_same_v<T, float>) {
    return absl::SimpleAtof(any, &value);
  } else if constexpr (std::is_same_v<T, double>) {
    return absl::SimpleAtod(any, &value);
  } else {
    return absl::SimpleAtoi(any, &value);
  }
}

}  // namespace penstock::functions

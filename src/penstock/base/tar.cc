#include "penstock/base/tar.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "penstock/base/status.h"

namespace penstock {
namespace {

// Of a long name's or a pax header's contents.
constexpr size_t kMaxExtraBytes = size_t{1} << 20;
constexpr uint64_t kMaxMemberBytes = uint64_t{1} << 48;

// Fields of a header.
struct Field {
  size_t begin;
  size_t size;
};
constexpr Field kName = {0, 100};
constexpr Field kSize = {124, 12};
constexpr Field kChecksum = {148, 8};
constexpr size_t kType = 156;
constexpr Field kMagic = {257, 5};
constexpr Field kPrefix = {345, 155};

std::string_view TextOf(std::string_view header, Field field) {
  const std::string_view text = header.substr(field.begin, field.size);
  return text.substr(0, text.find('\0'));
}

std::optional<uint64_t> NumberOf(std::string_view header, Field field) {
  const std::string_view text = header.substr(field.begin, field.size);
  uint64_t value = 0;
  if (static_cast<uint8_t>(text[0]) == 0x80) {
    for (char c : text.substr(1)) {
      if (value >> 56 != 0) return std::nullopt;
      value = value << 8 | static_cast<uint8_t>(c);
    }
    return value;
  }
  bool has_digits = false;
  for (char c : text) {
    if (c == ' ' || c == '\0') {
      if (has_digits) break;
      continue;
    }
    if (c < '0' || c > '7') return std::nullopt;
    has_digits = true;
    value = value << 3 | static_cast<uint64_t>(c - '0');
  }
  return has_digits ? std::optional<uint64_t>(value) : std::nullopt;
}

bool HasChecksum(std::string_view header) {
  uint64_t sum = 0;
  for (size_t i = 0; i < kTarBlockBytes; ++i) {
    const bool is_own =
        i >= kChecksum.begin && i < kChecksum.begin + kChecksum.size;
    sum += is_own ? ' ' : static_cast<uint8_t>(header[i]);
  }
  return NumberOf(header, kChecksum) == sum;
}

// The path of a pax header: lines of "length key=value".
absl::Status ReadPax(std::string_view records, std::string& name,
                     std::optional<uint64_t>& size) {
  while (!records.empty()) {
    const size_t space = records.find(' ');
    size_t length;
    if (space == std::string_view::npos ||
        !absl::SimpleAtoi(
            absl::string_view(records.data(), std::min<size_t>(space, 20)),
            &length) ||
        length <= space + 1 || length > records.size()) {
      return absl::DataLossError("damaged pax header in a tar archive");
    }
    const std::string_view line = records.substr(space + 1, length - space - 2);
    if (line.starts_with("path=")) name = line.substr(5);
    if (line.starts_with("size=")) {
      uint64_t value;
      if (!absl::SimpleAtoi(absl::string_view(line.data() + 5, line.size() - 5),
                            &value)) {
        return absl::DataLossError("damaged pax header in a tar archive");
      }
      size = value;
    }
    records.remove_prefix(length);
  }
  return absl::OkStatus();
}

bool LeadsOut(const std::string& name) {
  if (!name.empty() && name[0] == '/') return true;
  for (absl::string_view part : absl::StrSplit(name, '/')) {
    if (part == "..") return true;
  }
  return false;
}

size_t Padded(size_t size) {
  return (size + kTarBlockBytes - 1) / kTarBlockBytes * kTarBlockBytes;
}

}  // namespace

std::string_view TarMember::key() const {
  const size_t slash = name.rfind('/');
  const size_t base = slash == std::string::npos ? 0 : slash + 1;
  return std::string_view(name).substr(0, name.find('.', base));
}

std::string_view TarMember::extension() const {
  const size_t dot = key().size();
  return dot < name.size() ? std::string_view(name).substr(dot + 1)
                           : std::string_view();
}

absl::StatusOr<TarState> ReadTarMember(std::string_view bytes, size_t begin,
                                       TarMember& member) {
  std::string long_name;
  std::optional<uint64_t> long_size;
  size_t at = begin;
  for (;;) {
    if (bytes.size() < at + kTarBlockBytes) {
      member.end = at + kTarBlockBytes;
      return TarState::kMore;
    }
    const std::string_view header = bytes.substr(at, kTarBlockBytes);
    if (header.find_first_not_of('\0') == std::string_view::npos) {
      member.end = at + kTarBlockBytes;
      return TarState::kEnd;
    }
    const std::optional<uint64_t> size = NumberOf(header, kSize);
    if (!size || *size > kMaxMemberBytes || !HasChecksum(header)) {
      return absl::DataLossError("damaged header in a tar archive");
    }
    const char type = header[kType];
    if (type == 'L' || type == 'x') {
      if (*size > kMaxExtraBytes) {
        return absl::DataLossError(
            absl::StrCat("a long header in a tar archive may have ",
                         kMaxExtraBytes, " bytes; found ", *size));
      }
      const size_t end = at + kTarBlockBytes + Padded(*size);
      if (bytes.size() < end) {
        member.end = end;
        return TarState::kMore;
      }
      const std::string_view contents =
          bytes.substr(at + kTarBlockBytes, *size);
      if (type == 'L') {
        long_name = contents.substr(0, contents.find('\0'));
      } else {
        PENSTOCK_RETURN_IF_ERROR(ReadPax(contents, long_name, long_size));
      }
      at = end;
      continue;
    }
    member.is_file = type == '0' || type == '\0' || type == '7';
    if (!long_name.empty()) {
      member.name = long_name;
    } else {
      member.name = TextOf(header, kName);
      const std::string_view prefix = TextOf(header, kPrefix);
      // GNU's old headers have other things there.
      if (!prefix.empty() && TextOf(header, kMagic) == "ustar" &&
          header[kMagic.begin + kMagic.size] == '\0') {
        member.name = absl::StrCat(std::string(prefix), "/", member.name);
      }
    }
    const uint64_t data_size = long_size.value_or(*size);
    if (data_size > kMaxMemberBytes) {
      return absl::DataLossError("damaged header in a tar archive");
    }
    if (member.is_file && LeadsOut(member.name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("names in a tar archive must lead to places inside it; "
                       "found \"",
                       member.name, "\""));
    }
    member.data_begin = at + kTarBlockBytes;
    member.data_size = data_size;
    member.end = member.data_begin + Padded(data_size);
    return TarState::kMember;
  }
}

}  // namespace penstock

#include "penstock/functions/image_pillow_jpeg.h"

#include <cstddef>

#include "absl/strings/str_cat.h"

namespace penstock::functions {
namespace {

constexpr int kSof0 = 0xc0;  // baseline
constexpr int kSof1 = 0xc1;  // extended, sequential
constexpr int kSof2 = 0xc2;  // progressive
constexpr int kDht = 0xc4;
constexpr int kSos = 0xda;
constexpr int kDqt = 0xdb;
constexpr int kDri = 0xdd;
constexpr int kApp0 = 0xe0;
constexpr int kApp1 = 0xe1;
constexpr int kApp2 = 0xe2;
constexpr int kApp13 = 0xed;
constexpr int kApp14 = 0xee;
constexpr int kApp15 = 0xef;
constexpr int kCom = 0xfe;

absl::Status Unusual(std::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("expected a plain JPEG file; got ", std::string(what)));
}

// Numbers in bytes, of which there must be enough.
class Bytes final {
 public:
  Bytes(std::string_view data, bool is_little_endian)
      : data_(data), is_little_endian_(is_little_endian) {}

  bool Has(uint64_t at, uint64_t size) const {
    return at <= data_.size() && size <= data_.size() - at;
  }
  uint32_t Short(uint64_t at) const { return Number(at, 2); }
  uint32_t Long(uint64_t at) const { return Number(at, 4); }

 private:
  uint32_t Number(uint64_t at, int size) const {
    uint32_t number = 0;
    for (int i = 0; i < size; ++i) {
      const auto byte = static_cast<uint8_t>(
          data_[at + (is_little_endian_ ? size - 1 - i : i)]);
      number = number << 8 | byte;
    }
    return number;
  }

  const std::string_view data_;
  const bool is_little_endian_;
};

// Bytes of an item of a TIFF type; 0 for those that Pillow passes over.
uint64_t ItemBytes(uint32_t type) {
  constexpr uint8_t kBytes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4};
  return type < sizeof(kBytes) ? kBytes[type] : type == 16 ? 8 : 0;
}

// Whether Pillow, which looks for a resolution in it, finds its way through the
// first directory without a warning.
bool IsPlainExif(std::string_view tiff) {
  constexpr uint32_t kXResolution = 0x011a;
  constexpr uint32_t kResolutionUnit = 0x0128;
  constexpr uint32_t kTypeShort = 3;
  constexpr uint32_t kTypeRational = 5;
  const bool is_little = tiff.starts_with(std::string_view("II\x2a\0", 4));
  if (!is_little && !tiff.starts_with(std::string_view("MM\0\x2a", 4)))
    return false;
  const Bytes bytes(tiff, is_little);
  if (!bytes.Has(4, 4)) return false;
  uint64_t at = bytes.Long(4);
  if (!bytes.Has(at, 2)) return false;
  const uint32_t count = bytes.Short(at);
  at += 2;
  if (!bytes.Has(at, uint64_t{12} * count + 4)) return false;
  uint64_t total = 0;
  for (uint32_t i = 0; i < count; ++i, at += 12) {
    const uint32_t tag = bytes.Short(at);
    const uint32_t type = bytes.Short(at + 2);
    const uint32_t items = bytes.Long(at + 4);
    if (tag == kXResolution && (type != kTypeRational || items != 1)) {
      return false;
    }
    if (tag == kResolutionUnit && (type != kTypeShort || items != 1)) {
      return false;
    }
    const uint64_t size = ItemBytes(type) * items;
    if (size <= 4) continue;
    total += size;
    if (total > tiff.size() || !bytes.Has(bytes.Long(at + 8), size)) {
      return false;
    }
  }
  return true;
}

// Whether Pillow reads Photoshop's resources without an error.
bool IsPlainPhotoshop(std::string_view data) {
  constexpr uint32_t kResolutionInfo = 0x03ed;
  const Bytes bytes(data, /*is_little_endian=*/false);
  uint64_t at = 14;
  while (bytes.Has(at, 4) && data.substr(at, 4) == "8BIM") {
    at += 4;
    if (!bytes.Has(at, 3)) return false;
    const uint32_t code = bytes.Short(at);
    at += 2;
    at += 1 + static_cast<uint8_t>(data[at]);
    at += at & 1;
    if (!bytes.Has(at, 4)) return false;
    const uint32_t size = bytes.Long(at);
    at += 4;
    if (!bytes.Has(at, size)) return false;
    if (code == kResolutionInfo && size < 14) return false;
    at += size;
    at += at & 1;
  }
  return true;
}

// A segment that says what the image is about. Pillow keeps most of them as
// they are.
absl::Status ReadApplication(int marker, std::string_view data, bool& has_exif,
                             PillowJpeg& head) {
  if (marker == kApp0 && data.starts_with("JFIF")) {
    if (data.size() < 14) return Unusual("a short JFIF segment");
  } else if (marker == kApp1 &&
             data.starts_with(std::string_view("Exif\0\0", 6))) {
    head.has_no_orientation = false;
    if (has_exif || !IsPlainExif(data.substr(6))) {
      return Unusual("EXIF data of an unusual form");
    }
    has_exif = true;
  } else if (marker == kApp1) {
    head.has_no_orientation = false;
  } else if (marker == kApp2 && data.starts_with("ICC_PROFILE")) {
    if (data.size() < 14) return Unusual("a short ICC profile");
  } else if (marker == kApp2 && data.starts_with("MPF")) {
    return Unusual("several images in one file");
  } else if (marker == kApp13 && data.starts_with("Photoshop 3.0")) {
    if (!IsPlainPhotoshop(data)) return Unusual("damaged Photoshop resources");
  } else if (marker == kApp14 && data.starts_with("Adobe")) {
    if (data.size() < 12) return Unusual("a short Adobe segment");
  }
  return absl::OkStatus();
}

absl::Status ReadFrame(std::string_view data, PillowJpeg& head) {
  const Bytes bytes(data, /*is_little_endian=*/false);
  if (head.channels != 0) return Unusual("two frames");
  if (!bytes.Has(0, 6)) return Unusual("a short frame header");
  head.height = bytes.Short(1);
  head.width = bytes.Short(3);
  head.channels = static_cast<uint8_t>(data[5]);
  if (data[0] != 8) return Unusual("another precision than 8 bits");
  if (head.channels != 1 && head.channels != 3) {
    return Unusual("neither 1 nor 3 channels");
  }
  if (data.size() != 6 + 3 * static_cast<size_t>(head.channels)) {
    return Unusual("a frame header of another length");
  }
  if (head.height == 0 || head.width == 0) return Unusual("no pixels");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PillowJpeg> ReadPillowHeader(std::string_view contents) {
  if (!contents.starts_with("\xff\xd8\xff")) {
    return Unusual("another format");
  }
  const Bytes bytes(contents, /*is_little_endian=*/false);
  PillowJpeg head;
  bool has_exif = false;
  uint64_t at = 2;
  while (true) {
    if (!bytes.Has(at, 4)) return Unusual("an end within the header");
    if (contents[at] != '\xff') return Unusual("bytes between segments");
    const int marker = static_cast<uint8_t>(contents[at + 1]);
    const uint64_t size = bytes.Short(at + 2);
    if (size < 2 || !bytes.Has(at + 2, size)) {
      return Unusual("a segment of a wrong size");
    }
    const std::string_view data = contents.substr(at + 4, size - 2);
    at += 2 + size;
    absl::Status status;
    if (marker == kSof0 || marker == kSof1 || marker == kSof2) {
      status = ReadFrame(data, head);
    } else if (marker >= kApp0 && marker <= kApp15) {
      status = ReadApplication(marker, data, has_exif, head);
    } else if (marker == kSos) {
      if (head.channels == 0) return Unusual("a scan without a frame");
      return head;
    } else if (marker != kDht && marker != kDqt && marker != kDri &&
               marker != kCom) {
      status = Unusual(absl::StrCat("a marker of number ", marker));
    }
    if (!status.ok()) return status;
  }
}

}  // namespace penstock::functions

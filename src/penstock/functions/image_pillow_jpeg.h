// Which JPEG files Pillow opens as plain ones: what our own reading is known to
// give the same pixels for.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"

namespace penstock::functions {

// What the bytes before a file's first scan say.
struct PillowJpeg {
  int64_t height = 0;
  int64_t width = 0;
  int channels = 0;  // 1: Pillow's mode "L"; 3: "RGB"
  // No EXIF or XMP is there that could say how the image is to be turned.
  bool has_no_orientation = true;
};

// InvalidArgument for all that is unusual, also where Pillow would read it:
// other formats and kinds of JPEG, markers out of place, segments that Pillow
// looks into and may raise or warn for. What follows the header is not looked
// at.
absl::StatusOr<PillowJpeg> ReadPillowHeader(std::string_view contents);

}  // namespace penstock::functions

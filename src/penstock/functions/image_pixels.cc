#include "penstock/functions/image_pixels.h"

#include "penstock/base/status.h"
#include "penstock/functions/promote.h"

namespace penstock::functions {

absl::Status CheckPixels(std::string_view name, const ArgSpec& arg,
                         std::optional<int64_t> channels) {
  PENSTOCK_RETURN_IF_ERROR(CheckImages(name, arg, /*may_be_batch=*/true));
  const std::optional<int64_t> last = arg.spec.shape.dims().back();
  if (arg.spec.dtype != DType::kBool &&
      (!channels || !last || *last == *channels)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(Text(name), " needs numbers",
                   channels ? absl::StrCat(" of ", *channels, " channels") : "",
                   "; got ", arg.spec.ToString()));
}

}  // namespace penstock::functions

// What the image functions' results cannot show from Python: exact crops, and
// that rows of every kind end up in one column.
#include <cmath>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/functions/appender.h"
#include "penstock/functions/call_for_test.h"
#include "penstock/functions/image_formats.h"
#include "penstock/functions/image_jpeg.h"
#include "penstock/functions/image_resize.h"

namespace penstock::functions {
namespace {

using testing::HasSubstr;

// Waves of different lengths: colours that change from pixel to pixel.
std::vector<uint8_t> Waves(int64_t height, int64_t width) {
  std::vector<uint8_t> pixels;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c) {
        const double wave = std::sin(0.7 * static_cast<double>(x) + c) +
                            std::cos(0.9 * static_cast<double>(y) * (c + 1));
        pixels.push_back(static_cast<uint8_t>(127 + 60 * wave));
      }
    }
  }
  return pixels;
}

class CropTest : public testing::TestWithParam<std::tuple<bool, bool, int>> {};

TEST_P(CropTest, HasThePixelsOfTheWholeImage) {
  const auto [is_halved, is_progressive, ratio] = GetParam();
  constexpr int64_t kHeight = 53;
  constexpr int64_t kWidth = 71;
  const std::vector<uint8_t> pixels = Waves(kHeight, kWidth);
  JpegWriteOptions how;
  how.chroma_downsampling = is_halved;
  how.progressive = is_progressive;
  const std::string file =
      WriteJpeg(pixels.data(), kHeight, kWidth, 3, how).value();
  const JpegOptions options = {.ratio = ratio};
  JpegReader reader;
  ASSERT_TRUE(reader.Open(file, options).ok());
  const int64_t height = reader.height();
  const int64_t width = reader.width();
  std::vector<uint8_t> whole(height * width * 3);
  ASSERT_TRUE(reader.Read(whole.data()).ok());
  for (int64_t y = 0; y < height; y += 3) {
    for (int64_t x = 0; x < width; x += 5) {
      const CropWindow crop = {y, x, (height - y + 1) / 2, (width - x + 1) / 2};
      ASSERT_TRUE(reader.Open(file, options).ok());
      std::vector<uint8_t> part(crop.height * crop.width * 3);
      ASSERT_TRUE(reader.ReadCrop(crop, /*is_exact=*/true, part.data()).ok());
      for (int64_t i = 0; i < crop.height; ++i) {
        ASSERT_EQ(std::memcmp(part.data() + i * crop.width * 3,
                              whole.data() + ((y + i) * width + x) * 3,
                              crop.width * 3),
                  0)
            << "row " << i << " of the crop at " << y << ", " << x;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, CropTest,
                         testing::Combine(testing::Bool(), testing::Bool(),
                                          testing::Values(1, 2)));

TEST(JpegReader, GoesOnAfterADamagedFile) {
  const std::vector<uint8_t> pixels = Waves(16, 16);
  const std::string file = WriteJpeg(pixels.data(), 16, 16, 3, {}).value();
  std::vector<uint8_t> out(16 * 16 * 3);
  JpegReader reader;
  EXPECT_FALSE(reader.Open("no image", {}).ok());
  const std::string cut = file.substr(0, file.size() - 40);
  ASSERT_TRUE(reader.Open(cut, {}).ok());
  EXPECT_FALSE(reader.Read(out.data()).ok());
  ASSERT_TRUE(reader.Open(file, {}).ok());
  EXPECT_TRUE(reader.Read(out.data()).ok());
}

TEST(JpegReader, RefusesWhatAHeaderOnlyClaims) {
  const std::vector<uint8_t> pixels = Waves(16, 16);
  std::string file = WriteJpeg(pixels.data(), 16, 16, 3, {}).value();
  // The frame's header: length, precision, height, width.
  const size_t frame = file.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  for (int i : {5, 7}) {
    file[frame + i] = '\xff';
    file[frame + i + 1] = '\xdc';
  }
  JpegReader reader;
  EXPECT_THAT(std::string(reader.Open(file, {}).message()),
              HasSubstr("65500 x 65500"));
}

TEST(RowAppender, MakesADenseColumnOfRowsOfOneShape) {
  std::vector<RowError> errors;
  EvalContext context;
  context.errors = &errors;
  RowAppender appender(DType::kUint8, 1, 3, context);
  for (int i = 0; i < 3; ++i) {
    if (i == 1) {
      appender.Fail(context, absl::InvalidArgumentError("bad"));
      continue;
    }
    std::memset(appender.Begin({2}), i + 1, 2);
    appender.Commit();
  }
  const Column column = std::move(appender).Finish();
  EXPECT_TRUE(column.is_dense());
  EXPECT_EQ(Text(column, errors), "uint8: [1 1]; <bad>; [3 3]");
}

TEST(RowAppender, MakesARaggedColumnOfOthers) {
  std::vector<RowError> errors;
  EvalContext context;
  context.errors = &errors;
  RowAppender appender(DType::kUint8, 1, 4, context);
  appender.Fail(context, absl::InvalidArgumentError("bad"));
  for (int64_t size : {2, 0, 3}) {
    std::memset(appender.Begin({size}), static_cast<int>(size), size);
    appender.Commit();
  }
  EXPECT_EQ(Text(std::move(appender).Finish(), errors),
            "uint8: <bad>; [2 2]; []; [3 3 3]");
}

TEST(Resizer, GivesTheImageItselfAtItsOwnSize) {
  const std::vector<uint8_t> pixels = Waves(9, 11);
  for (const char* name : {"bilinear", "bicubic", "area", "lanczos3"}) {
    Resizer resizer(ParseResizeMethod(name).value(), /*antialias=*/false);
    std::vector<float> out(pixels.size());
    resizer.Resize({pixels.data(), DType::kUint8, 9, 11, 3, 33}, 9, 11,
                   out.data());
    for (size_t i = 0; i < pixels.size(); ++i) {
      ASSERT_NEAR(out[i], pixels[i], 1e-3) << name << " item " << i;
    }
  }
}

}  // namespace
}  // namespace penstock::functions

#include "penstock/functions/image_jpeg_entropy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "penstock/functions/image_jpeg.h"

namespace penstock::functions {
namespace {

struct FileCase {
  std::string name;
  int channels = 3;
  int quality = 90;
  int sampling = 2;          // of the first component, both ways
  int restart_interval = 0;  // MCUs
  bool is_optimized = false;
  bool is_progressive = false;
  double noise = 20;
};

std::string Encoded(const FileCase& file, int height, int width) {
  std::mt19937 random(7);
  std::normal_distribution<double> noise(128, file.noise);
  std::vector<uint8_t> pixels(height * width * file.channels);
  for (size_t i = 0; i < pixels.size(); ++i) {
    const double at = noise(random) + static_cast<double>(i % 97);
    pixels[i] = static_cast<uint8_t>(std::min(255.0, std::max(0.0, at)));
  }
  jpeg_compress_struct info;
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* made = nullptr;
  unsigned long size = 0;  // NOLINT(google-runtime-int): libjpeg's type
  jpeg_mem_dest(&info, &made, &size);
  info.image_height = height;
  info.image_width = width;
  info.input_components = file.channels;
  info.in_color_space = file.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, file.quality, TRUE);
  info.comp_info[0].h_samp_factor = file.sampling;
  info.comp_info[0].v_samp_factor = file.sampling;
  info.restart_interval = file.restart_interval;
  info.optimize_coding = file.is_optimized ? TRUE : FALSE;
  if (file.is_progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    JSAMPROW line = pixels.data() + info.next_scanline * width * file.channels;
    jpeg_write_scanlines(&info, &line, 1);
  }
  jpeg_finish_compress(&info);
  std::string out(reinterpret_cast<char*>(made), size);
  jpeg_destroy_compress(&info);
  std::free(made);
  return out;
}

// Of blocks with few coefficients that are far apart, and the last of which is
// often there: of its own codes, that of 16 zeros is the shortest.
std::string OfHighFrequencies(int seed) {
  constexpr int kBlocks = 24;  // in each direction
  jpeg_compress_struct info;
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* made = nullptr;
  unsigned long size = 0;  // NOLINT(google-runtime-int): libjpeg's type
  jpeg_mem_dest(&info, &made, &size);
  info.image_height = info.image_width = kBlocks * DCTSIZE;
  info.input_components = 1;
  info.in_color_space = JCS_GRAYSCALE;
  jpeg_set_defaults(&info);
  info.optimize_coding = TRUE;
  auto* common = reinterpret_cast<j_common_ptr>(&info);
  jvirt_barray_ptr blocks = info.mem->request_virt_barray(
      common, JPOOL_IMAGE, TRUE, kBlocks, kBlocks, 1);
  jpeg_write_coefficients(&info, &blocks);
  std::mt19937 random(seed);
  for (int y = 0; y < kBlocks; ++y) {
    JBLOCKROW row = info.mem->access_virt_barray(common, blocks, y, 1, TRUE)[0];
    for (int x = 0; x < kBlocks; ++x) {
      // The coefficients 33, 62 and 63 of those in their order.
      row[x][42] = static_cast<JCOEF>(random() % 2);
      row[x][62] = static_cast<JCOEF>(random() % 2);
      row[x][63] = random() % 16 == 0 ? 0 : 1;
      // Lets a reader that is out of step be seen.
      if (random() % 16 == 0) row[x][0] = static_cast<JCOEF>(random() % 64);
    }
  }
  jpeg_finish_compress(&info);
  std::string out(reinterpret_cast<char*>(made), size);
  jpeg_destroy_compress(&info);
  std::free(made);
  return out;
}

// What reading gives: an error's text, or size and pixels.
std::string Read(std::string_view contents, JpegOptions options, bool is_plain,
                 const CropWindow* crop = nullptr) {
  options.is_plain = is_plain;
  JpegReader reader;
  absl::Status status = reader.Open(contents, options);
  if (!status.ok()) return status.ToString();
  const int64_t height = crop != nullptr ? crop->height : reader.height();
  const int64_t width = crop != nullptr ? crop->width : reader.width();
  std::string out(height * width * reader.channels(), '\1');
  auto* pixels = reinterpret_cast<uint8_t*>(out.data());
  status = crop != nullptr ? reader.ReadCrop(*crop, true, pixels)
                           : reader.Read(pixels);
  if (!status.ok()) return status.ToString();
  return std::to_string(height) + "x" + std::to_string(width) + ":" + out;
}

void ExpectAlike(std::string_view contents, const JpegOptions& options,
                 const CropWindow* crop = nullptr) {
  // Not EXPECT_EQ: a difference of pixels is not worth printing.
  EXPECT_TRUE(Read(contents, options, false, crop) ==
              Read(contents, options, true, crop));
}

class JpegEntropyTest : public testing::TestWithParam<FileCase> {};

TEST_P(JpegEntropyTest, GivesWhatLibjpegGives) {
  for (const auto& [height, width] :
       std::vector<std::pair<int, int>>{{1, 1}, {8, 8}, {17, 33}, {131, 250}}) {
    const std::string file = Encoded(GetParam(), height, width);
    for (int ratio : {1, 2, 4, 8}) {
      for (int channels : {0, 1}) {
        JpegOptions options;
        options.ratio = ratio;
        options.channels = channels;
        SCOPED_TRACE(testing::Message() << height << " x " << width << " / "
                                        << ratio << ", " << channels);
        ExpectAlike(file, options);
      }
    }
  }
}

TEST_P(JpegEntropyTest, OfAPart) {
  const std::string file = Encoded(GetParam(), 131, 250);
  for (const CropWindow& crop : std::vector<CropWindow>{
           {0, 0, 131, 250}, {100, 3, 31, 40}, {50, 130, 20, 120}}) {
    ExpectAlike(file, {}, &crop);
  }
}

TEST_P(JpegEntropyTest, OfAFileThatIsCut) {
  const std::string file = Encoded(GetParam(), 24, 40);
  for (size_t size = 0; size < file.size(); ++size) {
    JpegOptions options;
    options.acceptable_fraction = size % 2 == 0 ? 1.0F : 0.2F;
    options.try_recover_truncated = size % 3 == 0;
    SCOPED_TRACE(size);
    ExpectAlike(std::string_view(file).substr(0, size), options);
  }
}

TEST_P(JpegEntropyTest, OfAFileThatIsDamaged) {
  const std::string file = Encoded(GetParam(), 24, 40);
  std::mt19937 random(3);
  for (int turn = 0; turn < 2000; ++turn) {
    std::string damaged = file;
    const int changes = 1 + static_cast<int>(random() % 3);
    for (int i = 0; i < changes; ++i) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    SCOPED_TRACE(turn);
    ExpectAlike(damaged, {});
  }
}

INSTANTIATE_TEST_SUITE_P(
    Files, JpegEntropyTest,
    testing::Values(
        FileCase{.name = "Plain"},
        FileCase{.name = "Gray", .channels = 1, .sampling = 1},
        FileCase{.name = "FullColour", .sampling = 1},
        FileCase{.name = "LowQuality", .quality = 10},
        FileCase{.name = "BestQuality", .quality = 100, .noise = 80},
        FileCase{.name = "Flat", .noise = 0},
        FileCase{.name = "Restarts", .restart_interval = 2},
        FileCase{.name = "RestartsEach", .restart_interval = 1, .noise = 60},
        FileCase{.name = "OwnTables", .quality = 97, .is_optimized = true},
        FileCase{.name = "Progressive", .is_progressive = true}),
    [](const auto& info) { return info.param.name; });

TEST(JpegEntropy, SkipsNoCodesOfTheNextBlock) {
  for (int seed = 0; seed < 20; ++seed) {
    const std::string file = OfHighFrequencies(seed);
    SCOPED_TRACE(seed);
    JpegOptions eighth;
    eighth.ratio = 8;
    ExpectAlike(file, eighth);
    JpegReader reader;
    ASSERT_TRUE(reader.Open(file, eighth).ok());
    std::vector<uint8_t> pixels(reader.height() * reader.width());
    ASSERT_TRUE(reader.Read(pixels.data()).ok());
    EXPECT_TRUE(reader.has_own_entropy()) << "it has given up";
    const CropWindow crop = {100, 60, 40, 50};
    ExpectAlike(file, {}, &crop);
  }
}

TEST(JpegEntropy, IsUsedForPlainFilesAlone) {
  for (const bool is_progressive : {false, true}) {
    FileCase file;
    file.is_progressive = is_progressive;
    const std::string contents = Encoded(file, 64, 64);
    JpegReader reader;
    ASSERT_TRUE(reader.Open(contents, {}).ok());
    std::vector<uint8_t> pixels(64 * 64 * 3);
    ASSERT_TRUE(reader.Read(pixels.data()).ok());
    EXPECT_EQ(reader.has_own_entropy(), !is_progressive);
  }
}

}  // namespace
}  // namespace penstock::functions

// That pixels are Pillow's is compared with Pillow itself, in
// tests/python/test_pillow.py. Here is what its versions disagree on, and what
// is left to it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "penstock/functions/image_jpeg.h"
#include "penstock/functions/image_pillow_jpeg.h"
#include "penstock/functions/image_pillow_resize.h"

namespace penstock::functions {
namespace {

using testing::ElementsAre;
using Order = PillowResizer::Order;

constexpr int kHeight = 7;
constexpr int kWidth = 4;

// An image of 7 x 4, gray or in `channels` equal channels, resized to 2 x 3;
// of the last channel.
std::vector<int> Resized(PillowFilter filter, Order order, int channels) {
  std::vector<uint8_t> out(6 * channels);
  PillowResizer resizer(filter, order);
  // The second image has the weights of the first.
  for (int image = 0; image < 2; ++image) {
    resizer.Begin({kHeight, kWidth}, channels, {2, 3}, out.data());
    int pixel = 0;
    for (auto places = resizer.places(); !places.empty();
         places = resizer.places()) {
      for (uint8_t* place : places) {
        for (int x = 0; x < kWidth; ++x, ++pixel) {
          std::memset(place + x * channels, pixel * 37 % 251, channels);
        }
      }
      resizer.Commit();
    }
  }
  std::vector<int> found;
  for (int i = 0; i < 6; ++i) found.push_back(out[i * channels + channels - 1]);
  return found;
}

TEST(PillowResizerTest, GivesWhatTheVersionGives) {
  for (const int channels : {1, 3}) {
    EXPECT_THAT(Resized(PillowFilter::kLanczos, Order::kX, channels),
                ElementsAre(98, 130, 90, 156, 117, 148));
    EXPECT_THAT(Resized(PillowFilter::kLanczos, Order::kBySize, channels),
                ElementsAre(98, 129, 90, 156, 117, 148));
    EXPECT_THAT(Resized(PillowFilter::kHamming, Order::kX, channels),
                ElementsAre(96, 131, 90, 156, 116, 150));
    EXPECT_THAT(Resized(PillowFilter::kHamming, Order::kBySize, channels),
                ElementsAre(96, 131, 91, 155, 116, 150));
    EXPECT_THAT(Resized(PillowFilter::kBicubic, Order::kX, channels),
                ElementsAre(100, 129, 94, 152, 117, 146));
    EXPECT_THAT(Resized(PillowFilter::kBilinear, Order::kX, channels),
                ElementsAre(105, 129, 100, 146, 117, 141));
    EXPECT_THAT(Resized(PillowFilter::kBox, Order::kX, channels),
                ElementsAre(97, 121, 82, 154, 127, 182));
    EXPECT_THAT(Resized(PillowFilter::kNearest, Order::kX, channels),
                ElementsAre(148, 222, 8, 238, 61, 98));
  }
}

std::string Jpeg(int channels) {
  const std::vector<uint8_t> pixels(kHeight * kWidth * channels, 100);
  return *WriteJpeg(pixels.data(), kHeight, kWidth, channels, {});
}

std::string Segment(char marker, const std::string& data) {
  const size_t size = data.size() + 2;
  return std::string("\xff") + marker + static_cast<char>(size >> 8) +
         static_cast<char>(size & 255) + data;
}

TEST(PillowHeaderTest, SaysWhatTheImageIs) {
  const auto colour = ReadPillowHeader(Jpeg(3));
  ASSERT_TRUE(colour.ok());
  EXPECT_EQ(colour->height, kHeight);
  EXPECT_EQ(colour->width, kWidth);
  EXPECT_EQ(colour->channels, 3);
  EXPECT_TRUE(colour->has_no_orientation);
  EXPECT_EQ(ReadPillowHeader(Jpeg(1))->channels, 1);
}

TEST(PillowHeaderTest, EveryCutOffHeaderIsLeftToPillow) {
  const std::string file = Jpeg(3);
  const size_t scan = file.find("\xff\xda");
  ASSERT_NE(scan, std::string::npos);
  for (size_t size = 0; size < scan + 4; ++size) {
    EXPECT_FALSE(ReadPillowHeader(file.substr(0, size)).ok()) << size;
  }
}

TEST(PillowHeaderTest, SegmentsThatPillowLooksIntoMustBePlain) {
  const std::string file = Jpeg(3);
  auto with = [&](const std::string& segment) {
    return ReadPillowHeader(file.substr(0, 2) + segment + file.substr(2));
  };
  using namespace std::string_literals;  // NOLINT: zeros in literals
  // One short, of one item, in the directory itself.
  const std::string exif =
      "Exif\0\0II\x2a\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0\0\0\0\0"s;
  const auto turned = with(Segment('\xe1', exif));
  ASSERT_TRUE(turned.ok()) << turned.status();
  EXPECT_FALSE(turned->has_no_orientation);
  for (size_t size = 6; size < exif.size(); ++size) {
    EXPECT_FALSE(with(Segment('\xe1', exif.substr(0, size))).ok()) << size;
  }
  EXPECT_FALSE(with(Segment('\xe1', exif) + Segment('\xe1', exif)).ok());
  EXPECT_TRUE(with(Segment('\xe3', "anything")).ok());
  EXPECT_TRUE(with(Segment('\xfe', "")).ok());
  EXPECT_FALSE(with(Segment('\xe0', "JFIF\0\1"s)).ok());
  EXPECT_FALSE(with(Segment('\xe2', "MPF\0II*\0"s)).ok());
  EXPECT_FALSE(with(Segment('\xe2', "ICC_PROFILE\0"s)).ok());
  EXPECT_FALSE(with(Segment('\xee', "Adobe\0d"s)).ok());
  EXPECT_FALSE(with(Segment('\xed',
                            "Photoshop 3.0\0"
                            "8BIM\4"s))
                   .ok());
  EXPECT_FALSE(with(Segment('\xdc', "\0\7"s)).ok());
  EXPECT_FALSE(with("\xff\1"s).ok());
  EXPECT_FALSE(with("\xff"s).ok());
}

}  // namespace
}  // namespace penstock::functions

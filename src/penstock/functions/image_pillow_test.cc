// That pixels are Pillow's is compared with Pillow itself, in
// tests/python/test_pillow.py. Here is what its versions disagree on, and what
// is left to it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "penstock/functions/call_for_test.h"
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

// The least and the largest byte of an image of 255 everywhere, resized.
std::vector<int> Extremes(PillowFilter filter, PillowResizer::Size from,
                          int channels, PillowResizer::Size to) {
  std::vector<uint8_t> out(to.height * to.width * channels);
  PillowResizer resizer(filter, Order::kX);
  resizer.Begin(from, channels, to, out.data());
  for (auto places = resizer.places(); !places.empty();
       places = resizer.places()) {
    for (uint8_t* place : places) {
      std::memset(place, 255, from.width * channels);
    }
    resizer.Commit();
  }
  const auto [least, most] = std::minmax_element(out.begin(), out.end());
  return {*least, *most};
}

// The lower parts of weights are positive, those of negative ones nearly 2^12:
// more than 2057 of them add up to more than 31 bits.
TEST(PillowResizerTest, ManyWeightsAddUp) {
  for (const PillowFilter filter :
       {PillowFilter::kBox, PillowFilter::kBicubic, PillowFilter::kLanczos}) {
    for (const int64_t size : {2056, 9000, 30000}) {
      for (const int channels : {1, 3}) {
        EXPECT_THAT(Extremes(filter, {1, size}, channels, {1, 4}),
                    ElementsAre(255, 255));
        EXPECT_THAT(Extremes(filter, {size, 1}, channels, {4, 1}),
                    ElementsAre(255, 255));
      }
    }
  }
}

TEST(PillowResizerTest, RowsBetweenTheSidesAreLimited) {
  EXPECT_TRUE(PillowResizer::Fits({480, 640}, 3, {224, 224}));
  EXPECT_TRUE(PillowResizer::Fits({9000, 9000}, 3, {1, 1}));
  // 40 rows of the result, and 65500 of the image.
  EXPECT_FALSE(PillowResizer::Fits({65500, 700}, 3, {40, 1 << 24}));
  const TestArg tall =
      Dense<uint8_t>({40, 1}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  //
                               0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  //
                               0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  //
                               0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  const std::vector<int64_t> size = {1 << 24, 1};
  EXPECT_EQ(Got("image.pillow_resize", {tall},
                {{"size", size}, {"filter", int64_t{2}}}),
            "uint8: <the image is resized too far>");
}

std::string Cropped(std::initializer_list<int64_t> box) {
  return Got(
      "image.pillow_crop",
      {Dense<uint8_t>({2, 3}, {1, 2, 3, 4, 5, 6}), Dense<int64_t>({4}, box)},
      {{"max_pixels", int64_t{100}}});
}

TEST(PillowCropTest, WhatIsOutsideIsBlack) {
  EXPECT_EQ(Cropped({1, 0, 3, 2}), "uint8: [[2 3] [5 6]]");
  EXPECT_EQ(Cropped({-1, -1, 2, 1}), "uint8: [[0 0 0] [0 1 2]]");
  EXPECT_EQ(Cropped({2, 1, 5, 3}), "uint8: [[6 0 0] [0 0 0]]");
  EXPECT_EQ(Cropped({7, 0, 9, 1}), "uint8: [[0 0]]");
  EXPECT_EQ(Cropped({-9, -9, -8, -7}), "uint8: [[0] [0]]");
}

TEST(PillowCropTest, OtherBoxesAreLeftToPillow) {
  EXPECT_EQ(Cropped({2, 0, 1, 1}), "uint8: <the box has no pixels>");
  EXPECT_EQ(Cropped({0, 1, 1, 0}), "uint8: <the box has no pixels>");
  EXPECT_EQ(Cropped({1, 0, 1, 1}), "uint8: <the box has no pixels>");
  EXPECT_EQ(Cropped({0, 0, 11, 10}), "uint8: <the box has too many pixels>");
  EXPECT_EQ(Cropped({0, 0, int64_t{1} << 40, 1}),
            "uint8: <the box is too large>");
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

#include "penstock/service/worker/links.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace penstock::service {
namespace {

const std::vector<Compression> kBoth = {COMPRESSION_LZ4, COMPRESSION_ZSTD};

TEST(LinksTest, AHostIsKnownWhateverItsPort) {
  Links links;
  const auto link = links.To("ipv4:10.0.0.7:5000");
  EXPECT_EQ(link->host(), "10.0.0.7");
  EXPECT_EQ(links.To("ipv4:10.0.0.7:6000"), link);
  EXPECT_NE(links.To("ipv4:10.0.0.8:5000"), link);
  EXPECT_EQ(links.To("ipv6:[fd00::1]:5000")->host(), "fd00::1");
  EXPECT_EQ(links.To("ipv6:%5Bfd00::1%5D:5000")->host(), "fd00::1");
  EXPECT_FALSE(link->is_this_host());
  EXPECT_TRUE(links.To("ipv4:127.0.0.1:1")->is_this_host());
  EXPECT_TRUE(links.To("ipv6:[::1]:1")->is_this_host());
  EXPECT_TRUE(links.To("unix:/tmp/x")->is_this_host());
  EXPECT_TRUE(links.To("unix:")->is_this_host());
}

TEST(LinksTest, FewOfThemAreRemembered) {
  Links links;
  const auto first = links.To("ipv4:10.0.0.7:5000");
  for (int i = 0; i < 1000; ++i) {
    links.To(absl::StrCat("ipv4:10.1.", i / 256, ".", i % 256, ":1"));
  }
  EXPECT_EQ(links.Describe().size(), 256);
  EXPECT_EQ(first->host(), "10.0.0.7") << "who has it still has it";
}

TEST(LinksTest, WhatOneReadingFoundOutTheNextOneKnows) {
  Links links;
  int64_t now = 7;
  for (int frame = 0; frame < 50; ++frame) {
    // Each reading has one frame, over 100 Mbit/s.
    const auto link = links.To(absl::StrCat("ipv4:10.0.0.7:", 1000 + frame));
    const Compression chosen = link->Next(kBoth);
    size_t bytes = 1'000'000;
    if (chosen != COMPRESSION_NONE) {
      bytes = chosen == COMPRESSION_LZ4 ? 500'000 : 200'000;
      link->OnCompressed(chosen, 1'000'000, bytes, 2'000'000);
    }
    link->OnSent(chosen, 1'000'000, bytes);
    link->OnWrite(now);
    now += static_cast<int64_t>(bytes) * 80;
    link->OnWritten(bytes, now);
    now += 1'000'000'000;  // in which there is nothing to send
  }
  const std::vector<WorkerReport::Link> described = links.Describe();
  ASSERT_EQ(described.size(), 1);
  EXPECT_EQ(described[0].host(), "10.0.0.7");
  EXPECT_EQ(described[0].way(), "zstd");
  EXPECT_EQ(described[0].frames(), 50);
  EXPECT_EQ(described[0].bytes(), 50'000'000);
  EXPECT_LT(described[0].sent_bytes(), 25'000'000);
  EXPECT_EQ(described[0].bytes_per_second(), 12'500'000);
}

TEST(LinksTest, StreamsOfALinkAreTakenTogether) {
  Links links;
  const auto link = links.To("ipv4:10.0.0.7:1000");
  int64_t now = 0;
  // Eight pieces at once, one after another through the same wire.
  for (int round = 0; round < 20; ++round) {
    for (int stream = 0; stream < 8; ++stream) link->OnWrite(now);
    for (int stream = 0; stream < 8; ++stream) {
      link->OnWritten(1'000'000, now += 1'000'000);
    }
  }
  EXPECT_EQ(link->Describe().bytes_per_second(), 1e9);
}

TEST(LinksTest, NothingIsCompressedOnOneHost) {
  Links links;
  const auto link = links.To("ipv4:127.0.0.1:1000");
  for (int frame = 0; frame < 50; ++frame) {
    EXPECT_EQ(link->Next(kBoth), COMPRESSION_NONE);
    link->OnWrite(frame);
    link->OnWritten(10'000'000, frame + 1);
  }
  link->OnShown(1000);
  EXPECT_EQ(link->Describe().way(), "memory");
  EXPECT_EQ(link->Describe().bytes(), 1000);
  EXPECT_EQ(link->Describe().sent_bytes(), 0);
}

}  // namespace
}  // namespace penstock::service

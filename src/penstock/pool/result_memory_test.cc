#include "penstock/pool/result_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "gtest/gtest.h"

namespace penstock::pool {
namespace {

Descriptor MemoryOf(const std::string& bytes) {
  Descriptor memory(memfd_create("test", MFD_CLOEXEC));
  EXPECT_EQ(write(memory.get(), bytes.data(), bytes.size()),
            static_cast<ssize_t>(bytes.size()));
  return memory;
}

std::string TextOf(const Buffer& buffer) {
  return {buffer.As<char>(), buffer.size()};
}

TEST(ResultMemoryTest, ACopyStaysAsItWas) {
  const Descriptor memory = MemoryOf("before");
  const auto copy = ReadFrom(memory, 6);
  const auto mapped = MapOf(memory, 6);
  ASSERT_TRUE(copy.ok() && mapped.ok());
  EXPECT_EQ(pwrite(memory.get(), "after!", 6, 0), 6);
  EXPECT_EQ(TextOf(*copy), "before");
  EXPECT_EQ(TextOf(*mapped), "after!");
  EXPECT_EQ(TextOf(CopyOf(*mapped)), "after!");
}

TEST(ResultMemoryTest, WhatIsTooShortIsAnError) {
  EXPECT_FALSE(ReadFrom(MemoryOf("short"), 6).ok());
  EXPECT_FALSE(ReadFrom(MemoryOf("short"), uint64_t{1} << 62).ok());
  EXPECT_FALSE(ReadFrom(Descriptor(), 1).ok());
  const Descriptor endless(open("/dev/zero", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(ReadFrom(endless, 6).ok());
}

}  // namespace
}  // namespace penstock::pool

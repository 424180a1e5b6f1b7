#include "penstock/io/block.h"

#include <gtest/gtest.h>

#include <memory>

namespace penstock::io {
namespace {

TEST(BlockPoolTest, RecyclesWholeBlocksOnly) {
  BlockPool pool(100, 1);
  std::shared_ptr<char> a = pool.Allocate(100);
  std::shared_ptr<char> b = pool.Allocate(60);
  const char* memory = b.get();
  b = nullptr;
  a = nullptr;  // one too many to keep
  EXPECT_EQ(pool.Allocate(80).get(), memory);
  std::shared_ptr<char> small = pool.Allocate(10);
  EXPECT_NE(small.get(), memory);
}

TEST(BlockPoolTest, BlocksOutliveTheirPool) {
  auto pool = std::make_unique<BlockPool>(100, 1);
  std::shared_ptr<char> block = pool->Allocate(100);
  pool = nullptr;
  block.get()[99] = 'x';
}

}  // namespace
}  // namespace penstock::io

#include "penstock/service/worker/spill_file.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace penstock::service {
namespace {

using PiecePtr = std::shared_ptr<const SpillFile::Piece>;

absl::StatusOr<PiecePtr> Write(SpillFile& file, const std::string& text) {
  return file.Write(reinterpret_cast<const std::byte*>(text.data()),
                    text.size());
}

std::string TextOf(const PiecePtr& piece) {
  const absl::StatusOr<Buffer> bytes = piece->Read();
  if (!bytes.ok()) return std::string(bytes.status().message());
  return {bytes->As<char>(), bytes->size()};
}

TEST(SpillFileTest, GivesBackWhatWasWritten) {
  const auto file = *SpillFile::Make(1 << 20);
  const PiecePtr one = *Write(*file, std::string(10'000, 'a'));
  const PiecePtr two = *Write(*file, "b");
  EXPECT_EQ(TextOf(one), std::string(10'000, 'a'));
  EXPECT_EQ(TextOf(two), "b");
  EXPECT_EQ(file->used_bytes(), 3 * 4096 + 4096);
}

TEST(SpillFileTest, RoomIsUsedAgain) {
  const auto file = *SpillFile::Make(4 * 4096);
  std::vector<PiecePtr> pieces;
  for (const char c : {'a', 'b', 'c', 'd'}) {
    pieces.push_back(*Write(*file, std::string(4096, c)));
  }
  EXPECT_EQ(Write(*file, "e").status().code(),
            absl::StatusCode::kResourceExhausted);
  // Two that are not beside each other, then the one between them.
  pieces[0].reset();
  pieces[2].reset();
  EXPECT_FALSE(Write(*file, std::string(2 * 4096, 'e')).ok());
  pieces[1].reset();
  const auto wide = Write(*file, std::string(3 * 4096, 'e'));
  ASSERT_TRUE(wide.ok()) << wide.status();
  EXPECT_EQ(TextOf(*wide), std::string(3 * 4096, 'e'));
  EXPECT_EQ(TextOf(pieces[3]), std::string(4096, 'd'));
  pieces.clear();
}

TEST(SpillFileTest, APieceKeepsItsFile) {
  auto file = *SpillFile::Make(1 << 20);
  const PiecePtr piece = *Write(*file, "text");
  file.reset();
  EXPECT_EQ(TextOf(piece), "text");
}

}  // namespace
}  // namespace penstock::service

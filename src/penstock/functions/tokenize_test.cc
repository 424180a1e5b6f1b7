// Tokenizers over columns, their errors, and what they share between threads.
// What the reference packages give is checked in tests/python.
#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "penstock/functions/cases_for_test.h"
#include "penstock/functions/tokenize_normalize.h"
#include "penstock/functions/tokenize_trie.h"
#include "penstock/functions/tokenize_words.h"

namespace penstock::functions {
namespace {

class TokenizeTest : public CaseTest {};

TEST_P(TokenizeTest, Gives) {
  const Case& c = GetParam();
  EXPECT_EQ(Got(c.function, c.args, c.attrs), c.want);
}

TestArg VectorOf(std::initializer_list<std::string_view> values) {
  TestArg arg = Strings(values);
  const int64_t count = static_cast<int64_t>(values.size());
  arg.column = arg.column.Reshape(1, {count});
  arg.shape = PartialShape(PartialShape::Dims{count});
  return Constant(std::move(arg));
}

// Every byte by its own number; a = 97, b = 98.
TestArg Bytes() {
  Buffer buffer = Buffer::Allocate(256 * 4);
  for (int i = 0; i < 256; ++i) buffer.MutableAs<int32_t>()[i] = i;
  return Constant({TestArg::Kind::kRows,
                   Column::Dense(DType::kInt32, {256}, 1, std::move(buffer)),
                   PartialShape(PartialShape::Dims{256})});
}
TestArg Merges() {
  return Constant(
      Dense<int32_t>({3, 3}, {'a', 'b', 300, 300, 300, 301, ' ', 300, 302}));
}

TestArg Pieces() {
  return VectorOf({"[UNK]", "un", "##able", "a", "##b", "!"});
}

std::vector<TestArg> Model(TestArg text, std::string_view charsmap = "") {
  return {std::move(text), VectorOf({"<unk>", "\xE2\x96\x81", "a", "b", "ab"}),
          Constant(Dense<float>({5}, {0, -1, -2, -3, -4})),
          Constant(Dense<int32_t>({5}, {2, 1, 1, 1, 1})),
          Constant(Strings({charsmap}))};
}

INSTANTIATE_TEST_SUITE_P(
    Tokenize, TokenizeTest,
    testing::ValuesIn<Case>({
        {"Bpe",
         "text.bpe",
         {Strings({"ab ab", "", "abab", "  ab"}), Bytes(), Merges()},
         {},
         "int32: [300 302]; []; [301]; [32 302]"},
        {"BpeLong",
         "text.bpe",
         {Strings({std::string(200, 'a') + "b"}), Bytes(),
          Constant(Dense<int32_t>({2, 3}, {'a', 'a', 300, 'a', 'b', 301}))},
         {},
         [] {
           std::string want = "int32: [";
           for (int i = 0; i < 100; ++i) absl::StrAppend(&want, "300 ");
           return want + "98]";
         }()},
        {"BpeNotConstant",
         "text.bpe",
         {Strings({"a"}), Bytes(), Dense<int32_t>({1, 3}, {1, 2, 3})},
         {},
         "a tokenizer's tables must be constants"},
        {"BpeWrongMerges",
         "text.bpe",
         {Strings({"a"}), Bytes(), Constant(Dense<int32_t>({1, 2}, {1, 2}))},
         {},
         "text.bpe needs int32(256,) and int32(n, 3); got int32(256,) and "
         "int32(1, 2)"},
        {"WordPiece",
         "text.wordpiece",
         {Strings({"Unable", "\xC3\x9Cn able!", "ab\xFF", "abx a"}), Pieces()},
         {},
         "int32: [1 2]; [1 0 5]; [3 4]; [0 3]"},
        {"WordPieceCased",
         "text.wordpiece",
         {Strings({"Un un"}), Pieces()},
         {{"lowercase", false}},
         "int32: [0 1]"},
        {"WordPieceNoUnknown",
         "text.wordpiece",
         {Strings({"a"}), Pieces()},
         {{"unknown", std::string("?")}},
         "a vocabulary must have the token for unknown words, '\?'; it has 6 "
         "others"},
        {"Unigram",
         "text.sentencepiece",
         Model(Strings({"ab", " a  b ", "", "axyb", "\xFF"})),
         {},
         "int32: [1 4]; [1 2 1 3]; []; [1 2 0 3]; [1 0]"},
        {"Merge",
         "text.sentencepiece",
         Model(Strings({"ab", "aab"})),
         {{"kind", std::string("bpe")}},
         "int32: [1 4]; [1 2 4]"},
        {"Words",
         "text.sentencepiece",
         Model(Strings({"ab", " ab  a ", "", "\xE2\x96\x81 <unk>"})),
         {{"kind", std::string("word")}, {"add_dummy_prefix", false}},
         "int32: [4]; [4 0]; []; [1 0]"},
        {"Characters",
         "text.sentencepiece",
         Model(Strings({"ab", "axyb", "", "\xFF"})),
         {{"kind", std::string("char")}},
         "int32: [1 2 3]; [1 2 0 3]; []; [1 0]"},
        {"WrongKind",
         "text.sentencepiece",
         Model(Strings({"ab"})),
         {{"kind", std::string("WORD")}},
         "kind must be \"unigram\", \"bpe\", \"word\" or \"char\"; got "
         "\"WORD\""},
        {"NoBytePieces",
         "text.sentencepiece",
         Model(Strings({"ab"})),
         {{"byte_fallback", true}},
         "a model that falls back to bytes must have a piece for each"},
        {"CutCharsmap",
         "text.sentencepiece",
         Model(Strings({"ab"}), std::string_view("\x08\0\0\0\0\0", 6)),
         {},
         "a model's character map must hold a trie of 8 bytes, whole units; "
         "got 6 bytes in all"},
    }),
    NameOf);

TEST(SpaceNormalizer, AnyCharsmapIsSafe) {
  // Units that lead out of the trie, and values that lead out of the
  // replacements.
  for (const uint32_t unit : {0xFFFFFFFFu, 0x7FFFFFFFu, 0x161u, 0u}) {
    std::string charsmap(4 + 4 * 300, '\0');
    const uint32_t size = 4 * 300;
    std::memcpy(charsmap.data(), &size, 4);
    for (int i = 0; i < 300; ++i) {
      std::memcpy(charsmap.data() + 4 + 4 * i, &unit, 4);
    }
    const PrefixTrie none;
    const auto normalizer = SpaceNormalizer::Make(charsmap, {}, none);
    ASSERT_TRUE(normalizer.ok());
    std::string out;
    normalizer->Normalize("abc a\xFF", out);
    EXPECT_FALSE(out.empty());
  }
}

TEST(PrefixTrie, FindsPrefixes) {
  PrefixTrie trie;
  trie.Build({{"ab", 1}, {"a", 0}, {"abcd", 2}, {"b", 3}});
  std::string found;
  trie.FindPrefixes("abcde", [&](int32_t number, size_t length) {
    absl::StrAppend(&found, number, ":", length, " ");
  });
  EXPECT_EQ(found, "0:1 1:2 2:4 ");
}

TEST(WordCache, ServesThreads) {
  WordCache cache;
  const auto work = [&] {
    for (int i = 0; i < 20000; ++i) {
      const std::string word = absl::StrCat("word", i % 5000);
      const int32_t number = i % 5000;
      const auto found = cache.Find(word);
      if (found.empty()) {
        cache.Add(word, absl::MakeConstSpan(&number, 1));
      } else {
        ASSERT_EQ(found[0], number);
      }
    }
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(cache.Find("word7").at(0), 7);
  EXPECT_TRUE(cache.Find("never").empty());
}

}  // namespace
}  // namespace penstock::functions

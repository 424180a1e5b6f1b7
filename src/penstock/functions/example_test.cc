#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/functions/call_for_test.h"
#include "penstock/functions/example_spec.h"
#include "penstock/functions/example_wire.h"

namespace penstock::functions {
namespace {

using testing::HasSubstr;

std::string Varint(uint64_t value) {
  std::string out;
  for (; value > 127; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}

std::string Field(int number, const std::string& body) {
  return static_cast<char>(DelimitedTag(number)) + Varint(body.size()) + body;
}

std::string Entry(const std::string& key, const std::string& feature) {
  return Field(1, Field(1, key) + Field(2, feature));
}

std::string Ints(std::initializer_list<uint64_t> values) {
  std::string packed;
  for (uint64_t value : values) packed += Varint(value);
  return Field(3, Field(1, packed));
}

std::string Bytes(const std::string& value) {
  return Field(1, Field(1, value));
}

Attrs Wanted(std::vector<std::string> keys, std::vector<std::string> features) {
  return {{"keys", std::move(keys)}, {"features", std::move(features)}};
}

TEST(ExampleWireTest, VarintsOfEveryLength) {
  std::mt19937_64 random(1);
  for (int bits = 0; bits < 64; ++bits) {
    for (uint64_t value : {uint64_t{1} << bits, (uint64_t{1} << bits) - 1,
                           random() >> (63 - bits)}) {
      const std::string bytes = Varint(value);
      for (const std::string& tail :
           {std::string(), std::string("x"), std::string(20, '\xff')}) {
        const std::string all = bytes + tail;
        Wire wire = Wire::Of(all);
        uint64_t got;
        ASSERT_TRUE(ReadVarint(wire, got));
        EXPECT_EQ(got, value);
        EXPECT_EQ(wire.left(), tail.size());
      }
      for (size_t cut = 0; cut < bytes.size(); ++cut) {
        Wire wire = Wire::Of(std::string_view(bytes).substr(0, cut));
        uint64_t got;
        EXPECT_FALSE(ReadVarint(wire, got));
      }
      const std::string entry = Entry("k", Ints({value}));
      Wire feature = Wire::Of(entry);
      feature.at += 7;
      int64_t one = 0;
      if (ReadOneInt64(feature, reinterpret_cast<std::byte*>(&one))) {
        EXPECT_EQ(static_cast<uint64_t>(one), value);
      } else {
        EXPECT_GT(bytes.size(), 8u);
      }
    }
  }
  const std::string endless(30, '\xff');
  Wire wire = Wire::Of(endless);
  uint64_t got;
  EXPECT_FALSE(ReadVarint(wire, got));
}

TEST(ExampleWireTest, ShortWayTakesOneValueOnly) {
  for (const std::string& list : {Ints({1, 2}), Ints({300, 2}), Ints({})}) {
    const std::string entry = Entry("k", list);
    Wire feature = Wire::Of(entry);
    feature.at += 7;
    std::byte out[8];
    EXPECT_FALSE(ReadOneInt64(feature, out)) << list.size();
  }
}

TEST(KeyTableTest, FindsEveryKeyAndNoOther) {
  std::vector<std::string> keys = {"", "a", "b", "ab", "ba", "abc", "12345678"};
  for (int i = 0; i < 200; ++i) {
    // The same first and last bytes and length: told apart by comparing.
    keys.push_back("beginning" + std::to_string(1000 + i) + "the-end!");
    keys.push_back("f" + std::to_string(i));
  }
  const KeyTable table(keys);
  for (size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(table.Find(keys[i]), static_cast<int>(i));
    EXPECT_EQ(table.Find(keys[i] + "?"), KeyTable::kAbsent);
  }
}

TEST(ParseExampleTest, ErrorsSayFeatureExpectedAndFound) {
  const std::string one = Field(1, Entry("a", Ints({1})));
  const std::string text = Field(1, Entry("a", Bytes("x")));
  const std::string cut = one.substr(0, one.size() - 1);
  EXPECT_EQ(Got("io.parse_example", {Strings({one, text, "", cut})},
                Wanted({"a"}, {"0 fixed int64 - -"})),
            "int64: 1; <feature \"a\" must be a list of int64; found bytes>; "
            "<feature \"a\" (int64) must be there; found none. Give it a "
            "default_value if it may be missing.>; <expected a serialized "
            "Example; found 13 bytes that are none>");
  EXPECT_EQ(Got("io.parse_example", {Strings({one})},
                Wanted({"a"}, {"0 fixed int64 2 -"})),
            "int64: <feature \"a\" must have 2 values, shape (2,); found 1>");
  EXPECT_EQ(Got("io.parse_example", {Strings({one})},
                Wanted({"a"}, {"0 sequence int64 2 - optional"})),
            "int64: <feature \"a\" must have a multiple of 2 values, shape "
            "(2,) each; found 1>");
}

TEST(ParseExampleTest, OrdersOfKeysMayChangeFromRowToRow) {
  const std::string a = Entry("a", Ints({1}));
  const std::string b = Entry("b", Ints({2}));
  const std::string c = Entry("c", Ints({3}));
  EXPECT_EQ(Got("io.parse_example",
                {Strings({Field(1, a + b + c), Field(1, c + b + a),
                          Field(1, b + a), Field(1, a + c + b + a)})},
                Wanted({"b"}, {"0 fixed int64 - -"})),
            "int64: 2; 2; 2; 2");
}

TEST(ParseExampleTest, MalformedPlansAreRefused) {
  for (const char* line :
       {"", "0", "fixed int64 - -", "1 fixed int64 - -", "0 fixed int64",
        "0 fixed int64 x -", "0 fixed int64 - 1", "0 odd int64", "0 var int32",
        "0 ragged int64 float32", "0 sparse int64 1 5", "0 sparse int64 0 -1",
        "0 fixed int64 99999999999,99999999999 -", "-1 var int64",
        "0 fixed int64 -2 -", "0 sequence int64 0 - optional"}) {
    EXPECT_FALSE(
        Call("io.parse_example", {Strings({""})}, Wanted({"a"}, {line})).ok())
        << line;
  }
  EXPECT_THAT(Got("io.parse_example", {Strings({""})},
                  Wanted({"a", "a"}, {"0 var int64"})),
              HasSubstr("twice"));
  EXPECT_THAT(
      Got("io.parse_example", {Rows<int64_t>({1})},
          Wanted({"a"}, {"0 var int64"})),
      HasSubstr("parse_single_example takes one serialized message, string(); "
                "got int64()"));
}

// Whatever the bytes, there is a value or an error, and no byte outside is
// read (which the sanitizers check).
TEST(ParseExampleTest, DamagedBytesAreErrorsOrValues) {
  const std::string record =
      Field(1, Entry("a", Ints({1, 300})) + Entry("b", Bytes("xyz")) +
                   Entry("c", Field(2, Field(1, std::string(8, '\1')))));
  const Attrs attrs =
      Wanted({"a", "b", "c"},
             {"0 fixed int64 2 -", "1 var string", "2 ragged float32 int32"});
  std::mt19937 random(2);
  for (size_t at = 0; at < record.size(); ++at) {
    for (int i = 0; i < 20; ++i) {
      std::string bytes = record;
      bytes[at] = static_cast<char>(random());
      if (i % 4 == 0) bytes[random() % bytes.size()] ^= 1 << random() % 8;
      if (i % 5 == 0) bytes.resize(at);
      // In memory of its own, so that a byte too far is seen.
      const std::unique_ptr<char[]> own(new char[bytes.size()]);
      std::copy(bytes.begin(), bytes.end(), own.get());
      const std::string_view view(own.get(), bytes.size());
      EXPECT_TRUE(
          Call("io.parse_example", {Strings({view, record})}, attrs).ok());
    }
  }
}

TEST(ParseSequenceExampleTest, DamagedBytesAreErrorsOrValues) {
  const std::string frames = Field(1, Ints({1, 300})) + Field(1, Ints({}));
  const std::string record =
      Field(1, Entry("n", Ints({1}))) +
      Field(2, Entry("l", frames) + Entry("m", Field(1, Bytes("xyz"))));
  const Attrs attrs = {
      {"context_keys", std::vector<std::string>{"n"}},
      {"context_features", std::vector<std::string>{"0 fixed int64 - -"}},
      {"list_keys", std::vector<std::string>{"l", "m"}},
      {"list_features",
       std::vector<std::string>{"0 ragged int64 int32", "1 var string",
                                "1 sequence string - -"}}};
  std::mt19937 random(3);
  for (size_t at = 0; at < record.size(); ++at) {
    for (int i = 0; i < 20; ++i) {
      std::string bytes = record;
      bytes[at] = static_cast<char>(random());
      if (i % 5 == 0) bytes.resize(at);
      const std::unique_ptr<char[]> own(new char[bytes.size()]);
      std::copy(bytes.begin(), bytes.end(), own.get());
      const std::string_view view(own.get(), bytes.size());
      EXPECT_TRUE(
          Call("io.parse_sequence_example", {Strings({view, record})}, attrs)
              .ok());
    }
  }
}

TEST(ParseSequenceExampleTest, ErrorsSayFeatureExpectedAndFound) {
  const std::string one = Field(1, Ints({1}));
  const std::string two = Field(1, Ints({1, 2}));
  const std::string text = Field(1, Bytes("x"));
  const Attrs attrs = {
      {"list_keys", std::vector<std::string>{"l"}},
      {"list_features", std::vector<std::string>{"0 sequence int64 - -"}}};
  EXPECT_EQ(
      Got("io.parse_sequence_example",
          {Strings({Field(2, Entry("l", one + one)),
                    Field(2, Entry("l", one + two)), Field(2, Entry("l", text)),
                    ""})},
          attrs),
      "int64: [1 1]; <feature list \"l\", Feature 1, must be of 1 values, "
      "shape (); found 2>; <feature list \"l\", Feature 0, must be a list of "
      "int64; found bytes>; <feature list \"l\" (int64) must be there; found "
      "none. Set allow_missing=True if it may be missing.>");
}

}  // namespace
}  // namespace penstock::functions

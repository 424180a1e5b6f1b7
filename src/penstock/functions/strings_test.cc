// String functions and tables over columns of every layout, by tables. What
// TensorFlow gives for single values is checked in tests/python.
#include "gtest/gtest.h"
#include "penstock/functions/cases_for_test.h"
#include "penstock/functions/string_hash.h"

namespace penstock::functions {
namespace {

class StringsTest : public CaseTest {};

TEST_P(StringsTest, Gives) {
  const Case& c = GetParam();
  EXPECT_EQ(Got(c.function, c.args, c.attrs), c.want);
}

TestArg Lines() { return Strings({"a bc", "", "  d  ", "e"}); }
TestArg Keys() {
  TestArg keys = Strings({"a", "a longer key"});
  keys.column = keys.column.Reshape(1, {2});
  keys.shape = PartialShape(PartialShape::Dims{2});
  return Constant(std::move(keys));
}
TestArg TwoNumbers() { return Constant(Dense<int64_t>({2}, {10, 20})); }

INSTANTIATE_TEST_SUITE_P(
    Strings, StringsTest,
    testing::ValuesIn<Case>({
        {"Lower",
         "strings.lower",
         {Words()},
         {},
         "string: ['a' 'bc']; ['' 'd']"},
        {"Upper",
         "strings.upper",
         {Lines()},
         {},
         "string: 'A BC'; ''; '  D  '; 'E'"},
        {"UnknownEncoding",
         "strings.upper",
         {Lines()},
         {{"encoding", std::string("latin-1")}},
         "encoding must be \"\" or \"utf-8\"; got 'latin-1'"},
        {"NotStrings",
         "strings.lower",
         {Rows<int64_t>({1})},
         {},
         "strings.lower needs strings; got int64()"},
        {"Strip",
         "strings.strip",
         {Lines()},
         {},
         "string: 'a bc'; ''; 'd'; 'e'"},
        {"Split",
         "strings.split",
         {Lines()},
         {},
         "string: ['a' 'bc']; []; ['d']; ['e']"},
        {"SplitLongerThanALane",
         "strings.split",
         {Strings({"0123456789abcdef ghi 0123456789abcdef",
                   "            "
                   "     x"})},
         {},
         "string: ['0123456789abcdef' 'ghi' '0123456789abcdef']; ['x']"},
        {"SplitAtText",
         "strings.split",
         {Lines()},
         {{"sep", std::string(" ")}},
         "string: ['a' 'bc']; ['']; ['' '' 'd' '' '']; ['e']"},
        {"SplitSome",
         "strings.split",
         {Strings({"a b c", "a"})},
         {{"maxsplit", int64_t{1}}},
         "string: ['a' 'b c']; ['a' '']"},
        {"SplitConstant",
         "strings.split",
         {Constant(Strings({"a b"}))},
         {},
         "string: ['a' 'b']"},
        {"SplitOfVectors",
         "strings.split",
         {Words()},
         {},
         "a split needs a value of rank 0; got string(2,)"},
        {"Length", "strings.length", {Words()}, {}, "int32: [1 2]; [0 1]"},
        {"SubstrRows",
         "strings.substr",
         {Strings({"abc", "de", "f"}), Rows<int64_t>({1, 2, 5}), Int(2)},
         {},
         "string: 'bc'; ''; <pos must be within the string; got 5 for 'f'>"},
        {"SubstrNegativeLength",
         "strings.substr",
         {Strings({"abc"}), Int(0), Int(-1)},
         {},
         "string: <len must not be negative; got -1>"},
        {"ToNumber",
         "strings.to_number",
         {Strings({"1", "x", "3"})},
         {{"out_type", DType::kInt64}},
         "int64: 1; <strings.to_number needs a number of type int64; got "
         "'x'>; 3"},
        {"AsString",
         "strings.as_string",
         {Lists()},
         {},
         "string: ['1' '2' '3']; []; ['4' '5']"},
        {"AsStringLong",
         "strings.as_string",
         {Rows<double>({1.5})},
         {{"width", int64_t{70}}},
         "string: '" + std::string(62, ' ') + "1.500000'"},
        {"Join",
         "strings.join",
         {Words(), Strings({"x", "y"})},
         {{"separator", std::string("-")}},
         "string: ['a-x' 'bc-x']; ['-y' 'd-y']"},
        {"ReduceJoin",
         "strings.reduce_join",
         {Words()},
         {},
         "string: 'abc'; 'd'"},
        {"ReduceJoinRagged",
         "strings.reduce_join",
         {Words()},
         {{"axis", int64_t{0}}, {"separator", std::string(",")}},
         "string: 'a,bc'; ',d'"},
        {"Add",
         "add",
         {Words(), Strings({"x", "y"})},
         {},
         "string: ['ax' 'bcx']; ['y' 'dy']"},
        {"AddConstant",
         "add",
         {Constant(Strings({"<"})), Lines()},
         {},
         "string: '<a bc'; '<'; '<  d  '; '<e'"},
        {"AddNumber",
         "add",
         {Lines(), Int(1)},
         {},
         "add needs dtypes that can be joined; got string and int64"},
        {"Replace",
         "strings.regex_replace",
         {Lines()},
         {{"pattern", std::string(" +")}, {"rewrite", std::string("_")}},
         "string: 'a_bc'; ''; '_d_'; 'e'"},
        {"BadPattern",
         "strings.regex_full_match",
         {Lines()},
         {{"pattern", std::string("(")}},
         "pattern must be one of RE2's regular expressions; got '(': missing "
         "): ("},
        {"BadRewrite",
         "strings.regex_replace",
         {Lines()},
         {{"pattern", std::string("a")}, {"rewrite", std::string("\\1")}},
         "rewrite must name groups that the pattern has; got '\\\\1': Rewrite "
         "schema requests 1 matches, but the regexp only has 0 parenthesized "
         "subexpressions."},
        {"Decode",
         "strings.unicode_decode",
         {Strings({"a\xC3\xA4", "\xFF", ""})},
         {},
         "int32: [97 228]; [65533]; []"},
        {"DecodeStrict",
         "strings.unicode_decode",
         {Strings({"a", "b\xFF"})},
         {{"errors", std::string("strict")}},
         "int32: [97]; <strings.unicode_decode needs well-formed UTF-8; got "
         "'b\\xff' with an ill-formed byte at 1>"},
        {"Encode",
         "strings.unicode_encode",
         {Lists()},
         {},
         "string: '\x01\x02\x03'; ''; '\x04\x05'"},
        {"NoBuckets",
         "strings.to_hash_bucket_fast",
         {Lines()},
         {{"num_buckets", int64_t{0}}},
         "num_buckets must be positive; got 0"},
    }),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    Lookup, StringsTest,
    testing::ValuesIn<Case>({
        {"Find",
         "lookup.find",
         {Strings({"a", "b", "a longer key", "a longer kez"}), Keys(),
          TwoNumbers(), Constant(Rows<int64_t>({-1}))},
         {},
         "int64: 10; -1; 20; -1"},
        {"FindInVectors",
         "lookup.find",
         {Words(), Keys(), TwoNumbers(), Constant(Rows<int64_t>({-1}))},
         {},
         "int64: [10 -1]; [-1 -1]"},
        {"FindIntegers",
         "lookup.find",
         {Ragged<int32_t>({{10, 11}, {}, {20}}), TwoNumbers(), Keys(),
          Constant(Strings({"?"}))},
         {},
         "string: ['a' '?']; []; ['a longer key']"},
        {"Place",
         "lookup.place",
         {Strings({"a", "b", "a longer key"}), Keys()},
         {},
         "int64: 0; -1; 1"},
        {"Buckets",
         "lookup.place",
         {Strings({"a", "b"}), Keys()},
         {{"num_oov_buckets", int64_t{1}}},
         "int64: 0; 2"},
        {"KeysNotConstant",
         "lookup.place",
         {Strings({"a"}), Words()},
         {},
         "a table's keys and values must be constants; got string(2,) that is "
         "known only with an element"},
        {"EqualKeys",
         "lookup.place",
         {Rows<int64_t>({1}), Constant(Dense<int64_t>({3}, {5, 6, 5}))},
         {},
         "keys of a table must differ; got 5 at 0 and 2"},
        {"OtherKeys",
         "lookup.place",
         {Rows<float>({1}), Keys()},
         {},
         "a table of string keys looks up values of that type; got float32()"},
    }),
    NameOf);

TEST(StringHash, KnownValues) {
  // The reference implementation's vector for the key 00 01 … 0f.
  EXPECT_EQ(
      SipHash64(0x0706050403020100, 0x0f0e0d0c0b0a0908,
                std::string_view("\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16", 15)),
      0xa129ca6149be45e5);
  EXPECT_EQ(Fingerprint64("hello"), 13009744463427800296u);
}

}  // namespace
}  // namespace penstock::functions

// The functions by theme; AllFunctions() joins them.
#pragma once

#include <vector>

#include "penstock/functions/function.h"

namespace penstock::functions {

std::vector<Function> ArithmeticFunctions();  // + - * / // % **, minimum, …
std::vector<Function> MathFunctions();        // sqrt, exp, sin, floor, …
std::vector<Function> CompareFunctions();     // ==, <, …; logical_and, …
std::vector<Function> BitFunctions();         // & | ^ ~ << >>
std::vector<Function> SelectFunctions();      // where, clip, cast
// sum, mean, argmax, … Floats are summed in numpy's pairwise order along what
// is contiguous: equal to numpy's within 1e-6 relative for float32, 1e-14 for
// float64; the small floats are summed as float32. Integer sums are exact.
std::vector<Function> ReduceFunctions();
std::vector<Function> ShapeFunctions();   // shape, reshape, transpose, …
std::vector<Function> JoinFunctions();    // stack, concat
std::vector<Function> IndexFunctions();   // getitem
std::vector<Function> GatherFunctions();  // take, boolean_mask, one_hot
std::vector<Function> MakeFunctions();    // fill, zeros, arange, …
// random_uniform, … A value depends on (random key, step, seed, lineage of the
// row, index of the item) alone, and on this version's formulas for ever.
std::vector<Function> RandomFunctions();
std::vector<Function> ExampleFunctions();          // io.parse_example
std::vector<Function> SequenceExampleFunctions();  // io.parse_sequence_example
std::vector<Function> CsvFunctions();              // io.decode_csv
std::vector<Function> JsonFunctions();             // io.decode_json
std::vector<Function> TarFunctions();              // io.untar
std::vector<Function> RawFunctions();  // io.decode_raw, io.encode_base64, …
std::vector<Function> LookupFunctions();         // lookup.find, lookup.place
std::vector<Function> BpeFunctions();            // text.bpe
std::vector<Function> SentencePieceFunctions();  // text.sentencepiece
std::vector<Function> WordPieceFunctions();      // text.wordpiece
std::vector<Function> StringCaseFunctions();     // lower, upper, strip
std::vector<Function> StringHashFunctions();     // to_hash_bucket, …
std::vector<Function> StringJoinFunctions();     // join, reduce_join
std::vector<Function> StringMeasureFunctions();  // length, substr, …
std::vector<Function> StringNumberFunctions();   // to_number, as_string
std::vector<Function> StringRegexFunctions();    // regex_replace, …
std::vector<Function> StringSplitFunctions();    // split, bytes_split, …

}  // namespace penstock::functions

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
std::vector<Function> ImageDecodeFunctions();  // image.decode_jpeg, …
std::vector<Function> ImageEncodeFunctions();  // image.encode_jpeg, …
std::vector<Function> ImageSizeFunctions();    // image.resize, …

}  // namespace penstock::functions

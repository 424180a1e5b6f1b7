#include "penstock/functions/function.h"

#include <algorithm>

#include "penstock/functions/groups.h"

namespace penstock::functions {
namespace {

std::vector<Function> MakeAll() {
  std::vector<Function> all;
  for (
      auto group :
      {ArithmeticFunctions,    MathFunctions,          CompareFunctions,
       BitFunctions,           SelectFunctions,        ShapeFunctions,
       JoinFunctions,          IndexFunctions,         GatherFunctions,
       CheckFunctions,         MakeFunctions,          ReduceFunctions,
       RandomFunctions,        ExampleFunctions,       SequenceExampleFunctions,
       CsvFunctions,           JsonFunctions,          RawFunctions,
       TensorProtoFunctions,   TarFunctions,           LookupFunctions,
       StringCaseFunctions,    StringFormatFunctions,  StringHashFunctions,
       StringJoinFunctions,    StringMeasureFunctions, StringNumberFunctions,
       StringRegexFunctions,   StringSplitFunctions,   BpeFunctions,
       SentencePieceFunctions, WordPieceFunctions,     ImageColorFunctions,
       ImageDecodeFunctions,   ImageEncodeFunctions,   ImageGeometryFunctions,
       ImagePillowFunctions,   ImageRandomFunctions,   ImageRangeFunctions,
       ImageSizeFunctions}) {
    for (Function& function : group()) all.push_back(std::move(function));
  }
  std::sort(all.begin(), all.end(), [](const Function& a, const Function& b) {
    return a.name < b.name;
  });
  return all;
}

}  // namespace

absl::Span<const Function> AllFunctions() {
  static const auto* const all = new std::vector<Function>(MakeAll());
  return *all;
}

const Function* FindFunction(std::string_view name) {
  const absl::Span<const Function> all = AllFunctions();
  const auto at =
      std::lower_bound(all.begin(), all.end(), name,
                       [](const Function& function, std::string_view wanted) {
                         return function.name < wanted;
                       });
  return at != all.end() && at->name == name ? &*at : nullptr;
}

}  // namespace penstock::functions

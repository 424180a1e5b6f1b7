#include "penstock/main/functions_python.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/substitute.h"
#include "penstock/functions/function.h"

namespace penstock {
namespace {

using functions::Function;
using functions::Param;
using functions::ParamKind;

constexpr char kTop[] = R"("""The native functions$0.

Made from the engine's list by `penstock functions --python$1`; not edited.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock import _record
from penstock._dtypes import DType

)";

std::string Text(std::string_view view) { return std::string(view); }

std::string TypeOf(ParamKind kind) {
  switch (kind) {
    case ParamKind::kTensor:
      return "Any";
    case ParamKind::kTensors:
      return "Sequence[Any]";
    case ParamKind::kInt:
      return "int";
    case ParamKind::kInts:
      return "int | Sequence[int]";
    case ParamKind::kBool:
      return "bool";
    case ParamKind::kFloat:
      return "float";
    case ParamKind::kText:
      return "str";
    case ParamKind::kDType:
      return "Any";
    case ParamKind::kAxis:
      return "int | Sequence[int] | None";
    case ParamKind::kFloats:
      return "Sequence[float]";
    case ParamKind::kTexts:
      return "Sequence[str]";
  }
  return "Any";
}

// As Python knows it inside its module.
std::string ShortName(const Function& function) {
  return Text(function.name.substr(function.name.rfind('.') + 1));
}

std::string Signature(const Function& function) {
  std::vector<std::string> params;
  for (const Param& param : function.params) {
    std::string text = absl::StrCat(Text(param.name), ": ", TypeOf(param.kind));
    if (!param.default_value.empty()) {
      const bool may_be_none = param.default_value == "None" &&
                               param.kind != ParamKind::kAxis &&
                               TypeOf(param.kind) != "Any";
      const bool is_dtype =
          param.kind == ParamKind::kDType && param.default_value != "None";
      absl::StrAppend(&text, may_be_none ? " | None" : "", " = ",
                      is_dtype ? "\"" : "", Text(param.default_value),
                      is_dtype ? "\"" : "");
    }
    params.push_back(std::move(text));
  }
  std::string line = absl::StrCat("def ", ShortName(function), "(",
                                  absl::StrJoin(params, ", "), ") -> Any:\n");
  if (line.size() <= 81) return line;
  return absl::StrCat("def ", ShortName(function), "(\n    ",
                      absl::StrJoin(params, ",\n    "), ",\n) -> Any:\n");
}

// `text` broken at spaces so that lines with `indent` stay within 80 columns.
std::string Wrapped(const std::string& text, size_t indent) {
  std::string out;
  size_t column = indent;
  for (absl::string_view word : absl::StrSplit(text, ' ')) {
    if (column > indent && column + 1 + word.size() > 80) {
      absl::StrAppend(&out, "\n", std::string(indent, ' '));
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    absl::StrAppend(&out, word);
    column += word.size();
  }
  return out;
}

std::string Docstring(const Function& function) {
  const std::pair<std::string, std::string> doc =
      absl::StrSplit(Text(function.doc), absl::MaxSplits('\n', 1));
  std::string out = absl::StrCat("    \"\"\"", doc.first, "\n");
  if (!doc.second.empty()) {
    absl::StrAppend(&out, "\n    ", Wrapped(doc.second, 4), "\n");
  }
  if (!function.example.empty()) {
    absl::StrAppend(&out, "\n    Example:\n");
    const std::string example = Text(function.example);
    for (absl::string_view line :
         absl::StrSplit(absl::StripAsciiWhitespace(example), '\n')) {
      absl::StrAppend(&out, line.empty() ? "" : "        ", line, "\n");
    }
  }
  if (!function.params.empty()) {
    absl::StrAppend(&out, "\n    Args:\n");
    for (const Param& param : function.params) {
      absl::StrAppend(
          &out, "        ",
          Wrapped(absl::StrCat(Text(param.name), ": ", Text(param.doc)), 12),
          "\n");
    }
  }
  absl::StrAppend(&out, "    \"\"\"\n");
  // Backslashes of examples would need a raw docstring.
  return absl::StrReplaceAll(out, {{"\\", "\\\\"}});
}

std::string Body(const Function& function) {
  std::vector<std::string> tensors;
  std::vector<std::string> attrs;
  for (const Param& param : function.params) {
    const std::string name = Text(param.name);
    if (param.kind == ParamKind::kTensor) {
      tensors.push_back(name);
    } else if (param.kind == ParamKind::kTensors) {
      tensors.push_back(absl::StrCat("*", name));
    } else if (param.kind == ParamKind::kDType) {
      const std::string value =
          param.default_value == "None"
              ? absl::StrCat("None if ", name, " is None else DType.of(", name,
                             ")")
              : absl::StrCat("DType.of(", name, ")");
      attrs.push_back(absl::StrCat("\"", name, "\": ", value));
    } else {
      attrs.push_back(absl::StrCat("\"", name, "\": ", name));
    }
  }
  std::string call = absl::StrCat(
      "    return _record.call(\"", Text(function.name), "\", (",
      absl::StrJoin(tensors, ", "), tensors.size() == 1 ? ",)" : ")");
  std::string one_line = call;
  if (!attrs.empty()) {
    absl::StrAppend(&one_line, ", {", absl::StrJoin(attrs, ", "), "}");
  }
  one_line += ")\n";
  if (one_line.size() <= 81) return one_line;
  return absl::StrCat(
      "    return _record.call(\n        \"", Text(function.name),
      "\",\n        (", absl::StrJoin(tensors, ", "),
      tensors.size() == 1 ? ",)" : ")", ",\n        {\n            ",
      absl::StrJoin(attrs, ",\n            "), ",\n        },\n    )\n");
}

}  // namespace

std::string FunctionsAsPython(std::string_view space) {
  const std::string of =
      space.empty() ? "" : absl::StrCat(" of penstock.", Text(space));
  const std::string word = space.empty() ? "" : absl::StrCat(" ", Text(space));
  std::string out = absl::Substitute(kTop, of, word);
  std::string all;
  std::string definitions;
  for (const Function& function : functions::AllFunctions()) {
    const size_t dot = function.name.rfind('.');
    const std::string_view its =
        dot == std::string_view::npos ? "" : function.name.substr(0, dot);
    if (its != space || function.is_internal) continue;
    absl::StrAppend(&all, "    \"", ShortName(function), "\",\n");
    absl::StrAppend(&definitions, "\n\n", Signature(function),
                    Docstring(function), Body(function));
  }
  return absl::StrCat(out, "__all__ = [\n", all, "]\n", definitions);
}

}  // namespace penstock

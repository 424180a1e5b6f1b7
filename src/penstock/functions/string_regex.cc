#include <re2/re2.h>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/functions/attrs.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/promote.h"
#include "penstock/functions/string_items.h"

namespace penstock::functions {
namespace {

class Pattern final : public Prepared {
 public:
  explicit Pattern(std::string_view pattern)
      : re(re2::StringPiece(pattern.data(), pattern.size()), RE2::Quiet) {}
  RE2 re;
};

re2::StringPiece Piece(std::string_view text) {
  return {text.data(), text.size()};
}

absl::StatusOr<std::shared_ptr<const Pattern>> Compile(const Attrs& attrs) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string_view text,
                            TextAttr(attrs, "pattern"));
  auto pattern = std::make_shared<Pattern>(text);
  if (pattern->re.ok()) return pattern;
  return absl::InvalidArgumentError(
      absl::StrCat("pattern must be one of RE2's regular expressions; got ",
                   Quoted(text), ": ", pattern->re.error()));
}

absl::StatusOr<PreparedPtr> Prepare(absl::Span<const ArgSpec>,
                                    const Attrs& attrs) {
  PENSTOCK_ASSIGN_OR_RETURN(PreparedPtr pattern, Compile(attrs));
  return pattern;
}

const RE2& Compiled(const EvalContext& context) {
  return static_cast<const Pattern*>(context.prepared)->re;
}

absl::StatusOr<TensorSpec> InferMatch(absl::Span<const ArgSpec> args,
                                      const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckStrings("strings.regex_full_match", args[0]));
  PENSTOCK_RETURN_IF_ERROR(Compile(attrs).status());
  return TensorSpec{DType::kBool, args[0].spec.shape};
}

absl::StatusOr<Column> EvalMatch(absl::Span<const Arg> args, const Attrs&,
                                 const TensorSpec&, EvalContext& context) {
  const RE2& re = Compiled(context);
  return MapItems<StringRef, bool>(
      args[0], ResultRows(args, context), {}, [&](int64_t, StringRef item) {
        return RE2::FullMatch(Piece(item.view()), re);
      });
}

absl::StatusOr<TensorSpec> InferReplace(absl::Span<const ArgSpec> args,
                                        const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckStrings("strings.regex_replace", args[0]));
  PENSTOCK_ASSIGN_OR_RETURN(const auto pattern, Compile(attrs));
  PENSTOCK_ASSIGN_OR_RETURN(const std::string_view rewrite,
                            TextAttr(attrs, "rewrite"));
  PENSTOCK_RETURN_IF_ERROR(BoolAttr(attrs, "replace_global", true).status());
  std::string error;
  if (!pattern->re.CheckRewriteString(Piece(rewrite), &error)) {
    return absl::InvalidArgumentError(
        absl::StrCat("rewrite must name groups that the pattern has; got ",
                     Quoted(rewrite), ": ", error));
  }
  return args[0].spec;
}

absl::StatusOr<Column> EvalReplace(absl::Span<const Arg> args,
                                   const Attrs& attrs, const TensorSpec&,
                                   EvalContext& context) {
  const RE2& re = Compiled(context);
  PENSTOCK_ASSIGN_OR_RETURN(const std::string_view rewrite,
                            TextAttr(attrs, "rewrite"));
  PENSTOCK_ASSIGN_OR_RETURN(const bool is_global,
                            BoolAttr(attrs, "replace_global", true));
  const auto blocks = ByteBlocks::Make();
  Pins pins = StringPins(args);
  pins.push_back(blocks);
  std::string text;
  return MapItems<StringRef, StringRef>(
      args[0], ResultRows(args, context), std::move(pins),
      [&](int64_t, StringRef item) {
        // What has no match stays where it is.
        if (!RE2::PartialMatch(Piece(item.view()), re)) return item;
        text.assign(item.view());
        if (is_global) {
          RE2::GlobalReplace(&text, re, Piece(rewrite));
        } else {
          RE2::Replace(&text, re, Piece(rewrite));
        }
        return blocks->Copy(text);
      });
}

absl::StatusOr<TensorSpec> InferExtract(absl::Span<const ArgSpec> args,
                                        const Attrs& attrs) {
  PENSTOCK_RETURN_IF_ERROR(CheckStrings("strings.regex_extract", args[0]));
  PENSTOCK_ASSIGN_OR_RETURN(const auto pattern, Compile(attrs));
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t group, IntAttr(attrs, "group", 0));
  const int groups = pattern->re.NumberOfCapturingGroups();
  if (group < 0 || group > groups) {
    return absl::InvalidArgumentError(absl::StrCat(
        "group must be one of the pattern's ", groups, " or 0; got ", group));
  }
  return args[0].spec;
}

absl::StatusOr<Column> EvalExtract(absl::Span<const Arg> args,
                                   const Attrs& attrs, const TensorSpec&,
                                   EvalContext& context) {
  const RE2& re = Compiled(context);
  PENSTOCK_ASSIGN_OR_RETURN(const int64_t group, IntAttr(attrs, "group", 0));
  std::vector<re2::StringPiece> groups(group + 1);
  return MapItems<StringRef, StringRef>(
      args[0], ResultRows(args, context), StringPins(args),
      [&](int64_t, StringRef item) -> StringRef {
        const bool is_found =
            re.Match(Piece(item.view()), 0, item.size, RE2::UNANCHORED,
                     groups.data(), static_cast<int>(groups.size()));
        if (!is_found || groups[group].data() == nullptr) return {item.data, 0};
        return {groups[group].data(), groups[group].size()};
      });
}

}  // namespace

std::vector<Function> StringRegexFunctions() {
  const Param input = {"input", ParamKind::kTensor, "", "Strings."};
  const Param pattern = {"pattern", ParamKind::kText, "",
                         "A regular expression, as RE2 has them."};
  return {
      {.name = "strings.regex_full_match",
       .params = {input, pattern},
       .doc = "Whether the pattern matches the whole string.",
       .example = ">>> ps.strings.regex_full_match([\"ab1\", \"1ab\"], "
                  "\"[a-z]+[0-9]\")\n"
                  "array([ True, False])",
       .infer = InferMatch,
       .eval = EvalMatch,
       .prepare = Prepare},
      {.name = "strings.regex_replace",
       .params = {input,
                  pattern,
                  {"rewrite", ParamKind::kText, "",
                   "What a match becomes; a backslash and a digit stand for "
                   "a group."},
                  {"replace_global", ParamKind::kBool, "True",
                   "Every match, or the first alone."}},
       .doc = "The strings with what matches a pattern rewritten.",
       .example = ">>> ps.strings.regex_replace(\"a1b22\", \"[0-9]+\", \"#\")\n"
                  "b'a#b#'",
       .infer = InferReplace,
       .eval = EvalReplace,
       .prepare = Prepare},
      {.name = "strings.regex_extract",
       .params = {input,
                  pattern,
                  {"group", ParamKind::kInt, "0",
                   "Which group of the match; 0: all of it."}},
       .doc = "What a pattern first matches in each string, \"\" if nothing.",
       .example = ">>> ps.strings.regex_extract(\"id=42;\", \"id=([0-9]+)\", 1)"
                  "\nb'42'",
       .infer = InferExtract,
       .eval = EvalExtract,
       .prepare = Prepare},
  };
}

}  // namespace penstock::functions

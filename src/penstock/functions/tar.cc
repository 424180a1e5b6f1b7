// The members of a sample from a tar archive.
#include "penstock/base/tar.h"

#include <deque>
#include <memory>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/functions/groups.h"
#include "penstock/functions/promote.h"
#include "penstock/functions/rows.h"

namespace penstock::functions {
namespace {

absl::StatusOr<std::vector<std::string>> Extensions(const Attrs& attrs) {
  const auto at = attrs.find("extensions");
  if (at != attrs.end()) {
    if (const auto* texts =
            std::get_if<std::vector<std::string>>(&at->second)) {
      return *texts;
    }
  }
  return absl::InvalidArgumentError(
      "a tar archive needs the extensions that are wanted; got none");
}

absl::StatusOr<std::vector<TensorSpec>> InferUntar(
    absl::Span<const ArgSpec> args, const Attrs& attrs) {
  const TensorSpec& spec = args[0].spec;
  if (spec.dtype != DType::kString || !spec.shape.has_rank() ||
      spec.shape.rank() != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a sample of a tar archive is string(); got ", spec.ToString()));
  }
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<std::string> extensions,
                            Extensions(attrs));
  return std::vector<TensorSpec>(extensions.size() + 1,
                                 TensorSpec{DType::kString, {}});
}

// Writes the key and the wanted members of a sample to found.
absl::Status Untar(std::string_view sample,
                   const std::vector<std::string>& extensions, std::string& key,
                   std::vector<StringRef>& found) {
  std::vector<bool> is_found(extensions.size(), false);
  std::string others;
  for (size_t at = 0; at < sample.size();) {
    TarMember member;
    PENSTOCK_ASSIGN_OR_RETURN(const TarState state,
                              ReadTarMember(sample, at, member));
    if (state != TarState::kMember || member.end > sample.size()) {
      return absl::DataLossError(
          "expected a sample of a tar archive; found "
          "bytes that end inside a member");
    }
    at = member.end;
    if (!member.is_file) continue;
    key = std::string(member.key());
    const std::string extension =
        absl::AsciiStrToLower(std::string(member.extension()));
    absl::StrAppend(&others, others.empty() ? "" : ", ", extension);
    for (size_t i = 0; i < extensions.size(); ++i) {
      if (extensions[i] != extension) continue;
      if (is_found[i]) {
        return absl::InvalidArgumentError(
            absl::StrCat("sample \"", key, "\" must have one member ",
                         extension, "; found several"));
      }
      is_found[i] = true;
      found[i] = {sample.data() + member.data_begin, member.data_size};
    }
  }
  for (size_t i = 0; i < extensions.size(); ++i) {
    if (!is_found[i]) {
      return absl::InvalidArgumentError(
          absl::StrCat("sample \"", key, "\" must have a member ",
                       extensions[i], "; found ", others));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Column>> EvalUntar(absl::Span<const Arg> args,
                                              const Attrs& attrs,
                                              absl::Span<const TensorSpec>,
                                              EvalContext& context) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<std::string> extensions,
                            Extensions(attrs));
  const Column& samples = *args[0].column;
  const int64_t rows = ResultRows(args, context);
  const auto keys = std::make_shared<std::deque<std::string>>();
  std::vector<Buffer> buffers;
  for (size_t i = 0; i <= extensions.size(); ++i) {
    buffers.push_back(Buffer::Allocate(rows * sizeof(StringRef)));
  }
  for (int64_t row = 0; row < rows; ++row) {
    std::string& key = keys->emplace_back();
    std::vector<StringRef> found(extensions.size());
    absl::Status status =
        Untar(samples.Row<StringRef>(row)->view(), extensions, key, found);
    if (!status.ok()) ReportRow(context, row, std::move(status));
    buffers[0].MutableAs<StringRef>()[row] = {key.data(), key.size()};
    for (size_t i = 0; i < extensions.size(); ++i) {
      buffers[i + 1].MutableAs<StringRef>()[row] = found[i];
    }
  }
  std::vector<Column> columns;
  for (size_t i = 0; i <= extensions.size(); ++i) {
    columns.push_back(Column::Dense(DType::kString, {}, rows,
                                    std::move(buffers[i]),
                                    i == 0 ? Pins{keys} : samples.pins()));
  }
  return columns;
}

}  // namespace

std::vector<Function> TarFunctions() {
  return {
      {.name = "io.untar",
       .params = {{"sample", ParamKind::kTensor, "",
                   "Members of a tar archive that have one key."},
                  {"extensions", ParamKind::kTexts, "",
                   "Of the members that are wanted, in lower case."}},
       .doc = "The key of a sample, and its members.",
       .example = "",
       .infer = nullptr,
       .eval = nullptr,
       .infer_parts = InferUntar,
       .eval_parts = EvalUntar,
       .is_internal = true},
  };
}

}  // namespace penstock::functions

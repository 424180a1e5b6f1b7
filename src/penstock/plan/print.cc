#include "penstock/plan/print.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "penstock/plan/cardinality.h"
#include "penstock/plan/convert.h"
#include "penstock/plan/infer.h"

namespace penstock::plan {
namespace {

// Deeper inputs are not indented further: a chain of thousands stays readable.
constexpr size_t kMaxIndent = 30;
constexpr size_t kMaxColumn = 60;
constexpr int kMaxDepth = 16;
// A longer node pushes its own line's columns to the right, not those of all.
constexpr size_t kMaxAligned = 48;

using Line = std::array<std::string, 4>;

std::string Shortened(std::string text) {
  if (text.size() <= kMaxColumn) return text;
  size_t end = kMaxColumn - 3;
  // Not in the middle of a character.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) {
    --end;
  }
  return absl::StrCat(absl::string_view(text).substr(0, end), "…");
}

std::string PlaceOf(const Location& made_at) {
  if (made_at.file().empty()) return "";
  return absl::StrCat(made_at.file(), ":", made_at.line());
}

const Plan* DatasetOf(const Node& node) {
  const Function* function = DatasetFunctionOf(node);
  if (function == nullptr || !function->has_dataset()) return nullptr;
  return &function->dataset();
}

// A line for each function that runs as Python, if not for all elements, also
// in sub-plans.
void AddPython(const Plan& plan, const std::string& in, int depth,
               std::string& text) {
  if (depth > kMaxDepth) return;
  for (int i = 0; i < plan.nodes_size(); ++i) {
    const Node& node = plan.nodes(i);
    const std::string name = absl::StrCat(in, NodeName(plan, i));
    const std::vector<const Function*> functions = FunctionsOf(node);
    for (const Function* function : functions) {
      if (!function->has_python()) continue;
      absl::StrAppend(
          &text, name, " runs ", functions.size() == 1 ? "" : function->name(),
          functions.size() == 1 ? "" : " ",
          IsPython(*function) ? "as Python: "
                              : "natively, as Python for elements it does not "
                                "know: ",
          function->python().reason(), "\n");
    }
    if (const Plan* dataset = DatasetOf(node)) {
      AddPython(*dataset, absl::StrCat(name, "/"), depth + 1, text);
    }
  }
}

Line LineOf(const Plan& plan, int number, size_t indent, const std::string& in,
            bool is_repeated) {
  const Node& node = plan.nodes(number);
  const std::string name =
      absl::StrCat(std::string(2 * indent, ' '), in, NodeName(plan, number));
  if (is_repeated) return {absl::StrCat(name, " (above)"), "", "", ""};
  const std::string detail = Detail(node);
  absl::StatusOr<penstock::ElementSpec> spec = FromProto(node.output());
  return {detail.empty() ? name : absl::StrCat(name, "(", detail, ")"),
          absl::StrCat("-> ", spec.ok() ? Shortened(spec->ToString()) : "?"),
          absl::StrCat("[", ToString(node.cardinality()), "]"),
          PlaceOf(node.made_at())};
}

// Root first, depth first, without recursion over inputs: chains are long.
void AddLines(const Plan& plan, size_t indent, const std::string& in, int depth,
              std::vector<Line>& lines) {
  if (plan.nodes().empty() || depth > kMaxDepth) return;
  std::vector<bool> is_seen(plan.nodes_size(), false);
  std::vector<std::pair<int, size_t>> todo = {{plan.nodes_size() - 1, indent}};
  while (!todo.empty()) {
    const auto [number, level] = todo.back();
    todo.pop_back();
    const bool is_repeated = is_seen[number];
    lines.push_back(
        LineOf(plan, number, std::min(level, kMaxIndent), in, is_repeated));
    if (is_repeated) continue;
    is_seen[number] = true;

    const Node& node = plan.nodes(number);
    if (const Plan* dataset = DatasetOf(node)) {
      AddLines(*dataset, level + 2,
               absl::StrCat(in, NodeName(plan, number), "/"), depth + 1, lines);
    }
    if (node.received().has_distribution()) {
      AddLines(node.received().distribution().plan(), level + 1, in, depth + 1,
               lines);
    }
    for (int i = node.inputs_size() - 1; i >= 0; --i) {
      // A plan need not be valid to be shown.
      if (node.inputs(i) >= static_cast<uint32_t>(number)) continue;
      todo.emplace_back(static_cast<int>(node.inputs(i)), level + 1);
    }
  }
}

// Bytes are not columns on a screen: "…" and other characters take several.
size_t Width(absl::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](unsigned char c) { return (c & 0xc0) != 0x80; });
}

}  // namespace

std::string NodeName(const Plan& plan, int node) {
  if (!plan.nodes(node).name().empty()) return plan.nodes(node).name();
  return absl::StrCat(OpName(plan.nodes(node)), "_", node);
}

std::string Print(const Plan& plan) {
  std::vector<Line> lines;
  AddLines(plan, 0, "", 0, lines);
  std::array<size_t, 4> widths = {};
  for (const Line& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) {
      const size_t width = Width(line[i]);
      widths[i] =
          std::max(widths[i], i == 0 ? std::min(width, kMaxAligned) : width);
    }
  }
  std::string text;
  for (const Line& line : lines) {
    std::string row;
    size_t begin = 0;  // of the column; a long cell before it may reach further
    for (size_t i = 0; i < line.size(); ++i) {
      const size_t width = Width(row);
      const size_t gap = i == 0 ? 0 : 2;
      row.append(std::max(begin, width + gap) - width, ' ');
      row.append(line[i]);
      begin += widths[i] + 2;
    }
    row.erase(row.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, row, "\n");
  }
  AddPython(plan, "", 0, text);
  return text;
}

absl::Status WithLine(const absl::Status& status, absl::string_view line) {
  if (status.ok()) return status;
  absl::Status result(status.code(),
                      absl::StrCat(status.message(), "\n", line));
  status.ForEachPayload([&](absl::string_view key, const absl::Cord& payload) {
    result.SetPayload(key, payload);
  });
  return result;
}

std::string LineOfNode(absl::string_view name, const Location& made_at) {
  std::string line = absl::StrCat("  at node \"", name, "\"");
  const std::string place = PlaceOf(made_at);
  if (!place.empty()) absl::StrAppend(&line, ", made at ", place);
  return line;
}

absl::Status Located(const absl::Status& status, const Plan& plan, int node) {
  return WithLine(status,
                  LineOfNode(NodeName(plan, node), plan.nodes(node).made_at()));
}

}  // namespace penstock::plan

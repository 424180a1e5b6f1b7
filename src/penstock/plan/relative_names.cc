#include "penstock/plan/relative_names.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>

#include "penstock/data/chunk.h"
#include "penstock/data/encode.h"
#include "penstock/plan/infer.h"

namespace penstock::plan {
namespace {

bool IsAbsolute(std::string_view name) {
  return !name.empty() && name.front() == '/';
}

bool IsAbsolute(const Tensor& tensor) {
  return tensor.dtype() == STRING &&
         std::all_of(tensor.strings().begin(), tensor.strings().end(),
                     [](const std::string& name) { return IsAbsolute(name); });
}

bool IsAbsolute(const Column& column) {
  if (column.dtype() != penstock::DType::kString) return false;
  for (int64_t row = 0; row < column.rows(); ++row) {
    const auto* names = column.Row<StringRef>(row);
    for (int64_t i = 0; i < column.RowItems(row); ++i) {
      if (!IsAbsolute(names[i].view())) return false;
    }
  }
  return true;
}

// A plan, and the node of the plan around it whose function it is in.
struct Scope {
  const Plan& plan;
  const Scope* around = nullptr;
  int node = -1;
  const Function* function = nullptr;
};

class Names final {
 public:
  explicit Names(const FindCapture& find) : find_(find) {}

  bool MayBeRelative(const Scope& scope) {
    for (int i = 0; i < scope.plan.nodes_size(); ++i) {
      if (MayBeRelative(scope, i)) return true;
    }
    return false;
  }

 private:
  bool MayBeRelative(const Scope& scope, int number) {
    const Node& node = scope.plan.nodes(number);
    if (node.has_list_files()) {
      if (!IsSure(scope, node.list_files().patterns())) return true;
    } else if (node.has_read_files()) {
      if (!IsSure(scope, node.read_files().files())) return true;
    } else if (node.has_cache()) {
      const std::string& name = node.cache().filename();
      if (!name.empty() && !IsAbsolute(name)) return true;
    } else if (node.has_with_options()) {
      const Options& options = node.with_options().options();
      if (options.has_kept_directory() &&
          !IsAbsolute(options.kept_directory())) {
        return true;
      }
    } else if (node.received().has_distribution()) {
      if (MayBeRelative({node.received().distribution().plan()})) return true;
    }
    for (const Function* function : FunctionsOf(node)) {
      if (function->has_dataset() &&
          MayBeRelative({function->dataset(), &scope, number, function})) {
        return true;
      }
    }
    return false;
  }

  // Those below: whether all names are known to begin with '/'.

  bool IsSure(const Scope& scope, const Value& value) {
    if (value.has_constant()) return IsAbsolute(value.constant());
    return IsBoundSure(scope, value.bound());
  }

  bool IsBoundSure(const Scope& scope, uint32_t bound) {
    if (scope.around == nullptr ||
        static_cast<int>(bound) >= scope.function->outputs_size()) {
      return false;
    }
    return IsStepSure(*scope.around, scope.node, *scope.function,
                      scope.function->outputs(static_cast<int>(bound)));
  }

  // A step of a function of the node.
  bool IsStepSure(const Scope& scope, int node, const Function& function,
                  uint32_t number) {
    if (static_cast<int>(number) >= function.steps_size()) return false;
    const Function::Step& step = function.steps(static_cast<int>(number));
    switch (step.kind_case()) {
      case Function::Step::kArgument: {
        // Elsewhere, arguments are more than the columns of the input.
        const Node& at = scope.plan.nodes(node);
        const bool is_column =
            at.has_map() || at.has_flat_map() || at.has_interleave();
        return is_column && IsColumnSure(scope, at.inputs(0), step.argument());
      }
      case Function::Step::kBound:
        return IsBoundSure(scope, step.bound());
      case Function::Step::kConstant:
        return step.constant().has_tensor() &&
               IsAbsolute(step.constant().tensor());
      case Function::Step::kCall:
        // Of strings, the first is what the whole begins with.
        return step.call().function() == "add" && step.call().args_size() > 0 &&
               step.call().args(0) < number &&
               IsStepSure(scope, node, function, step.call().args(0));
      default:
        return false;
    }
  }

  // Datasets that are used twice would else be walked twice, at each level.
  bool IsColumnSure(const Scope& scope, uint32_t node, uint32_t column) {
    const auto key = std::make_tuple(&scope.plan, node, column);
    const auto known = sure_.find(key);
    if (known != sure_.end()) return known->second;
    const bool is_sure =
        FindColumn(scope, static_cast<int>(node), static_cast<int>(column));
    sure_[key] = is_sure;
    return is_sure;
  }

  bool FindColumn(const Scope& scope, int number, int column) {
    const Node& node = scope.plan.nodes(number);
    const auto is_sure_from = [&](int first) {
      return std::all_of(node.inputs().begin() + first, node.inputs().end(),
                         [&](uint32_t input) {
                           return IsColumnSure(scope, input,
                                               static_cast<uint32_t>(column));
                         });
    };
    switch (node.op_case()) {
      case Node::kListFiles:
        return IsSure(scope, node.list_files().patterns());
      case Node::kRows:
        return AreRowsSure(node.rows(), column);
      case Node::kValues:
        return column < node.values().values_size() &&
               IsSure(scope, node.values().values(column));
      case Node::kMap:
        return IsResultSure(scope, number, node.map().function(), column);
      case Node::kFlatMap:
        return IsRootSure(scope, number, node.flat_map().function(), column);
      case Node::kInterleave:
        return IsRootSure(scope, number, node.interleave().function(), column);
      // Rows as they are, some of them, or in another order.
      case Node::kAssertCardinality:
      case Node::kBatch:
      case Node::kCache:
      case Node::kConcatenate:
      case Node::kFilter:
      case Node::kIgnoreErrors:
      case Node::kPrefetch:
      case Node::kRepeat:
      case Node::kSampleFromDatasets:
      case Node::kShard:
      case Node::kShuffle:
      case Node::kSkip:
      case Node::kTake:
      case Node::kTakeWhile:
      case Node::kUnique:
      case Node::kWithOptions:
        return is_sure_from(0);
      case Node::kChooseFromDatasets:
        return is_sure_from(1);
      default:
        return false;
    }
  }

  bool AreRowsSure(const Rows& rows, int column) {
    absl::StatusOr<Buffer> bytes;
    if (rows.has_capture()) {
      bytes = find_(rows.capture());
    } else {
      bytes = Buffer::Allocate(rows.chunk().size());
      std::copy(rows.chunk().begin(), rows.chunk().end(),
                bytes->MutableAs<char>());
    }
    if (!bytes.ok()) return false;
    const absl::StatusOr<Chunk> chunk = Decode(*bytes);
    return chunk.ok() && column < static_cast<int>(chunk->columns.size()) &&
           IsAbsolute(chunk->columns[column]);
  }

  bool IsResultSure(const Scope& scope, int node, const Function& function,
                    int column) {
    return !function.has_python() && column < function.outputs_size() &&
           IsStepSure(scope, node, function, function.outputs(column));
  }

  // Of the dataset that the function makes.
  bool IsRootSure(const Scope& scope, int node, const Function& function,
                  int column) {
    if (!function.has_dataset() || function.dataset().nodes_size() == 0) {
      return false;
    }
    const Scope inside{function.dataset(), &scope, node, &function};
    return IsColumnSure(
        inside, static_cast<uint32_t>(function.dataset().nodes_size() - 1),
        static_cast<uint32_t>(column));
  }

  const FindCapture& find_;
  std::map<std::tuple<const Plan*, uint32_t, uint32_t>, bool> sure_;
};

}  // namespace

bool MayOpenRelative(const Plan& plan, const FindCapture& find) {
  return Names(find).MayBeRelative({plan});
}

}  // namespace penstock::plan

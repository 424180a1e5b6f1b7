#include "penstock/plan/rewrite/vectorize_pairs.h"

#include <utility>
#include <vector>

#include "penstock/plan/convert.h"
#include "penstock/plan/rewrite/function_facts.h"

namespace penstock::plan {
namespace {

// Whether the function does the same to elements as to batches of them.
bool IsAlike(const Function& function,
             const std::vector<penstock::TensorSpec>& element) {
  // Without bound values: what they are is not known.
  const auto facts = FindStepFacts(function, element, {});
  if (!facts.ok()) return false;
  std::vector<bool> is_batched(function.steps_size(), false);
  for (int i = 0; i < function.steps_size(); ++i) {
    const Function::Step& step = function.steps(i);
    if (step.has_argument()) is_batched[i] = true;
    if (!step.has_call()) {
      if (step.has_part() || step.has_bound()) return false;
      continue;
    }
    if (!(*facts)[i].is_elementwise || (*facts)[i].may_fail) return false;
    int rank = -1;  // of what comes from the batch
    for (uint32_t arg : step.call().args()) {
      if (!is_batched[arg]) continue;
      const int own = (*facts)[arg].spec.shape.rank();
      if (rank >= 0 && own != rank) return false;
      rank = own;
      is_batched[i] = true;
    }
    if (rank < 0) continue;
    for (uint32_t arg : step.call().args()) {
      if (!is_batched[arg] && (*facts)[arg].spec.shape.rank() > rank) {
        return false;
      }
    }
  }
  for (uint32_t output : function.outputs()) {
    if (!is_batched[output]) return false;
  }
  return true;
}

}  // namespace

bool VectorizePairs(Draft& draft, int id, PassContext& context) {
  if (!draft.node(id).has_unbatch()) return false;
  std::vector<int> maps;  // the nearest first
  int batch = draft.input(id);
  for (int user = id; draft.OnlyUser(batch) == user;) {
    const Function* function = NativeMapOf(draft.node(batch));
    if (function == nullptr || IsRandom(*function)) break;
    maps.push_back(batch);
    user = batch;
    batch = draft.input(batch);
  }
  if (maps.empty() || !draft.node(batch).has_batch() ||
      draft.OnlyUser(batch) != maps.back()) {
    return false;
  }
  const int below = draft.input(batch);
  const auto decline = [&](const char* why) {
    return context.Declined(context.Note(draft, {batch, id}, why));
  };
  if (draft.node(batch).batch().drop_remainder()) {
    return decline("elements that fill no batch are left out");
  }
  if (context.facts().uses_lineage) {
    return decline("random numbers depend on an element's batch");
  }
  if (context.facts().is_seen) {
    return decline("Python functions would be called at other times");
  }
  if (!StacksExactly(draft.spec(below)) || MayGiveErrors(draft, below)) {
    return decline("elements may be errors or differ in shape");
  }
  int top = below;
  for (size_t i = maps.size(); i-- > 0;) {
    if (!IsAlike(draft.node(maps[i]).map().function(), draft.leaves(top))) {
      return decline("a function does something else to a batch");
    }
    const absl::StatusOr<int> added = draft.Add(draft.node(maps[i]), {top});
    if (!added.ok()) return false;
    top = *added;
  }
  Remark remark = context.Note(draft, {batch, id},
                               "functions run over columns without a batch");
  return draft.Replace(id, top) && context.Applied(std::move(remark));
}

}  // namespace penstock::plan

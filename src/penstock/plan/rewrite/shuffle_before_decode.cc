#include "penstock/plan/rewrite/shuffle_before_decode.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "penstock/plan/convert.h"

namespace penstock::plan {
namespace {

// Less is not worth it.
constexpr double kLeastGain = 1.1;

// Maps below the shuffle that it may go before, the nearest first.
std::vector<int> MapsBelow(const Draft& draft, int shuffle) {
  std::vector<int> maps;
  for (int user = shuffle;;) {
    const int id = draft.input(user);
    const Node& node = draft.node(id);
    const Function* function = NativeMapOf(node);
    if (function == nullptr || IsRandom(*function) ||
        draft.OnlyUser(id) != user ||
        (node.map().has_deterministic() && !node.map().deterministic())) {
      return maps;
    }
    maps.push_back(id);
    user = id;
  }
}

}  // namespace

bool ShuffleBeforeDecode(Draft& draft, int id, PassContext& context) {
  if (!draft.node(id).has_shuffle()) return false;
  const std::vector<int> maps = MapsBelow(draft, id);
  if (maps.empty()) return false;
  const std::optional<double> held = context.RowBytes(draft, maps[0]);
  size_t best = 0;  // how many maps it goes before
  double least = held.value_or(0);
  bool is_unknown = !held.has_value();
  for (size_t i = 0; i < maps.size() && held.has_value(); ++i) {
    const std::optional<double> bytes =
        context.RowBytes(draft, draft.input(maps[i]));
    is_unknown |= !bytes.has_value();
    if (bytes.has_value() && *bytes < least) {
      least = *bytes;
      best = i + 1;
    }
  }
  if (best == 0 || least * kLeastGain > *held) {
    if (!is_unknown) return false;
    return context.Declined(context.Note(
        draft, {maps[0], id},
        "how large elements are before and after it is not known; measure"));
  }
  Remark remark =
      context.Note(draft, {maps[best - 1], id},
                   absl::StrFormat("it holds elements of %.4g bytes, not %.4g",
                                   least, *held));
  absl::StatusOr<int> top =
      draft.Add(draft.node(id), {draft.input(maps[best - 1])});
  for (size_t i = best; i-- > 0 && top.ok();) {
    top = draft.Add(draft.node(maps[i]), {*top});
  }
  if (!top.ok()) return false;
  return draft.Replace(id, *top) && context.Applied(std::move(remark));
}

}  // namespace penstock::plan

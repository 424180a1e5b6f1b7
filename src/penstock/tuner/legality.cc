#include "penstock/tuner/legality.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "penstock/plan/facts.h"

namespace penstock::tuner {
namespace {

bool IsUndeclaredPython(const Measured& node) {
  return node.is_python && !node.is_declared_pure;
}

// Why rows after this node differ between epochs, or nothing.
std::string WhyNotTheSame(const Measured& node) {
  const plan::Facts facts = plan::FactsOf(node.op);
  if (node.is_random) {
    return absl::StrCat(node.name, " gives other rows in every epoch");
  }
  if (IsUndeclaredPython(node)) {
    return absl::StrCat(node.name, " calls Python that is not declared pure");
  }
  if (!facts.is_pure && !facts.draws && !node.is_declared_pure) {
    return absl::StrCat(node.name, " may give other rows in every epoch");
  }
  return "";
}

// Why a cache below this node would never see its input's end, or nothing.
std::string WhyCut(const Measured& node) {
  if (node.op == plan::Node::kTake || node.op == plan::Node::kTakeWhile) {
    return absl::StrCat(node.name,
                        " ends before its input does, so that a cache below "
                        "it is never full; cache after it");
  }
  return "";
}

// By place: the reason that comes up from below, this node included.
struct Below {
  std::string differs;
  std::string repeats;
};

std::vector<Below> LookBelow(const Model& model) {
  const std::vector<Measured>& measured = *model.measured;
  std::vector<Below> below(model.nodes.size());
  for (size_t i = 0; i < model.nodes.size(); ++i) {
    for (int input : model.nodes[i].inputs) {
      if (below[i].differs.empty()) below[i].differs = below[input].differs;
      if (below[i].repeats.empty()) below[i].repeats = below[input].repeats;
    }
    if (below[i].differs.empty()) below[i].differs = WhyNotTheSame(measured[i]);
    if (below[i].repeats.empty() && measured[i].op == plan::Node::kRepeat) {
      below[i].repeats =
          absl::StrCat("a cache after ", measured[i].name,
                       " keeps rows more than once, or without end; cache "
                       "before it");
    }
  }
  return below;
}

// By place: what above it ends early.
std::vector<std::string> LookAbove(const Model& model) {
  std::vector<std::string> cut(model.nodes.size());
  for (size_t i = model.nodes.size(); i-- > 0;) {
    std::string why = cut[i].empty() ? WhyCut((*model.measured)[i]) : cut[i];
    // Below a repeat, rounds come to their end whatever cuts the last of them.
    if ((*model.measured)[i].op == plan::Node::kRepeat) why.clear();
    for (int input : model.nodes[i].inputs) {
      if (cut[input].empty()) cut[input] = why;
    }
  }
  return cut;
}

bool IsLegalIfPure(const Model& model, const std::vector<Below>& below,
                   size_t place) {
  const Measured& measured = (*model.measured)[place];
  const NodeModel& node = model.nodes[place];
  // A function can be declared, a generator cannot.
  return IsUndeclaredPython(measured) && !measured.is_random &&
         measured.op != plan::Node::kGenerator && node.inside < 0 &&
         below[place].repeats.empty() &&
         std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](int input) { return below[input].differs.empty(); });
}

}  // namespace

std::vector<CacheLegality> FindCacheLegality(const Model& model) {
  const std::vector<Measured>& measured = *model.measured;
  const std::vector<Below> below = LookBelow(model);
  const std::vector<std::string> cut = LookAbove(model);
  std::vector<CacheLegality> result(model.nodes.size());
  for (size_t i = 0; i < model.nodes.size(); ++i) {
    std::string& why = result[i].why;
    const int inside = model.nodes[i].inside;
    if (inside >= 0) {
      why = absl::StrCat(measured[i].name, " is inside the function of ",
                         measured[inside].name);
    } else if (measured[i].why_not_kept.has_value() &&
               !measured[i].why_not_kept->empty()) {
      why = *measured[i].why_not_kept;  // the engine's own word
    } else if (!measured[i].why_not_kept.has_value() &&
               !below[i].differs.empty()) {
      why = below[i].differs;
    } else if (!measured[i].why_not_kept.has_value() &&
               !below[i].repeats.empty()) {
      why = below[i].repeats;
    } else if (!measured[i].why_not_kept.has_value() && !cut[i].empty()) {
      why = cut[i];
    } else if (model.nodes[i].is_cached) {
      why = "it is below a cache that is full";
    } else if (measured[i].has_cache) {
      why = absl::StrCat(measured[i].name, " is a cache already");
    } else if (measured[i].cardinality.has_infinite()) {
      why = absl::StrCat(measured[i].name, " has no end");
    }
    result[i].is_legal = why.empty();
    result[i].is_legal_if_pure = IsLegalIfPure(model, below, i);
  }
  return result;
}

bool MayBeLeftOut(const Model& model, int cache) {
  return LookBelow(model)[cache].differs.empty();
}

std::vector<std::string> FindCacheFaults(const Model& model) {
  const std::vector<Measured>& measured = *model.measured;
  const std::vector<Below> below = LookBelow(model);
  const std::vector<std::string> cut = LookAbove(model);
  std::vector<std::string> faults;
  for (size_t i = 0; i < model.nodes.size(); ++i) {
    if (!measured[i].has_cache) continue;
    const std::string& name = measured[i].name;
    if (!below[i].differs.empty()) {
      faults.push_back(absl::StrCat(
          name, " keeps what was drawn once: ", below[i].differs,
          ", and with the cache all epochs are the same; put the cache before "
          "it"));
    } else if (!below[i].repeats.empty()) {
      faults.push_back(absl::StrCat(name, ": ", below[i].repeats));
    } else if (!cut[i].empty() && !measured[i].is_cache_complete) {
      faults.push_back(absl::StrCat(name, ": ", cut[i]));
    }
  }
  return faults;
}

}  // namespace penstock::tuner

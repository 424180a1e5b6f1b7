// Whose Python a worker runs.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/dispatcher.pb.h"

namespace penstock::service {

// Constant, but for what lies in its folders.
class CodeRules final {
 public:
  // Accepts nothing.
  CodeRules() = default;

  // Each of `accepted` is "any", "sha256:" and a hash in hex, or a folder: zips
  // in it are accepted, those that come later too. InvalidArgument for anything
  // else.
  static absl::StatusOr<CodeRules> Make(std::vector<std::string> accepted,
                                        bool accepts_pickles);

  // OK if the bundle has no Python, or may run it. Trusts nothing in it: hashes
  // are computed, and what is no name is a pickle. PermissionDenied says what
  // was sent, and by which flag it would be accepted; DataLoss if the code is
  // not what it is said to be.
  absl::Status Check(const PlanBundle& bundle) const;

  const std::vector<std::string>& accepted() const { return accepted_; }
  bool accepts_pickles() const { return accepts_pickles_; }
  bool accepts_any() const;
  bool accepts_none() const { return accepted_.empty() && !accepts_pickles_; }

 private:
  bool Accepts(const std::string& sha256) const;

  std::vector<std::string> accepted_;
  bool accepts_pickles_ = false;
};

// In hex.
std::string Sha256Of(const std::string& bytes);

}  // namespace penstock::service

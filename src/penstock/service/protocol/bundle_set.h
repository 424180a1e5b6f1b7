// A set of bundles as runs: an epoch's millions take a few of them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "google/protobuf/repeated_field.h"
#include "penstock/service.pb.h"

namespace penstock::service {

class BundleSet final {
 public:
  using Runs = google::protobuf::RepeatedPtrField<Bundles>;

  BundleSet() = default;
  // Runs may touch, overlap or be empty.
  explicit BundleSet(const Runs& runs);

  void Add(uint64_t bundle) { AddRun(bundle, bundle + 1); }
  void AddRun(uint64_t begin, uint64_t end);
  void AddAll(const BundleSet& other);
  void RemoveAll(const BundleSet& other);

  bool Has(uint64_t bundle) const;
  // The first at or after `bundle` that is not in the set.
  uint64_t NextAbsent(uint64_t bundle) const;
  uint64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  Runs ToRuns() const;
  bool operator==(const BundleSet& other) const { return runs_ == other.runs_; }

 private:
  std::map<uint64_t, uint64_t> runs_;  // begin -> end; apart from each other
  uint64_t size_ = 0;
};

}  // namespace penstock::service

// Early return for absl::Status and absl::StatusOr.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns from the calling function if `expr` is not OK.
#define PENSTOCK_RETURN_IF_ERROR(expr)                   \
  do {                                                   \
    absl::Status penstock_status_ = (expr);              \
    if (!penstock_status_.ok()) return penstock_status_; \
  } while (false)

// Evaluates a StatusOr; returns its error, or moves its value into `lhs`, which
// may declare a variable: PENSTOCK_ASSIGN_OR_RETURN(auto x, MakeX());
#define PENSTOCK_ASSIGN_OR_RETURN(lhs, expr) \
  PENSTOCK_ASSIGN_OR_RETURN_IMPL_(           \
      PENSTOCK_CONCAT_(penstock_statusor_, __LINE__), lhs, expr)

#define PENSTOCK_CONCAT_INNER_(a, b) a##b
#define PENSTOCK_CONCAT_(a, b) PENSTOCK_CONCAT_INNER_(a, b)
#define PENSTOCK_ASSIGN_OR_RETURN_IMPL_(statusor, lhs, expr) \
  auto statusor = (expr);                                    \
  if (!statusor.ok()) return std::move(statusor).status();   \
  lhs = std::move(statusor).value()

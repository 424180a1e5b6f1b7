// Who may call what: one table of calls and roles, and the words that show a
// caller's role. What is not in the table is refused.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/server_context.h"
#include "penstock/base/mutex.h"

namespace penstock::rpc {

// A set of them is a sum.
using Roles = uint32_t;
inline constexpr Roles kConsumer = 1;
inline constexpr Roles kWorker = 2;
inline constexpr Roles kAdmin = 4;
inline constexpr Roles kAnybody = kConsumer | kWorker | kAdmin;

// Who may call `method`, as gRPC names it: "/package.Service/Call". None for
// one that is not in the table.
Roles RolesFor(std::string_view method);

// Reads words from a file: lines `role:word` with the roles consumer, worker
// and admin, or a single word that stands for all of them. `consumer@name:word`
// is one of the tenant `name`. Empty lines and
// those that begin with # do not count. Nobody else may read the file (mode
// 0600); when it changes, it is read again, and one that is wrong then leaves
// what was there in force.
//
// Thread-safe.
class Gate final {
 public:
  // An empty path: whoever can connect may call what is in the table.
  // InvalidArgument says what is wrong with the file.
  static absl::StatusOr<std::unique_ptr<Gate>> Make(
      const std::string& token_file);

  // What a caller has sent; it lives as long as `context`.
  static std::string_view AuthorizationOf(
      const grpc::ServerContextBase& context);

  // Unauthenticated if the caller shows no word or one that is unknown,
  // PermissionDenied if its role may not.
  absl::Status Admit(const grpc::ServerContextBase& context,
                     std::string_view method) ABSL_LOCKS_EXCLUDED(mutex_);
  // The same for a caller that has sent `authorization`.
  absl::Status Admit(std::string_view authorization, std::string_view method)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Whose word the caller shows; empty: nobody's in particular.
  std::string TenantOf(const grpc::ServerContextBase& context)
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::string TenantOf(std::string_view authorization)
      ABSL_LOCKS_EXCLUDED(mutex_);

  bool has_tokens() const { return !path_.empty(); }
  // Those that some word stands for; all of them where none are needed.
  Roles roles() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Token {
    Roles roles;
    std::string digest;
    std::string tenant;
  };
  struct Loaded {
    struct stat seen;
    std::vector<Token> tokens;
  };

  explicit Gate(std::string path) : path_(std::move(path)) {}
  static absl::StatusOr<Loaded> Load(const std::string& path);
  void LoadIfChanged() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  mutable Mutex mutex_;
  struct stat seen_ ABSL_GUARDED_BY(mutex_) = {};
  std::vector<Token> tokens_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace penstock::rpc

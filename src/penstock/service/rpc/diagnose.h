// Why a call could not be made, in words that say what to do.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "penstock/service/rpc/channel.h"

namespace penstock::rpc {

// What gRPC says of a connection that fails is that there is none. Connects
// once more, looks at what the other side does, and returns the reason:
//
//   FailedPrecondition  it will not get better by waiting: one side speaks TLS
//                       and the other does not, one does not accept the other's
//                       certificate, something else listens there
//   Unavailable         nobody listens there, or the host is not known
//
// Of a call that was refused for its token, it says by whom, and which role
// may. Other errors are returned as they are. Takes at most some seconds.
absl::Status Diagnose(const absl::Status& status, const std::string& address,
                      const Credentials& credentials);

// The last of these alone, of Unauthenticated; at once.
absl::Status NameRefusal(const absl::Status& status, const std::string& address,
                         const Credentials& credentials);

// For calls to a dispatcher: the same, and FailedPrecondition if what answers
// there is none.
absl::Status DiagnoseDispatcher(const absl::Status& status,
                                const std::string& address,
                                const Credentials& credentials);

}  // namespace penstock::rpc

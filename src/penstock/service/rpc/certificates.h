// Certificates for development and small clusters: a CA of one's own, and what
// it signs.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace penstock::rpc {

struct CertificateOptions {
  // Names and addresses that servers are called by, besides those of this
  // machine for itself (localhost, 127.0.0.1, ::1).
  std::vector<std::string> hosts;
  // How long they hold; less than nothing makes some that have expired.
  absl::Duration valid_for = absl::Hours(24 * 365);
};

// Makes `directory`, if it is not there, and in it ca.pem, server.pem and
// client.pem, each with its key (.key, EC P-256, mode 0600). The server's also
// serves workers, which call others as well.
//
//   AlreadyExists  one of the files is there; nothing was written
//   any other      the file that could not be written
absl::Status MakeCertificates(const std::string& directory,
                              const CertificateOptions& options);

}  // namespace penstock::rpc

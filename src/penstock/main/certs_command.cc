#include "penstock/main/certs_command.h"

#include <cstdint>
#include <iostream>

#include "absl/time/time.h"
#include "penstock/main/settings.h"
#include "penstock/service/rpc/certificates.h"

namespace penstock {
namespace {

// A hundred years: more is a slip, and no certificate's date.
constexpr int64_t kMostDays = 36'500;

const Schema& CertsSchema() {
  static const Schema* const schema = new Schema{
      "certs",
      "DIR",
      "Makes a CA, and certificates for servers and callers that it has "
      "signed:\n"
      "ca.pem, server.pem and client.pem, each with its key.\n",
      "penstock certs certs --host dispatcher.example.com --host 10.0.0.5",
      "",
      "",
      {
          {"host", SettingKind::kTexts, "NAME", "",
           "a name or address that a server is called by; may come again"},
          {"days", SettingKind::kNumber, "N", "365", "how long they hold"},
      }};
  return *schema;
}

}  // namespace

int RunCerts(const std::vector<std::string>& args) {
  const ReadResult read = ReadSettings(CertsSchema(), args);
  if (!read.settings) return read.exit_code;
  if (read.settings->words().size() != 1) {
    std::cerr << "penstock certs: expected a directory\n"
                 "Try `penstock certs --help`.\n";
    return 2;
  }
  const int64_t days = read.settings->number("days");
  if (days < 1 || days > kMostDays) {
    std::cerr << "penstock certs: " << read.settings->source("days")
              << ": expected 1 to " << kMostDays << "; got " << days << "\n"
              << "Try `penstock certs --help`.\n";
    return 2;
  }
  const std::string& directory = read.settings->words()[0];
  rpc::CertificateOptions options;
  options.hosts = read.settings->texts("host");
  options.valid_for = absl::Hours(24) * days;
  const absl::Status made = rpc::MakeCertificates(directory, options);
  if (!made.ok()) {
    std::cerr << "penstock certs: " << made.message() << "\n";
    return 1;
  }
  std::cout << "Made certificates in " << directory << ".\n"
            << "  servers  --tls-ca " << directory << "/ca.pem --tls-cert "
            << directory << "/server.pem --tls-key " << directory
            << "/server.key\n"
            << "  callers  --tls-ca " << directory << "/ca.pem --tls-cert "
            << directory << "/client.pem --tls-key " << directory
            << "/client.key\n"
            << "Keep ca.key where nobody else can read it.\n";
  return 0;
}

}  // namespace penstock

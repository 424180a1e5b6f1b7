#include "penstock/service/rpc/certificates.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "penstock/base/status.h"

namespace penstock::rpc {
namespace {

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Number = std::unique_ptr<BIGNUM, decltype(&BN_free)>;
using Extension =
    std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)>;

constexpr int kSerialBits = 159;

struct Pair {
  Key key{nullptr, &EVP_PKEY_free};
  Certificate certificate{nullptr, &X509_free};
};

bool Extend(X509* certificate, X509* issuer, int kind,
            const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()),
      &X509_EXTENSION_free);
  return extension != nullptr &&
         X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool SetTimes(X509* certificate, absl::Duration valid_for) {
  // A little before now: clocks differ.
  constexpr int64_t kHour = 3'600;
  const int64_t end = absl::ToInt64Seconds(valid_for);
  const int64_t begin = std::min<int64_t>(-kHour, end - kHour);
  return X509_gmtime_adj(X509_getm_notBefore(certificate), begin) != nullptr &&
         X509_gmtime_adj(X509_getm_notAfter(certificate), end) != nullptr;
}

bool SetSerial(X509* certificate) {
  const Number number(BN_new(), &BN_free);
  return number != nullptr &&
         BN_rand(number.get(), kSerialBits, BN_RAND_TOP_ANY,
                 BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) !=
             nullptr;
}

bool SetName(X509* certificate, X509* issuer, const std::string& name) {
  X509_NAME* subject = X509_get_subject_name(certificate);
  return X509_NAME_add_entry_by_txt(
             subject, "CN", MBSTRING_UTF8,
             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1,
             0) == 1 &&
         X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) == 1;
}

// Signed by `issuer`; without one, a CA that signs itself.
absl::StatusOr<Pair> MakePair(const std::string& name, const Pair* issuer,
                              const std::string& usage,
                              const std::string& alternatives,
                              absl::Duration valid_for) {
  Pair pair;
  pair.key.reset(EVP_EC_gen("P-256"));
  pair.certificate.reset(X509_new());
  X509* certificate = pair.certificate.get();
  const bool is_ca = issuer == nullptr;
  X509* signer = is_ca ? certificate : issuer->certificate.get();
  EVP_PKEY* signing_key = is_ca ? pair.key.get() : issuer->key.get();
  const bool is_made =
      pair.key != nullptr && certificate != nullptr &&
      X509_set_version(certificate, X509_VERSION_3) == 1 &&
      SetSerial(certificate) && SetTimes(certificate, valid_for) &&
      SetName(certificate, signer, name) &&
      X509_set_pubkey(certificate, pair.key.get()) == 1 &&
      Extend(certificate, signer, NID_basic_constraints,
             is_ca ? "critical,CA:TRUE,pathlen:0" : "critical,CA:FALSE") &&
      Extend(certificate, signer, NID_key_usage,
             is_ca ? "critical,keyCertSign,cRLSign"
                   : "critical,digitalSignature") &&
      (usage.empty() ||
       Extend(certificate, signer, NID_ext_key_usage, usage)) &&
      (alternatives.empty() ||
       Extend(certificate, signer, NID_subject_alt_name, alternatives)) &&
      Extend(certificate, signer, NID_subject_key_identifier, "hash") &&
      X509_sign(certificate, signing_key, EVP_sha256()) > 0;
  if (!is_made) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a certificate for '", name, "' (", alternatives, ") cannot be made"));
  }
  return pair;
}

std::string AlternativesOf(const std::vector<std::string>& hosts) {
  std::vector<std::string> names = {"DNS:localhost", "IP:127.0.0.1",
                                    "IP:0:0:0:0:0:0:0:1"};
  for (const std::string& host : hosts) {
    in6_addr address;
    const bool is_address = inet_pton(AF_INET, host.c_str(), &address) == 1 ||
                            inet_pton(AF_INET6, host.c_str(), &address) == 1;
    names.push_back(absl::StrCat(is_address ? "IP:" : "DNS:", host));
  }
  return absl::StrJoin(names, ",");
}

// Of its own: who mixes up two CAs is told that one is unknown.
std::string CaName() {
  uint32_t number = 0;
  RAND_bytes(reinterpret_cast<unsigned char*>(&number), sizeof(number));
  return absl::StrCat("Penstock development CA ",
                      absl::Hex(number, absl::kZeroPad8));
}

std::string Contents(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);  // NOLINT: OpenSSL's type
  return std::string(data, static_cast<size_t>(size));
}

absl::Status WriteFile(const std::string& path, const std::string& text,
                       mode_t mode) {
  const int fd =
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (fd < 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
  }
  const ssize_t written = write(fd, text.data(), text.size());
  const bool is_whole = written == static_cast<ssize_t>(text.size());
  if (close(fd) == 0 && is_whole) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
}

absl::Status WritePair(const std::string& path, const Pair& pair) {
  const Bio certificate(BIO_new(BIO_s_mem()), &BIO_free);
  const Bio key(BIO_new(BIO_s_mem()), &BIO_free);
  PEM_write_bio_X509(certificate.get(), pair.certificate.get());
  PEM_write_bio_PrivateKey(key.get(), pair.key.get(), nullptr, nullptr, 0,
                           nullptr, nullptr);
  PENSTOCK_RETURN_IF_ERROR(
      WriteFile(path + ".pem", Contents(certificate.get()), 0644));
  return WriteFile(path + ".key", Contents(key.get()), 0600);
}

}  // namespace

absl::Status MakeCertificates(const std::string& directory,
                              const CertificateOptions& options) {
  if (mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot make ", directory));
  }
  const std::string path = directory + "/";
  for (const char* name : {"ca", "server", "client"}) {
    for (const char* kind : {".pem", ".key"}) {
      const std::string file = absl::StrCat(path, name, kind);
      if (access(file.c_str(), F_OK) == 0) {
        return absl::AlreadyExistsError(absl::StrCat(
            "'", file, "' is there already: give another directory"));
      }
    }
  }
  PENSTOCK_ASSIGN_OR_RETURN(
      const Pair ca, MakePair(CaName(), nullptr, "", "",
                              std::max(options.valid_for, absl::Hours(24))));
  PENSTOCK_ASSIGN_OR_RETURN(
      const Pair server,
      MakePair("penstock server", &ca, "serverAuth,clientAuth",
               AlternativesOf(options.hosts), options.valid_for));
  PENSTOCK_ASSIGN_OR_RETURN(
      const Pair client,
      MakePair("penstock client", &ca, "clientAuth", "", options.valid_for));
  PENSTOCK_RETURN_IF_ERROR(WritePair(path + "ca", ca));
  PENSTOCK_RETURN_IF_ERROR(WritePair(path + "server", server));
  return WritePair(path + "client", client);
}

}  // namespace penstock::rpc

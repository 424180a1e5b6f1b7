#include "penstock/service/rpc/server.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/service/rpc/certificates.h"
#include "penstock/service/rpc/channel.h"
#include "penstock/service/rpc/diagnose.h"
#include "penstock/service/rpc/status.h"
#include "penstock/service/rpc/temporary_files_testing.h"

namespace penstock::rpc {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Certificates final {
 public:
  explicit Certificates(absl::Duration valid_for = absl::Hours(1)) {
    CertificateOptions options;
    options.valid_for = valid_for;
    const absl::Status made = MakeCertificates(folder_ / "certs", options);
    EXPECT_TRUE(made.ok()) << made;
  }
  std::string operator[](const std::string& name) const {
    return folder_ / ("certs/" + name);
  }
  ServerSecurity server() const {
    return {.ca_file = (*this)["ca.pem"],
            .cert_file = (*this)["server.pem"],
            .key_file = (*this)["server.key"],
            .token_file = "",
            .is_insecure = false};
  }
  Credentials client() const {
    return {.ca_file = (*this)["ca.pem"],
            .cert_file = (*this)["client.pem"],
            .key_file = (*this)["client.key"],
            .token_file = ""};
  }

 private:
  const TemporaryFolder folder_;
};

// A server without calls: who gets through hears Unimplemented.
class Server final {
 public:
  explicit Server(const ServerSecurity& security) {
    auto credentials = MakeServerCredentials("127.0.0.1:0", security);
    EXPECT_TRUE(credentials.ok()) << credentials.status();
    Serve(*std::move(credentials));
  }
  explicit Server(std::shared_ptr<grpc::ServerCredentials> credentials) {
    Serve(std::move(credentials));
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  absl::Status Call(const Credentials& credentials) const {
    const auto channel = MakeChannel(address(), credentials);
    if (!channel.ok()) return channel.status();
    grpc::GenericStub stub(*channel);
    grpc::ClientContext context;
    Prepare(context, credentials, std::chrono::seconds(10));
    const grpc::Slice nothing("");
    const grpc::ByteBuffer request(&nothing, 1);
    grpc::ByteBuffer reply;
    std::promise<grpc::Status> done;
    stub.UnaryCall(&context, "/any.Service/Call", grpc::StubOptions(), &request,
                   &reply,
                   [&](const grpc::Status& status) { done.set_value(status); });
    return Diagnose(FromGrpc(done.get_future().get()), address(), credentials);
  }

 private:
  void Serve(std::shared_ptr<grpc::ServerCredentials> credentials) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", std::move(credentials), &port_);
    builder.RegisterCallbackGenericService(&service_);
    SetLimits(builder);
    server_ = builder.BuildAndStart();
  }

  grpc::CallbackGenericService service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

TEST(Server, PlainOnThisMachine) {
  const Server server{ServerSecurity()};
  EXPECT_EQ(server.Call({}).code(), absl::StatusCode::kUnimplemented);
}

TEST(Server, WithCertificatesOfTheSameCa) {
  const Certificates certificates;
  const Server server(certificates.server());
  const absl::Status status = server.Call(certificates.client());
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
}

TEST(Server, APlainCallerOfATlsServerHearsSo) {
  const Certificates certificates;
  const Server server(certificates.server());
  const absl::Status status = server.Call({});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(status), HasSubstr("expects TLS"));
}

TEST(Server, ATlsCallerOfAPlainServerHearsSo) {
  const Certificates certificates;
  const Server server{ServerSecurity()};
  const absl::Status status = server.Call(certificates.client());
  EXPECT_THAT(Message(status), HasSubstr("does not speak TLS"));
}

TEST(Server, ACallerMustShowACertificate) {
  const Certificates certificates;
  const Server server(certificates.server());
  Credentials credentials = certificates.client();
  credentials.cert_file.clear();
  credentials.key_file.clear();
  const absl::Status status = server.Call(credentials);
  EXPECT_THAT(Message(status),
              HasSubstr("does not accept the caller's certificate"));
}

TEST(Server, AnUnknownCaIsRefusedByBothSides) {
  const Certificates certificates;
  const Certificates others;
  const Server server(certificates.server());
  EXPECT_THAT(Message(server.Call(others.client())),
              HasSubstr("is not accepted"))
      << "the caller does not believe the server";
  Credentials credentials = others.client();
  credentials.ca_file = certificates["ca.pem"];
  EXPECT_THAT(Message(server.Call(credentials)),
              HasSubstr("does not accept the caller's certificate"));
}

TEST(Server, AnExpiredCertificateIsNamed) {
  const Certificates expired(-absl::Hours(1));
  const auto refused = MakeServerCredentials("127.0.0.1:0", expired.server());
  EXPECT_THAT(Message(refused.status()), HasSubstr("has expired"));
  // One that has expired since the server started.
  grpc::SslServerCredentialsOptions options;
  const auto read = [](const std::string& path) {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  options.pem_key_cert_pairs.push_back(
      {read(expired["server.key"]), read(expired["server.pem"])});
  const Server server(grpc::SslServerCredentials(options));
  EXPECT_THAT(Message(server.Call(expired.client())),
              HasSubstr("certificate has expired"));
}

TEST(Server, NobodyListens) {
  std::string address;
  {
    const Server server{ServerSecurity()};
    address = server.address();
  }
  EXPECT_THAT(Message(Diagnose(absl::UnavailableError(""), address, {})),
              AllOf(HasSubstr("nobody answers"), HasSubstr("penstock up")));
  // Of another machine it is no use to start one here.
  const std::string elsewhere = "0.0.0.0" + address.substr(address.find(':'));
  EXPECT_THAT(
      Message(Diagnose(absl::UnavailableError(""), elsewhere, {})),
      AllOf(HasSubstr("nobody answers"), Not(HasSubstr("penstock up"))));
}

TEST(Server, WhereItMayListen) {
  for (const char* address :
       {"127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1", "unix:/a"}) {
    EXPECT_TRUE(IsLoopback(address)) << address;
    EXPECT_TRUE(MakeServerCredentials(address, {}).ok()) << address;
  }
  for (const char* address :
       {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "example.com:1", ":1"}) {
    EXPECT_FALSE(IsLoopback(address)) << address;
    const auto refused = MakeServerCredentials(address, {});
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(Message(refused.status()), HasSubstr("penstock certs"));
    ServerSecurity insecure;
    insecure.is_insecure = true;
    EXPECT_TRUE(MakeServerCredentials(address, insecure).ok());
    EXPECT_FALSE(UnsafeSettings(address, insecure).empty());
  }
}

TEST(Server, WhoRefusesATokenIsNamed) {
  const absl::Status refused = absl::UnauthenticatedError("not one of them");
  EXPECT_EQ(Message(Diagnose(refused, "head:5050", {})),
            "head:5050 does not let the caller in: not one of them");
  EXPECT_THAT(
      Message(Diagnose(absl::PermissionDeniedError("not you"), "head:1", {})),
      AllOf(HasSubstr("head:1 does not let"), HasSubstr("not you")));
  const absl::Status other = absl::NotFoundError("no job");
  EXPECT_EQ(Diagnose(other, "head:5050", {}), other);
}

TEST(Server, ATokenFileForOtherRolesIsNamed) {
  const TemporaryFolder folder;
  Credentials credentials;
  credentials.role = "admin";
  credentials.token_file =
      folder.Write("mine", "consumer@vision:red\nworker:blue\n");
  const absl::Status refused = absl::UnauthenticatedError("expected a token");
  EXPECT_THAT(Message(Diagnose(refused, "head:1", credentials)),
              AllOf(HasSubstr("for the role consumer and worker, which may "
                              "not do this: it needs a word for admin"),
                    HasSubstr("mine"), Not(HasSubstr("red"))));
  credentials.token_file = folder.Write("mine", "admin:green\n");
  EXPECT_THAT(Message(Diagnose(refused, "head:1", credentials)),
              HasSubstr("expected a token"));
  credentials.token_file = folder / "missing";
  EXPECT_THAT(Message(Diagnose(refused, "head:1", credentials)),
              HasSubstr("cannot be read"));
}

TEST(Server, FilesMustFitTogether) {
  const Certificates certificates;
  ServerSecurity security = certificates.server();
  security.key_file = certificates["client.key"];
  EXPECT_THAT(Message(MakeServerCredentials("0.0.0.0:1", security).status()),
              HasSubstr("is not the key of the certificate"));
  security.key_file.clear();
  EXPECT_THAT(Message(MakeServerCredentials("0.0.0.0:1", security).status()),
              HasSubstr("expected all of"));
}

TEST(Server, AddressesAsPeopleWriteThem) {
  EXPECT_EQ(AddressOf("penstock://head:5050/"), "head:5050");
  EXPECT_EQ(AddressOf("head:5050"), "head:5050");
  for (const char* wrong : {"head", "http://head:5050", "grpc://head:5050"}) {
    const auto channel = MakeChannel(AddressOf(wrong), {});
    EXPECT_EQ(channel.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(Message(channel.status()),
                AllOf(HasSubstr("host:port, or penstock://host:port"),
                      HasSubstr(wrong)));
  }
}

TEST(Certificates, AreNotOverwritten) {
  const Certificates certificates;
  const absl::Status again =
      MakeCertificates(certificates[""], CertificateOptions());
  EXPECT_EQ(again.code(), absl::StatusCode::kAlreadyExists);
  struct stat key;
  ASSERT_EQ(stat(certificates["server.key"].c_str(), &key), 0);
  EXPECT_EQ(key.st_mode & 0777, 0600);
}

}  // namespace
}  // namespace penstock::rpc

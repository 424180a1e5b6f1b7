#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/strings/numbers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/service/windows/dispatcher_pages.h"
#include "penstock/service/windows/http_server.h"
#include "penstock/service/windows/worker_pages.h"

namespace penstock::windows {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

service::State SomeState() {
  service::State state;
  state.set_version("1.2.3");
  state.set_term(4);
  auto* worker = state.add_workers();
  worker->set_address("w:1");
  worker->set_held(7);
  auto* job = state.add_jobs();
  job->set_job("a \"job\"");
  auto* epoch = job->add_epochs();
  epoch->set_bundles(10);
  epoch->set_done(3);
  epoch->add_consumers();
  epoch->add_consumers()->set_has_left(true);
  return state;
}

// What a server answers to `request`.
std::string Ask(const std::string& address, const std::string& request) {
  int port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
  const Descriptor connection(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in place = {};
  place.sin_family = AF_INET;
  place.sin_port = htons(static_cast<uint16_t>(port));
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(connection.get(), reinterpret_cast<sockaddr*>(&place),
                    sizeof(place)),
            0);
  EXPECT_TRUE(SendAll(connection.get(), request).ok());
  std::string answer;
  char bytes[1024];
  ssize_t got;
  while ((got = recv(connection.get(), bytes, sizeof(bytes), 0)) > 0) {
    answer.append(bytes, static_cast<size_t>(got));
  }
  return answer;
}

TEST(HttpServer, ShowsPages) {
  auto server =
      HttpServer::Start("0", {{"/healthz", [] {
                                 return Page{200, "text/plain", "ok\n"};
                               }}});
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string& address = (*server)->address();
  EXPECT_THAT(address, StartsWith("127.0.0.1:"));
  const std::string page =
      Ask(address, "GET /healthz?now HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(page, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(page, HasSubstr("Content-Length: 3\r\n"));
  EXPECT_THAT(page, HasSubstr("\r\n\r\nok\n"));
  EXPECT_THAT(Ask(address, "GET /other HTTP/1.1\r\n\r\n"),
              StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Ask(address, "POST /healthz HTTP/1.1\r\n\r\n"),
              StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(Ask(address, "nonsense\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_EQ(Ask(address, std::string(20'000, 'x')), "") << "too long";
  // It goes on after all that.
  EXPECT_THAT(Ask(address, "GET /healthz HTTP/1.1\r\n\r\n"),
              StartsWith("HTTP/1.1 200"));
}

TEST(HttpServer, SaysWhyItCannotListen) {
  auto first = HttpServer::Start("0", {});
  ASSERT_TRUE(first.ok());
  const auto second = HttpServer::Start((*first)->address(), {});
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("in use"));
}

TEST(DispatcherPages, Metrics) {
  const std::string text = MetricsOf(SomeState());
  EXPECT_THAT(text, HasSubstr("penstock_dispatcher_info{version=\"1.2.3\"} 1"));
  EXPECT_THAT(text, HasSubstr("penstock_worker_held{worker=\"w:1\"} 7\n"));
  EXPECT_THAT(text,
              HasSubstr("penstock_epoch_bundles_done{job=\"a \\\"job\\\"\","
                        "epoch=\"0\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("penstock_epoch_consumers{job=\"a \\\"job\\\"\","
                              "epoch=\"0\"} 1\n"));
}

TEST(DispatcherPages, Json) {
  const std::string text = JsonOf(SomeState());
  EXPECT_THAT(text, HasSubstr("\"is_disk_full\": false"));
  EXPECT_THAT(text, HasSubstr("\"address\": \"w:1\""));
}

TEST(WorkerPages, MetricsAndJson) {
  service::WorkerReport report;
  report.set_version("1.2.3");
  report.set_address("w:1");
  report.set_held(7);
  report.add_tags("gpu");
  std::string text = MetricsOf(report);
  EXPECT_THAT(text, HasSubstr("penstock_worker_info{version=\"1.2.3\","
                              "address=\"w:1\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\npenstock_worker_bundles_held 7\n"));
  EXPECT_THAT(text, HasSubstr("\npenstock_worker_joined 0\n"));
  report.set_heard_ms_ago(12);
  text = MetricsOf(report);
  EXPECT_THAT(text, HasSubstr("\npenstock_worker_joined 1\n"));
  EXPECT_THAT(text, HasSubstr("\npenstock_worker_heard_ms_ago 12\n"));
  EXPECT_THAT(text, Not(HasSubstr("padding")));
  EXPECT_THAT(text, Not(HasSubstr("shared")));
  report.mutable_shared()->set_sent_again(41);
  EXPECT_THAT(
      MetricsOf(report),
      HasSubstr("\npenstock_worker_shared_frames_sent_again_total 41\n"));
  report.mutable_padding()->set_items(5);
  report.mutable_padding()->set_padded_items(8);
  text = MetricsOf(report);
  EXPECT_THAT(text, HasSubstr("\npenstock_worker_padding_items_total 5\n"));
  EXPECT_THAT(text,
              HasSubstr("\npenstock_worker_padding_padded_items_total 8\n"));
  EXPECT_THAT(JsonOf(report), HasSubstr("\"tags\": [\n  \"gpu\"\n ]"));
}

}  // namespace
}  // namespace penstock::windows

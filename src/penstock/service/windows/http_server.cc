#include "penstock/service/windows/http_server.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace penstock::windows {
namespace {

// Who is slower, or says more, is not listened to.
constexpr int kTimeoutMillis = 2'000;
constexpr size_t kMaxRequestBytes = 8 << 10;
constexpr int kBacklog = 64;

const char* ReasonOf(int code) {
  switch (code) {
    case 200:
      return "OK";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 503:
      return "Service Unavailable";
    default:
      return "Bad Request";
  }
}

// Up to the empty line after the head; empty if it does not come.
std::string ReadHead(int connection) {
  std::string head;
  while (head.find("\r\n\r\n") == std::string::npos) {
    char bytes[1024];
    const ssize_t got = recv(connection, bytes, sizeof(bytes), 0);
    if (got <= 0 || head.size() > kMaxRequestBytes) return "";
    head.append(bytes, static_cast<size_t>(got));
  }
  return head;
}

int PortOf(int socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                   : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

}  // namespace

std::string WithHost(const std::string& address) {
  if (address.find(':') != std::string::npos) return address;
  return absl::StrCat("127.0.0.1:", address);
}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(
    const std::string& address, Pages pages) {
  const std::string full = WithHost(address);
  const size_t colon = full.rfind(':');
  const std::string host = full.substr(0, colon);
  std::string bare = host;
  if (absl::StartsWith(bare, "[") && absl::EndsWith(bare, "]")) {
    bare = bare.substr(1, bare.size() - 2);
  }
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(bare.empty() ? nullptr : bare.c_str(),
                                full.substr(colon + 1).c_str(), &hints, &found);
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen at '", full, "': ", gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(
      found, &freeaddrinfo);
  Descriptor listener(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (bind(listener.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      listen(listener.get(), kBacklog) != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen at '", full, "': ", std::strerror(errno)));
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return absl::UnavailableError(std::strerror(errno));
  }
  const std::string real = absl::StrCat(host, ":", PortOf(listener.get()));
  return std::unique_ptr<HttpServer>(
      new HttpServer(std::move(listener), Descriptor(ends[0]),
                     Descriptor(ends[1]), real, std::move(pages)));
}

HttpServer::HttpServer(Descriptor listener, Descriptor stop_reader,
                       Descriptor stop_writer, std::string address, Pages pages)
    : listener_(std::move(listener)),
      stop_reader_(std::move(stop_reader)),
      stop_writer_(std::move(stop_writer)),
      address_(std::move(address)),
      pages_(std::move(pages)),
      thread_([this] { Loop(); }) {}

HttpServer::~HttpServer() {
  stop_writer_ = Descriptor();
  thread_.join();
}

void HttpServer::Loop() {
  while (true) {
    pollfd ready[] = {{listener_.get(), POLLIN, 0},
                      {stop_reader_.get(), POLLIN, 0}};
    if (poll(ready, 2, -1) < 0 && errno != EINTR) return;
    if (ready[1].revents != 0) return;
    if (ready[0].revents == 0) continue;
    const Descriptor connection(
        accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection.is_open()) continue;
    const timeval timeout = {kTimeoutMillis / 1'000, 0};
    setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout,
               sizeof(timeout));
    setsockopt(connection.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout,
               sizeof(timeout));
    Answer(connection.get());
  }
}

void HttpServer::Answer(int connection) const {
  const std::string head = ReadHead(connection);
  if (head.empty()) return;
  const std::vector<std::string> words =
      absl::StrSplit(head.substr(0, head.find("\r\n")), ' ');
  Page page;
  if (words.size() != 3) {
    page = {400, page.type, "expected GET /path\n"};
  } else if (words[0] != "GET") {
    page = {405, page.type, "expected GET\n"};
  } else {
    const auto it = pages_.find(words[1].substr(0, words[1].find('?')));
    if (it != pages_.end()) {
      page = it->second();
    } else {
      page = {404, page.type, "there is:\n"};
      for (const auto& [path, make] : pages_) {
        absl::StrAppend(&page.text, path, "\n");
      }
    }
  }
  const std::string answer = absl::StrCat(
      "HTTP/1.1 ", page.code, " ", ReasonOf(page.code),
      "\r\nContent-Type: ", page.type, "\r\nContent-Length: ", page.text.size(),
      "\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff",
      "\r\nConnection: close\r\n\r\n", page.text);
  (void)SendAll(connection, answer);  // who does not listen misses nothing
}

}  // namespace penstock::windows

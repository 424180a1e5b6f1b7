// Pages for people and their monitors: GET over HTTP/1.1, one at a time, from
// memory. Not for data, not for strangers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "penstock/base/socket.h"

namespace penstock::windows {

struct Page {
  int code = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string text;
};

class HttpServer final {
 public:
  // What is shown at a path ("/healthz"), made anew for each request.
  using Pages = std::map<std::string, std::function<Page()>>;

  // At "host:port" or, of this machine alone, "port"; port 0: one that is free.
  // Unavailable if it cannot listen there. `pages` are called from its thread.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(
      const std::string& address, Pages pages);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // "host:port", with the real port.
  const std::string& address() const { return address_; }

 private:
  HttpServer(Descriptor listener, Descriptor stop_reader,
             Descriptor stop_writer, std::string address, Pages pages);
  void Loop();
  void Answer(int connection) const;

  const Descriptor listener_;
  const Descriptor stop_reader_;
  Descriptor stop_writer_;  // closed: the thread ends
  const std::string address_;
  const Pages pages_;
  std::thread thread_;
};

// "5051" as "127.0.0.1:5051"; others as they are.
std::string WithHost(const std::string& address);

}  // namespace penstock::windows

#include "penstock/service/worker/links.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace penstock::service {
namespace {

constexpr size_t kMaxLinks = 256;
// A rate is noted of so many bytes: less may lie in the system's own buffers.
constexpr size_t kNotedBytes = size_t{4} << 20;
const uint32_t kThreads = std::max(1U, std::thread::hardware_concurrency());

// Without the port, which is another each time.
std::string HostOf(absl::string_view peer) {
  if (absl::StartsWith(peer, "unix:")) return "unix";
  const size_t scheme = peer.find(':');
  const size_t port = peer.rfind(':');
  if (scheme == peer.npos || port == scheme) return std::string(peer);
  absl::string_view host = peer.substr(scheme + 1, port - scheme - 1);
  for (const auto* bracket : {"[", "%5B"}) absl::ConsumePrefix(&host, bracket);
  for (const auto* bracket : {"]", "%5D"}) absl::ConsumeSuffix(&host, bracket);
  return std::string(host);
}

const char* NameOf(Compression compression) {
  switch (compression) {
    case COMPRESSION_LZ4:
      return "lz4";
    case COMPRESSION_ZSTD:
      return "zstd";
    default:
      return "none";
  }
}

}  // namespace

bool Link::is_this_host() const {
  return absl::StartsWith(host_, "127.") || host_ == "::1" || host_ == "unix";
}

Compression Link::Next(absl::Span<const Compression> allowed) {
  // There, bytes are cheaper than the time to compress them.
  if (is_this_host()) return COMPRESSION_NONE;
  MutexLock lock(&mutex_);
  return choice_.Next(allowed, std::min(readings_, kThreads));
}

void Link::OnBegin() {
  MutexLock lock(&mutex_);
  ++readings_;
}

void Link::OnEnd() {
  MutexLock lock(&mutex_);
  --readings_;
}

void Link::OnCompressed(Compression compression, size_t plain_bytes,
                        size_t frame_bytes, int64_t nanos) {
  MutexLock lock(&mutex_);
  choice_.OnCompressed(compression, plain_bytes, frame_bytes, nanos);
}

void Link::OnWrite(int64_t now_ns) {
  MutexLock lock(&mutex_);
  if (writes_++ == 0) since_ns_ = now_ns;
}

void Link::OnWritten(size_t bytes, int64_t now_ns) {
  MutexLock lock(&mutex_);
  written_ += bytes;
  busy_ns_ += std::max<int64_t>(0, now_ns - since_ns_);
  since_ns_ = now_ns;
  --writes_;
  if (written_ < kNotedBytes) return;
  choice_.OnDrained(written_, busy_ns_);
  written_ = 0;
  busy_ns_ = 0;
}

void Link::OnSent(Compression compression, size_t plain_bytes,
                  size_t frame_bytes) {
  MutexLock lock(&mutex_);
  report_.set_way(NameOf(compression));
  report_.set_frames(report_.frames() + 1);
  report_.set_bytes(report_.bytes() + plain_bytes);
  report_.set_sent_bytes(report_.sent_bytes() + frame_bytes);
}

void Link::OnShown(size_t bytes) {
  MutexLock lock(&mutex_);
  report_.set_way("memory");
  report_.set_frames(report_.frames() + 1);
  report_.set_bytes(report_.bytes() + bytes);
}

WorkerReport::Link Link::Describe() const {
  MutexLock lock(&mutex_);
  WorkerReport::Link report = report_;
  report.set_host(host_);
  report.set_bytes_per_second(choice_.drain_bytes_per_second());
  return report;
}

std::shared_ptr<Link> Links::To(std::string_view peer) {
  const std::string host = HostOf({peer.data(), peer.size()});
  MutexLock lock(&mutex_);
  const auto known =
      std::find_if(links_.begin(), links_.end(),
                   [&](const auto& link) { return link->host() == host; });
  if (known != links_.end()) {
    links_.splice(links_.begin(), links_, known);
  } else {
    links_.push_front(std::make_shared<Link>(host));
    if (links_.size() > kMaxLinks) links_.pop_back();
  }
  return links_.front();
}

std::vector<WorkerReport::Link> Links::Describe() const {
  std::vector<WorkerReport::Link> links;
  MutexLock lock(&mutex_);
  for (const auto& link : links_) links.push_back(link->Describe());
  return links;
}

}  // namespace penstock::service

#include "penstock/session/service_channel.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/data/encode.h"
#include "penstock/session.pb.h"

namespace penstock::session {

namespace {

struct Header {
  uint32_t kind;
  uint32_t size;
  uint64_t id;
};
static_assert(sizeof(Header) == 16);

std::string_view AsBytes(const Header& header) {
  return {reinterpret_cast<const char*>(&header), sizeof(header)};
}

}  // namespace

class GeneratorRun final {
 public:
  // The rows at hand, the end, or whether to ask for more: `ask` is set then.
  absl::StatusOr<engine::Pull> Take(const engine::Request& request, bool* ask)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    *ask = false;
    if (given_ < rows_.rows) {
      const int64_t count = std::min(request.max_rows, rows_.rows - given_);
      Chunk chunk = Slice(rows_, given_, count);
      given_ += count;
      return engine::Pull::Rows(std::move(chunk));
    }
    if (!failure_.ok()) return failure_;
    if (has_ended_) return engine::Pull::End();
    *ask = !std::exchange(is_asked_, true);
    waker_ = request.waker;
    return engine::Pull::Blocked();
  }

  void Deliver(absl::StatusOr<Chunk> rows) ABSL_LOCKS_EXCLUDED(mutex_) {
    Answer([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      if (!rows.ok()) {
        failure_ = rows.status();
        return;
      }
      rows_ = *std::move(rows);
      given_ = 0;
    });
  }

  void End() ABSL_LOCKS_EXCLUDED(mutex_) {
    Answer([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { has_ended_ = true; });
  }

 private:
  template <typename F>
  void Answer(F&& change) ABSL_LOCKS_EXCLUDED(mutex_) {
    engine::Waker waker;
    {
      MutexLock lock(&mutex_);
      change();
      is_asked_ = false;
      waker = std::exchange(waker_, nullptr);
    }
    if (waker != nullptr) waker->Wake();
  }

  Mutex mutex_;
  Chunk rows_ ABSL_GUARDED_BY(mutex_);
  int64_t given_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_asked_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  engine::Waker waker_ ABSL_GUARDED_BY(mutex_);
};

// The engine's side of a generator.
class ChannelSource final : public engine::RowSource {
 public:
  ChannelSource(ServiceChannel* channel, uint64_t id,
                std::shared_ptr<GeneratorRun> run)
      : channel_(channel), id_(id), run_(std::move(run)) {}
  ~ChannelSource() override { channel_->Close(id_); }

  absl::StatusOr<engine::Pull> Next(const engine::Request& request) override {
    bool ask;
    PENSTOCK_ASSIGN_OR_RETURN(engine::Pull pull, run_->Take(request, &ask));
    if (ask) {
      const uint64_t rows = static_cast<uint64_t>(request.max_rows);
      PENSTOCK_RETURN_IF_ERROR(
          channel_->Send(GENERATOR_NEXT, id_,
                         {reinterpret_cast<const char*>(&rows), sizeof(rows)}));
    }
    return pull;
  }

 private:
  ServiceChannel* const channel_;
  const uint64_t id_;
  const std::shared_ptr<GeneratorRun> run_;
};

ServiceChannel::ServiceChannel(Descriptor socket)
    : socket_(std::move(socket)) {}
ServiceChannel::~ServiceChannel() = default;

absl::Status ServiceChannel::Send(uint32_t kind, uint64_t id,
                                  std::string_view payload) {
  const Header header{kind, static_cast<uint32_t>(payload.size()), id};
  std::string message(AsBytes(header));
  message.append(payload);
  MutexLock lock(&send_mutex_);
  return SendAll(socket_.get(), message);
}

void ServiceChannel::Log(int level, std::string_view text) {
  const Header header{LOG, static_cast<uint32_t>(text.size() + 1), 0};
  std::string message(AsBytes(header));
  message.push_back(static_cast<char>(level / 10));
  message.append(text);
  MutexLock lock(&send_mutex_);
  TrySend(socket_.get(), message).IgnoreError();
}

absl::Status ServiceChannel::OnReadable() {
  Header header;
  PENSTOCK_RETURN_IF_ERROR(ReceiveAll(
      socket_.get(), reinterpret_cast<char*>(&header), sizeof(header)));
  Buffer payload = Buffer::Allocate(header.size);
  PENSTOCK_RETURN_IF_ERROR(
      ReceiveAll(socket_.get(), payload.MutableAs<char>(), header.size));
  std::shared_ptr<GeneratorRun> run;
  {
    MutexLock lock(&mutex_);
    auto it = runs_.find(header.id);
    if (it == runs_.end()) return absl::OkStatus();  // closed meanwhile
    run = it->second;
  }
  if (header.kind == GENERATOR_ROWS) {
    run->Deliver(Decode(payload));
  } else if (header.kind == GENERATOR_END) {
    run->End();
  }
  return absl::OkStatus();
}

void ServiceChannel::AddCapture(const std::string& id, Buffer bytes) {
  MutexLock lock(&mutex_);
  captures_[id] = std::move(bytes);
}

void ServiceChannel::DropCapture(const std::string& id) {
  MutexLock lock(&mutex_);
  captures_.erase(id);
}

absl::StatusOr<Buffer> ServiceChannel::Capture(const std::string& id) {
  MutexLock lock(&mutex_);
  auto it = captures_.find(id);
  if (it == captures_.end()) {
    return absl::FailedPreconditionError(
        absl::StrCat("array ", id, " was not sent to this engine"));
  }
  return it->second;
}

absl::StatusOr<std::unique_ptr<engine::RowSource>> ServiceChannel::Open(
    const std::string& capture, const Chunk& args) {
  auto run = std::make_shared<GeneratorRun>();
  uint64_t id;
  {
    MutexLock lock(&mutex_);
    id = next_id_++;
    runs_[id] = run;
  }
  const auto name_size = static_cast<uint32_t>(capture.size());
  std::string payload(reinterpret_cast<const char*>(&name_size),
                      sizeof(name_size));
  payload.append(capture);
  if (!args.columns.empty()) {
    std::string encoded(EncodedSize(args), '\0');
    Encode(args, reinterpret_cast<std::byte*>(encoded.data()));
    payload.append(encoded);
  }
  PENSTOCK_RETURN_IF_ERROR(Send(GENERATOR_OPEN, id, payload));
  return std::make_unique<ChannelSource>(this, id, std::move(run));
}

void ServiceChannel::Close(uint64_t id) {
  {
    MutexLock lock(&mutex_);
    runs_.erase(id);
  }
  Send(GENERATOR_CLOSE, id, "").IgnoreError();
}

}  // namespace penstock::session

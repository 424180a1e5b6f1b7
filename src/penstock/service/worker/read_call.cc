#include "penstock/service/worker/read_call.h"

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>
#include <grpcpp/support/slice.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/base/clock.h"
#include "penstock/base/mutex.h"
#include "penstock/io/crc32c.h"
#include "penstock/service/rpc/status.h"
#include "penstock/service/worker/compress.h"
#include "penstock/worker.grpc.pb.h"

namespace penstock::service {
namespace {

using grpc::ByteBuffer;
using grpc::Slice;

// Bytes that are not copied: `owner` goes when gRPC is done with them.
Slice OwnedSlice(const std::byte* data, size_t size, Owner owner) {
  return Slice(
      const_cast<std::byte*>(data), size,
      [](void* kept) { delete static_cast<Owner*>(kept); },
      new Owner(std::move(owner)));
}

absl::StatusOr<ReadRequest> ParseRequest(const ByteBuffer& bytes) {
  Slice slice;
  ReadRequest request;
  if (!bytes.DumpToSingleSlice(&slice).ok() ||
      !request.ParseFromArray(slice.begin(), static_cast<int>(slice.size()))) {
    return absl::InvalidArgumentError(
        "every message of a client must be a ReadRequest; got other bytes");
  }
  return request;
}

// A frame on its way.
struct Sending {
  OutFrame frame;
  Compression compression = COMPRESSION_NONE;
  // As it travels.
  Owner memory;
  const std::byte* data = nullptr;
  size_t bytes = 0;
  size_t sent = 0;
  std::shared_ptr<const FrameParts> parts;  // set: instead of `data`
  std::optional<FrameHeader::Place> place;
};

class ReadCall final : public grpc::ServerBidiReactor<ByteBuffer, ByteBuffer> {
 public:
  ReadCall(ReadContext& context, std::shared_ptr<Link> link)
      : context_(context),
        link_(std::move(link)),
        bell_(std::make_shared<Bell>(this)) {
    link_->OnBegin();
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      {
        MutexLock lock(&mutex_);
        is_half_closed_ = true;
        if (!is_opened_) {
          return End(absl::InvalidArgumentError(
              "a reading must begin with what is read; got no message"));
        }
      }
      return Pump();
    }
    const absl::StatusOr<ReadRequest> request = ParseRequest(request_);
    if (!request.ok()) {
      MutexLock lock(&mutex_);
      return End(request.status());
    }
    bool is_first;
    {
      MutexLock lock(&mutex_);
      if (is_ended_) return;
      constexpr int64_t kMost = int64_t{1} << 62;
      credit_ = std::min<int64_t>(
          kMost, credit_ + static_cast<int64_t>(std::min<uint64_t>(
                               request->credit_bytes(), kMost / 2)));
      is_first = !std::exchange(is_opened_, true);
      if (is_first) {
        const absl::Status opened = Open(*request);
        if (!opened.ok()) return End(opened);
      }
      if (peer_ != nullptr) {
        for (const uint64_t frame : request->released()) peer_->Release(frame);
      }
    }
    if (is_first) {
      context_.find(request->epoch(), request->bundle(), request->from(),
                    [bell = bell_,
                     from = request->from()](std::shared_ptr<FrameSource> run) {
                      bell->Found(std::move(run), from);
                    });
    } else {
      Pump();
    }
    MutexLock lock(&mutex_);
    if (!is_ended_) StartRead(&request_);
  }

  void OnWriteDone(bool ok) override {
    // Freed without the lock, and before another one is waited for.
    ByteBuffer sent;
    {
      MutexLock lock(&mutex_);
      sent.Swap(&message_);
      is_writing_ = false;
      if (piece_bytes_ > 0) {
        link_->OnWritten(ok ? piece_bytes_ : 0, SteadyClock().NowNanos());
      }
      if (!ok) return End(absl::CancelledError("the client has gone"));
    }
    sent.Clear();
    Pump();
  }

  void OnCancel() override {
    MutexLock lock(&mutex_);
    End(absl::CancelledError("the client has gone"));
  }

  void OnDone() override {
    bell_->Silence();
    std::shared_ptr<FrameSource> run;
    {
      MutexLock lock(&mutex_);
      run = std::move(run_);
    }
    if (run != nullptr) run->Detach(bell_);
    link_->OnEnd();
    delete this;
  }

 private:
  // What runs and the worker know of the call, which may end before they do.
  class Bell final : public engine::Wakeable {
   public:
    explicit Bell(ReadCall* call) : call_(call) {}
    void Wake() override {
      MutexLock lock(&mutex_);
      if (call_ != nullptr) call_->Pump();
    }
    void Sent(bool is_sent, size_t bytes, bool is_end) {
      MutexLock lock(&mutex_);
      if (call_ != nullptr) call_->OnSent(is_sent, bytes, is_end);
    }
    void Found(std::shared_ptr<FrameSource> run, uint64_t from) {
      MutexLock lock(&mutex_);
      if (call_ != nullptr) call_->OnFound(std::move(run), from);
    }
    void Silence() {
      MutexLock lock(&mutex_);
      call_ = nullptr;
    }

   private:
    Mutex mutex_;
    ReadCall* call_ ABSL_GUARDED_BY(mutex_);
  };

  absl::Status Open(const ReadRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (const int each : request.compressions()) {
      compressions_.push_back(static_cast<Compression>(each));
    }
    if (!request.frame_key().empty()) {
      if (context_.sockets != nullptr) {
        socket_ = context_.sockets->Find(request.frame_key());
      }
      reading_ = request.reading();
      if (socket_ != nullptr) return absl::OkStatus();
      return absl::AbortedError(
          "frame_key must be one that the worker's frame socket gave to a "
          "connection that still lives; got another\n  Read without a key, or "
          "connect again.");
    }
    if (request.local_key().empty()) return absl::OkStatus();
    if (context_.local != nullptr) {
      peer_ = context_.local->Find(request.local_key());
    }
    if (peer_ != nullptr) return absl::OkStatus();
    // A worker that was started again does not know its predecessor's keys.
    return absl::AbortedError(
        "local_key must be one that the worker's socket gave to a connection "
        "that still lives; got another\n  Read without a key, or connect "
        "again.");
  }

  void OnFound(std::shared_ptr<FrameSource> run, uint64_t from) {
    if (run == nullptr) {
      MutexLock lock(&mutex_);
      return End(absl::NotFoundError("the worker does not hold that bundle"));
    }
    bool takes_parts;
    {
      MutexLock lock(&mutex_);
      takes_parts = socket_ != nullptr;
    }
    run->Attach(bell_, from, takes_parts);
    {
      MutexLock lock(&mutex_);
      run_ = std::move(run);
    }
    Pump();
  }

  // Sends the next piece, if there is one and it may be sent.
  void Pump() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (is_writing_ || is_ended_ || run_ == nullptr) return;
    if (has_sent_end_) {
      if (is_half_closed_) End(absl::OkStatus());
      return;
    }
    if (!sending_.has_value()) {
      if (credit_ <= 0) {
        const absl::Status status = run_->Check(bell_);
        if (!status.ok()) return End(status);
        if (is_half_closed_) {
          End(absl::CancelledError("the client gives no more credit"));
        }
        return;
      }
      absl::StatusOr<std::optional<OutFrame>> frame = run_->Take(bell_);
      if (!frame.ok()) return End(frame.status());
      if (!frame->has_value()) return;
      if (!Begin(**std::move(frame))) return;
    }
    if (socket_ != nullptr) {
      SendFrame();
    } else {
      WritePiece();
    }
  }

  // Whether the frame can be sent.
  bool Begin(OutFrame frame) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Sending sending;
    sending.memory = frame.memory;
    sending.data = frame.data;
    sending.bytes = frame.bytes;
    sending.parts = frame.parts;
    if (peer_ != nullptr && frame.bytes > 0 && frame.segment != kNoSegment) {
      const std::optional<uint64_t> lent = peer_->Lend(frame.memory);
      if (!lent.has_value()) {
        End(absl::UnavailableError(
            "the client's connection to the worker's socket has ended"));
        return false;
      }
      sending.place.emplace();
      sending.place->set_frame(*lent);
      sending.place->set_segment(frame.segment);
      sending.place->set_offset(frame.offset);
      link_->OnShown(frame.bytes);
    } else if (frame.bytes > 0) {
      CompressInto(frame, sending);
      link_->OnSent(sending.compression, frame.bytes, sending.bytes);
    }
    credit_ -= static_cast<int64_t>(sending.bytes);
    context_.sent_frames.fetch_add(1, std::memory_order_relaxed);
    context_.sent_bytes.fetch_add(sending.bytes, std::memory_order_relaxed);
    sending.frame = std::move(frame);
    sending_ = std::move(sending);
    return true;
  }

  void CompressInto(const OutFrame& frame, Sending& sending)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const Compression compression = link_->Next(compressions_);
    // Wanted in one place after all.
    const bool is_joined =
        frame.parts != nullptr && (compression != COMPRESSION_NONE || !socket_);
    if (is_joined) {
      const Buffer joined = Joined(*frame.parts);
      sending.memory = joined.owner();
      sending.data = joined.data();
      sending.parts.reset();
    }
    if (compression == COMPRESSION_NONE) return;
    const int64_t start = SteadyClock().NowNanos();
    std::optional<std::string> bytes =
        Compress(compression,
                 {reinterpret_cast<const char*>(sending.data), sending.bytes});
    link_->OnCompressed(compression, frame.bytes,
                        bytes.has_value() ? bytes->size() : frame.bytes,
                        SteadyClock().NowNanos() - start);
    if (!bytes.has_value()) return;
    auto kept = std::make_shared<const std::string>(*std::move(bytes));
    sending.compression = compression;
    sending.data = reinterpret_cast<const std::byte*>(kept->data());
    sending.bytes = kept->size();
    sending.memory = std::move(kept);
  }

  static FrameHeader HeaderOf(const Sending& sending) {
    const OutFrame& frame = sending.frame;
    FrameHeader header;
    header.set_position(frame.position);
    header.set_items(frame.items);
    header.set_is_loose(frame.is_loose);
    header.set_is_spare(frame.is_spare);
    header.set_is_end(frame.is_end);
    header.set_is_gone(frame.is_gone);
    header.set_digest(frame.digest);
    header.set_frame_bytes(sending.bytes);
    header.set_plain_bytes(frame.bytes);
    header.set_chunk_bytes(frame.chunk_bytes);
    header.set_compression(sending.compression);
    return header;
  }

  // The frame as a whole, over the socket.
  void SendFrame() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    FrameSocket::Frame frame;
    frame.reading = reading_;
    frame.header = HeaderOf(*sending_);
    frame.memory = std::move(sending_->memory);
    frame.bytes = std::move(sending_->parts);
    if (frame.bytes == nullptr) {
      auto whole = std::make_shared<FrameParts>();
      whole->parts = {Buffer(nullptr, sending_->data, sending_->bytes)};
      whole->bytes = sending_->bytes;
      frame.bytes = std::move(whole);
    }
    frame.done = [bell = bell_, bytes = sending_->bytes,
                  is_end = sending_->frame.is_end](bool is_sent) {
      bell->Sent(is_sent, bytes, is_end);
    };
    if (sending_->bytes > 0) link_->OnWrite(SteadyClock().NowNanos());
    sending_.reset();
    is_writing_ = true;
    context_.socket_frames.fetch_add(1, std::memory_order_relaxed);
    if (!socket_->Send(std::move(frame))) End(SocketEnded());
  }
  void OnSent(bool is_sent, size_t bytes, bool is_end)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      MutexLock lock(&mutex_);
      is_writing_ = false;
      if (bytes > 0) {
        link_->OnWritten(is_sent ? bytes : 0, SteadyClock().NowNanos());
      }
      if (!is_sent) return End(SocketEnded());
      has_sent_end_ = is_end;
    }
    Pump();
  }
  static absl::Status SocketEnded() {
    return absl::UnavailableError(
        "the client's connection to the worker's frame socket has ended");
  }

  void WritePiece() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Sending& sending = *sending_;
    const OutFrame& frame = sending.frame;
    FrameHeader header = HeaderOf(sending);
    size_t piece = 0;
    if (sending.place.has_value()) {
      *header.mutable_place() = *sending.place;
      sending.sent = sending.bytes;
    } else {
      piece = std::min(sending.bytes - sending.sent, kMaxPieceBytes);
      header.set_piece_offset(sending.sent);
      header.set_piece_bytes(piece);
      header.set_crc32c(io::Crc32c(
          {reinterpret_cast<const char*>(sending.data) + sending.sent, piece}));
    }
    std::string head(2 * sizeof(uint32_t), '\0');
    header.AppendToString(&head);
    const std::string_view header_bytes =
        std::string_view(head).substr(2 * sizeof(uint32_t));
    const uint64_t before = uint64_t{io::Crc32c(header_bytes)} << 32 |
                            static_cast<uint32_t>(header_bytes.size());
    for (size_t i = 0; i < sizeof(before); ++i) {
      head[i] = static_cast<char>(before >> (8 * i) & 0xff);
    }
    Slice slices[2] = {Slice(head), Slice()};
    size_t num_slices = 1;
    if (piece > 0) {
      slices[num_slices++] =
          OwnedSlice(sending.data + sending.sent, piece, sending.memory);
      sending.sent += piece;
    }
    message_ = ByteBuffer(slices, num_slices);
    const bool is_whole = sending.sent == sending.bytes;
    const bool is_end = is_whole && frame.is_end;
    if (is_whole) sending_.reset();
    is_writing_ = true;
    // Of the last piece nothing is heard.
    piece_bytes_ = is_end ? 0 : piece;
    if (piece_bytes_ > 0) link_->OnWrite(SteadyClock().NowNanos());
    if (is_end) {
      is_ended_ = true;
      StartWriteAndFinish(&message_, grpc::WriteOptions(), grpc::Status::OK);
    } else {
      StartWrite(&message_);
    }
  }

  void End(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (std::exchange(is_ended_, true)) return;
    Finish(rpc::ToGrpc(status));
  }

  ReadContext& context_;
  const std::shared_ptr<Link> link_;
  const std::shared_ptr<Bell> bell_;
  ByteBuffer request_;  // being read

  Mutex mutex_;
  bool is_opened_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_half_closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_writing_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t credit_ ABSL_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<FrameSource> run_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<LocalPeer> peer_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<FrameSocket> socket_ ABSL_GUARDED_BY(mutex_);
  uint64_t reading_ ABSL_GUARDED_BY(mutex_) = 0;       // as its client calls it
  bool has_sent_end_ ABSL_GUARDED_BY(mutex_) = false;  // over the socket
  std::vector<Compression> compressions_ ABSL_GUARDED_BY(mutex_);
  std::optional<Sending> sending_ ABSL_GUARDED_BY(mutex_);
  ByteBuffer message_ ABSL_GUARDED_BY(mutex_);      // being written
  size_t piece_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of it
};

// A call that is refused before it begins.
class RefusedCall final
    : public grpc::ServerBidiReactor<ByteBuffer, ByteBuffer> {
 public:
  explicit RefusedCall(const absl::Status& status) {
    Finish(rpc::ToGrpc(status));
  }
  void OnDone() override { delete this; }
};

class ReadService final
    : public Worker::WithRawCallbackMethod_Read<
          Worker::WithCallbackMethod_GetState<Worker::Service>> {
 public:
  explicit ReadService(ReadContext& context) : context_(context) {}

  grpc::ServerBidiReactor<ByteBuffer, ByteBuffer>* Read(
      grpc::CallbackServerContext* call) override {
    const absl::Status may = Check(*call, "/penstock.service.Worker/Read");
    if (!may.ok()) return new RefusedCall(may);
    return new ReadCall(context_, context_.links.To(call->peer()));
  }

  grpc::ServerUnaryReactor* GetState(grpc::CallbackServerContext* call,
                                     const GetWorkerReportRequest*,
                                     WorkerReport* report) override {
    const absl::Status may = Check(*call, "/penstock.service.Worker/GetState");
    if (may.ok() && context_.report) *report = context_.report();
    grpc::ServerUnaryReactor* reactor = call->DefaultReactor();
    reactor->Finish(rpc::ToGrpc(may));
    return reactor;
  }

 private:
  absl::Status Check(const grpc::CallbackServerContext& call,
                     std::string_view method) const {
    return context_.check_caller ? context_.check_caller(call, method)
                                 : absl::OkStatus();
  }

  ReadContext& context_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeReadService(ReadContext& context) {
  return std::make_unique<ReadService>(context);
}

}  // namespace penstock::service

// For tests: one Read call of a worker, as a client makes it.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "penstock/io/crc32c.h"
#include "penstock/service/rpc/channel.h"
#include "penstock/service/rpc/status.h"
#include "penstock/worker.pb.h"

namespace penstock::service {

// What one message of the worker has.
struct Piece {
  FrameHeader header;
  std::string bytes;
};

// One caller at a time.
class TestReading final {
 public:
  explicit TestReading(const std::string& address)
      : stub_(*rpc::MakeChannel(address, {})) {
    context_.set_deadline(std::chrono::system_clock::now() +
                          std::chrono::seconds(60));
    stream_ =
        stub_.PrepareCall(&context_, "/penstock.service.Worker/Read", &queue_);
    stream_->StartCall(Tag(kStart));
    Await(kStart);
  }
  ~TestReading() {
    context_.TryCancel();
    if (is_reading_) Await(kRead);
    if (!is_finished_) Finish().IgnoreError();
    queue_.Shutdown();
    void* tag;
    bool ok;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  void Send(const ReadRequest& request) { Send(request.SerializeAsString()); }
  void Send(const std::string& bytes) {
    grpc::Slice slice(bytes);
    stream_->Write(grpc::ByteBuffer(&slice, 1), Tag(kWrite));
    Await(kWrite);
  }
  void AddCredit(uint64_t bytes) {
    ReadRequest request;
    request.set_credit_bytes(bytes);
    Send(request);
  }
  void HalfClose() {
    stream_->WritesDone(Tag(kWrite));
    Await(kWrite);
  }
  void Cancel() { context_.TryCancel(); }

  // The next message; nothing: the call is over.
  std::optional<Piece> Next() {
    BeginRead();
    is_reading_ = false;
    if (!Await(kRead)) return std::nullopt;
    return Parse();
  }
  // The header alone of the next message, of which nothing is copied.
  std::optional<FrameHeader> NextHeader() {
    BeginRead();
    is_reading_ = false;
    if (!Await(kRead)) return std::nullopt;
    std::vector<grpc::Slice> slices;
    message_.Dump(&slices);
    std::string head;
    uint32_t size = 0;
    for (const grpc::Slice& slice : slices) {
      const size_t most = head.size() < 8 ? 4096 : size + 8 - head.size();
      head.append(reinterpret_cast<const char*>(slice.begin()),
                  std::min(slice.size(), most));
      if (head.size() >= 8) std::memcpy(&size, head.data(), 4);
      if (head.size() >= 8 && head.size() >= size + 8) break;
    }
    FrameHeader header;
    header.ParseFromString(head.substr(8, size));
    return header;
  }
  // The same if it comes within `wait`.
  std::optional<Piece> NextWithin(std::chrono::milliseconds wait) {
    BeginRead();
    if (!AwaitUntil(kRead, std::chrono::system_clock::now() + wait)) {
      return std::nullopt;
    }
    is_reading_ = false;
    if (!done_ok_[kRead]) return std::nullopt;
    return Parse();
  }
  absl::Status Finish() {
    grpc::Status status;
    stream_->Finish(&status, Tag(kFinish));
    Await(kFinish);
    is_finished_ = true;
    return rpc::FromGrpc(status);
  }

 private:
  enum Op : int { kStart, kRead, kWrite, kFinish, kNumOps };
  static void* Tag(Op op) { return reinterpret_cast<void*>(op + 1); }

  void BeginRead() {
    if (is_reading_) return;
    is_reading_ = true;
    stream_->Read(&message_, Tag(kRead));
  }
  bool Await(Op op) {
    AwaitUntil(op, std::chrono::system_clock::now() + std::chrono::hours(1));
    return done_ok_[op];
  }
  bool AwaitUntil(Op op, std::chrono::system_clock::time_point until) {
    while (!is_done_[op]) {
      void* tag;
      bool ok;
      if (queue_.AsyncNext(&tag, &ok, until) !=
          grpc::CompletionQueue::GOT_EVENT) {
        return false;
      }
      const auto done = reinterpret_cast<intptr_t>(tag) - 1;
      is_done_[done] = true;
      done_ok_[done] = ok;
    }
    is_done_[op] = false;
    return true;
  }
  Piece Parse() {
    grpc::Slice slice;
    message_.DumpToSingleSlice(&slice);
    const std::string all(reinterpret_cast<const char*>(slice.begin()),
                          slice.size());
    Piece piece;
    uint32_t before[2];  // bytes of the header, and its checksum
    std::memcpy(before, all.data(), sizeof(before));
    const std::string header = all.substr(sizeof(before), before[0]);
    if (io::Crc32c(header) == before[1]) piece.header.ParseFromString(header);
    piece.bytes = all.substr(sizeof(before) + before[0]);
    return piece;
  }

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  grpc::ByteBuffer message_;
  bool is_reading_ = false;
  bool is_finished_ = false;
  bool is_done_[kNumOps] = {};
  bool done_ok_[kNumOps] = {};
};

}  // namespace penstock::service

#include "penstock/service/client/reading.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/slice.h>

#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/io/crc32c.h"
#include "penstock/service/client/unpack.h"
#include "penstock/service/rpc/status.h"

namespace penstock::service {
namespace {

constexpr char kMethod[] = "/penstock.service.Worker/Read";
constexpr size_t kMaxHeaderBytes = 1 << 16;

grpc::ByteBuffer ToByteBuffer(const ReadRequest& request) {
  const std::string bytes = request.SerializeAsString();
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

// Copies bytes that lie in several slices.
class SliceReader final {
 public:
  explicit SliceReader(const grpc::ByteBuffer& buffer) {
    buffer.Dump(&slices_).ok();
    for (const grpc::Slice& slice : slices_) left_ += slice.size();
  }
  size_t left() const { return left_; }
  // REQUIRES: size <= left().
  void Copy(void* out, size_t size) {
    left_ -= size;
    auto* to = static_cast<uint8_t*>(out);
    while (size > 0) {
      const grpc::Slice& slice = slices_[at_];
      const size_t here = std::min(size, slice.size() - offset_);
      std::memcpy(to, slice.begin() + offset_, here);
      to += here;
      size -= here;
      offset_ += here;
      if (offset_ < slice.size()) continue;
      ++at_;
      offset_ = 0;
    }
  }

 private:
  std::vector<grpc::Slice> slices_;
  size_t at_ = 0;
  size_t offset_ = 0;
  size_t left_ = 0;
};

}  // namespace

Reading::Reading(ReadRequest first, std::shared_ptr<WorkerMemory> memory,
                 ReadingSink& sink)
    : bundle_(first.bundle()),
      attempt_(first.attempt()),
      memory_(std::move(memory)),
      sink_(sink),
      next_(std::move(first)) {}

std::shared_ptr<Reading> Reading::Start(
    const std::shared_ptr<grpc::Channel>& channel,
    const rpc::Credentials& credentials, ReadRequest first,
    std::shared_ptr<WorkerMemory> memory, ReadingSink& sink) {
  if (memory != nullptr) first.set_local_key(memory->key());
  std::shared_ptr<Reading> reading(
      new Reading(std::move(first), std::move(memory), sink));
  reading->self_ = reading;
  rpc::Prepare(reading->context_, credentials);
  grpc::GenericStub stub(channel);
  stub.PrepareBidiStreamingCall(&reading->context_, kMethod, {}, reading.get());
  {
    MutexLock lock(&reading->mutex_);
    reading->AddHold();  // credit is written from outside of reactions
    reading->WriteIfDue();
  }
  reading->StartRead(&reading->incoming_);
  reading->StartCall();
  return reading;
}

void Reading::WriteIfDue() {
  if (!has_next_ || is_writing_ || has_ended_) return;
  outgoing_ = ToByteBuffer(next_);
  next_.Clear();
  has_next_ = false;
  is_writing_ = true;
  StartWrite(&outgoing_);
}

void Reading::AddCredit(uint64_t bytes) {
  MutexLock lock(&mutex_);
  next_.set_credit_bytes(next_.credit_bytes() + bytes);
  has_next_ = true;
  WriteIfDue();
}

void Reading::Stop() { context_.TryCancel(); }

void Reading::OnWriteDone(bool ok) {
  MutexLock lock(&mutex_);
  is_writing_ = false;
  if (ok) WriteIfDue();
}

void Reading::OnReadDone(bool ok) {
  if (ok && failure_.ok()) failure_ = TakePiece();
  if (ok && failure_.ok()) {
    incoming_.Clear();
    StartRead(&incoming_);
    return;
  }
  if (ok) context_.TryCancel();
  {
    MutexLock lock(&mutex_);
    if (std::exchange(has_ended_, true)) return;
  }
  RemoveHold();
}

absl::Status Reading::TakePiece() {
  SliceReader reader(incoming_);
  uint32_t before[2] = {};
  if (reader.left() < sizeof(before)) return Damaged("it has no header");
  reader.Copy(before, sizeof(before));
  const auto [header_bytes, header_crc] = before;
  if (header_bytes > kMaxHeaderBytes || header_bytes > reader.left()) {
    return Damaged("its header is cut short");
  }
  std::string header(header_bytes, '\0');
  reader.Copy(header.data(), header_bytes);
  PENSTOCK_ASSIGN_OR_RETURN(const FrameHeader head,
                            ParseHeader(header, header_crc));
  if (head.has_place()) {
    if (memory_ == nullptr) return Damaged("it is in memory not asked for");
    PENSTOCK_ASSIGN_OR_RETURN(
        Buffer bytes,
        memory_->Find(head.place().segment(), head.place().offset(),
                      head.plain_bytes(), head.place().frame()));
    sink_.OnFrame(bundle_, attempt_, head, std::move(bytes));
    return absl::OkStatus();
  }
  const size_t piece = reader.left();
  if (piece != head.piece_bytes() ||
      head.piece_offset() + piece > head.frame_bytes()) {
    return Damaged("a piece has another size than it says");
  }
  if (head.piece_offset() == 0) {
    if (head.frame_bytes() > kMaxFrameBytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("a frame must have at most ", kMaxFrameBytes,
                       " bytes; got ", head.frame_bytes()));
    }
    frame_ = head.compression() == COMPRESSION_NONE
                 ? sink_.Allocate(head.frame_bytes())
                 : Buffer::Allocate(head.frame_bytes());
    frame_filled_ = 0;
  }
  if (head.piece_offset() != frame_filled_ ||
      frame_.size() != head.frame_bytes()) {
    return Damaged("a piece is missing");
  }
  auto* at = frame_.MutableAs<char>() + frame_filled_;
  reader.Copy(at, piece);
  if (io::Crc32c(std::string_view(at, piece)) != head.crc32c()) {
    return Damaged("its checksum does not match");
  }
  frame_filled_ += piece;
  if (frame_filled_ < head.frame_bytes()) return absl::OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(Buffer bytes,
                            Unpack(head, std::exchange(frame_, Buffer())));
  frame_filled_ = 0;
  sink_.OnFrame(bundle_, attempt_, head, std::move(bytes));
  return absl::OkStatus();
}

void Reading::OnDone(const grpc::Status& status) {
  ReadingSink& sink = sink_;
  const uint64_t bundle = bundle_;
  const uint64_t attempt = attempt_;
  const absl::Status why = failure_.ok() ? rpc::FromGrpc(status) : failure_;
  // Which may be its end: a channel's last holder must not be one of gRPC's
  // threads, and who hears that it is done may be the channel's next to last.
  self_.reset();
  sink.OnReadingDone(bundle, attempt, why);
}

}  // namespace penstock::service

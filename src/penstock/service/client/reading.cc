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
                 std::shared_ptr<WorkerSocket> socket, ReadingSink& sink)
    : bundle_(first.bundle()),
      attempt_(first.attempt()),
      memory_(std::move(memory)),
      socket_(std::move(socket)),
      sink_(sink),
      next_(std::move(first)) {}

std::shared_ptr<Reading> Reading::Start(
    const std::shared_ptr<grpc::Channel>& channel,
    const rpc::Credentials& credentials, ReadRequest first,
    std::shared_ptr<WorkerMemory> memory, std::shared_ptr<WorkerSocket> socket,
    ReadingSink& sink) {
  if (memory != nullptr) {
    first.set_local_key(memory->key());
    socket.reset();
  }
  std::shared_ptr<Reading> reading(new Reading(
      std::move(first), std::move(memory), std::move(socket), sink));
  reading->self_ = reading;
  rpc::Prepare(reading->context_, credentials);
  grpc::GenericStub stub(channel);
  stub.PrepareBidiStreamingCall(&reading->context_, kMethod, {}, reading.get());
  {
    MutexLock lock(&reading->mutex_);
    if (reading->socket_ != nullptr) {
      // One that has ended meanwhile is not used.
      if (const auto number = reading->socket_->Add(reading)) {
        reading->reading_ = *number;
        reading->next_.set_frame_key(reading->socket_->key());
        reading->next_.set_reading(*number);
      }
    }
    reading->AddHold();  // credit is written from outside of reactions
    reading->WriteIfDue();
  }
  reading->StartRead(&reading->incoming_);
  reading->StartCall();
  return reading;
}

void Reading::WriteIfDue() {
  if (is_writing_ || has_ended_) return;
  if (has_had_all_) {
    if (!std::exchange(is_half_closed_, true)) StartWritesDone();
    return;
  }
  if (!has_next_) return;
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
  bool is_well = ok;
  if (ok) {
    MutexLock lock(&piece_mutex_);
    if (failure_.ok()) failure_ = TakeMessage();
    is_well = failure_.ok();
  }
  if (is_well) {
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

absl::Status Reading::TakeMessage() {
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
  if (reader.left() != head.piece_bytes()) {
    return Damaged("a piece has another size than it says");
  }
  PENSTOCK_ASSIGN_OR_RETURN(Buffer piece, BeginPiece(head));
  reader.Copy(piece.MutableAs<char>(), piece.size());
  return EndPiece(head);
}

absl::StatusOr<Buffer> Reading::BeginPiece(const FrameHeader& head) {
  if (head.frame_bytes() > kMaxFrameBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a frame must have at most ", kMaxFrameBytes,
                     " bytes; got ", head.frame_bytes()));
  }
  if (head.piece_bytes() > head.frame_bytes() ||
      head.piece_offset() > head.frame_bytes() - head.piece_bytes()) {
    return Damaged("a piece has another size than it says");
  }
  if (head.piece_offset() == 0) {
    frame_ = head.compression() == COMPRESSION_NONE
                 ? sink_.Allocate(head.frame_bytes())
                 : Buffer::Allocate(head.frame_bytes());
    frame_filled_ = 0;
  }
  if (head.piece_offset() != frame_filled_ ||
      frame_.size() != head.frame_bytes()) {
    return Damaged("a piece is missing");
  }
  return frame_.Slice(frame_filled_, head.piece_bytes());
}

absl::Status Reading::EndPiece(const FrameHeader& head) {
  const std::string_view piece(frame_.As<char>() + frame_filled_,
                               head.piece_bytes());
  if (io::Crc32c(piece) != head.crc32c()) {
    return Damaged("its checksum does not match");
  }
  frame_filled_ += piece.size();
  if (frame_filled_ < head.frame_bytes()) return absl::OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(Buffer bytes,
                            Unpack(head, std::exchange(frame_, Buffer())));
  frame_filled_ = 0;
  sink_.OnFrame(bundle_, attempt_, head, std::move(bytes));
  return absl::OkStatus();
}

std::optional<Buffer> Reading::OnPieceStart(const FrameHeader& head) {
  MutexLock lock(&piece_mutex_);
  if (is_done_ || !failure_.ok()) return std::nullopt;
  absl::StatusOr<Buffer> piece = BeginPiece(head);
  if (piece.ok()) return *std::move(piece);
  failure_ = piece.status();
  context_.TryCancel();
  return std::nullopt;
}

void Reading::OnPieceHere(const FrameHeader& head) {
  MutexLock piece_lock(&piece_mutex_);
  if (is_done_ || !failure_.ok()) return;
  failure_ = EndPiece(head);
  if (!failure_.ok()) return context_.TryCancel();
  if (!head.is_end() || frame_filled_ > 0) return;
  MutexLock lock(&mutex_);
  has_had_all_ = true;
  WriteIfDue();
}

void Reading::OnSocketEnd(const absl::Status& why) {
  MutexLock lock(&piece_mutex_);
  if (is_done_ || !failure_.ok()) return;
  failure_ = why;
  context_.TryCancel();
}

void Reading::OnDone(const grpc::Status& status) {
  ReadingSink& sink = sink_;
  const uint64_t bundle = bundle_;
  const uint64_t attempt = attempt_;
  absl::Status why;
  {
    MutexLock lock(&piece_mutex_);
    is_done_ = true;
    why = failure_.ok() ? rpc::FromGrpc(status) : failure_;
  }
  if (reading_ != 0) socket_->Remove(reading_);
  // Which may be its end: a channel's last holder must not be one of gRPC's
  // threads, and who hears that it is done may be the channel's next to last.
  self_.reset();
  sink.OnReadingDone(bundle, attempt, why);
}

}  // namespace penstock::service

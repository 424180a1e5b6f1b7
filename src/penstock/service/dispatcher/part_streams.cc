#include "penstock/service/dispatcher/part_streams.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/service/rpc/server.h"
#include "penstock/service/rpc/status.h"

namespace penstock::service {
namespace {

constexpr size_t kPartBytes = size_t{1} << 20;

class Sender final : public grpc::ServerWriteReactor<Part> {
 public:
  Sender(std::shared_ptr<const std::string> bytes, const std::string& id)
      : bytes_(std::move(bytes)) {
    part_.set_plan(id);
    Next();
  }
  void OnWriteDone(bool is_ok) override {
    part_.clear_plan();
    is_ok ? Next() : Finish(grpc::Status(grpc::StatusCode::CANCELLED, ""));
  }
  void OnDone() override { delete this; }

 private:
  void Next() {
    const size_t size = std::min(kPartBytes, bytes_->size() - sent_);
    part_.set_bytes(bytes_->data() + sent_, size);
    sent_ += size;
    if (sent_ == bytes_->size()) {
      StartWriteAndFinish(&part_, grpc::WriteOptions(), grpc::Status::OK);
    } else {
      StartWrite(&part_);
    }
  }

  const std::shared_ptr<const std::string> bytes_;
  size_t sent_ = 0;
  Part part_;
};

class Refusal final : public grpc::ServerWriteReactor<Part> {
 public:
  explicit Refusal(const absl::Status& status) { Finish(rpc::ToGrpc(status)); }
  void OnDone() override { delete this; }
};

class Receiver final : public grpc::ServerReadReactor<Part> {
 public:
  using Take = std::function<void(std::string, const Part&, service::Finish)>;
  Receiver(size_t max_bytes, Take take)
      : max_bytes_(max_bytes), take_(std::move(take)) {
    StartRead(&part_);
  }
  explicit Receiver(const absl::Status& status) : max_bytes_(0) {
    Finish(rpc::ToGrpc(status));
  }

  void OnReadDone(bool is_ok) override {
    if (!is_ok) {
      if (is_cancelled_) {
        return Finish(grpc::Status(grpc::StatusCode::CANCELLED, ""));
      }
      take_(std::move(bytes_), first_, [this](const absl::Status& status) {
        Finish(rpc::ToGrpc(status));
      });
      return;
    }
    if (is_first_) {
      first_.set_keep(part_.keep());
      first_.set_name(part_.name());
    }
    is_first_ = false;
    if (part_.bytes().size() > static_cast<size_t>(rpc::kMaxControlBytes)) {
      return Finish(rpc::ToGrpc(absl::ResourceExhaustedError(
          absl::StrCat("expected parts of at most ", rpc::kMaxControlBytes,
                       " bytes; got one of ", part_.bytes().size()))));
    }
    if (bytes_.size() + part_.bytes().size() > max_bytes_) {
      return Finish(rpc::ToGrpc(absl::ResourceExhaustedError(absl::StrCat(
          "a pipeline with its captured arrays may have at most ", max_bytes_,
          " bytes; this one has more\n  Read large arrays from files."))));
    }
    bytes_ += part_.bytes();
    StartRead(&part_);
  }
  void OnCancel() override { is_cancelled_ = true; }
  void OnDone() override { delete this; }

 private:
  const size_t max_bytes_;
  const Take take_;
  Part part_;
  std::string bytes_;
  bool is_first_ = true;
  Part first_;  // without its bytes
  std::atomic<bool> is_cancelled_{false};
};

}  // namespace

grpc::ServerWriteReactor<Part>* SendParts(
    absl::StatusOr<std::shared_ptr<const std::string>> bytes,
    const std::string& id) {
  if (!bytes.ok()) return new Refusal(bytes.status());
  return new Sender(*std::move(bytes), id);
}

grpc::ServerReadReactor<Part>* ReceiveParts(
    size_t max_bytes,
    std::function<void(std::string bytes, const Part& first, Finish finish)>
        take) {
  return new Receiver(max_bytes, std::move(take));
}

grpc::ServerReadReactor<Part>* RefuseParts(const absl::Status& status) {
  return new Receiver(status);
}

}  // namespace penstock::service

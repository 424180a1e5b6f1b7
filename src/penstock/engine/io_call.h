// A call that waits for storage, made by an I/O thread for a stream.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "penstock/base/mutex.h"
#include "penstock/engine/executor.h"
#include "penstock/io/io_pool.h"

namespace penstock::engine {

// One caller at a time. May go before its call does: the result is then dropped
// by the I/O thread.
template <typename Result>
class IoCall final {
 public:
  // Has `call` made if none is under way. Gives its result once; before that
  // nullopt, and `waker` is woken when it is worth asking again.
  std::optional<Result> Poll(io::IoPool& pool, const Waker& waker,
                             std::function<Result()> call) {
    if (shared_ == nullptr) {
      shared_ = std::make_shared<Shared>(waker);
      pool.Submit([shared = shared_, call = std::move(call)] {
        std::optional<Result> result(call());
        Waker waker;
        {
          MutexLock lock(&shared->mutex);
          shared->result.swap(result);
          waker.swap(shared->waker);
        }
        waker->Wake();
      });
      return std::nullopt;
    }
    std::optional<Result> result;
    {
      MutexLock lock(&shared_->mutex);
      if (!shared_->result.has_value()) {
        shared_->waker = waker;
        return std::nullopt;
      }
      result.swap(shared_->result);
    }
    shared_.reset();
    return result;
  }

 private:
  struct Shared {
    explicit Shared(const Waker& first) : waker(first) {}

    Mutex mutex;
    std::optional<Result> result ABSL_GUARDED_BY(mutex);
    Waker waker ABSL_GUARDED_BY(mutex);
  };

  std::shared_ptr<Shared> shared_;
};

}  // namespace penstock::engine

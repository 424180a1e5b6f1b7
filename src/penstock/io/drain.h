// For tests: reads streams and readers to their end, waiting where they say so.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/mutex.h"
#include "penstock/io/byte_stream.h"
#include "penstock/io/record_reader.h"

namespace penstock::io {

// A wake that can be waited for, and that counts its calls. Thread-safe.
class Alarm final {
 public:
  std::function<void()> Set() {
    return [state = state_] {
      MutexLock lock(&state->mutex);
      ++state->num_calls;
      state->changed.SignalAll();
    };
  }
  // Returns when the wake has been called `n` times in all.
  void Await(int n) {
    MutexLock lock(&state_->mutex);
    while (state_->num_calls < n) state_->changed.Wait(&state_->mutex);
  }
  int num_calls() const {
    MutexLock lock(&state_->mutex);
    return state_->num_calls;
  }

 private:
  struct State {
    Mutex mutex;
    CondVar changed;
    int num_calls ABSL_GUARDED_BY(mutex) = 0;
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

struct Drained {
  std::string bytes = {};
  absl::Status error = {};
  int num_waits = 0;
  int num_wakes = 0;
  size_t largest_block = 0;
};

// All bytes of `stream`, or those before its error.
inline Drained DrainStream(ByteStream& stream) {
  Drained drained;
  Alarm alarm;
  for (;;) {
    absl::StatusOr<std::optional<Block>> block = stream.Next(alarm.Set());
    if (!block.ok()) {
      drained.error = block.status();
      break;
    }
    if (!block->has_value()) {
      alarm.Await(++drained.num_waits);
      continue;
    }
    if ((*block)->bytes.empty()) break;
    drained.largest_block =
        std::max(drained.largest_block, (*block)->bytes.size());
    drained.bytes.append((*block)->bytes);
  }
  drained.num_wakes = alarm.num_calls();
  return drained;
}

// What a reader returned, an error as "!" and its text, and the position after
// each.
struct Drawn {
  std::vector<std::string> records;
  std::vector<absl::Status> errors;
  std::vector<RecordPosition> positions;
};

inline Drawn DrainReader(RecordReader& reader, size_t max_records = 1) {
  Drawn drawn;
  Alarm alarm;
  int num_waits = 0;
  RecordBatch batch;
  for (;;) {
    const ReadState state = reader.Next(max_records, alarm.Set(), batch);
    if (state == ReadState::kEnd) return drawn;
    if (state == ReadState::kWait) {
      alarm.Await(++num_waits);
      continue;
    }
    for (std::string_view record : batch.records) {
      drawn.records.emplace_back(record);
    }
    if (!batch.error.ok()) {
      drawn.records.push_back("!" + std::string(batch.error.message()));
      drawn.errors.push_back(batch.error);
    }
    drawn.positions.push_back(reader.position());
  }
}

}  // namespace penstock::io

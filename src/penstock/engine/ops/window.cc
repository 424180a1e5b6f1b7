#include "penstock/engine/ops/window.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "penstock/base/status.h"
#include "penstock/data/builder.h"
#include "penstock/data/composite.h"
#include "penstock/data/nested.h"
#include "penstock/data/stack.h"

namespace penstock::engine {
namespace {

// Pulls of the input before others get their turn.
constexpr int kMaxPulls = 64;

struct WindowConfig {
  int64_t size = 1;
  int64_t shift = 1;
  int64_t stride = 1;
  bool drop_remainder = false;
  // Columns of each dataset: tensors of one value stay together.
  std::vector<int> columns;
};

class WindowStream final : public Stream {
 public:
  WindowStream(const Scope& scope, const OpInfo& info, WindowConfig config,
               std::unique_ptr<Stream> input)
      : Stream(StatsOf(scope, info)),
        run_(scope.run),
        is_row_exact_(scope.run->options.is_row_exact),
        info_(info),
        config_(std::move(config)),
        input_(std::move(input)),
        reservation_(scope.run->environment.memory) {}

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    ChunkBuilder out;
    for (int pulls = 0; out.rows() < request.max_rows;) {
      const int64_t needed = start_ + Span();
      if (held_rows_ < needed && !has_ended_) {
        if (out.rows() > 0 && is_row_exact_) break;
        if (++pulls > kMaxPulls) {
          if (out.rows() > 0) break;
          return Yield(request);
        }
        const int64_t windows = request.max_rows - out.rows();
        PENSTOCK_ASSIGN_OR_RETURN(const bool is_ready,
                                  Read(needed - held_rows_, windows, request));
        if (!is_ready) {
          if (out.rows() > 0) break;
          return Pull::Blocked();
        }
        continue;
      }
      const bool is_full = held_rows_ >= needed;
      const bool is_stitched = run_->part_ops.stitch == info_.id;
      if (start_ >= held_rows_ ||
          (!is_full && config_.drop_remainder && !is_stitched)) {
        start_ = std::max(start_, held_rows_);  // the end stays the end
        if (out.rows() > 0) break;
        return Pull::End();
      }
      if (!is_full && is_stitched) {
        if (out.rows() > 0) break;
        if (HandOver()) return Pull::End();
      }
      out.Append(MakeWindow(), 0, 1);
      start_ += config_.shift;
      PENSTOCK_RETURN_IF_ERROR(DropBefore());
    }
    return Pull::Rows(out.Build());
  }

  void DoSave(WireWriter& writer) const override {
    int64_t first = 0;
    for (const Held& held : held_) {
      if (start_ < first + held.chunk.rows) {
        return SaveLater(writer, held.position, start_ - first);
      }
      first += held.chunk.rows;
    }
    WireWriter position;
    input_->Save(position);
    SaveLater(writer, position.bytes(), start_ - held_rows_);
  }

  absl::Status DoRestore(WireReader& reader) override {
    return input_->Restore(reader);
  }

 private:
  struct Held {
    Chunk chunk;
    std::string position;  // of the input before it
  };

  // Elements from a window's first to its last.
  int64_t Span() const { return (config_.size - 1) * config_.stride + 1; }

  // Pulls once; false: not yet.
  absl::StatusOr<bool> Read(int64_t needed, int64_t windows,
                            const Request& request) {
    int64_t wanted = needed;
    if (!is_row_exact_ && config_.shift < kMaxChunkRows) {
      wanted += std::min(windows - 1, kMaxChunkRows) * config_.shift;
    }
    WireWriter position;
    input_->Save(position);
    PENSTOCK_ASSIGN_OR_RETURN(
        Pull pull,
        input_->Next({std::min(wanted, kMaxChunkRows), request.waker}));
    if (pull.is_blocked()) return false;
    if (pull.is_end()) {
      has_ended_ = true;
      return true;
    }
    held_rows_ += pull.chunk.rows;
    held_bytes_ += pull.chunk.NumBytes();
    held_.push_back({std::move(pull.chunk), position.Take()});
    PENSTOCK_RETURN_IF_ERROR(DropBefore());
    return true;
  }

  // Lets go of chunks that end before the next window.
  absl::Status DropBefore() {
    while (!held_.empty() && held_.front().chunk.rows <= start_) {
      const Chunk& chunk = held_.front().chunk;
      start_ -= chunk.rows;
      held_rows_ -= chunk.rows;
      held_bytes_ -= chunk.NumBytes();
      held_.pop_front();
    }
    return info_.Located(reservation_.Resize(held_bytes_));
  }

  // Puts the rows that are left where they are wanted. They stay held: the
  // position is the one before them. False: they do not go together.
  bool HandOver() const {
    ChunkBuilder loose;
    int64_t begin = start_;
    for (const Held& held : held_) {
      if (!loose.Fits(held.chunk)) return false;
      loose.Append(held.chunk, begin, held.chunk.rows - begin);
      begin = 0;
    }
    run_->loose.Set(loose.Build());
    return true;
  }

  // The elements at start_, start_ + stride, …, as one row.
  Chunk MakeWindow() const {
    ChunkBuilder builder;
    int64_t first = 0;
    int64_t next = start_;
    int64_t left = config_.size;
    const Chunk* kind = nullptr;    // of the first rows
    const Chunk* misfit = nullptr;  // other ranks than theirs
    for (const Held& held : held_) {
      const int64_t end = first + held.chunk.rows;
      if (next < end && left > 0) {
        if (!builder.Fits(held.chunk)) {
          misfit = &held.chunk;
          break;
        }
        if (kind == nullptr) kind = &held.chunk;
        const int source = builder.AddSource(held.chunk);
        if (config_.stride == 1) {
          const int64_t rows = std::min(left, end - next);
          builder.Append(source, next - first, rows);
          next += rows;
          left -= rows;
        }
        while (next < end && left > 0) {
          builder.Append(source, next - first, 1);
          next += config_.stride;
          --left;
        }
      }
      first = end;
    }
    const Chunk rows = builder.Build();
    Chunk window;
    if (misfit != nullptr) {
      window = Failed(info_.Located(UnequalRanks("window", *kind, *misfit)));
    } else if (!rows.errors.empty()) {
      window = Failed(rows.errors[0].status);
    } else {
      window = Datasets(rows);
    }
    if (rows.rows > 0) window.lineage = GroupLineage(rows, rows.rows);
    return window;
  }

  Chunk Failed(const absl::Status& status) const {
    return ErrorChunk(status, PlaceholderColumns(info_.leaves, 1));
  }

  Chunk Datasets(const Chunk& rows) const {
    Chunk window;
    window.rows = 1;
    auto column = rows.columns.begin();
    for (const int columns : config_.columns) {
      Chunk dataset;
      dataset.rows = rows.rows;
      dataset.columns.assign(column, column + columns);
      column += columns;
      window.columns.push_back(EncodeNested({dataset}));
    }
    return window;
  }

  const std::shared_ptr<Run> run_;
  const bool is_row_exact_;
  const OpInfo& info_;
  const WindowConfig config_;
  const std::unique_ptr<Stream> input_;
  Reservation reservation_;
  std::deque<Held> held_;
  int64_t held_rows_ = 0;
  int64_t held_bytes_ = 0;
  // Of the next window among the held rows; may be beyond them.
  int64_t start_ = 0;
  bool has_ended_ = false;  // the input
};

}  // namespace

OperatorOr MakeWindow(const plan::Window& spec, OperatorPtr input,
                      OpContext& context) {
  const OpInfo& info = *context.info;
  WindowConfig common;
  common.drop_remainder = spec.drop_remainder();
  for (const Part& part : PartsOf(context.input_specs[0])) {
    common.columns.push_back(part.columns);
  }
  return MakeOperator(
      [spec, common, &info, input](const Scope& scope) -> StreamOr {
        WindowConfig config = common;
        PENSTOCK_ASSIGN_OR_RETURN(
            config.size, IntegerOf(spec.size(), scope, "window.size", 1));
        PENSTOCK_ASSIGN_OR_RETURN(
            config.shift, IntegerOf(spec.shift(), scope, "window.shift", 1));
        PENSTOCK_ASSIGN_OR_RETURN(
            config.stride, IntegerOf(spec.stride(), scope, "window.stride", 1));
        int64_t span;
        if (__builtin_mul_overflow(config.size, config.stride, &span) ||
            span > INT64_MAX / 4 || config.shift > INT64_MAX / 4) {
          return absl::InvalidArgumentError(
              "a window must span less than 2^61 elements; got more");
        }
        PENSTOCK_ASSIGN_OR_RETURN(auto stream, input->Start(scope));
        return std::make_unique<WindowStream>(scope, info, std::move(config),
                                              std::move(stream));
      });
}

}  // namespace penstock::engine

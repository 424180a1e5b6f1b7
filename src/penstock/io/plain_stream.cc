#include "penstock/io/plain_stream.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/clock.h"
#include "penstock/base/cpu_clock.h"
#include "penstock/base/mutex.h"
#include "penstock/base/status.h"

namespace penstock::io {
namespace {

// Sizes of first reads.
constexpr int64_t kPhases = 8;

// One block on its way from storage.
struct Read {
  std::shared_ptr<char> memory;
  int64_t offset = 0;
  size_t num_bytes = 0;
  bool is_large = false;
  // Unset until the read is done.
  std::optional<absl::StatusOr<size_t>> result;
};

// Shared by the stream and the reads under way, so that either may go first.
struct Shared {
  explicit Shared(const ByteStreamOptions& options)
      : stats(options.stats != nullptr ? options.stats
                                       : std::make_shared<IoStats>()),
        large_reads(options.large_reads) {}

  const std::shared_ptr<IoStats> stats;
  const std::shared_ptr<LargeReads> large_reads;
  Mutex mutex;
  bool is_dropped ABSL_GUARDED_BY(mutex) = false;
  std::function<void()> wake ABSL_GUARDED_BY(mutex);
  std::deque<std::shared_ptr<Read>> reads ABSL_GUARDED_BY(mutex);
};

absl::StatusOr<size_t> Timed(IoStats& stats, File& file, const Read& read) {
  const int64_t start = SteadyClock().NowNanos();
  const int64_t cpu = ThreadCpuNanos();
  absl::StatusOr<size_t> result =
      file.ReadAt(read.offset, read.memory.get(), read.num_bytes);
  stats.cpu_nanos += ThreadCpuNanos() - cpu;
  stats.nanos += SteadyClock().NowNanos() - start;
  return result;
}

absl::StatusOr<size_t> TimedAlone(LargeReads& large, IoStats& stats, File& file,
                                  const Read& read) {
  {
    MutexLock lock(&large.mutex);
    const uint64_t turn = large.begun++;
    while (large.done != turn) large.changed.Wait(&large.mutex);
  }
  absl::StatusOr<size_t> result = Timed(stats, file, read);
  MutexLock lock(&large.mutex);
  ++large.done;
  large.changed.SignalAll();
  return result;
}

void Perform(Shared& shared, File& file, const std::shared_ptr<Read>& read) {
  {
    MutexLock lock(&shared.mutex);
    if (shared.is_dropped) return;
  }
  absl::StatusOr<size_t> result =
      read->is_large && shared.large_reads != nullptr
          ? TimedAlone(*shared.large_reads, *shared.stats, file, *read)
          : Timed(*shared.stats, file, *read);
  shared.stats->reads += 1;
  if (result.ok()) shared.stats->bytes += *result;
  std::function<void()> wake;
  {
    MutexLock lock(&shared.mutex);
    read->result = std::move(result);
    const bool is_next = !shared.reads.empty() && shared.reads.front() == read;
    if (is_next) wake.swap(shared.wake);
  }
  if (wake) wake();
}

class PlainStream final : public ByteStream {
 public:
  PlainStream(std::unique_ptr<File> file, std::string path,
              int64_t start_offset, std::shared_ptr<BlockPool> block_pool,
              const ByteStreamOptions& options)
      : file_(std::move(file)),
        path_(std::move(path)),
        block_pool_(std::move(block_pool)),
        io_pool_(options.io_pool),
        read_ahead_(std::max<size_t>(1, options.read_ahead)),
        read_ahead_now_(options.read_ahead_now),
        read_bytes_now_(options.read_bytes_now),
        shared_(std::make_shared<Shared>(options)),
        offset_(start_offset),
        ahead_offset_(start_offset) {
    const auto size = static_cast<double>(file_->size());
    shared_->stats->files += 1;
    shared_->stats->file_bytes += size;
    shared_->stats->file_bytes_squared += size * size;
    if (options.large_reads != nullptr) {
      phase_ = 1 + options.large_reads->streams++ % kPhases;
    }
    if (options.reads_when_opened) ReadAhead();
  }

  ~PlainStream() override {
    std::function<void()> dropped;
    MutexLock lock(&shared_->mutex);
    shared_->is_dropped = true;
    dropped.swap(shared_->wake);
    shared_->reads.clear();
  }

  absl::StatusOr<std::optional<Block>> Next(
      std::function<void()> wake) override {
    if (!error_.ok()) return error_;
    absl::StatusOr<std::optional<Block>> block = NextBlock(std::move(wake));
    if (!block.ok()) error_ = block.status();
    return block;
  }

  std::optional<int64_t> decoded_size() const override { return file_->size(); }

 private:
  size_t BlockBytesAt(int64_t offset) const {
    return static_cast<size_t>(
        std::min<int64_t>(file_->size() - offset,
                          static_cast<int64_t>(block_pool_->block_bytes())));
  }

  // Of a read that goes to storage.
  size_t ReadBytesAt(int64_t offset) const {
    const int64_t now = read_bytes_now_ == nullptr
                            ? 0
                            : read_bytes_now_->load(std::memory_order_relaxed);
    const int64_t most =
        std::max(std::min(now, kMaxReadBytes) * phase_ / kPhases,
                 static_cast<int64_t>(block_pool_->block_bytes()));
    return static_cast<size_t>(std::min(file_->size() - offset, most));
  }

  absl::StatusOr<std::optional<Block>> NextBlock(std::function<void()> wake) {
    if (offset_ >= file_->size()) return Block();
    if (ahead_offset_ == offset_) {
      PENSTOCK_ASSIGN_OR_RETURN(std::optional<Block> block, TryRead());
      if (block.has_value()) return block;
      Submit();
    }
    PENSTOCK_ASSIGN_OR_RETURN(std::optional<Block> block,
                              TakeRead(std::move(wake)));
    ReadAhead();
    return block;
  }

  absl::StatusOr<std::optional<Block>> TryRead() {
    const size_t num_bytes = BlockBytesAt(offset_);
    std::shared_ptr<char> memory = block_pool_->Allocate(num_bytes);
    PENSTOCK_ASSIGN_OR_RETURN(
        const std::optional<size_t> n,
        file_->TryReadAt(offset_, memory.get(), num_bytes));
    if (!n.has_value()) return std::nullopt;
    if (*n == 0) return Shrank(offset_);
    shared_->stats->cached_bytes += *n;
    offset_ += static_cast<int64_t>(*n);
    ahead_offset_ = offset_;
    const char* bytes = memory.get();
    return Block{.owner = std::move(memory), .bytes = {bytes, *n}};
  }

  absl::StatusOr<std::optional<Block>> TakeRead(std::function<void()> wake) {
    std::shared_ptr<Read> read;
    {
      MutexLock lock(&shared_->mutex);
      read = shared_->reads.front();
      if (!read->result.has_value()) {
        shared_->wake.swap(wake);
        return std::nullopt;
      }
      shared_->reads.pop_front();
    }
    PENSTOCK_RETURN_IF_ERROR(read->result->status());
    const size_t n = **read->result;
    offset_ = read->offset + static_cast<int64_t>(n);
    if (n < read->num_bytes) return Shrank(offset_);
    const char* bytes = read->memory.get();
    return Block{.owner = std::move(read->memory), .bytes = {bytes, n}};
  }

  size_t MaxReads() const {
    const int64_t now = read_ahead_now_ == nullptr
                            ? 0
                            : read_ahead_now_->load(std::memory_order_relaxed);
    return now > 0 ? static_cast<size_t>(now) : read_ahead_;
  }

  // Keeps storage busy, unless the kernel has read ahead of us already: then
  // the reads under way run out and the page cache serves again.
  void ReadAhead() {
    while (ahead_offset_ < file_->size()) {
      {
        MutexLock lock(&shared_->mutex);
        if (shared_->reads.size() >= MaxReads()) break;
      }
      char probe;
      const auto last = static_cast<int64_t>(ReadBytesAt(ahead_offset_)) - 1;
      const absl::StatusOr<std::optional<size_t>> n =
          file_->TryReadAt(ahead_offset_ + last, &probe, 1);
      // An error is left to the read of that block, to be told in its place.
      if (n.ok() && n->has_value()) break;
      Submit();
    }
  }

  void Submit() {
    auto read = std::make_shared<Read>();
    read->offset = ahead_offset_;
    read->num_bytes = ReadBytesAt(ahead_offset_);
    read->is_large = read->num_bytes > block_pool_->block_bytes();
    phase_ = kPhases;
    read->memory = block_pool_->Allocate(read->num_bytes);
    ahead_offset_ += static_cast<int64_t>(read->num_bytes);
    {
      MutexLock lock(&shared_->mutex);
      shared_->reads.push_back(read);
    }
    shared_->stats->under_way += 1;
    io_pool_->Submit([shared = shared_, file = file_, read] {
      Perform(*shared, *file, read);
      shared->stats->under_way -= 1;
    });
  }

  absl::Status Shrank(int64_t end) const {
    return absl::DataLossError(absl::StrCat(
        "expected ", file_->size(), " bytes, as when the file was opened; it ",
        "ends at byte ", end, " now: ", path_));
  }

  const std::shared_ptr<File> file_;
  const std::string path_;
  const std::shared_ptr<BlockPool> block_pool_;
  IoPool* const io_pool_;
  const size_t read_ahead_;
  const std::shared_ptr<const std::atomic<int64_t>> read_ahead_now_;
  const std::shared_ptr<const std::atomic<int64_t>> read_bytes_now_;
  const std::shared_ptr<Shared> shared_;

  int64_t phase_ = kPhases;  // of kPhases: the size of the next large read
  int64_t offset_;           // of the first byte not yet returned
  int64_t ahead_offset_;     // of the first byte not yet being read
  absl::Status error_;
};

}  // namespace

std::unique_ptr<ByteStream> MakePlainStream(
    std::unique_ptr<File> file, std::string path, int64_t start_offset,
    std::shared_ptr<BlockPool> block_pool, const ByteStreamOptions& options) {
  return std::make_unique<PlainStream>(std::move(file), std::move(path),
                                       start_offset, std::move(block_pool),
                                       options);
}

}  // namespace penstock::io

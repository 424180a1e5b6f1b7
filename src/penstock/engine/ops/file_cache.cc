#include "penstock/engine/ops/file_cache.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "penstock/base/hash.h"
#include "penstock/base/status.h"
#include "penstock/data/builder.h"
#include "penstock/data/nested.h"
#include "penstock/engine/io_call.h"
#include "penstock/io/tfrecord_writer.h"
#include "penstock/plan/builder.h"
#include "penstock/plan/convert.h"

namespace penstock::engine {
namespace {

// Of a record, at least, but the last.
constexpr int64_t kRecordRows = 1024;
constexpr int64_t kRecordBytes = 1 << 18;
// Records are written together, and wait while that is under way.
constexpr int64_t kWriteBytes = 1 << 20;
constexpr int64_t kMaxWaitingBytes = 8 << 20;
// How long a lock is waited for, on an I/O thread.
constexpr int kLockTries = 50;
constexpr auto kLockPause = std::chrono::milliseconds(20);
// Chunks that are made again before others get their turn.
constexpr int kMaxRefilledChunks = 64;

struct FileCacheConfig {
  std::string filename;
  std::optional<int64_t> finite_rows;
  OperatorPtr input;
  OperatorPtr replay;  // reads the file that is bound
  // The same of a share's file, whose rows have their lineage behind them;
  // null: shares are not kept.
  OperatorPtr share_replay;
};

// Of the file that keeps the share that the run is of; empty: it is of none.
std::string ShareFile(const FileCacheConfig& config, const Run& run) {
  if (config.share_replay == nullptr || !run.options.part.has_value()) {
    return "";
  }
  const RunPart& part = *run.options.part;
  if (part.kept_by == 0) return "";
  uint64_t word = part.kept_by;
  for (const int64_t each :
       {part.begin, part.end, part.stride, part.pieces, part.piece}) {
    word = Combine(word, static_cast<uint64_t>(each));
  }
  return absl::StrFormat("%s.%016x", config.filename, word);
}

// Rows with their lineages as one more column, and back.
Chunk WithLineageColumn(const Chunk& chunk) {
  Chunk out = chunk;
  out.columns.push_back(
      Column::Dense(DType::kInt64, {}, chunk.rows, chunk.lineage));
  out.lineage = Buffer();
  return out;
}

void TakeLineage(Chunk& chunk) {
  const Column words = std::move(chunk.columns.back());
  chunk.columns.pop_back();
  chunk.lineage = Buffer::Allocate(chunk.rows * sizeof(uint64_t));
  for (int64_t row = 0; row < chunk.rows; ++row) {
    chunk.lineage.MutableAs<uint64_t>()[row] = *words.Row<uint64_t>(row);
  }
}

// A file being written. Shared with the I/O thread that does it; one at a time.
class CacheFile final {
 public:
  // The run keeps what files are reached by.
  CacheFile(std::string filename, std::shared_ptr<const Run> run)
      : run_(std::move(run)),
        filename_(std::move(filename)),
        files_(run_->environment.files) {}

  ~CacheFile() {
    if (writer_ == nullptr) return;
    // What is left of an unfinished pass.
    writer_.reset();
    files_->Remove(Temporary()).IgnoreError();
  }

  // False: the file is there already.
  absl::StatusOr<bool> Open() {
    PENSTOCK_ASSIGN_OR_RETURN(const bool is_there, files_->Exists(Final()));
    if (is_there) return false;
    absl::StatusOr<std::unique_ptr<io::FileLock>> lock = Lock();
    if (absl::IsAlreadyExists(lock.status())) {
      return absl::AlreadyExistsError(absl::StrCat(
          "a cache file must have one writer at a time; another iterator is "
          "writing ",
          Final(),
          "\n  Wait for it, or give this pipeline a file of its own."));
    }
    PENSTOCK_RETURN_IF_ERROR(lock.status());
    lock_ = *std::move(lock);
    // Another may have finished between the two.
    PENSTOCK_ASSIGN_OR_RETURN(const bool is_there_now, files_->Exists(Final()));
    if (is_there_now) {
      lock_.reset();
      return false;
    }
    PENSTOCK_ASSIGN_OR_RETURN(writer_,
                              io::CreateTfRecordWriter(*files_, Temporary()));
    return true;
  }

  absl::Status Write(const std::vector<Column>& records) {
    for (const Column& record : records) {
      PENSTOCK_RETURN_IF_ERROR(
          writer_->Write(record.Row<StringRef>(0)->view()));
    }
    return absl::OkStatus();
  }

  absl::Status Finish() {
    PENSTOCK_RETURN_IF_ERROR(writer_->Close());
    PENSTOCK_RETURN_IF_ERROR(files_->Rename(Temporary(), Final()));
    writer_.reset();
    files_->Remove(filename_ + ".lock").IgnoreError();
    lock_.reset();
    return absl::OkStatus();
  }

 private:
  // An iterator that its user has let go of may take a moment to end.
  absl::StatusOr<std::unique_ptr<io::FileLock>> Lock() const {
    for (int tries = 1;; ++tries) {
      absl::StatusOr<std::unique_ptr<io::FileLock>> lock =
          files_->Lock(filename_ + ".lock");
      if (!absl::IsAlreadyExists(lock.status()) || tries == kLockTries) {
        return lock;
      }
      std::this_thread::sleep_for(kLockPause);
    }
  }
  std::string Final() const { return filename_ + ".penstock"; }
  std::string Temporary() const { return filename_ + ".partial"; }

  const std::shared_ptr<const Run> run_;
  const std::string filename_;
  io::FileSystem* const files_;
  std::unique_ptr<io::FileLock> lock_;
  std::unique_ptr<io::TfRecordWriter> writer_;
};

class FileCacheStream final : public Stream {
 public:
  FileCacheStream(const Scope& scope, const OpInfo& info,
                  std::shared_ptr<const FileCacheConfig> config)
      : Stream(StatsOf(scope, info)),
        scope_(scope),
        info_(info),
        config_(std::move(config)),
        share_file_(ShareFile(*config_, *scope.run)) {}

  ~FileCacheStream() override {
    if (file_ == nullptr || kept_ == 0 || is_finishing_ || is_share()) return;
    if (scope_.run->environment.warn) {
      scope_.run->environment.warn(absl::StrCat(
          info_.name, ": ", kept_,
          " rows of an unfinished pass are discarded; the next pass begins "
          "anew (put take() before cache(), not after it)"));
    }
  }

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    if (stream_ == nullptr) {
      PENSTOCK_ASSIGN_OR_RETURN(const bool is_open, Open(request));
      if (!is_open) return Pull::Blocked();
    }
    for (int chunks = 0; given_ < refill_until_; ++chunks) {
      if (chunks == kMaxRefilledChunks) return Yield(request);
      PENSTOCK_ASSIGN_OR_RETURN(
          Pull pull, PassAndKeep({refill_until_ - given_, request.waker}));
      if (!pull.has_rows()) return pull;
    }
    return PassAndKeep(request);
  }

  void DoSave(WireWriter& writer) const override {
    writer.Varint(std::max(given_, refill_until_));
  }
  absl::Status DoRestore(WireReader& reader) override {
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t given, reader.Varint());
    given_ = static_cast<int64_t>(given);
    return absl::OkStatus();
  }

 private:
  struct Opened {
    absl::Status status;
    std::shared_ptr<CacheFile> file;  // null: there is one to read
  };
  bool is_share() const { return !share_file_.empty(); }

  // Finds out whether the file is there. False: not yet.
  absl::StatusOr<bool> Open(const Request& request) {
    const Environment& environment = scope_.run->environment;
    std::optional<Opened> opened = opening_.Poll(
        *environment.io_pool, request.waker,
        [filename = is_share() ? share_file_ : config_->filename,
         run = std::shared_ptr<const Run>(scope_.run)]() -> Opened {
          auto file = std::make_shared<CacheFile>(filename, run);
          const absl::StatusOr<bool> is_mine = file->Open();
          if (!is_mine.ok()) return {is_mine.status(), nullptr};
          return {absl::OkStatus(), *is_mine ? file : nullptr};
        });
    if (!opened.has_value()) return false;
    // Somebody else computes the same share: who is first keeps it.
    const bool is_anothers =
        is_share() && absl::IsAlreadyExists(opened->status);
    if (!opened->status.ok() && !is_anothers) {
      return info_.Located(opened->status);
    }
    file_ = std::move(opened->file);
    is_replay_ = file_ == nullptr && !is_anothers;
    if (is_replay_) {
      PENSTOCK_ASSIGN_OR_RETURN(stream_, StartReplay());
    } else {
      PENSTOCK_ASSIGN_OR_RETURN(stream_, config_->input->Start(scope_));
    }
    if (file_ == nullptr) {
      stream_->SkipRows(given_);
    } else {
      refill_until_ = std::exchange(given_, 0);
    }
    return true;
  }

  StreamOr StartReplay() const {
    Scope scope = scope_;
    const std::string filename =
        (is_share() ? share_file_ : config_->filename) + ".penstock";
    scope.bound = std::make_shared<const std::vector<Column>>(
        std::vector<Column>{MakeStringColumn({filename})});
    return (is_share() ? config_->share_replay : config_->replay)->Start(scope);
  }

  absl::StatusOr<Pull> PassAndKeep(const Request& request) {
    if (file_ == nullptr) return Pass(request);
    if (is_writing_ && (is_finishing_ || waiting_bytes_ > kMaxWaitingBytes)) {
      PENSTOCK_ASSIGN_OR_RETURN(const bool is_done, PollWrite(request));
      if (!is_done) return Pull::Blocked();
    }
    if (file_ == nullptr) return Pull::End();  // finished
    PENSTOCK_ASSIGN_OR_RETURN(Pull pull, Pass(request));
    if (pull.is_blocked()) return pull;
    if (pull.is_end()) {
      PENSTOCK_ASSIGN_OR_RETURN(const bool is_done, Finish(request));
      return is_done ? Pull::End() : Pull::Blocked();
    }
    if (!pull.chunk.errors.empty() ||
        (is_share() && !pull.chunk.has_lineage())) {
      file_ = nullptr;  // nothing is kept of such a pass
      return pull;
    }
    Keep(pull.chunk);
    if (!is_share() && config_->finite_rows == kept_) {
      // Nobody may ask for the end: it is written without being waited for.
      PENSTOCK_RETURN_IF_ERROR(Finish(request).status());
    } else if (waiting_bytes_ >= kWriteBytes) {
      PENSTOCK_RETURN_IF_ERROR(PollWrite(request).status());
    }
    return pull;
  }

  absl::StatusOr<Pull> Pass(const Request& request) {
    PENSTOCK_ASSIGN_OR_RETURN(Pull pull, stream_->Next(request));
    if (!pull.has_rows()) return pull;
    if (!is_share()) {
      pull.chunk.lineage = SourceLineage(scope_, given_, pull.chunk.rows);
    } else if (is_replay_) {
      TakeLineage(pull.chunk);
    }
    given_ += pull.chunk.rows;
    if (is_replay_) {
      stats()->cache_hits.fetch_add(pull.chunk.rows, std::memory_order_relaxed);
    }
    return pull;
  }

  void Keep(const Chunk& given) {
    const Chunk chunk = is_share() ? WithLineageColumn(given) : given;
    if (!fresh_.Fits(chunk)) Settle();
    fresh_.Append(chunk, 0, chunk.rows);
    const int64_t bytes = chunk.NumBytes();
    fresh_bytes_ += bytes;
    kept_ += chunk.rows;
    stats()->cache_misses.fetch_add(chunk.rows, std::memory_order_relaxed);
    stats()->cache_bytes.fetch_add(bytes, std::memory_order_relaxed);
    if (fresh_.rows() >= kRecordRows || fresh_bytes_ >= kRecordBytes) Settle();
  }

  // Makes one record of the rows that came last.
  void Settle() {
    if (fresh_.rows() == 0) return;
    waiting_.push_back(EncodeNested({fresh_.Build()}));
    waiting_bytes_ += fresh_bytes_;
    fresh_bytes_ = 0;
  }

  // Writes what waits, if nothing is being written. True: nothing is any more.
  absl::StatusOr<bool> PollWrite(const Request& request) {
    std::function<absl::Status()> write;
    if (!is_writing_) {
      write = [file = file_, records = std::move(waiting_),
               is_last = is_finishing_]() -> absl::Status {
        PENSTOCK_RETURN_IF_ERROR(file->Write(records));
        return is_last ? file->Finish() : absl::OkStatus();
      };
      waiting_.clear();
      waiting_bytes_ = 0;
      is_writing_ = true;
      is_last_ = is_finishing_;
    }
    std::optional<absl::Status> status = writing_.Poll(
        *scope_.run->environment.io_pool, request.waker, std::move(write));
    if (!status.has_value()) return false;
    is_writing_ = false;
    if (!status->ok()) return info_.Located(*status);
    if (is_last_) file_ = nullptr;
    return true;
  }

  // True once the file is whole and has its name.
  absl::StatusOr<bool> Finish(const Request& request) {
    Settle();
    is_finishing_ = true;
    while (file_ != nullptr) {
      PENSTOCK_ASSIGN_OR_RETURN(const bool is_done, PollWrite(request));
      if (!is_done) return false;
    }
    return true;
  }

  const Scope scope_;
  const OpInfo& info_;
  const std::shared_ptr<const FileCacheConfig> config_;
  const std::string share_file_;
  IoCall<Opened> opening_;
  std::unique_ptr<Stream> stream_;  // of the input, or of the file
  // Null where the file is only read, and once it is finished.
  std::shared_ptr<CacheFile> file_;
  bool is_replay_ = false;
  int64_t given_ = 0;
  int64_t refill_until_ = 0;

  ChunkBuilder fresh_;  // rows that are in no record yet
  int64_t fresh_bytes_ = 0;
  int64_t kept_ = 0;             // rows in all
  std::vector<Column> waiting_;  // records to be written
  int64_t waiting_bytes_ = 0;
  IoCall<absl::Status> writing_;
  bool is_writing_ = false;
  bool is_last_ = false;  // of what is being written
  bool is_finishing_ = false;
};

plan::TensorSpec Text() {
  plan::TensorSpec spec;
  spec.set_dtype(plan::STRING);
  spec.mutable_shape();
  return spec;
}

// What reads the file whose name is bound: its records, and each one's rows.
absl::StatusOr<plan::Plan> ReplayPlan(const ElementSpec& element) {
  const plan::BuildContext context = {.random = [] { return uint64_t{0}; }};
  plan::Node rows;
  rows.mutable_nested_rows()->mutable_rows()->set_bound(0);
  *rows.mutable_nested_rows()->mutable_spec() = plan::ToProto(element);
  PENSTOCK_ASSIGN_OR_RETURN(plan::Plan record,
                            plan::Append({}, rows, {Text()}, context));
  plan::Node read;
  read.mutable_read_files()->mutable_files()->set_bound(0);
  read.mutable_read_files()->mutable_tf_record();
  PENSTOCK_ASSIGN_OR_RETURN(plan::Plan records,
                            plan::Append({}, read, {Text()}, context));
  plan::Node all;
  plan::Function* function = all.mutable_flat_map()->mutable_function();
  function->set_name("rows");
  function->add_steps()->set_argument(0);
  function->add_outputs(0);
  *function->mutable_dataset() = std::move(record);
  return plan::Append({std::move(records)}, all, {Text()}, context);
}

}  // namespace

OperatorOr MakeFileCache(const plan::Cache& spec,
                         std::optional<int64_t> finite_rows, OperatorPtr input,
                         OpContext& context) {
  const OpInfo& info = *context.info;
  const ElementSpec& element = context.input_specs[0];
  PENSTOCK_ASSIGN_OR_RETURN(const plan::Plan replay, ReplayPlan(element));
  FileCacheConfig config;
  config.filename = spec.filename();
  config.finite_rows = finite_rows;
  config.input = std::move(input);
  PENSTOCK_ASSIGN_OR_RETURN(config.replay, context.build_subplan(replay));
  if (spec.in_shares()) {
    const ElementSpec with_lineage = ElementSpec::Tuple(
        {element, ElementSpec::Tensor(TensorSpec::Scalar(DType::kInt64))});
    PENSTOCK_ASSIGN_OR_RETURN(const plan::Plan of_share,
                              ReplayPlan(with_lineage));
    PENSTOCK_ASSIGN_OR_RETURN(config.share_replay,
                              context.build_subplan(of_share));
  }
  auto shared = std::make_shared<const FileCacheConfig>(std::move(config));
  return MakeOperator([shared, &info](const Scope& scope) -> StreamOr {
    return std::make_unique<FileCacheStream>(scope, info, shared);
  });
}

}  // namespace penstock::engine

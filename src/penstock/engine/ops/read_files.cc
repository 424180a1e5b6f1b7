#include "penstock/engine/ops/read_files.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "penstock/base/hash.h"
#include "penstock/base/status.h"
#include "penstock/engine/io_call.h"
#include "penstock/io/fixed_length_reader.h"
#include "penstock/io/record_reader.h"
#include "penstock/io/tar_reader.h"
#include "penstock/io/text_line_reader.h"
#include "penstock/io/tfrecord_reader.h"
#include "penstock/io/whole_file_reader.h"

namespace penstock::engine {
namespace {

using ReaderOr = absl::StatusOr<std::unique_ptr<io::RecordReader>>;
using OpenReader = std::function<ReaderOr(
    const std::string& path, const io::RecordReaderOptions& options)>;

// Files that may be opened before their turn.
constexpr int64_t kMaxAhead = 64;

// Of a list, every so many from the first on.
struct FileList {
  std::vector<std::string> names;
  size_t first = 0;
  size_t stride = 1;
};

class ReadFilesStream final : public Stream {
 public:
  ReadFilesStream(const Scope& scope, const OpInfo& info, FileList files,
                  io::RecordReaderOptions options, OpenReader open)
      : Stream(StatsOf(scope, info)),
        scope_(scope),
        info_(info),
        files_(std::move(files.names)),
        first_(files.first),
        stride_(files.stride),
        options_(std::move(options)),
        open_(std::move(open)) {
    options_.stream.stats = stats()->io;
    const auto& knobs = scope.run->shared_knobs;
    options_.stream.read_ahead_now = {knobs, &(*knobs)[info.id].read_depth};
    options_.stream.read_bytes_now = {knobs, &(*knobs)[info.id].read_bytes};
    options_.stream.reads_when_opened = true;
    stats()->total.store(files_.size(), std::memory_order_relaxed);
    io::IoStats& io = *options_.stream.stats;
    const int64_t sources = ++io.sources;
    int64_t most = io.most_sources;
    while (sources > most &&
           !io.most_sources.compare_exchange_weak(most, sources)) {
    }
  }

  ~ReadFilesStream() override { --options_.stream.stats->sources; }

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    while (file_ < files_.size()) {
      if (reader_ == nullptr) {
        if (opening_.empty()) opening_.emplace_back();
        std::optional<ReaderOr> reader =
            Poll(opening_.front(), file_, start_, request.waker);
        if (!reader.has_value()) {
          OpenAhead(file_, request.waker);
          return Pull::Blocked();
        }
        opening_.pop_front();
        if (!reader->ok()) {
          Pull error = Rows({}, reader->status());
          NextFile();
          return error;
        }
        reader_ = **std::move(reader);
        // A piece of a file begins with any of its records.
        ordinal_ = std::max(ordinal_,
                            static_cast<uint64_t>(reader_->position().ordinal));
        OpenAhead(file_ + 1, request.waker);
      }
      io::RecordBatch batch;
      switch (reader_->Next(
          request.max_rows, [waker = request.waker] { waker->Wake(); },
          batch)) {
        case io::ReadState::kWait:
          return Pull::Blocked();
        case io::ReadState::kEnd:
          NextFile();
          continue;
        case io::ReadState::kReady:
          break;
      }
      absl::Status error = batch.error;
      return Rows(std::move(batch), std::move(error));
    }
    return Pull::End();
  }

  void DoSave(WireWriter& writer) const override {
    const io::RecordPosition position =
        reader_ != nullptr ? reader_->position() : start_;
    writer.Varint(file_);
    writer.Varint(position.byte_offset);
    writer.Varint(position.ordinal);
    writer.Bool(position.is_end);
    writer.Varint(ordinal_);
  }

  absl::Status DoRestore(WireReader& reader) override {
    PENSTOCK_ASSIGN_OR_RETURN(file_, reader.Varint());
    PENSTOCK_ASSIGN_OR_RETURN(start_.byte_offset, reader.Varint());
    PENSTOCK_ASSIGN_OR_RETURN(start_.ordinal, reader.Varint());
    PENSTOCK_ASSIGN_OR_RETURN(start_.is_end, reader.Bool());
    PENSTOCK_ASSIGN_OR_RETURN(ordinal_, reader.Varint());
    return absl::OkStatus();
  }

 private:
  std::optional<ReaderOr> Poll(IoCall<ReaderOr>& call, size_t file,
                               const io::RecordPosition& start,
                               const Waker& waker) {
    options_.start = start;
    return call.Poll(*options_.stream.io_pool, waker,
                     [open = open_, path = files_[file], options = options_] {
                       return open(path, options);
                     });
  }

  // Has the files from `first` on opened while others are read: one, or where
  // they are so small that their own reads do not fill the time, several.
  void OpenAhead(size_t first, const Waker& waker) {
    if (scope_.run->options.is_row_exact) return;
    const io::IoStats& io = *options_.stream.stats;
    const int64_t reads =
        std::min(KnobOr(scope_.run->knobs[info_.id].read_depth,
                        static_cast<int64_t>(options_.stream.read_ahead)),
                 kMaxAhead);
    const double small =
        static_cast<double>(reads) *
        static_cast<double>(std::max<size_t>(1, options_.stream.block_bytes));
    const auto opened = static_cast<double>(io.files);
    const bool is_small = opened > 0 && io.file_bytes < small * opened;
    const auto most = static_cast<size_t>(is_small ? reads : 1);
    while (opening_.size() < most && first + opening_.size() < files_.size()) {
      const size_t file = first + opening_.size();
      opening_.emplace_back();
      // Begins it: there is nothing to take yet.
      Poll(opening_.back(), file, {}, waker);
    }
  }

  void NextFile() {
    reader_.reset();
    start_ = {};
    ++file_;
    ordinal_ = 0;
  }

  // What the lineage of a file's rows begins with: whatever the files before it
  // hold. Of the first, as if there were no others.
  uint64_t LineageOfFile() const {
    const uint64_t file = first_ + file_ * stride_;
    return file == 0 ? scope_.lineage : Combine(scope_.lineage, ~file);
  }

  // A chunk over the batch's blocks, and the error as a row after them.
  Pull Rows(io::RecordBatch batch, absl::Status error) {
    const bool has_error = !error.ok();
    const auto records = static_cast<int64_t>(batch.records.size());
    Chunk chunk;
    chunk.rows = records + (has_error ? 1 : 0);
    Buffer refs = Buffer::Allocate(chunk.rows * sizeof(StringRef));
    StringRef* ref = refs.MutableAs<StringRef>();
    for (std::string_view record : batch.records) {
      *ref++ = StringRef{record.data(), record.size()};
    }
    if (has_error) {
      *ref = StringRef{};
      chunk.errors.push_back({records, info_.Located(error)});
    }
    Pins pins;
    for (io::Block& block : batch.blocks) {
      pins.push_back(std::move(block.owner));
    }
    chunk.columns.push_back(Column::Dense(DType::kString, {}, chunk.rows,
                                          std::move(refs), std::move(pins)));
    chunk.lineage = SourceLineage(scope_, LineageOfFile(),
                                  static_cast<int64_t>(ordinal_), chunk.rows);
    ordinal_ += chunk.rows;
    return Pull::Rows(std::move(chunk));
  }

  const Scope scope_;
  const OpInfo& info_;
  const std::vector<std::string> files_;
  const size_t first_;  // of files_ in the list that they are of
  const size_t stride_;
  io::RecordReaderOptions options_;
  const OpenReader open_;
  // Of files from file_ on, or while reader_ is open from the one after it.
  std::deque<IoCall<ReaderOr>> opening_;
  std::unique_ptr<io::RecordReader> reader_;
  size_t file_ = 0;
  io::RecordPosition start_;  // in file_, while reader_ is not open
  uint64_t ordinal_ = 0;      // of the next row of file_
};

io::Compression CompressionOf(plan::ReadFiles::Compression compression) {
  switch (compression) {
    case plan::ReadFiles::GZIP:
      return io::Compression::kGzip;
    case plan::ReadFiles::ZLIB:
      return io::Compression::kZlib;
    case plan::ReadFiles::ZSTD:
      return io::Compression::kZstd;
    default:
      return io::Compression::kNone;
  }
}

// Whether the run is of a piece of the one file that this reads (RunPart).
bool IsCut(const Run& run, const OpInfo& info) {
  if (!run.options.part.has_value() || run.options.part->pieces <= 1) {
    return false;
  }
  const int opener = run.part_ops.opener;
  if (opener < 0) return run.part_ops.source == info.id;
  return info.described.has_inside() &&
         static_cast<int>(info.described.inside()) == opener;
}

absl::StatusOr<OpenReader> OpenerOf(const plan::ReadFiles& spec,
                                    const Scope& scope, const OpInfo& info) {
  const std::shared_ptr<io::FileSystem> files = scope.run->FilesOf(info);
  switch (spec.format_case()) {
    case plan::ReadFiles::kText: {
      io::TextLineFormat format;
      if (!spec.text().field_delim().empty()) {
        format.field_delim = spec.text().field_delim()[0];
      }
      return [files, format](const std::string& path,
                             const io::RecordReaderOptions& options) {
        return io::OpenTextLineReader(*files, path, options, format);
      };
    }
    case plan::ReadFiles::kTfRecord:
      return [files](const std::string& path,
                     const io::RecordReaderOptions& options) {
        return io::OpenTfRecordReader(*files, path, options);
      };
    case plan::ReadFiles::kWhole:
      return [files](const std::string& path,
                     const io::RecordReaderOptions& options) {
        return io::OpenWholeFileReader(*files, path, options);
      };
    case plan::ReadFiles::kTar:
      return [files](const std::string& path,
                     const io::RecordReaderOptions& options) {
        return io::OpenTarReader(*files, path, options);
      };
    case plan::ReadFiles::kFixedLength: {
      const plan::ReadFiles::FixedLength& fixed = spec.fixed_length();
      io::FixedLengthFormat format;
      PENSTOCK_ASSIGN_OR_RETURN(
          format.record_bytes,
          IntegerOf(fixed.record_bytes(), scope, "record_bytes", 1));
      PENSTOCK_ASSIGN_OR_RETURN(
          format.header_bytes,
          IntegerOf(fixed.header_bytes(), scope, "header_bytes", 0));
      PENSTOCK_ASSIGN_OR_RETURN(
          format.footer_bytes,
          IntegerOf(fixed.footer_bytes(), scope, "footer_bytes", 0));
      if (IsCut(*scope.run, info)) {
        format.pieces = scope.run->options.part->pieces;
        format.piece = scope.run->options.part->piece;
      }
      return [files, format](const std::string& path,
                             const io::RecordReaderOptions& options) {
        return io::OpenFixedLengthReader(*files, path, format, options);
      };
    }
    case plan::ReadFiles::FORMAT_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("a file source has no format");
}

}  // namespace

OperatorOr MakeReadFiles(const plan::ReadFiles& spec, OpContext& context) {
  const OpInfo& info = *context.info;
  const auto large_reads = std::make_shared<io::LargeReads>();
  return MakeOperator(
      [spec, &info, large_reads](const Scope& scope) -> StreamOr {
        PENSTOCK_ASSIGN_OR_RETURN(const Column column,
                                  ValueOf(spec.files(), scope));
        const Run& run = *scope.run;
        FileList files;
        int64_t end = column.RowItems(0);
        if (run.part_ops.source == info.id) {
          const RunPart& part = *run.options.part;
          files.first = static_cast<size_t>(std::min(part.begin, end));
          files.stride = static_cast<size_t>(part.stride);
          end = std::min(part.end, end);
        }
        for (auto i = static_cast<int64_t>(files.first); i < end;
             i += static_cast<int64_t>(files.stride)) {
          files.names.emplace_back(column.Row<StringRef>(0)[i].view());
        }
        io::RecordReaderOptions options;
        options.stream.io_pool = scope.run->environment.io_pool;
        options.stream.large_reads = large_reads;
        if (spec.has_buffer_bytes())
          options.stream.block_bytes = spec.buffer_bytes();
        options.compression = CompressionOf(spec.compression());
        options.max_record_bytes = scope.run->options.max_element_bytes;
        PENSTOCK_ASSIGN_OR_RETURN(OpenReader open, OpenerOf(spec, scope, info));
        return std::make_unique<ReadFilesStream>(
            scope, info, std::move(files), std::move(options), std::move(open));
      });
}

}  // namespace penstock::engine

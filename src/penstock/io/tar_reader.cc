#include "penstock/io/tar_reader.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/base/tar.h"
#include "penstock/io/record_window.h"

namespace penstock::io {
namespace {

class TarReader final : public RecordReader {
 public:
  TarReader(std::unique_ptr<ByteStream> stream, std::string path,
            const RecordReaderOptions& options)
      : max_record_bytes_(options.max_record_bytes),
        window_(std::move(stream), std::move(path), options.start) {}

  // One sample at a time: they are large.
  ReadState Next(size_t, std::function<void()> wake,
                 RecordBatch& batch) override {
    batch.Clear();
    if (window_.position().is_end) return ReadState::kEnd;
    for (;;) {
      // Looks at all members again after a wait: there are few in a sample.
      absl::StatusOr<bool> is_whole = FindSample();
      if (!is_whole.ok()) return Fail(is_whole.status(), batch);
      // What is needed beyond the sample is at most a header.
      if ((*is_whole ? sample_end_ : needed_ - kTarBlockBytes) >
          max_record_bytes_) {
        return Fail(absl::ResourceExhaustedError(absl::StrCat(
                        "expected a sample of at most ", max_record_bytes_,
                        " bytes; found a longer one")),
                    batch);
      }
      if (*is_whole) return TakeSample(batch);
      while (window_.num_bytes() < needed_) {
        bool has_ended = false;
        if (auto state = window_.FetchFor(batch, wake, has_ended)) {
          return *state;
        }
        if (has_ended) return AtEndOfFile(batch);
      }
      window_.GrowFront(needed_);
    }
  }

  RecordPosition position() const override { return window_.position(); }

 private:
  // Whether the front has all of a sample, and the header behind it or the
  // archive's end; then sample_end_ is set. Else `needed_` is.
  absl::StatusOr<bool> FindSample() {
    const std::string_view front = window_.front();
    has_file_ = false;
    sample_end_ = 0;
    is_last_ = false;
    for (;;) {
      TarMember member;
      PENSTOCK_ASSIGN_OR_RETURN(const TarState state,
                                ReadTarMember(front, sample_end_, member));
      needed_ = member.end;
      if (state == TarState::kMore) return false;
      if (state == TarState::kEnd) {
        is_last_ = true;
        return true;
      }
      if (member.is_file) {
        if (has_file_ && member.key() != key_) return true;
        key_ = member.key();
        has_file_ = true;
      }
      if (member.end > front.size()) return false;
      sample_end_ = member.end;
    }
  }

  ReadState TakeSample(RecordBatch& batch) {
    if (has_file_) {
      window_.TakeRecord(sample_end_, batch);
    }
    if (is_last_) window_.Finish();
    return has_file_ ? ReadState::kReady : ReadState::kEnd;
  }

  // No more bytes come. What is there must end with a member.
  ReadState AtEndOfFile(RecordBatch& batch) {
    if (window_.num_bytes() != sample_end_) {
      return Fail(absl::DataLossError("truncated tar archive: the file ends "
                                      "inside a member"),
                  batch);
    }
    is_last_ = true;
    return TakeSample(batch);
  }

  ReadState Fail(const absl::Status& error, RecordBatch& batch) {
    const RecordPosition& position = window_.position();
    return window_.Fail(
        absl::Status(error.code(), absl::StrCat(error.message(), ": sample ",
                                                position.ordinal, " at byte ",
                                                position.byte_offset, " of ",
                                                window_.path())),
        batch);
  }

  const size_t max_record_bytes_;
  RecordWindow window_;
  // Of the sample at the window's front.
  std::string key_;
  bool has_file_ = false;
  bool is_last_ = false;
  size_t sample_end_ = 0;
  size_t needed_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RecordReader>> OpenTarReader(
    FileSystem& files, std::string_view path,
    const RecordReaderOptions& options) {
  return OpenReader<TarReader>(files, path, options);
}

}  // namespace penstock::io

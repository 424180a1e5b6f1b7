#include "penstock/io/whole_file_reader.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/io/record_window.h"

namespace penstock::io {
namespace {

class WholeFileReader final : public RecordReader {
 public:
  WholeFileReader(std::unique_ptr<ByteStream> stream, std::string path,
                  const RecordReaderOptions& options)
      : max_record_bytes_(options.max_record_bytes),
        window_(std::move(stream), std::move(path), options.start) {}

  ReadState Next(size_t, std::function<void()> wake,
                 RecordBatch& batch) override {
    batch.Clear();
    if (window_.position().is_end) return ReadState::kEnd;
    for (;;) {
      if (window_.num_bytes() > max_record_bytes_) {
        return window_.Fail(
            absl::ResourceExhaustedError(
                absl::StrCat("expected a file of at most ", max_record_bytes_,
                             " bytes; found a longer one: ", window_.path())),
            batch);
      }
      bool has_ended = false;
      if (auto state = window_.FetchFor(batch, wake, has_ended)) return *state;
      if (!has_ended) continue;
      const size_t size = window_.num_bytes();
      if (size > 0) window_.GrowFront(size);
      window_.TakeRecord(size, batch);
      window_.Finish();
      return ReadState::kReady;
    }
  }

  RecordPosition position() const override { return window_.position(); }

 private:
  const size_t max_record_bytes_;
  RecordWindow window_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RecordReader>> OpenWholeFileReader(
    FileSystem& files, std::string_view path,
    const RecordReaderOptions& options) {
  return OpenReader<WholeFileReader>(files, path, options);
}

}  // namespace penstock::io

#include "penstock/engine/ops/list_files.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "penstock/base/hash.h"
#include "penstock/base/status.h"
#include "penstock/engine/io_call.h"

namespace penstock::engine {
namespace {

using Names = std::vector<std::string>;

absl::StatusOr<Names> ListAll(io::FileSystem& files, const Names& patterns) {
  Names all;
  for (const std::string& pattern : patterns) {
    PENSTOCK_ASSIGN_OR_RETURN(Names names, files.Glob(pattern));
    all.insert(all.end(), names.begin(), names.end());
  }
  if (all.empty()) {
    std::string text;
    for (const std::string& pattern : patterns) {
      absl::StrAppend(&text, text.empty() ? "" : ", ", pattern);
    }
    return absl::NotFoundError(
        absl::StrCat("no file matches ", text,
                     "\n  Check the path; relative ones start from the "
                     "directory the program was started in."));
  }
  std::sort(all.begin(), all.end());
  return all;
}

class ListFilesStream final : public Stream {
 public:
  ListFilesStream(const Scope& scope, const OpInfo& info, Names patterns,
                  std::optional<uint64_t> shuffle_key)
      : Stream(StatsOf(scope, info)),
        scope_(scope),
        info_(info),
        patterns_(std::move(patterns)),
        shuffle_key_(shuffle_key) {}

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    if (has_failed_) return Pull::End();
    if (!names_.has_value()) {
      PENSTOCK_ASSIGN_OR_RETURN(const bool is_here, Load(request));
      if (!is_here) return Pull::Blocked();
      if (has_failed_ && next_ > 0) return Pull::End();  // it is left out
      if (has_failed_) {
        Chunk chunk = ErrorChunk(info_.Located(error_),
                                 PlaceholderColumns(info_.leaves, 1));
        chunk.lineage = SourceLineage(scope_, 0, 1);
        return Pull::Rows(std::move(chunk));
      }
    }
    const int64_t rows =
        std::min<int64_t>(request.max_rows, names_->size() - next_);
    if (rows <= 0) return Pull::End();
    std::vector<std::string_view> views;
    for (int64_t i = 0; i < rows; ++i) {
      views.push_back((*names_)[order_[next_ + i]]);
    }
    Chunk chunk;
    chunk.rows = rows;
    chunk.columns.push_back(MakeStringColumn(views));
    chunk.lineage = SourceLineage(scope_, next_, rows);
    next_ += rows;
    return Pull::Rows(std::move(chunk));
  }

  // Before the names are here, any number of them may be left out.
  int64_t DoSkip(int64_t rows) override {
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    next_ = rows < kMost - next_ ? next_ + rows : kMost;
    return rows;
  }

  void DoSave(WireWriter& writer) const override {
    writer.Varint(next_);
    writer.Bool(has_failed_);
    writer.Varint(names_.has_value() ? Hash() : want_hash_);
  }

  absl::Status DoRestore(WireReader& reader) override {
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t next, reader.Varint());
    PENSTOCK_ASSIGN_OR_RETURN(has_failed_, reader.Bool());
    PENSTOCK_ASSIGN_OR_RETURN(want_hash_, reader.Varint());
    next_ = static_cast<int64_t>(next);
    return absl::OkStatus();
  }

 private:
  // Whether names_ (or the error) is here now.
  absl::StatusOr<bool> Load(const Request& request) {
    const Environment& environment = scope_.run->environment;
    std::optional<absl::StatusOr<Names>> names = listing_.Poll(
        *environment.io_pool, request.waker,
        [patterns = patterns_, files = scope_.run->FilesOf(info_)] {
          return ListAll(*files, patterns);
        });
    if (!names.has_value()) return false;
    if (!names->ok()) {
      has_failed_ = true;
      error_ = names->status();
      return true;
    }
    names_ = **std::move(names);
    stats()->total.store(names_->size(), std::memory_order_relaxed);
    order_.resize(names_->size());
    std::iota(order_.begin(), order_.end(), 0);
    if (shuffle_key_.has_value()) Shuffle(*shuffle_key_);
    if (want_hash_ != 0 && want_hash_ != Hash()) {
      return info_.Located(absl::FailedPreconditionError(absl::StrCat(
          "the files are not those of the saved state: ", names_->size(),
          " match now; files were added, removed or renamed since\n  Restore "
          "the files, or start without the state.")));
    }
    return true;
  }

  void Shuffle(uint64_t key) {
    for (size_t i = order_.size(); i > 1; --i) {
      const auto draw = static_cast<unsigned __int128>(Combine(key, i)) * i;
      std::swap(order_[i - 1], order_[static_cast<size_t>(draw >> 64)]);
    }
  }

  uint64_t Hash() const {
    uint64_t hash = names_->size();
    for (const std::string& name : *names_) hash = HashBytes(name, hash);
    return hash | 1;
  }

  const Scope scope_;
  const OpInfo& info_;
  const Names patterns_;
  const std::optional<uint64_t> shuffle_key_;
  IoCall<absl::StatusOr<Names>> listing_;
  std::optional<Names> names_;
  std::vector<size_t> order_;
  absl::Status error_;
  bool has_failed_ = false;
  uint64_t want_hash_ = 0;  // of a restored state; 0: any
  int64_t next_ = 0;
};

}  // namespace

OperatorOr MakeListFiles(const plan::ListFiles& spec, OpContext& context) {
  const OpInfo& info = *context.info;
  return MakeOperator([spec, &info](const Scope& scope) -> StreamOr {
    PENSTOCK_ASSIGN_OR_RETURN(const Column column,
                              ValueOf(spec.patterns(), scope));
    Names patterns;
    for (int64_t i = 0; i < column.RowItems(0); ++i) {
      patterns.emplace_back(column.Row<StringRef>(0)[i].view());
    }
    std::optional<uint64_t> key;
    if (spec.shuffle()) {
      const bool reshuffle = spec.reshuffle_each_iteration();
      key = Combine(scope.run->RandomKey(info, reshuffle),
                    reshuffle ? scope.iteration : scope.binding);
    }
    return std::make_unique<ListFilesStream>(scope, info, std::move(patterns),
                                             key);
  });
}

}  // namespace penstock::engine

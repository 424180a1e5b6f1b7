#include "penstock/engine/ops/grouping_stream.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/data/builder.h"
#include "penstock/data/row_buffer.h"
#include "penstock/engine/ops/keys.h"
#include "penstock/engine/ops/token_budget.h"

namespace penstock::engine {
namespace {

// Chunks of the input before others get their turn.
constexpr int kMaxChunks = 64;
// Rows between two places to read again from, at least.
constexpr int64_t kMinRowsBetween = 256;
constexpr size_t kMaxMarks = 64;

struct Group {
  int64_t size = 0;
  int64_t first = 0;  // ordinal of its first row
  RowBuffer rows;
  std::vector<int64_t> values;  // of the key function, fresh rows included
  int64_t largest = 1;          // of them
  // Rows of the chunk at hand that belong to it and are not in `rows` yet.
  std::vector<int32_t> fresh;
};

// A place of the input to read from again.
struct Mark {
  int64_t ordinal;  // of the next row there
  std::string position;
};

class GroupingStream final : public Stream {
 public:
  GroupingStream(const Scope& scope, const OpInfo& info, Counts counts,
                 std::shared_ptr<const GroupingConfig> config,
                 std::unique_ptr<Stream> input)
      : Stream(StatsOf(scope, info), counts),
        scope_(scope),
        info_(info),
        config_(std::move(config)),
        input_(std::move(input)),
        reservation_(scope.run->environment.memory) {}

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    const int64_t max_rows = std::min(request.max_rows, config_->max_given);
    for (int chunks = 0; chunks < kMaxChunks; ++chunks) {
      if (has_ended_) return Flush(max_rows);
      if (input_.rows_held() == 0 && !is_rereading()) MarkIfDue();
      const int64_t wanted =
          scope_.run->options.is_row_exact ? 1 : kMaxChunkRows;
      const bool is_fresh = input_.rows_held() == 0;
      PENSTOCK_ASSIGN_OR_RETURN(
          const Pull::Kind kind,
          input_.Fill({is_rereading() ? reread_until_ - read_ : wanted,
                       request.waker}));
      if (kind == Pull::Kind::kBlocked) return Pull::Blocked();
      if (kind == Pull::Kind::kEnd) {
        if (is_rereading()) {
          return info_.Located(absl::DataLossError(
              "the input is shorter than when the state was saved"));
        }
        has_ended_ = true;
        continue;
      }
      if (is_fresh) PENSTOCK_RETURN_IF_ERROR(ReadKeys());
      PENSTOCK_RETURN_IF_ERROR(is_rereading() ? Reread()
                                              : Distribute(max_rows));
      PENSTOCK_RETURN_IF_ERROR(KeepFresh());
      if (out_.rows() > 0) return Pull::Rows(out_.Build());
    }
    return Yield(request);
  }

  void DoSave(WireWriter& writer) const override {
    if (is_rereading()) return writer.Raw(restored_);
    if (groups_.empty()) {
      WireWriter position;
      input_.Save(position);
      writer.Bytes(position.bytes());
      writer.Varint(0);
      writer.Varint(0);
      return;
    }
    int64_t oldest = read_;
    for (const auto& [key, group] : groups_) {
      oldest = std::min(oldest, group.first);
    }
    const Mark* mark = &marks_.front();
    for (const Mark& later : marks_) {
      if (later.ordinal > oldest) break;
      mark = &later;
    }
    writer.Bytes(mark->position);
    writer.Varint(read_ - mark->ordinal);
    writer.Varint(groups_.size());
    for (const auto& [key, group] : groups_) {
      writer.Signed(key);
      writer.Varint(group.first - mark->ordinal);
    }
  }

  absl::Status DoRestore(WireReader& reader) override {
    const std::string_view all = reader.rest();
    PENSTOCK_ASSIGN_OR_RETURN(const std::string_view position, reader.Bytes());
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t rows, reader.Varint());
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t groups, reader.Varint());
    if (rows > INT64_MAX / 2 || groups > all.size()) {
      return absl::DataLossError("saved groups are malformed");
    }
    for (uint64_t i = 0; i < groups; ++i) {
      PENSTOCK_ASSIGN_OR_RETURN(const int64_t key, reader.Signed());
      PENSTOCK_ASSIGN_OR_RETURN(const uint64_t first, reader.Varint());
      firsts_[key] = static_cast<int64_t>(first);
    }
    restored_ = all.substr(0, all.size() - reader.rest().size());
    reread_until_ = static_cast<int64_t>(rows);
    marks_.push_back({0, std::string(position)});
    WireReader position_reader(position);
    return input_.Restore(position_reader);
  }

 private:
  bool is_rereading() const { return read_ < reread_until_; }

  // Tells the elements of the chunk at hand from their keys.
  absl::Status ReadKeys() {
    rows_ = input_.chunk();
    if (config_->key != nullptr) {
      PENSTOCK_ASSIGN_OR_RETURN(keys_, config_->key->Apply(rows_, scope_));
    } else {
      if (config_->has_sizes) {
        ToIntegers(rows_.columns.back(), sizes_);
        rows_.columns.pop_back();
      }
      keys_ = rows_;
      keys_.columns = {std::move(rows_.columns.back())};
      rows_.columns.pop_back();
    }
    ToIntegers(keys_.columns[0], key_values_);
    return absl::OkStatus();
  }

  // After a restore: puts the rows back that the groups held.
  absl::Status Reread() {
    const int64_t rows = std::min(input_.rows_held(), reread_until_ - read_);
    const int64_t end = input_.begin() + rows;
    for (int64_t row = input_.begin(); row < end; ++row, ++read_) {
      if (ErrorAt(keys_, row) != nullptr || !IsInGroup(row).value_or(false)) {
        continue;
      }
      const int64_t key = config_->group_of(key_values_[row]);
      const auto first = firsts_.find(key);
      if (first == firsts_.end() || read_ < first->second) continue;
      PENSTOCK_ASSIGN_OR_RETURN(Group * group, FindGroup(key, row));
      Add(*group, row);
    }
    consumed_ = rows;
    if (!is_rereading()) restored_.clear();
    return absl::OkStatus();
  }

  // Gives each held row to its group, until max_rows rows are out.
  absl::Status Distribute(int64_t max_rows) {
    int64_t row = input_.begin();
    const int64_t end = row + input_.rows_held();
    const bool has_errors = !keys_.errors.empty();
    while (row < end && out_.rows() < max_rows) {
      const absl::Status* error = has_errors ? ErrorAt(keys_, row) : nullptr;
      const absl::StatusOr<bool> is_in_group =
          error != nullptr ? Named(*error, row) : IsInGroup(row);
      const int64_t key = config_->group_of(key_values_[row]);
      absl::StatusOr<Group*> group = nullptr;
      if (!is_in_group.ok()) {
        group = is_in_group.status();
      } else if (*is_in_group) {
        group = FindGroup(key, row);
      }
      if (!group.ok()) {
        Fail(group.status(), row);
      } else if (*group != nullptr) {
        if (!HasRoom(key, **group, key_values_[row])) {
          EmitWhole(key, **group);
          continue;  // the row begins another, if it may still come out
        }
        Add(**group, row);
        if (!HasRoom(key, **group, 0)) EmitWhole(key, **group);
      }
      ++row;
      ++read_;
    }
    consumed_ = row - input_.begin();
    return absl::OkStatus();
  }

  // Whether an element is in a group at all, or why it is an error.
  absl::StatusOr<bool> IsInGroup(int64_t row) const {
    if (!config_->max_tokens.has_value()) return true;
    const int64_t value = key_values_[row];
    const absl::Status status =
        CheckLength(value, *config_->max_tokens, config_->too_long);
    if (!status.ok()) return info_.Located(status);
    return value <= *config_->max_tokens ||
           config_->too_long != plan::TOO_LONG_IS_DROPPED;
  }

  // Whether an element with this value may join those that are there.
  bool HasRoom(int64_t key, const Group& group, int64_t value) const {
    const auto rows = static_cast<int64_t>(group.values.size());
    if (rows == 0) return true;
    if (rows >= group.size) return false;
    if (!config_->max_tokens.has_value() || key != config_->budgeted) {
      return true;
    }
    return std::max(group.largest, value) <= *config_->max_tokens / (rows + 1);
  }

  void Add(Group& group, int64_t row) {
    group.fresh.push_back(static_cast<int32_t>(row));
    group.values.push_back(key_values_[row]);
    group.largest = std::max(group.largest, key_values_[row]);
  }

  // The group of `key`; `row` is one of its elements.
  absl::StatusOr<Group*> FindGroup(int64_t key, int64_t row) {
    const auto found = groups_.find(key);
    if (found != groups_.end()) return &found->second;
    int64_t size = 0;
    if (config_->has_sizes) {
      absl::StatusOr<int64_t> given = CheckedSize(sizes_[row]);
      if (!given.ok()) return info_.Located(given.status());
      size = *given;
    } else {
      PENSTOCK_ASSIGN_OR_RETURN(size, config_->size(key, scope_));
    }
    Group& group = groups_[key];
    group.size = size;
    group.first = read_;
    return &group;
  }

  // Copies what the group was given of the chunk at hand.
  void Keep(Group& group) {
    if (group.fresh.empty()) return;
    const int64_t before = group.rows.num_bytes();
    group.rows.Append(rows_, group.fresh);
    group.fresh.clear();
    bytes_ += group.rows.num_bytes() - before;
  }

  absl::Status KeepFresh() {
    for (auto& [key, group] : groups_) Keep(group);
    input_.Consume(consumed_);
    return info_.Located(reservation_.Resize(bytes_));
  }

  // An error of the key, with the function that it comes from: the node has
  // several. The input's own as it is.
  absl::Status Named(const absl::Status& error, int64_t row) const {
    if (ErrorAt(input_.chunk(), row) != nullptr) return error;
    return absl::Status(error.code(), absl::StrCat(error.message(), "\n  in ",
                                                   config_->key_name));
  }

  void Fail(const absl::Status& status, int64_t row) {
    Chunk error = ErrorChunk(status, PlaceholderColumns(config_->leaves, 1));
    if (keys_.has_lineage()) error.lineage = Slice(keys_, row, 1).lineage;
    out_.Append(error, 0, 1);
  }

  void EmitWhole(int64_t key, Group& group) {
    Keep(group);
    Emit(key, group);
    groups_.erase(key);
  }

  void Emit(int64_t key, Group& group) {
    bytes_ -= group.rows.num_bytes();
    const bool is_uniform = group.rows.is_uniform();
    const Chunk rows = group.rows.Take();
    absl::StatusOr<Chunk> out =
        is_uniform ? config_->assemble(key, rows, group.values, *stats())
                   : absl::InvalidArgumentError(
                         "elements of a window must have one rank; got "
                         "different ones");
    if (!out.ok()) {
      out = ErrorChunk(info_.Located(out.status()),
                       PlaceholderColumns(config_->leaves, 1));
    }
    out->lineage = rows.rows > 0 ? GroupLineage(rows, rows.rows)
                                 : SourceLineage(scope_, read_, 1);
    out_.Append(*out, 0, 1);
  }

  // At the input's end: what the groups have, by ascending key.
  absl::StatusOr<Pull> Flush(int64_t max_rows) {
    if (config_->drop_remainder) {
      groups_.clear();
      bytes_ = 0;
    }
    while (!groups_.empty() && out_.rows() < max_rows) {
      const auto first = groups_.begin();
      Emit(first->first, first->second);
      groups_.erase(first);
    }
    PENSTOCK_RETURN_IF_ERROR(info_.Located(reservation_.Resize(bytes_)));
    if (out_.rows() == 0) return Pull::End();
    return Pull::Rows(out_.Build());
  }

  void AddMark() {
    WireWriter position;
    input_.Save(position);
    marks_.push_back({read_, position.Take()});
  }

  void MarkIfDue() {
    if (groups_.empty()) {
      marks_.clear();
      return AddMark();
    }
    if (read_ - marks_.back().ordinal < kMinRowsBetween) return;
    int64_t oldest = read_;
    for (const auto& [key, group] : groups_) {
      oldest = std::min(oldest, group.first);
    }
    while (marks_.size() > 1 && marks_[1].ordinal <= oldest) marks_.pop_front();
    AddMark();
    if (marks_.size() <= kMaxMarks) return;
    // Some group is old: every other place will do.
    for (size_t i = 1; 2 * i < marks_.size(); ++i) {
      marks_[i] = std::move(marks_[2 * i]);
    }
    marks_.resize((marks_.size() + 1) / 2);
  }

  const Scope scope_;
  const OpInfo& info_;
  const std::shared_ptr<const GroupingConfig> config_;
  Input input_;
  Chunk rows_;  // those of input_.chunk(), without their keys
  Chunk keys_;
  std::vector<int64_t> key_values_;
  std::vector<int64_t> sizes_;
  int64_t consumed_ = 0;  // rows of one call, until the groups have them
  std::map<int64_t, Group> groups_;
  int64_t bytes_ = 0;  // in groups_
  Reservation reservation_;
  ChunkBuilder out_;  // empty between calls
  int64_t read_ = 0;  // rows taken from the input since the first mark or state
  bool has_ended_ = false;
  std::deque<Mark> marks_;

  // After a restore, until the groups' rows were read again.
  int64_t reread_until_ = 0;
  std::map<int64_t, int64_t> firsts_;  // ordinals by key
  std::string restored_;
};

}  // namespace

absl::StatusOr<int64_t> CheckedSize(int64_t size) {
  if (size > 0) return size;
  return absl::InvalidArgumentError(
      absl::StrCat("a window must have at least 1 element; got ", size));
}

OperatorPtr MakeGrouping(std::shared_ptr<const GroupingConfig> config,
                         OperatorPtr input, const OpInfo& info,
                         Stream::Counts counts) {
  return MakeOperator([=, &info](const Scope& scope) -> StreamOr {
    PENSTOCK_ASSIGN_OR_RETURN(auto stream, input->Start(scope));
    return std::make_unique<GroupingStream>(scope, info, counts, config,
                                            std::move(stream));
  });
}

}  // namespace penstock::engine

#include "penstock/engine/ops/pack.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/hash.h"
#include "penstock/base/status.h"
#include "penstock/data/builder.h"
#include "penstock/plan/convert.h"

namespace penstock::engine {
namespace {

// Chunks of the input before others get their turn.
constexpr int kMaxChunks = 64;
constexpr size_t kNone = std::numeric_limits<size_t>::max();

struct PackConfig {
  int64_t length = 1;
  size_t max_open = 1;
  bool is_split = false;
  bool drop_remainder = false;
  std::vector<Column> padding;  // one item per component
  // Of the rows given: those of the positions, the segment ids, the components.
  std::vector<TensorSpec> leaves;
  int64_t row_bytes = 0;
  // Of each component: an item's shape and bytes.
  std::vector<Shape> items;
  std::vector<size_t> strides;
};

// Part of an element that is in a row.
struct Piece {
  int64_t ordinal = 0;  // of the element
  int64_t begin = 0;
  int64_t count = 0;
};

struct Row {
  std::vector<Piece> pieces;
  int64_t used = 0;
  uint64_t lineage = 0;
  std::vector<Buffer> columns;  // positions, segment ids, components
};

// A place of the input to read from again.
struct Mark {
  int64_t ordinal;
  std::string position;
};

class PackStream final : public Stream {
 public:
  PackStream(const Scope& scope, const OpInfo& info,
             std::shared_ptr<const PackConfig> config,
             std::unique_ptr<Stream> input)
      : Stream(StatsOf(scope, info)),
        scope_(scope),
        info_(info),
        config_(std::move(config)),
        input_(std::move(input)),
        reservation_(scope.run->environment.memory) {}

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    for (int chunks = 0; chunks < kMaxChunks; ++chunks) {
      if (has_ended_) return Flush(request.max_rows);
      const bool is_rereading = read_ < reread_until_;
      if (input_.rows_held() == 0 && !is_rereading) AddMark();
      const int64_t wanted = is_rereading ? reread_until_ - read_
                             : scope_.run->options.is_row_exact ? 1
                                                                : kMaxChunkRows;
      PENSTOCK_ASSIGN_OR_RETURN(const Pull::Kind kind,
                                input_.Fill({wanted, request.waker}));
      if (kind == Pull::Kind::kBlocked) return Pull::Blocked();
      if (kind == Pull::Kind::kEnd) {
        if (is_rereading) {
          return info_.Located(absl::DataLossError(
              "the input is shorter than when the state was saved"));
        }
        has_ended_ = true;
        continue;
      }
      while (out_.rows() < request.max_rows) {
        if (read_ < reread_until_) {
          if (input_.rows_held() == 0) break;
          Reread();
        } else if (full_ < rows_.size()) {
          Emit(std::exchange(full_, kNone));
        } else if (input_.rows_held() > 0) {
          Add();
        } else {
          break;
        }
      }
      PENSTOCK_RETURN_IF_ERROR(info_.Located(reservation_.Resize(
          static_cast<int64_t>(rows_.size()) * config_->row_bytes)));
      if (out_.rows() > 0) return Pull::Rows(out_.Build());
    }
    return Yield(request);
  }

  void DoSave(WireWriter& writer) const override {
    if (read_ < reread_until_) return writer.Raw(restored_);
    int64_t oldest = read_;
    for (const Row& row : rows_) {
      for (const Piece& piece : row.pieces) {
        oldest = std::min(oldest, piece.ordinal);
      }
    }
    std::string position;
    int64_t ordinal = read_;
    if (oldest == read_) {
      WireWriter here;
      input_.Save(here);
      position = here.Take();
    } else {
      for (const Mark& mark : marks_) {
        if (mark.ordinal > oldest) break;
        ordinal = mark.ordinal;
        position = mark.position;
      }
    }
    writer.Bytes(position);
    writer.Varint(read_ - ordinal);
    writer.Varint(offset_);
    writer.Varint(rows_.size());
    for (const Row& row : rows_) {
      writer.Varint(row.pieces.size());
      for (const Piece& piece : row.pieces) {
        writer.Varint(piece.ordinal - ordinal);
        writer.Varint(piece.begin);
        writer.Varint(piece.count);
      }
    }
  }

  absl::Status DoRestore(WireReader& reader) override {
    const std::string_view all = reader.rest();
    PENSTOCK_ASSIGN_OR_RETURN(const std::string_view position, reader.Bytes());
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t rows, reader.Varint());
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t offset, reader.Varint());
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t open, reader.Varint());
    if (open > config_->max_open || rows > INT64_MAX / 2 ||
        offset > INT64_MAX / 2) {
      return absl::DataLossError("saved rows are malformed");
    }
    offset_ = static_cast<int64_t>(offset);
    for (uint64_t r = 0; r < open; ++r) {
      Row& row = Open();
      PENSTOCK_ASSIGN_OR_RETURN(const uint64_t pieces, reader.Varint());
      for (uint64_t i = 0; i < pieces; ++i) {
        PENSTOCK_ASSIGN_OR_RETURN(const uint64_t ordinal, reader.Varint());
        PENSTOCK_ASSIGN_OR_RETURN(const uint64_t begin, reader.Varint());
        PENSTOCK_ASSIGN_OR_RETURN(const uint64_t count, reader.Varint());
        if (count > static_cast<uint64_t>(config_->length - row.used) ||
            ordinal > rows) {
          return absl::DataLossError("saved rows are malformed");
        }
        const Piece piece{static_cast<int64_t>(ordinal),
                          static_cast<int64_t>(begin),
                          static_cast<int64_t>(count)};
        row.pieces.push_back(piece);
        wanted_.emplace(piece.ordinal,
                        Wanted{static_cast<size_t>(r), row.used,
                               static_cast<int64_t>(i) + 1, piece});
        row.used += piece.count;
      }
      if (row.used == config_->length) full_ = r;
    }
    restored_ = all.substr(0, all.size() - reader.rest().size());
    reread_until_ = static_cast<int64_t>(rows);
    // In split mode the element at hand may be in the open row already.
    if (offset_ > 0) ++reread_until_;
    marks_.push_back({0, std::string(position)});
    WireReader position_reader(position);
    return input_.Restore(position_reader);
  }

 private:
  // A piece to be read again, and where it goes.
  struct Wanted {
    size_t row;
    int64_t at;
    int64_t segment;
    Piece piece;
  };

  Row& Open() {
    Row& row = rows_.emplace_back();
    for (size_t c = 0; c < config_->leaves.size(); ++c) {
      const TensorSpec& leaf = config_->leaves[c];
      const size_t item = ItemSize(leaf.dtype);
      const int64_t items = NumItems(leaf.shape.ToShape());
      Buffer buffer = Buffer::Allocate(items * item);
      char* to = buffer.MutableAs<char>();
      if (c < 2) {
        std::memset(to, 0, items * item);
      } else {
        const char* from = config_->padding[c - 2].Row<char>(0);
        for (int64_t i = 0; i < items; ++i)
          std::memcpy(to + i * item, from, item);
      }
      row.columns.push_back(std::move(buffer));
    }
    return row;
  }

  // Writes part of the element at hand to place `at` of a row.
  void Write(Row& row, int64_t at, int64_t segment, const Piece& piece) {
    int32_t* positions = row.columns[0].MutableAs<int32_t>() + at;
    int32_t* segments = row.columns[1].MutableAs<int32_t>() + at;
    for (int64_t i = 0; i < piece.count; ++i) {
      positions[i] = static_cast<int32_t>(i);
      segments[i] = static_cast<int32_t>(segment);
    }
    const Chunk& chunk = input_.chunk();
    for (size_t c = 0; c < chunk.columns.size(); ++c) {
      const size_t stride = config_->strides[c];
      const char* from = chunk.columns[c].Row<char>(input_.begin());
      std::memcpy(row.columns[c + 2].MutableAs<char>() + at * stride,
                  from + piece.begin * stride, piece.count * stride);
    }
    if (chunk.has_lineage()) {
      row.lineage =
          Combine(row.lineage, chunk.lineage.As<uint64_t>()[input_.begin()]);
    }
  }

  void Put(Row& row, const Piece& piece) {
    Write(row, row.used, static_cast<int64_t>(row.pieces.size()) + 1, piece);
    row.used += piece.count;
    row.pieces.push_back(piece);
  }

  // After a restore: puts an element back where it was.
  void Reread() {
    const auto [begin, end] = wanted_.equal_range(read_);
    for (auto it = begin; it != end; ++it) {
      const Wanted& wanted = it->second;
      const absl::StatusOr<int64_t> items = Items();
      // What came before is gone: a source that changed is not noticed here.
      if (!items.ok() || wanted.piece.begin + wanted.piece.count > *items) {
        continue;
      }
      Write(rows_[wanted.row], wanted.at, wanted.segment, wanted.piece);
    }
    if (offset_ > 0 && read_ + 1 == reread_until_) {
      reread_until_ = read_;  // it goes on from its offset
      return;
    }
    Next();
  }

  void Next() {
    input_.Consume(1);
    ++read_;
  }

  // The length of the element at hand, or why it has none.
  absl::StatusOr<int64_t> Items() const {
    const Chunk& chunk = input_.chunk();
    if (const absl::Status* error = ErrorAt(chunk, input_.begin())) {
      return *error;
    }
    std::optional<int64_t> items;
    for (size_t c = 0; c < chunk.columns.size(); ++c) {
      const Column& column = chunk.columns[c];
      const absl::Span<const int64_t> shape = column.RowShape(input_.begin());
      const absl::Span<const int64_t> item = config_->items[c];
      if (shape.empty() || shape.subspan(1) != item) {
        return info_.Located(absl::InvalidArgumentError(
            absl::StrCat("pack needs sequences of items of shape ",
                         ToString(item), "; got shape ", ToString(shape))));
      }
      if (items.has_value() && shape[0] != *items) {
        return info_.Located(absl::InvalidArgumentError(absl::StrCat(
            "the components of a sequence must have one length; got ", *items,
            " and ", shape[0])));
      }
      items = shape[0];
    }
    return items.value_or(0);
  }

  void Add() {
    absl::StatusOr<int64_t> items = Items();
    if (items.ok() && !config_->is_split && *items > config_->length) {
      items = info_.Located(absl::InvalidArgumentError(
          absl::StrCat("a sequence must have at most ", config_->length,
                       " items to be packed; got ", *items,
                       "\n  Cut it, or use pack(split=True).")));
    }
    if (!items.ok()) {
      Chunk error =
          ErrorChunk(items.status(), PlaceholderColumns(config_->leaves, 1));
      error.lineage = Slice(input_.chunk(), input_.begin(), 1).lineage;
      out_.Append(error, 0, 1);
      return Next();
    }
    if (config_->is_split) {
      if (rows_.empty() && *items > offset_) Open();
      if (*items > offset_) {
        Row& row = rows_.back();
        const int64_t count =
            std::min(*items - offset_, config_->length - row.used);
        Put(row, {read_, offset_, count});
        offset_ += count;
        if (row.used == config_->length) full_ = 0;
      }
      if (offset_ < *items) return;
      offset_ = 0;
      return Next();
    }
    if (*items > 0) AddWhole(*items);
    Next();
  }

  void AddWhole(int64_t items) {
    size_t place = 0;
    while (place < rows_.size() &&
           rows_[place].used + items > config_->length) {
      ++place;
    }
    if (place == rows_.size()) {
      if (rows_.size() == config_->max_open) {
        Emit(0);
        --place;
      }
      Open();
    }
    Put(rows_[place], {read_, 0, items});
    if (rows_[place].used == config_->length) full_ = place;
  }

  void Emit(size_t place) {
    Row& row = rows_[place];
    Chunk chunk;
    chunk.rows = 1;
    for (size_t c = 0; c < row.columns.size(); ++c) {
      const TensorSpec& leaf = config_->leaves[c];
      chunk.columns.push_back(Column::Dense(leaf.dtype, leaf.shape.ToShape(), 1,
                                            std::move(row.columns[c])));
    }
    if (scope_.run->options.needs_lineage) {
      chunk.lineage = Buffer::Allocate(sizeof(uint64_t));
      *chunk.lineage.MutableAs<uint64_t>() = row.lineage;
    }
    out_.Append(chunk, 0, 1);
    rows_.erase(rows_.begin() + static_cast<std::ptrdiff_t>(place));
  }

  Pull Flush(int64_t max_rows) {
    if (full_ < rows_.size()) Emit(std::exchange(full_, kNone));
    if (config_->drop_remainder) rows_.clear();
    while (!rows_.empty() && out_.rows() < max_rows) Emit(0);
    if (out_.rows() == 0) return Pull::End();
    return Pull::Rows(out_.Build());
  }

  void AddMark() {
    int64_t oldest = read_;
    for (const Row& row : rows_) {
      if (!row.pieces.empty()) {
        oldest = std::min(oldest, row.pieces.front().ordinal);
      }
    }
    while (marks_.size() > 1 && marks_[1].ordinal <= oldest) marks_.pop_front();
    if (!marks_.empty() && marks_.back().ordinal == read_) return;
    WireWriter position;
    input_.Save(position);
    marks_.push_back({read_, position.Take()});
  }

  const Scope scope_;
  const OpInfo& info_;
  const std::shared_ptr<const PackConfig> config_;
  Input input_;
  Reservation reservation_;
  std::vector<Row> rows_;  // open, by age
  size_t full_ = kNone;    // of rows_, the one to be given next
  int64_t read_ = 0;       // elements done with
  int64_t offset_ = 0;     // of the element at hand, items in rows
  bool has_ended_ = false;
  ChunkBuilder out_;  // empty between calls
  std::deque<Mark> marks_;

  // After a restore, until the open rows' elements were read again.
  int64_t reread_until_ = 0;
  std::multimap<int64_t, Wanted> wanted_;  // by ordinal
  std::string restored_;
};

}  // namespace

OperatorOr MakePack(const plan::Pack& spec, OperatorPtr input,
                    OpContext& context) {
  const OpInfo& info = *context.info;
  auto config = std::make_shared<PackConfig>();
  config->length = spec.length();
  config->max_open = spec.split() ? 1 : static_cast<size_t>(spec.open_rows());
  config->is_split = spec.split();
  config->drop_remainder = spec.drop_remainder();
  config->leaves = info.leaves;
  for (const TensorSpec& leaf : info.leaves) {
    config->row_bytes += NumItems(leaf.shape.ToShape()) *
                         static_cast<int64_t>(ItemSize(leaf.dtype));
  }
  for (size_t c = 2; c < info.leaves.size(); ++c) {
    const TensorSpec& leaf = info.leaves[c];
    config->items.push_back(leaf.shape.DropFirst().ToShape());
    config->strides.push_back(NumItems(config->items.back()) *
                              ItemSize(leaf.dtype));
  }
  for (const plan::Tensor& proto : spec.padding()) {
    PENSTOCK_ASSIGN_OR_RETURN(config->padding.emplace_back(),
                              plan::FromProto(proto));
  }
  return MakeOperator([config, input, &info](const Scope& scope) -> StreamOr {
    if (config->row_bytes > scope.run->options.max_element_bytes) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "a row must take at most ", scope.run->options.max_element_bytes,
          " bytes; got ", config->row_bytes,
          "\n  Lower the length, or raise Options(max_element_bytes=...)."));
    }
    PENSTOCK_ASSIGN_OR_RETURN(auto stream, input->Start(scope));
    return std::make_unique<PackStream>(scope, info, config, std::move(stream));
  });
}

}  // namespace penstock::engine

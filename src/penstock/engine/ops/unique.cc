#include "penstock/engine/ops/unique.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "penstock/base/status.h"

namespace penstock::engine {
namespace {

// Chunks without anything new before others get their turn.
constexpr int kMaxChunks = 64;
// What a set takes for an entry, besides its bytes.
constexpr int64_t kEntryBytes = 48;

void AddWord(uint64_t word, std::string& to) {
  to.append(reinterpret_cast<const char*>(&word), sizeof(word));
}

// The bytes that tell a row from others.
void RowBytes(const Chunk& chunk, int64_t row, std::string& to) {
  to.clear();
  for (const Column& column : chunk.columns) {
    for (const int64_t dim : column.RowShape(row)) AddWord(dim, to);
    const int64_t items = column.RowItems(row);
    if (column.dtype() != DType::kString) {
      to.append(column.Row<char>(row), items * ItemSize(column.dtype()));
      continue;
    }
    for (int64_t i = 0; i < items; ++i) {
      const StringRef text = column.Row<StringRef>(row)[i];
      AddWord(text.size, to);
      to.append(text.data, text.size);
    }
  }
}

class UniqueStream final : public Stream {
 public:
  UniqueStream(const Scope& scope, const OpInfo& info,
               std::unique_ptr<Stream> input)
      : Stream(StatsOf(scope, info)),
        info_(info),
        input_(std::move(input)),
        reservation_(scope.run->environment.memory) {}

 protected:
  absl::StatusOr<Pull> DoNext(const Request& request) override {
    for (int chunks = 0; chunks < kMaxChunks; ++chunks) {
      const bool is_rereading = read_ < reread_until_;
      const int64_t wanted =
          is_rereading ? std::min(reread_until_ - read_, kMaxChunkRows)
                       : request.max_rows;
      PENSTOCK_ASSIGN_OR_RETURN(Pull pull,
                                input_->Next({wanted, request.waker}));
      if (!pull.has_rows()) return pull;
      read_ += pull.chunk.rows;
      PENSTOCK_RETURN_IF_ERROR(Look(pull.chunk));
      if (is_rereading || fresh_.empty()) continue;
      if (static_cast<int64_t>(fresh_.size()) == pull.chunk.rows) return pull;
      return Pull::Rows(Gather(pull.chunk, fresh_));
    }
    return Yield(request);
  }

  void DoSave(WireWriter& writer) const override {
    writer.Varint(std::max(read_, reread_until_));
  }

  absl::Status DoRestore(WireReader& reader) override {
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t read, reader.Varint());
    reread_until_ = static_cast<int64_t>(read);
    return absl::OkStatus();
  }

 private:
  // Sets fresh_ to the rows that were not there before.
  absl::Status Look(const Chunk& chunk) {
    fresh_.clear();
    for (int64_t row = 0; row < chunk.rows; ++row) {
      if (chunk.errors.empty() || ErrorAt(chunk, row) == nullptr) {
        RowBytes(chunk, row, bytes_);
        if (!seen_.insert(bytes_).second) continue;
        seen_bytes_ += kEntryBytes + static_cast<int64_t>(bytes_.size());
      }
      fresh_.push_back(static_cast<int32_t>(row));
    }
    return info_.Located(reservation_.Resize(seen_bytes_));
  }

  const OpInfo& info_;
  const std::unique_ptr<Stream> input_;
  Reservation reservation_;
  absl::flat_hash_set<std::string> seen_;
  int64_t seen_bytes_ = 0;
  std::string bytes_;           // kept from row to row for its memory
  std::vector<int32_t> fresh_;  // of one call
  int64_t read_ = 0;
  int64_t reread_until_ = 0;  // after a restore
};

}  // namespace

OperatorOr MakeUnique(OperatorPtr input, OpContext& context) {
  const OpInfo& info = *context.info;
  return MakeOperator([=, &info](const Scope& scope) -> StreamOr {
    PENSTOCK_ASSIGN_OR_RETURN(auto stream, input->Start(scope));
    return std::make_unique<UniqueStream>(scope, info, std::move(stream));
  });
}

}  // namespace penstock::engine

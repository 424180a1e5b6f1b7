// What a pass gives: rows, in whatever order they come, and frames that they
// come in. What it says to the service is in pass_service.cc.
#include "penstock/service/client/pass.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/status.h"
#include "penstock/data/encode.h"
#include "penstock/data/frame_memory.h"

namespace penstock::service {
namespace {

// Frame bytes as rows: the chunk, and after it the lineages.
absl::StatusOr<Chunk> ToChunk(const FrameHeader& head, const Buffer& bytes) {
  if (head.chunk_bytes() > bytes.size()) {
    return absl::DataLossError("a frame is shorter than it says");
  }
  PENSTOCK_ASSIGN_OR_RETURN(Chunk chunk,
                            Decode(bytes.Slice(0, head.chunk_bytes())));
  if (static_cast<uint64_t>(chunk.rows) != head.items()) {
    return absl::DataLossError(absl::StrCat("a frame must have ", head.items(),
                                            " rows, as it says; ", "got ",
                                            chunk.rows));
  }
  const size_t lineage = bytes.size() - head.chunk_bytes();
  if (lineage > 0) {
    if (lineage != head.items() * sizeof(uint64_t)) {
      return absl::DataLossError("a frame must have a lineage for each row");
    }
    chunk.lineage = bytes.Slice(head.chunk_bytes(), lineage);
  }
  return chunk;
}

}  // namespace

// --- what the iterator asks ---

void Pass::Resume(RowLog log, bool is_recovery) {
  MutexLock lock(&mutex_);
  first_row_ = log.begin();
  resumed_ = std::move(log);
  is_recovery_ = is_recovery;
}

void Pass::SeekTo(uint64_t row) {
  MutexLock lock(&mutex_);
  first_row_ = row;
  if (resumed_) resumed_->TrimTo(row);
}

uint64_t Pass::row() const {
  MutexLock lock(&mutex_);
  return std::max(first_row_, log_.end());
}

Journal::Pass Pass::ToProto() const {
  MutexLock lock(&mutex_);
  if (client_ == nullptr)
    return resumed_ ? resumed_->ToProto() : log_.ToProto();
  Journal::Pass pass = log_.ToProto();
  pass.set_has_ended(has_ended_);
  return pass;
}

void Pass::OnDelivered(uint64_t row) {
  MutexLock lock(&mutex_);
  if (client_ == nullptr) return;
  log_.TrimTo(row);
  if (client_->OnDelivered(log_.base())) Tell();
  if (IsAllDelivered()) changed_.SignalAll();
}

void Pass::Leave() {
  MutexLock lock(&mutex_);
  is_leaving_ = true;
  changed_.SignalAll();
}

void Pass::Close() {
  engine::Waker gone;
  MutexLock lock(&mutex_);
  is_closing_ = true;
  if (!is_leaving_) {
    for (grpc::ClientContext* call : calls_) call->TryCancel();
  }
  gone = std::exchange(waker_, nullptr);
  for (auto& [bundle, reader] : readers_) {
    if (reader.reading != nullptr) reader.reading->Stop();
  }
  arrived_.clear();
  changed_.SignalAll();
}

void Pass::ForgetReader() {
  engine::Waker gone;
  MutexLock lock(&mutex_);
  gone = std::exchange(waker_, nullptr);
}

bool Pass::IsAllDelivered() const {
  return has_ended_ && log_.entries().empty();
}

void Pass::Tell(bool is_urgent) {
  const bool was_told = has_news_ && (is_urgent_ || !is_urgent);
  has_news_ = true;
  is_urgent_ |= is_urgent;
  if (!was_told) changed_.SignalAll();
}

engine::Waker Pass::WakeReader() {
  engine::Waker waker = std::exchange(waker_, nullptr);
  if (waker != nullptr) waker->Wake();
  return waker;
}

// --- rows ---

absl::StatusOr<engine::Pull> Pass::Next(const engine::Request& request) {
  while (true) {
    {
      MutexLock lock(&mutex_);
      Begin();
      if (!failure_.ok()) return failure_;
      if (client_ == nullptr) {
        waker_ = request.waker;
        return engine::Pull::Blocked();
      }
      if (!group_) {
        std::optional<Chunk> rows = TakeRows(request.max_rows);
        if (rows) {
          const uint64_t before =
              log_.end() - static_cast<uint64_t>(rows->rows);
          const int64_t elements = rows->rows;
          rows = Marked(*std::move(rows), elements);
          if (before >= first_row_) return engine::Pull::Rows(*std::move(rows));
          // Given before, and restored in the middle of what was put together.
          const auto skip = static_cast<int64_t>(first_row_ - before);
          if (skip >= rows->rows) continue;
          return engine::Pull::Rows(Slice(*rows, skip, rows->rows - skip));
        }
        if (has_ended_) return engine::Pull::End();
        if (!group_) {
          waker_ = request.waker;
          if (has_news_) changed_.SignalAll();  // it may be in a hurry now
          return engine::Pull::Blocked();
        }
      }
      if (group_->is_spare) {
        std::optional<Chunk> row = TakeOfRound();
        if (row && log_.end() > first_row_) {
          return engine::Pull::Rows(*std::move(row));
        }
        continue;
      }
      if (!stitcher_->is_running()) {
        PENSTOCK_RETURN_IF_ERROR(
            stitcher_->Begin(std::move(group_->chunks), group_->pass));
      }
    }
    PENSTOCK_ASSIGN_OR_RETURN(engine::Pull pull, NextOfGroup(request));
    if (pull.is_blocked()) return pull;
    bool is_last = pull.is_end();
    if (!is_last && !ahead_) {
      // A state inside a group serves the same readers alone: whether this is
      // its last row is found out at once.
      engine::Request one = request;
      one.max_rows = 1;
      absl::StatusOr<engine::Pull> ahead = stitcher_->Next(one);
      is_last = ahead.ok() && ahead->is_end();
      if (!ahead.ok() || !(ahead->is_end() || ahead->is_blocked())) {
        ahead_ = std::move(ahead);
      }
    }
    MutexLock lock(&mutex_);
    if (pull.is_end()) pull = engine::Pull::Rows(Chunk());
    if (lanes() > 0) pull.chunk = KeepOwn(pull.chunk, is_last);
    const auto rows = static_cast<uint64_t>(pull.chunk.rows);
    log_.AddStitchedRows(rows);
    if (is_last) EndGroup();
    if (rows == 0) continue;
    const uint64_t before = log_.end() - rows;
    if (before >= first_row_) return pull;
    const auto skip = static_cast<int64_t>(first_row_ - before);
    if (skip >= pull.chunk.rows) continue;
    return engine::Pull::Rows(Slice(pull.chunk, skip, pull.chunk.rows - skip));
  }
}

absl::StatusOr<engine::Pull> Pass::NextOfGroup(const engine::Request& request) {
  if (!ahead_) return stitcher_->Next(request);
  absl::StatusOr<engine::Pull> ahead = *std::move(ahead_);
  ahead_.reset();
  return ahead;
}

std::optional<Chunk> Pass::TakeRows(int64_t max_rows) {
  while (!group_) {
    if (!script_.empty()) {
      const size_t left = script_.size();
      std::optional<Chunk> rows = FollowScript(max_rows);
      if (rows || script_.size() == left) return rows;
      continue;  // a group was set up, or what it was made of is lost
    }
    if (BeginGroup()) return std::nullopt;
    const std::optional<uint64_t> bundle = Pick();
    if (!bundle) break;
    current_ = bundle;
    is_turn_over_ = false;
    const Arrived& front = arrived_[*bundle].front();
    if (!front.is_loose && !front.is_spare) {
      return TakeFrom(*bundle, max_rows, /*is_given=*/true);
    }
    if (front.is_spare) {
      PoolFrom(*bundle, lanes(), spares_);
    } else {
      PoolLoose(*bundle);
    }
  }
  if (!group_ && client_->has_ended() && !has_ended_) {
    has_ended_ = true;
    changed_.SignalAll();
  }
  return std::nullopt;
}

std::optional<uint64_t> Pass::Pick() const {
  const auto has_rows = [&](uint64_t bundle) {
    const auto it = arrived_.find(bundle);
    return it != arrived_.end() && !it->second.empty();
  };
  if (const std::optional<uint64_t> next = client_->NextToTake()) {
    return has_rows(*next) ? next : std::nullopt;
  }
  // The one before, so that the journal is short. Where each is all that a
  // worker computes, of all in turn, some rows each.
  if (current_ && has_rows(*current_) &&
      (!options_.division->by_worker || !is_turn_over_)) {
    return current_;
  }
  if (current_ && options_.division->by_worker) {
    for (auto it = arrived_.upper_bound(*current_); it != arrived_.end();
         ++it) {
      if (!it->second.empty()) return it->first;
    }
  }
  for (const auto& [bundle, rows] : arrived_) {
    if (!rows.empty()) return bundle;
  }
  return std::nullopt;
}

Chunk Pass::TakeFrom(uint64_t bundle, int64_t max_rows, bool is_given) {
  std::deque<Arrived>& queue = arrived_[bundle];
  Arrived& front = queue.front();
  const int64_t all = front.chunk.rows;
  const int64_t rows = std::min(max_rows, all);
  const auto items = static_cast<uint64_t>(rows);
  client_->Take(bundle, items);
  if (is_given) {
    client_->Give(bundle, items);
    log_.Add({bundle, front.position, items});
  }
  if (rows < all) {
    Chunk chunk = Slice(front.chunk, 0, rows);
    front.chunk = Slice(front.chunk, rows, all - rows);
    front.position += items;
    return chunk;
  }
  Chunk chunk = std::move(front.chunk);
  arrived_bytes_ -= front.bytes;
  const auto reader = readers_.find(bundle);
  if (reader != readers_.end()) reader->second.AddCredit(front.bytes);
  queue.pop_front();
  is_turn_over_ = true;
  if (queue.empty()) {
    arrived_.erase(bundle);
    // Where several share the rest, another one may come here now.
    if (options_.distribution.readers() > 1 && client_->is_over(bundle)) {
      Tell();
    }
  }
  if (arrived_bytes_ < options_.budget_bytes / 2 && client_->is_full()) {
    client_->set_is_full(false);
    Tell();
  }
  return chunk;
}

uint64_t Pass::PassOf(uint64_t bundle) const {
  if (!options_.division->stitch->repeat || bundles_in_pass_ == 0) return 0;
  return bundle / bundles_in_pass_;
}

uint64_t Pass::GroupSize() const {
  if (options_.loose == Loose::kAll) {
    return std::numeric_limits<int64_t>::max();
  }
  return static_cast<uint64_t>(options_.division->stitch->size) *
         std::max<uint64_t>(1, lanes());
}

void Pass::PoolLoose(uint64_t bundle) {
  const uint64_t pass = PassOf(bundle);
  Pool& pool = pools_[pass];
  pool.pass = pass;
  PoolFrom(bundle, GroupSize(), pool);
}

void Pass::PoolFrom(uint64_t bundle, uint64_t size, Pool& pool) {
  const Arrived& front = arrived_[bundle].front();
  pool.is_spare = front.is_spare;
  RowLog::Part part{bundle, front.position, 0};
  const auto most = static_cast<int64_t>(size - std::min(size, pool.rows));
  Chunk rows = TakeFrom(bundle, std::max<int64_t>(1, most), false);
  part.items = static_cast<uint64_t>(rows.rows);
  pool.rows += part.items;
  pool.chunks.push_back(std::move(rows));
  pool.parts.push_back(part);
}

void Pass::SetGroup(Pool pool) {
  log_.BeginStitched(pool.pass, pool.parts);
  group_ = std::move(pool);
}

bool Pass::BeginGroup() {
  if (spares_.rows > 0 &&
      (spares_.rows >= lanes() || client_->is_all_taken())) {
    SetGroup(std::exchange(spares_, Pool()));
    return true;
  }
  if (pools_.empty()) return false;
  const uint64_t size = GroupSize();
  auto due = std::find_if(pools_.begin(), pools_.end(), [&](const auto& each) {
    return each.second.rows >= size;
  });
  if (due == pools_.end()) {
    // Nothing more comes to the first pool, since all of its pass is here.
    if (options_.loose != Loose::kNone) {
      if (client_->is_all_taken()) KeepLoose();
      return false;
    }
    const bool is_over =
        client_->is_all_taken() ||
        (options_.division->stitch->repeat && bundles_in_pass_ > 0 &&
         client_->low() >= (pools_.begin()->first + 1) * bundles_in_pass_);
    if (!is_over) return false;
    due = pools_.begin();
  }
  SetGroup(std::move(due->second));
  pools_.erase(due);
  return true;
}

void Pass::KeepLoose() {
  for (auto& [pass, pool] : pools_) {
    log_.BeginStitched(pass, pool.parts);
    log_.EndStitched();
    for (const RowLog::Part& part : pool.parts) {
      client_->Give(part.bundle, part.items);
    }
    std::move(pool.chunks.begin(), pool.chunks.end(),
              std::back_inserter(loose_));
  }
  pools_.clear();
}

std::vector<Chunk> Pass::loose() const {
  MutexLock lock(&mutex_);
  return loose_;
}

void Pass::EndGroup() {
  log_.EndStitched();
  for (const RowLog::Part& part : group_->parts) {
    client_->Give(part.bundle, part.items);
  }
  group_.reset();
}

void Pass::DropBefore(uint64_t bundle, uint64_t position) {
  while (arrived_.contains(bundle)) {
    const uint64_t at = arrived_[bundle].front().position;
    if (at >= position) return;
    const Chunk rows =
        TakeFrom(bundle, static_cast<int64_t>(position - at), false);
    client_->Give(bundle, static_cast<uint64_t>(rows.rows));
  }
}

bool Pass::ClipToArrived(std::vector<RowLog::Part>& parts) const {
  for (RowLog::Part& part : parts) {
    const uint64_t end = part.position + part.items;
    uint64_t here = 0;
    uint64_t begin = part.position;
    if (const auto it = arrived_.find(part.bundle); it != arrived_.end()) {
      for (const Arrived& rows : it->second) {
        const uint64_t first = std::max(part.position, rows.position);
        const uint64_t last = std::min(
            end, rows.position + static_cast<uint64_t>(rows.chunk.rows));
        if (first >= last) continue;
        if (here == 0) begin = first;
        here += last - first;
      }
    }
    if (here < part.items && !client_->is_over(part.bundle)) return false;
    part.position = begin;
    part.items = here;
  }
  std::erase_if(parts,
                [](const RowLog::Part& part) { return part.items == 0; });
  return true;
}

// Rows come as they came before. They were bound to this reader then, so each
// of them comes again, sooner or later; at most once, some may be lost.
std::optional<Chunk> Pass::FollowScript(int64_t max_rows) {
  RowLog::Entry& entry = script_.front();
  if (!entry.is_stitched) {
    RowLog::Part& part = entry.parts[0];
    DropBefore(part.bundle, part.position);
    if (!arrived_.contains(part.bundle)) {
      if (client_->is_over(part.bundle)) script_.pop_front();
      return std::nullopt;
    }
    const uint64_t end = part.position + part.items;
    const uint64_t at = arrived_[part.bundle].front().position;
    if (at >= end) {
      script_.pop_front();
      return std::nullopt;
    }
    Chunk rows = TakeFrom(
        part.bundle, std::min(max_rows, static_cast<int64_t>(end - at)), true);
    part.position = at + static_cast<uint64_t>(rows.rows);
    part.items = end - part.position;
    if (part.items == 0) script_.pop_front();
    return rows;
  }
  Pool pool;
  pool.pass = entry.pass;
  pool.parts = entry.parts;
  if (!ClipToArrived(pool.parts)) return std::nullopt;
  for (const RowLog::Part& part : pool.parts) {
    DropBefore(part.bundle, part.position);
    uint64_t left = part.items;
    while (left > 0) {
      pool.is_spare = arrived_[part.bundle].front().is_spare;
      Chunk rows = TakeFrom(part.bundle, static_cast<int64_t>(left), false);
      left -= static_cast<uint64_t>(rows.rows);
      pool.rows += static_cast<uint64_t>(rows.rows);
      pool.chunks.push_back(std::move(rows));
    }
  }
  script_.pop_front();
  if (!pool.parts.empty()) SetGroup(std::move(pool));
  return std::nullopt;
}

// --- frames ---

void Pass::OnFrame(uint64_t bundle, uint64_t attempt, const FrameHeader& head,
                   Buffer bytes) {
  absl::StatusOr<Chunk> chunk = Chunk();
  if (head.items() > 0) chunk = ToChunk(head, bytes);
  std::string address;
  bool is_first;
  engine::Waker woken;
  {
    MutexLock lock(&mutex_);
    const auto reader = readers_.find(bundle);
    if (reader == readers_.end() || reader->second.attempt != attempt ||
        is_closing_) {
      return;
    }
    address = reader->second.address;
    is_first = !std::exchange(reader->second.has_come, true);
    if (!chunk.ok()) {
      client_->OnBroken(bundle, attempt, std::string(chunk.status().message()));
      if (reader->second.reading != nullptr) reader->second.reading->Stop();
      Tell(/*is_urgent=*/true);
      return;
    }
    FrameHead found;
    found.epoch = client_->epoch();
    found.bundle = bundle;
    found.attempt = attempt;
    found.position = head.position();
    found.items = head.items();
    found.is_end = head.is_end();
    found.digest = head.digest();
    found.is_gone = head.is_gone();
    const ClientState::Taken taken = client_->OnFrame(found);
    if (taken.is_out_of_step) {
      client_->OnBroken(bundle, attempt, "items are missing");
      if (reader->second.reading != nullptr) reader->second.reading->Stop();
      Tell(/*is_urgent=*/true);
      return;
    }
    if (taken.take > 0) {
      Arrived arrived;
      arrived.position = head.position() + taken.skip;
      arrived.chunk = Slice(*chunk, static_cast<int64_t>(taken.skip),
                            static_cast<int64_t>(taken.take));
      arrived.is_loose = head.is_loose();
      arrived.is_spare = head.is_spare();
      arrived.bytes = head.frame_bytes();
      arrived_bytes_ += arrived.bytes;
      arrived_[bundle].push_back(std::move(arrived));
      if (arrived_bytes_ >= options_.budget_bytes) client_->set_is_full(true);
    } else {
      reader->second.AddCredit(head.frame_bytes());
    }
    if (!head.is_end()) Widen(reader->second, head.frame_bytes());
    if (head.is_end()) {
      Finished finished;
      finished.set_bundle(bundle);
      finished.set_items(taken.end);
      log_.OnSize(finished, client_->from(bundle));
      Tell();
    }
    WarnOfMissed();
    woken = WakeReader();
  }
  if (is_first) options_.link->OnWorkerAnswer(address);
}

Buffer Pass::Allocate(size_t size) {
  if (options_.environment.frames != nullptr && size >= kMinReservedBytes) {
    const std::vector<Buffer> reserved =
        options_.environment.frames->Reserve({size});
    if (!reserved.empty()) return reserved[0];
  }
  return Buffer::Allocate(size);
}

}  // namespace penstock::service

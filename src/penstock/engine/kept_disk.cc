#include "penstock/engine/kept_disk.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "penstock/base/status.h"
#include "penstock/base/wire.h"
#include "penstock/data/encode.h"
#include "penstock/io/crc32c.h"
#include "penstock/io/file_system.h"

namespace penstock::engine {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSegmentMagic = "PSKEEP1\n";
constexpr std::string_view kIndexMagic = "PSKEEPI1";
constexpr std::string_view kIndexName = "index";
constexpr std::string_view kUnfinished = ".unfinished-";
constexpr size_t kAlignment = 64;

// Rows that are written together have at least as many bytes.
constexpr int64_t kSegmentBytes = int64_t{8} << 20;
// No index is larger.
constexpr int64_t kMaxIndexBytes = int64_t{256} << 20;
// What a writer left that was killed, or lost to another one, goes after it.
constexpr std::chrono::hours kMaxLeftAlone(1);

absl::Status Damaged(std::string_view what) {
  return absl::DataLossError(absl::StrCat("damaged: ", std::string(what)));
}

size_t Aligned(size_t offset) {
  return (offset + kAlignment - 1) / kAlignment * kAlignment;
}

uint32_t CrcAt(std::string_view bytes) {
  uint32_t crc = 0;
  std::memcpy(&crc, bytes.data(), sizeof(crc));
  return crc;
}

// A file whose last four bytes are the crc of those before, which it gives.
absl::StatusOr<Buffer> ReadChecked(const std::string& path, int64_t max_bytes) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::unique_ptr<io::File> file,
                            io::LocalFileSystem().Open(path));
  const int64_t size = file->size();
  if (size < static_cast<int64_t>(sizeof(uint32_t)) || size > max_bytes) {
    return Damaged("its size");
  }
  Buffer bytes = Buffer::Allocate(size);
  PENSTOCK_ASSIGN_OR_RETURN(const size_t read,
                            file->ReadAt(0, bytes.MutableAs<char>(), size));
  if (read != static_cast<size_t>(size)) return Damaged("it is cut");
  const std::string_view view(bytes.As<char>(), size);
  const std::string_view covered = view.substr(0, size - sizeof(uint32_t));
  if (io::Crc32c(covered) != CrcAt(view.substr(covered.size()))) {
    return Damaged("its checksum");
  }
  return Buffer(bytes.owner(), bytes.As<char>(), covered.size());
}

absl::StatusOr<KeptDisk::Index> ParseIndex(std::string_view bytes) {
  WireReader reader(bytes);
  KeptDisk::Index index;
  PENSTOCK_ASSIGN_OR_RETURN(const std::string_view magic, reader.Bytes());
  if (magic != kIndexMagic) return Damaged("of another version");
  PENSTOCK_ASSIGN_OR_RETURN(const uint64_t end, reader.Varint());
  if (end > 0) index.end = static_cast<int64_t>(end - 1);
  PENSTOCK_ASSIGN_OR_RETURN(const uint64_t segments, reader.Varint());
  int64_t next = 0;
  for (uint64_t i = 0; i < segments; ++i) {
    KeptDisk::Segment segment;
    PENSTOCK_ASSIGN_OR_RETURN(segment.first, reader.Signed());
    PENSTOCK_ASSIGN_OR_RETURN(segment.rows, reader.Signed());
    PENSTOCK_ASSIGN_OR_RETURN(segment.bytes, reader.Signed());
    PENSTOCK_ASSIGN_OR_RETURN(const uint64_t crc, reader.Varint());
    segment.crc = static_cast<uint32_t>(crc);
    if (segment.first < next || segment.rows < 1 || segment.bytes < 1) {
      return Damaged("its segments");
    }
    next = segment.first + segment.rows;
    index.segments[segment.first] = segment;
  }
  if (index.end.has_value() && *index.end < next) return Damaged("its end");
  PENSTOCK_ASSIGN_OR_RETURN(const uint64_t files, reader.Varint());
  for (uint64_t i = 0; i < files; ++i) {
    FileName name;
    io::FileStamp stamp;
    PENSTOCK_ASSIGN_OR_RETURN(name.is_pattern, reader.Bool());
    PENSTOCK_ASSIGN_OR_RETURN(const std::string_view text, reader.Bytes());
    name.name = std::string(text);
    PENSTOCK_ASSIGN_OR_RETURN(stamp.size, reader.Signed());
    PENSTOCK_ASSIGN_OR_RETURN(stamp.changed_ns, reader.Signed());
    PENSTOCK_ASSIGN_OR_RETURN(stamp.inode, reader.Varint());
    index.manifest[std::move(name)] = stamp;
  }
  if (!reader.is_at_end()) return Damaged("its length");
  return index;
}

std::string WriteIndexText(const KeptDisk::Index& index) {
  WireWriter writer;
  writer.Bytes(kIndexMagic);
  writer.Varint(index.end.has_value() ? *index.end + 1 : 0);
  writer.Varint(index.segments.size());
  for (const auto& [first, segment] : index.segments) {
    writer.Signed(segment.first);
    writer.Signed(segment.rows);
    writer.Signed(segment.bytes);
    writer.Varint(segment.crc);
  }
  writer.Varint(index.manifest.size());
  for (const auto& [name, stamp] : index.manifest) {
    writer.Bool(name.is_pattern);
    writer.Bytes(name.name);
    writer.Signed(stamp.size);
    writer.Signed(stamp.changed_ns);
    writer.Varint(stamp.inode);
  }
  return writer.Take();
}

// A segment: magic, u64 first, u64 chunks; of each chunk u64 encoded bytes and
// u64 lineage bytes; then these, each at a multiple of 64.
struct Layout {
  size_t chunks_at = kSegmentMagic.size() + 2 * sizeof(uint64_t);
  size_t bodies_at;

  explicit Layout(size_t chunks)
      : bodies_at(Aligned(chunks_at + chunks * 2 * sizeof(uint64_t))) {}
};

uint64_t WordAt(std::string_view bytes, size_t offset) {
  uint64_t word = 0;
  std::memcpy(&word, bytes.data() + offset, sizeof(word));
  return word;
}

absl::StatusOr<std::map<int64_t, Chunk>> ParseSegment(
    const Buffer& bytes, const KeptDisk::Segment& segment) {
  const std::string_view view(bytes.As<char>(), bytes.size());
  const size_t head = kSegmentMagic.size() + 2 * sizeof(uint64_t);
  if (view.size() < head || view.substr(0, 8) != kSegmentMagic) {
    return Damaged("its head");
  }
  const uint64_t count = WordAt(view, 16);
  if (WordAt(view, 8) != static_cast<uint64_t>(segment.first) ||
      count > (view.size() - head) / (2 * sizeof(uint64_t))) {
    return Damaged("its head");
  }
  const Layout layout(count);
  std::map<int64_t, Chunk> chunks;
  int64_t row = segment.first;
  size_t at = layout.bodies_at;
  const auto take = [&](uint64_t size) -> absl::StatusOr<Buffer> {
    if (at > view.size() || size > view.size() - at) {
      return Damaged("its chunks");
    }
    Buffer part(bytes.owner(), view.data() + at, size);
    at = Aligned(at + size);
    return part;
  };
  for (uint64_t i = 0; i < count; ++i) {
    const size_t sizes = layout.chunks_at + i * 2 * sizeof(uint64_t);
    PENSTOCK_ASSIGN_OR_RETURN(const Buffer encoded, take(WordAt(view, sizes)));
    PENSTOCK_ASSIGN_OR_RETURN(Buffer lineage, take(WordAt(view, sizes + 8)));
    PENSTOCK_ASSIGN_OR_RETURN(Chunk chunk, Decode(encoded));
    if (chunk.rows < 1 || !chunk.errors.empty() ||
        (lineage.size() > 0 &&
         lineage.size() != chunk.rows * sizeof(uint64_t))) {
      return Damaged("its rows");
    }
    if (lineage.size() > 0) chunk.lineage = std::move(lineage);
    const int64_t rows = chunk.rows;
    chunks[row] = std::move(chunk);
    row += rows;
  }
  if (row != segment.first + segment.rows) return Damaged("its rows");
  return chunks;
}

int64_t FileBytes(const fs::path& path) {
  std::error_code error;
  const auto bytes = fs::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(bytes);
}

bool IsOld(const fs::path& path) {
  std::error_code error;
  const fs::file_time_type changed = fs::last_write_time(path, error);
  return !error && fs::file_time_type::clock::now() - changed > kMaxLeftAlone;
}

}  // namespace

int64_t KeptDisk::Index::bytes() const {
  int64_t sum = 0;
  for (const auto& [first, segment] : segments) sum += segment.bytes;
  return sum;
}

std::string KeptDisk::PathOf(const std::string& key) const {
  return absl::StrCat(directory_, "/", key);
}

std::string KeptDisk::PathOf(const std::string& key,
                             const Segment& segment) const {
  return absl::StrFormat("%s/%d-%08x", PathOf(key), segment.first, segment.crc);
}

KeptDisk::Index KeptDisk::ReadIndex(const std::string& key) {
  const std::string path =
      absl::StrCat(PathOf(key), "/", std::string(kIndexName));
  const absl::StatusOr<Buffer> bytes = ReadChecked(path, kMaxIndexBytes);
  if (!bytes.ok()) return {};
  absl::StatusOr<Index> index = ParseIndex({bytes->As<char>(), bytes->size()});
  if (!index.ok()) return {};
  std::error_code ignored;  // what was used last is the last to go
  fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
  return *std::move(index);
}

absl::Status KeptDisk::WriteFile(const std::string& key,
                                 const std::string& path,
                                 const std::vector<std::string_view>& parts) {
  mkdir(directory_.c_str(), 0700);
  mkdir(PathOf(key).c_str(), 0700);
  const std::string beside =
      absl::StrCat(PathOf(key), "/", std::string(kUnfinished), getpid(), "-",
                   next_name_.fetch_add(1));
  absl::Status status = [&] {
    PENSTOCK_ASSIGN_OR_RETURN(const auto file,
                              io::LocalFileSystem().Create(beside));
    for (std::string_view part : parts) {
      PENSTOCK_RETURN_IF_ERROR(file->Append(part));
    }
    return file->Close();
  }();
  // Not waiting for storage: after a loss of power the checksum tells.
  if (status.ok() && std::rename(beside.c_str(), path.c_str()) != 0) {
    status = absl::UnavailableError("a kept file could not be renamed");
  }
  if (!status.ok()) unlink(beside.c_str());
  return status;
}

absl::Status KeptDisk::WriteIndex(const std::string& key, const Index& index) {
  std::string text = WriteIndexText(index);
  const uint32_t crc = io::Crc32c(text);
  text.append(reinterpret_cast<const char*>(&crc), sizeof(crc));
  PENSTOCK_RETURN_IF_ERROR(WriteFile(
      key, absl::StrCat(PathOf(key), "/", std::string(kIndexName)), {text}));
  // Segments that no index has any more.
  std::set<std::string> names;
  for (const auto& [first, segment] : index.segments) {
    names.insert(PathOf(key, segment));
  }
  std::error_code error;
  for (const fs::directory_entry& each :
       fs::directory_iterator(PathOf(key), error)) {
    const std::string path = each.path().string();
    if (each.path().filename() == kIndexName || names.contains(path)) continue;
    if (IsOld(each.path())) unlink(path.c_str());
  }
  MakeRoom(key);
  return absl::OkStatus();
}

absl::StatusOr<std::map<int64_t, Chunk>> KeptDisk::ReadSegment(
    const std::string& key, const Segment& segment) {
  PENSTOCK_ASSIGN_OR_RETURN(const Buffer bytes,
                            ReadChecked(PathOf(key, segment), segment.bytes));
  return ParseSegment(bytes, segment);
}

absl::StatusOr<KeptDisk::Segment> KeptDisk::WriteSegment(
    const std::string& key, int64_t first, const std::vector<Chunk>& chunks) {
  const Layout layout(chunks.size());
  size_t size = layout.bodies_at;
  for (const Chunk& chunk : chunks) {
    size = Aligned(Aligned(size + EncodedSize(chunk)) + chunk.lineage.size());
  }
  Buffer bytes = Buffer::Allocate(size);
  auto* out = bytes.MutableAs<char>();
  std::memset(out, 0, size);
  const auto write = [&](size_t at, uint64_t word) {
    std::memcpy(out + at, &word, sizeof(word));
  };
  std::memcpy(out, kSegmentMagic.data(), kSegmentMagic.size());
  write(8, static_cast<uint64_t>(first));
  write(16, chunks.size());
  Segment segment;
  segment.first = first;
  size_t at = layout.bodies_at;
  for (size_t i = 0; i < chunks.size(); ++i) {
    const Chunk& chunk = chunks[i];
    const size_t sizes = layout.chunks_at + i * 2 * sizeof(uint64_t);
    write(sizes, EncodedSize(chunk));
    write(sizes + 8, chunk.lineage.size());
    Encode(chunk, reinterpret_cast<std::byte*>(out + at));
    at = Aligned(at + EncodedSize(chunk));
    if (chunk.has_lineage()) {
      std::memcpy(out + at, chunk.lineage.As<char>(), chunk.lineage.size());
    }
    at = Aligned(at + chunk.lineage.size());
    segment.rows += chunk.rows;
  }
  segment.crc = io::Crc32c({out, size});
  segment.bytes = static_cast<int64_t>(size + sizeof(segment.crc));
  PENSTOCK_RETURN_IF_ERROR(WriteFile(
      key, PathOf(key, segment),
      {{out, size},
       {reinterpret_cast<const char*>(&segment.crc), sizeof(segment.crc)}}));
  return segment;
}

void KeptDisk::Remove(const std::string& key, const Segment& segment) {
  unlink(PathOf(key, segment).c_str());
}

void KeptDisk::Drop(const std::string& key) {
  std::error_code ignored;
  fs::remove_all(PathOf(key), ignored);
}

void KeptDisk::MakeRoom(const std::string& kept_key) {
  struct Entry {
    bool is_kept;
    fs::file_time_type used;
    std::string key;
    int64_t bytes;
  };
  std::vector<Entry> entries;
  int64_t sum = 0;
  std::error_code error;
  for (const fs::directory_entry& key :
       fs::directory_iterator(directory_, error)) {
    Entry entry;
    entry.key = key.path().filename().string();
    entry.is_kept = entry.key == kept_key;
    entry.bytes = 0;
    std::error_code ignored;
    entry.used = fs::last_write_time(key.path() / kIndexName, ignored);
    if (ignored) entry.used = fs::last_write_time(key.path(), ignored);
    for (const fs::directory_entry& file :
         fs::directory_iterator(key.path(), ignored)) {
      entry.bytes += FileBytes(file.path());
    }
    sum += entry.bytes;
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::tie(a.is_kept, a.used) < std::tie(b.is_kept, b.used);
  });
  for (const Entry& entry : entries) {
    if (sum <= max_bytes_) break;
    Drop(entry.key);
    sum -= entry.bytes;
  }
}

void DiskPass::Open(io::FileSystem& files) {
  MutexLock lock(&mutex_);
  index_ = disk_->ReadIndex(key_);
  if (IsUnchanged(files, index_.manifest)) return;
  disk_->Drop(key_);
  index_ = {};
}

DiskPass::Found DiskPass::Find(int64_t row, int64_t max_rows) {
  MutexLock lock(&mutex_);
  Found found;
  auto loaded = read_.upper_bound(row);
  if (loaded != read_.begin()) {
    const auto& [first, chunk] = *std::prev(loaded);
    if (row < first + chunk.rows) {
      found.kind = Found::Kind::kRows;
      found.chunk = Slice(chunk, row - first,
                          std::min(max_rows, first + chunk.rows - row));
      return found;
    }
  }
  const auto after = index_.segments.upper_bound(row);
  if (after != index_.segments.begin()) {
    const KeptDisk::Segment& segment = std::prev(after)->second;
    if (row < segment.first + segment.rows) {
      found.kind = Found::Kind::kUnread;
      return found;
    }
  }
  if (index_.end.has_value() && row >= *index_.end) {
    found.kind = Found::Kind::kEnd;
    return found;
  }
  found.hole_rows = after != index_.segments.end()
                        ? after->first - row
                        : std::numeric_limits<int64_t>::max();
  return found;
}

void DiskPass::Load(int64_t row) {
  MutexLock lock(&mutex_);
  read_.clear();
  reservation_.reset();
  auto at = index_.segments.upper_bound(row);
  if (at == index_.segments.begin()) return;
  --at;
  auto reservation = std::make_unique<Reservation>(memory_);
  if (!reservation->TryGrow(at->second.bytes)) {
    index_.segments.erase(at);  // it stays where it is, for others
    return;
  }
  absl::StatusOr<std::map<int64_t, Chunk>> chunks =
      disk_->ReadSegment(key_, at->second);
  const bool fits =
      chunks.ok() &&
      std::all_of(chunks->begin(), chunks->end(), [this](const auto& each) {
        return CheckColumns(each.second, leaves_).ok();
      });
  if (!fits) {
    disk_->Remove(key_, at->second);
    gone_.insert(at->first);
    index_.segments.erase(at);
    has_news_ = true;
    return;
  }
  read_ = *std::move(chunks);
  reservation_ = std::move(reservation);
}

bool DiskPass::Add(int64_t first, Chunk chunk, int64_t bytes) {
  MutexLock lock(&mutex_);
  // After a gap, they are a segment of their own.
  if (fresh_.empty() || next_fresh_ != first) fresh_[first];
  next_fresh_ = first + chunk.rows;
  fresh_bytes_ += bytes;
  fresh_.rbegin()->second.push_back(std::move(chunk));
  return fresh_bytes_ >= kSegmentBytes;
}

void DiskPass::AddFiles(const std::vector<FileLog::Record>& records) {
  MutexLock lock(&mutex_);
  for (const auto& [name, stamp] : records) {
    const auto [at, is_new] = index_.manifest.try_emplace(name, stamp);
    if (is_new || at->second == stamp) continue;
    at->second = stamp;
    index_.segments.clear();
    index_.end.reset();
    read_.clear();
    fresh_.clear();
    fresh_bytes_ = 0;
  }
}

void DiskPass::SetEnd(int64_t rows) {
  MutexLock lock(&mutex_);
  const auto& segments = index_.segments;
  if (!segments.empty() &&
      segments.rbegin()->first + segments.rbegin()->second.rows > rows) {
    index_.segments.clear();
    read_.clear();
  }
  has_news_ |= index_.end != rows;
  index_.end = rows;
}

void DiskPass::WriteLocked() {
  for (const auto& [first, chunks] : fresh_) {
    const absl::StatusOr<KeptDisk::Segment> segment =
        disk_->WriteSegment(key_, first, chunks);
    if (!segment.ok()) continue;  // the disk is full, say: computed again
    index_.segments[first] = *segment;
    has_news_ = true;
  }
  fresh_.clear();
  fresh_bytes_ = 0;
}

void DiskPass::Write() {
  MutexLock lock(&mutex_);
  WriteLocked();
}

void DiskPass::Finish() {
  MutexLock lock(&mutex_);
  WriteLocked();
  if (!has_news_) return;
  has_news_ = false;
  // Others may have written meanwhile.
  const KeptDisk::Index other = disk_->ReadIndex(key_);
  if (other.manifest == index_.manifest) {
    for (const auto& [first, segment] : other.segments) {
      if (gone_.contains(first)) continue;
      const auto after = index_.segments.lower_bound(first);
      const bool overlaps =
          (after != index_.segments.end() &&
           after->first < first + segment.rows) ||
          (after != index_.segments.begin() &&
           std::prev(after)->first + std::prev(after)->second.rows > first);
      if (!overlaps) index_.segments[first] = segment;
    }
  }
  disk_->WriteIndex(key_, index_).IgnoreError();  // as if it were not kept
}

int64_t DiskPass::bytes() const {
  MutexLock lock(&mutex_);
  return index_.bytes() + fresh_bytes_;
}

bool DiskPass::is_complete() const {
  MutexLock lock(&mutex_);
  int64_t rows = 0;
  for (const auto& [first, segment] : index_.segments) rows += segment.rows;
  for (const auto& [first, chunks] : fresh_) {
    for (const Chunk& chunk : chunks) rows += chunk.rows;
  }
  return index_.end == rows;
}

}  // namespace penstock::engine

// Compares TfRecordReader with the least that any reader has to do: read the
// file into one buffer and verify the same checksums. Both read from the page
// cache.
//
//   cmake --build --preset release --target tfrecord_bench
//   build/release/src/penstock/io/tfrecord_bench [record_bytes] [path]
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "penstock/io/crc32c.h"
#include "penstock/io/tfrecord_reader.h"
#include "penstock/io/tfrecord_writer.h"

namespace penstock::io {
namespace {

constexpr size_t kFileBytes = size_t{512} << 20;

void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

void Write(const std::string& path, size_t record_bytes) {
  auto writer = CreateTfRecordWriter(LocalFileSystem(), path);
  Check(writer.status());
  std::string record(record_bytes, 'x');
  for (size_t i = 0; i * (record_bytes + 16) < kFileBytes; ++i) {
    std::memcpy(record.data(), &i, std::min(sizeof(i), record_bytes));
    Check((*writer)->Write(record));
  }
  Check((*writer)->Close());
}

// The bare loop: returns how many records it saw.
int64_t ReadBare(const std::string& path) {
  auto file = LocalFileSystem().Open(path);
  Check(file.status());
  std::vector<char> buffer(size_t{256} << 10);
  int64_t num_records = 0;
  int64_t offset = 0;
  size_t size = 0;
  for (;;) {
    auto n =
        (*file)->ReadAt(offset, buffer.data() + size, buffer.size() - size);
    Check(n.status());
    if (*n == 0) return num_records;
    offset += static_cast<int64_t>(*n);
    size += *n;
    const char* p = buffer.data();
    const char* end = p + size;
    while (end - p >= 12) {
      uint64_t length;
      uint32_t crc;
      std::memcpy(&length, p, 8);
      std::memcpy(&crc, p + 8, 4);
      if (crc != MaskedCrc32c({p, 8})) std::abort();
      if (static_cast<size_t>(end - p) < length + 16) break;
      std::memcpy(&crc, p + 12 + length, 4);
      if (crc != MaskedCrc32c({p + 12, length})) std::abort();
      p += length + 16;
      ++num_records;
    }
    size = static_cast<size_t>(end - p);
    std::memmove(buffer.data(), p, size);
    if (size == buffer.size()) buffer.resize(2 * buffer.size());
  }
}

int64_t ReadWithReader(const std::string& path, IoPool& io_pool) {
  RecordReaderOptions options;
  options.stream.io_pool = &io_pool;
  auto reader = OpenTfRecordReader(LocalFileSystem(), path, options);
  Check(reader.status());
  RecordBatch batch;
  int64_t num_records = 0;
  for (;;) {
    const ReadState state = (*reader)->Next(
        1024, [] {}, batch);
    if (state == ReadState::kEnd) return num_records;
    Check(batch.error);
    num_records += static_cast<int64_t>(batch.records.size());
  }
}

template <typename Function>
double Seconds(Function function) {
  const auto start = std::chrono::steady_clock::now();
  function();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

int Main(int argc, char** argv) {
  const size_t record_bytes =
      argc > 1 ? static_cast<size_t>(std::atoll(argv[1])) : 200;
  const std::string path = argc > 2 ? argv[2] : "/tmp/tfrecord_bench.tfrecord";
  Write(path, record_bytes);
  IoPool io_pool;
  int64_t num_bare = ReadBare(path);
  int64_t num_read = ReadWithReader(path, io_pool);
  double bare = 1e9;
  double reader = 1e9;
  // In turns, and the best of each: the machine may be busy otherwise.
  for (int i = 0; i < 7; ++i) {
    bare = std::min(bare, Seconds([&] { num_bare = ReadBare(path); }));
    reader = std::min(
        reader, Seconds([&] { num_read = ReadWithReader(path, io_pool); }));
  }
  std::remove(path.c_str());
  const double gigabytes =
      static_cast<double>(num_bare) * (record_bytes + 16.0) / 1e9;
  std::printf("%zu-byte records, %lld and %lld\n", record_bytes,
              static_cast<long long>(num_bare),
              static_cast<long long>(num_read));
  std::printf("bare loop  %6.2f M records/s  %5.2f GB/s\n",
              static_cast<double>(num_bare) / bare / 1e6, gigabytes / bare);
  std::printf("reader     %6.2f M records/s  %5.2f GB/s\n",
              static_cast<double>(num_read) / reader / 1e6, gigabytes / reader);
  std::printf("ratio      %6.3f\n", bare / reader);
  return 0;
}

}  // namespace
}  // namespace penstock::io

int main(int argc, char** argv) { return penstock::io::Main(argc, argv); }

#include "penstock/plan/snapshot_log.h"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/base/hash.h"
#include "penstock/base/status.h"
#include "penstock/plan/snapshot.h"

namespace penstock::plan {
namespace {

constexpr std::string_view kMagic = "PSNP";
constexpr size_t kRecordHeadBytes = 12;

void Put(uint64_t value, int bytes, std::string& out) {
  for (int i = 0; i < bytes; ++i) {
    out.push_back(static_cast<char>(value >> (8 * i)));
  }
}

uint64_t Get(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | static_cast<uint8_t>(bytes[i]);
  }
  return value;
}

uint64_t CheckOf(std::string_view record) {
  return HashBytes(record, /*seed=*/record.size());
}

absl::Status Damaged(absl::string_view what, size_t offset) {
  return absl::DataLossError(
      absl::StrCat("snapshot file: ", what, " at byte ", offset,
                   "; the snapshots before it are whole"));
}

absl::Status FileError(absl::string_view what, const std::string& path) {
  const std::error_code code(errno, std::generic_category());
  return absl::Status(code == std::errc::no_such_file_or_directory
                          ? absl::StatusCode::kNotFound
                          : absl::StatusCode::kUnavailable,
                      absl::StrCat("cannot ", what, " snapshot file ", path,
                                   ": ", code.message()));
}

}  // namespace

absl::Status AppendSnapshot(const Snapshot& snapshot, std::string& log) {
  if (snapshot.ByteSizeLong() > kMaxSnapshotBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a snapshot must have at most ", kMaxSnapshotBytes,
                     " bytes; got ", snapshot.ByteSizeLong()));
  }
  if (log.empty()) {
    log.append(kMagic);
    Put(kSnapshotVersion, 4, log);
  }
  const std::string record = snapshot.SerializeAsString();
  Put(record.size(), 4, log);
  Put(CheckOf(record), 8, log);
  log.append(record);
  return absl::OkStatus();
}

SnapshotLog ParseSnapshotLog(std::string_view log) {
  SnapshotLog result;
  if (log.empty()) return result;
  if (log.size() < kSnapshotHeadBytes || log.substr(0, 4) != kMagic) {
    result.status = absl::DataLossError(
        "expected a snapshot file, which begins with PSNP; found another");
    return result;
  }
  if (const uint64_t version = Get(log.substr(4, 4));
      version != kSnapshotVersion) {
    result.status =
        absl::DataLossError(absl::StrCat("snapshot file: version must be ",
                                         kSnapshotVersion, "; got ", version));
    return result;
  }
  size_t offset = kSnapshotHeadBytes;
  while (offset < log.size()) {
    const std::string_view rest = log.substr(offset);
    if (rest.size() < kRecordHeadBytes) {
      result.status = Damaged("cut", offset);
      return result;
    }
    const uint64_t length = Get(rest.substr(0, 4));
    if (length > kMaxSnapshotBytes) {
      result.status = Damaged(absl::StrCat("a length of ", length), offset);
      return result;
    }
    if (length > rest.size() - kRecordHeadBytes) {
      result.status = Damaged("cut", offset);
      return result;
    }
    const std::string_view record = rest.substr(kRecordHeadBytes, length);
    Snapshot snapshot;
    if (Get(rest.substr(4, 8)) != CheckOf(record) ||
        !snapshot.ParseFromArray(record.data(),
                                 static_cast<int>(record.size()))) {
      result.status = Damaged("a damaged record", offset);
      return result;
    }
    result.snapshots.push_back(std::move(snapshot));
    offset += kRecordHeadBytes + length;
  }
  return result;
}

absl::Status WriteSnapshotFile(const std::string& path,
                               const std::vector<Snapshot>& snapshots) {
  std::string log;
  for (const Snapshot& snapshot : snapshots) {
    PENSTOCK_RETURN_IF_ERROR(AppendSnapshot(snapshot, log));
  }
  const std::string unfinished = absl::StrCat(path, ".unfinished");
  {
    std::ofstream file(unfinished, std::ios::binary | std::ios::trunc);
    file.write(log.data(), static_cast<std::streamsize>(log.size()));
    file.close();
    if (!file) return FileError("write", unfinished);
  }
  if (std::rename(unfinished.c_str(), path.c_str()) != 0) {
    return FileError("write", path);
  }
  return absl::OkStatus();
}

SnapshotLog ReadSnapshotFile(const std::string& path) {
  SnapshotLog result;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) {
    result.status = FileError("read", path);
    return result;
  }
  const std::streamoff size = file.tellg();
  if (size < 0 || static_cast<uint64_t>(size) > kMaxSnapshotLogBytes) {
    result.status = absl::ResourceExhaustedError(
        absl::StrCat("snapshot file ", path, " must have at most ",
                     kMaxSnapshotLogBytes, " bytes; got ", size));
    return result;
  }
  std::string log(static_cast<size_t>(size), '\0');
  file.seekg(0);
  file.read(log.data(), size);
  // A file that got shorter is a cut one.
  log.resize(static_cast<size_t>(file.gcount()));
  return ParseSnapshotLog(log);
}

}  // namespace penstock::plan

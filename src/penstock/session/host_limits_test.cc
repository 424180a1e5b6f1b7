#include "penstock/session/host_limits.h"

#include <map>
#include <string>

#include "gtest/gtest.h"

namespace penstock::session {
namespace {

using Files = std::map<std::string, std::string>;

constexpr int64_t kGiB = int64_t{1} << 30;

struct Case {
  std::string name;
  Files files = {};
  Files variables = {};
  int64_t cpus = 8;                  // of a machine with 8
  int64_t memory_bytes = kGiB * 64;  // and 64 GiB
};

HostLimits Find(const Files& files, const Files& variables) {
  const auto find = [](const Files& in) {
    return [&in](const std::string& name) -> std::optional<std::string> {
      auto it = in.find(name);
      if (it == in.end()) return std::nullopt;
      return it->second;
    };
  };
  return FindHostLimits(8, 64 * kGiB, find(files), find(variables));
}

class HostLimitsTest : public ::testing::TestWithParam<Case> {};

TEST_P(HostLimitsTest, AreTheLeast) {
  const HostLimits limits = Find(GetParam().files, GetParam().variables);
  EXPECT_EQ(limits.cpus, GetParam().cpus);
  EXPECT_EQ(limits.memory_bytes, GetParam().memory_bytes);
}

constexpr char kGroup[] = "/proc/self/cgroup";
constexpr char kRoot[] = "/sys/fs/cgroup";

std::string In(const std::string& path) { return kRoot + path; }

INSTANTIATE_TEST_SUITE_P(
    All, HostLimitsTest,
    ::testing::ValuesIn<Case>({
        {.name = "NoFiles"},
        {.name = "V2Root",
         .files = {{kGroup, "0::/\n"},
                   {In("/cpu.max"), "200000 100000\n"},
                   {In("/memory.max"), "1073741824\n"}},
         .cpus = 2,
         .memory_bytes = kGiB},
        {.name = "V2WithoutProc",
         .files = {{In("/cpu.max"), "300000 100000\n"}},
         .cpus = 3},
        {.name = "V2Nested",
         .files = {{kGroup, "0::/a/b\n"},
                   {In("/a/b/cpu.max"), "400000 100000\n"},
                   {In("/a/cpu.max"), "100000 100000\n"},
                   {In("/a/b/memory.max"), "4294967296\n"},
                   {In("/a/memory.max"), "8589934592\n"}},
         .cpus = 1,
         .memory_bytes = 4 * kGiB},
        {.name = "V2OfTheGrandparent",
         .files = {{kGroup, "0::/a/b/c\n"},
                   {In("/a/memory.max"), "2147483648\n"}},
         .memory_bytes = 2 * kGiB},
        {.name = "V2Max",
         .files = {{kGroup, "0::/a\n"},
                   {In("/a/cpu.max"), "max 100000\n"},
                   {In("/a/memory.max"), "max\n"}}},
        {.name = "HalfACpuIsOne",
         .files = {{In("/cpu.max"), "50000 100000\n"}},
         .cpus = 1},
        {.name = "OneAndAHalfAreTwo",
         .files = {{In("/cpu.max"), "150000 100000\n"}},
         .cpus = 2},
        {.name = "MoreThanTheMachine",
         .files = {{In("/cpu.max"), "6400000 100000\n"},
                   {In("/memory.max"), "1099511627776\n"}}},
        {.name = "Nonsense",
         .files = {{kGroup, "what\n0:\n::\n"},
                   {In("/cpu.max"), "many few\n"},
                   {In("/memory.max"), "-5\n"}}},
        {.name = "NoPeriod", .files = {{In("/cpu.max"), "100000 0\n"}}},
        {.name = "V1",
         .files = {{kGroup, "5:cpu,cpuacct:/job\n4:memory:/job\n"},
                   {In("/cpu/job/cpu.cfs_quota_us"), "150000\n"},
                   {In("/cpu/job/cpu.cfs_period_us"), "100000\n"},
                   {In("/memory/job/memory.limit_in_bytes"), "1073741824\n"}},
         .cpus = 2,
         .memory_bytes = kGiB},
        {.name = "V1Unlimited",
         .files = {{kGroup, "5:cpu:/\n4:memory:/\n"},
                   {In("/cpu/cpu.cfs_quota_us"), "-1\n"},
                   {In("/cpu/cpu.cfs_period_us"), "100000\n"},
                   {In("/memory/memory.limit_in_bytes"),
                    "9223372036854771712\n"}}},
        {.name = "V1InAContainer",  // its own group is the root that it sees
         .files = {{kGroup, "4:memory:/docker/1234\n"},
                   {In("/memory/memory.limit_in_bytes"), "536870912\n"}},
         .memory_bytes = kGiB / 2},
        {.name = "Torchrun",
         .variables = {{"LOCAL_WORLD_SIZE", "4"}},
         .cpus = 2,
         .memory_bytes = 16 * kGiB},
        {.name = "OpenMpi",
         .variables = {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}},
         .cpus = 4,
         .memory_bytes = 32 * kGiB},
        {.name = "Slurm",
         .variables = {{"SLURM_NTASKS_PER_NODE", "8"}},
         .cpus = 1,
         .memory_bytes = 8 * kGiB},
        {.name = "MoreRanksThanCpus",
         .variables = {{"LOCAL_WORLD_SIZE", "16"}},
         .cpus = 1,
         .memory_bytes = 4 * kGiB},
        {.name = "RanksAndQuota",
         .files = {{In("/cpu.max"), "600000 100000\n"}},
         .variables = {{"LOCAL_WORLD_SIZE", "2"}},
         .cpus = 3,
         .memory_bytes = 32 * kGiB},
        {.name = "NoRanks", .variables = {{"LOCAL_WORLD_SIZE", "0"}}},
        {.name = "NotANumber", .variables = {{"LOCAL_WORLD_SIZE", "four"}}},
    }),
    [](const auto& info) { return info.param.name; });

TEST(HostLimits, OfThisMachine) {
  const HostLimits limits = FindHostLimits();
  EXPECT_GE(limits.cpus, 1);
  EXPECT_GT(limits.memory_bytes, 0);
}

}  // namespace
}  // namespace penstock::session

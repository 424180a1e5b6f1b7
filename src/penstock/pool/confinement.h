// Processes that run code of others: what they see, and what they may take.
//
// A confined process has a session, a folder and an environment of its own, few
// descriptors, bounded memory, and no more rights than it was started with. It
// is not kept from files that the user may read, nor from the network.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penstock::pool {

struct Confinement {
  // Of its own memory, and of a file that it writes.
  int64_t memory_bytes = 0;
  // A folder in which each process gets one, that goes with it.
  std::string scratch;
  // Sealed: a zip of modules that it can import; -1: there is none.
  int archive_fd = -1;
  // Whether functions may come as pickles.
  bool accepts_pickles = false;
};

// All variables of its environment, each as NAME=value: of this process's those
// that find programs and libraries and say the language, and what is needed to
// run there. `directory` is its home, and where its temporary files go.
std::vector<std::string> ConfinedVariables(const Confinement& confinement,
                                           const std::string& directory);

// Takes effect for this process and its children. Between fork() and exec():
// nothing is allocated.
void ConfineThisProcess(int64_t memory_bytes);

// Keeps other processes of this user, confined ones above all, from reading
// this one's memory and environment. Without core dumps and debuggers, then.
void HideThisProcess();

}  // namespace penstock::pool

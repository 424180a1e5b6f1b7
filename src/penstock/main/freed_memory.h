// How much of the memory that was freed stays with the process.
#pragma once

#include <cstdint>

namespace penstock {

// Chunks of some hundred kilobytes come and go, and pages that were touched
// once are faster than fresh ones: so what was freed stays, but for large
// pieces and beyond a part of `memory_bytes`, which is what the process is to
// live with. Before threads are started.
void KeepFreedMemory(int64_t memory_bytes);

}  // namespace penstock

// The worker's own filter, on top of the sandbox's, put on once it has mapped what it shares with
// the harness and before it loads the submission. From then on all new memory is private: the
// kernel counts pages of shared memory as a file's, and forgets them where their last mapping goes
// although their contents stay.
#pragma once

namespace assay::worker {

// Hands every call that can shrink the process's memory to whoever reads the returned descriptor
// (processes/memory_watch.h); -1 where the kernel does not do that. Before seal().
int watch_memory();

// Refuses (EPERM) mappings that others could share, copies of shared mappings, open files passed to
// another process, and further filters.
// False where the kernel grants no filter; errno says why.
bool seal();

}  // namespace assay::worker

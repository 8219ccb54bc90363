// The worker's own filter, on top of the sandbox's. It is installed after the worker has mapped the
// memory that it shares with the harness and before it loads the submission. From then on all new
// memory is private: the kernel counts shared pages as file pages, and stops counting them after
// their last unmapping although their contents remain.
#pragma once

namespace assay::worker {

// Reports every call that can shrink the process's memory to the reader of the returned descriptor
// (processes/memory_watch.h); -1 if the kernel does not support that. Call it before seal().
int watch_memory();

// Refuses (EPERM) new shared mappings, copies of shared mappings, passing open files to another
// process, and further filters. False if the kernel does not accept the filter; errno says why.
bool seal();

}  // namespace assay::worker

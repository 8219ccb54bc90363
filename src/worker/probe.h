// What a sandboxed program must not be able to do, tried out from inside.
#pragma once

namespace assay::worker {

// Attempts the named action on `target` (a path or a process id; ignored by most). Returns 0 when
// the sandbox refused it with an error, 1 when it succeeded; what the filter kills does not return.
// "none" does nothing and returns 0. "load" is what a sandbox must permit: loading a library.
int probe(const char* action, const char* target);

}  // namespace assay::worker

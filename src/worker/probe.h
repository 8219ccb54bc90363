// Tries from inside the sandbox what a sandboxed program must not be able to do.
#pragma once

namespace assay::worker {

// Attempts the named action on `target` (a path or a process id; most actions ignore it). Returns 0
// if the sandbox refused it with an error, 1 if it succeeded; does not return if the filter kills
// the process. "none" does nothing and returns 0. "load", loading a library, is what a sandbox must
// permit.
int probe(const char* action, const char* target);

}  // namespace assay::worker

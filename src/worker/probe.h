// What a sandboxed program must not be able to do, tried out from inside.
#pragma once

namespace assay::worker {

// Attempts the named escape. Returns 0 when the sandbox refused it with an error, 1 when it
// succeeded; attempts that the filter kills do not return. "none" does nothing and returns 0.
int probe(const char* attempt);

}  // namespace assay::worker

// The process that forks the launchers of sandboxes.
//
// A fork copies the page tables of the process that forks, and each sandbox takes three forks. The
// harness may hold gigabytes, so it asks a small child of its own, the spawner, which was forked
// when the harness began and has held nothing since. Launchers are the harness's children all the
// same (CLONE_PARENT), so the harness sees what becomes of each sandbox.
//
// The spawner holds no descriptor of the harness's but the socket by which it is asked. It ends
// when that is closed, so at the latest with the harness, and is made again where it has ended.
#pragma once

#include <sys/types.h>

namespace assay::sandbox {

class LaunchRequest;

// Has the launcher started that the request is for. What becomes of it, and its process id, are
// told by `launch.report`. Throws Error where it cannot be asked, as TransientFault if that may
// pass. Any number of threads may call it.
void start_launcher(LaunchRequest&);

// This process's spawner; -1 while it has none. It may have ended.
pid_t spawner_pid();

}  // namespace assay::sandbox

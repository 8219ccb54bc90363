// The process that forks the launchers of sandboxes.
//
// A fork copies the page tables of its process, and each sandbox takes three forks. The harness may
// hold gigabytes. So it forks a spawner once, while it is small, and has the spawner fork the
// launchers. Launchers become children of the harness (CLONE_PARENT), which can wait for them.
//
// The spawner keeps no descriptor of the harness but the socket by which it is asked. It exits when
// that socket is closed, at the latest with the harness. If it has died, the next request replaces
// it.
#pragma once

#include <sys/types.h>

namespace assay::sandbox {

class LaunchRequest;

// Has the spawner start a launcher. `launch.report` of the request tells its process id and what
// becomes of it. Throws Error when the request cannot be sent, as a TransientFault if that may
// pass. Thread-safe.
void start_launcher(LaunchRequest&);

// The process id of this process's spawner, which may have died; -1 while there is none.
pid_t spawner_pid();

}  // namespace assay::sandbox

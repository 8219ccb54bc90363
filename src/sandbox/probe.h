// Which isolation works on this machine, found by trying to escape from real sandboxes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sandbox/sandbox.h"

namespace assay::sandbox {

struct ProbeResult {
  std::string attempt;
  bool contained = false;
  std::string outcome;  // "refused", "killed by the filter", "SUCCEEDED", ...
};

struct TierReport {
  Tier tier = Tier::none;
  // Why a stronger tier is not used; empty when it is used or was not tried.
  std::string why_not_namespaces, why_not_landlock;
  std::vector<ProbeResult> probes;  // of the tier in use
};

// Tries to reach, from sandboxes of this tier, the host, other submissions and the harness. Throws
// Error when such a sandbox cannot be made, and for Tier::none.
std::vector<ProbeResult> attempt_escapes(Tier, int worker_image);

// The strongest tier that contains every escape attempt. `worker_image` is the descriptor of the
// worker executable.
TierReport find_tier(int worker_image);

// Why the worker cannot load the library inside a sandbox of this tier; "" when it can.
std::string why_not_loaded(Tier, int worker_image, const std::filesystem::path& library);

// The read-only mounts that a dynamically linked program needs.
std::vector<Mount> library_mounts();

}  // namespace assay::sandbox

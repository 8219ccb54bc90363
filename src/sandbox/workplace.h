// The folder in which the harness gives sandboxed programs their files and lets them write.
#pragma once

#include <filesystem>

#include "sandbox/sandbox.h"
#include "util/fd.h"

namespace assay::sandbox {

// Why programs of the tier cannot reach or execute files in the folder; "" when they can. Where the
// tier shares the host's file system and the harness is root, programs run as another user, and a
// folder that is closed to others, such as /root, closes everything below it.
std::string why_out_of_reach(Tier, const std::filesystem::path& folder);

// A new folder assay-work-PID-XXXXXX, removed with the object. The folders of killed processes are
// removed when the next one is made beside them.
class Workplace {
 public:
  // In `home`, or in a temporary folder (TMPDIR, /tmp, /var/tmp) if `home` is "" or programs of the
  // tier cannot reach it. Throws Error when no folder serves.
  Workplace(Tier, const std::filesystem::path& home);
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;
  ~Workplace();

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  Fd lock_;  // on the folder, for as long as it is in use
};

}  // namespace assay::sandbox

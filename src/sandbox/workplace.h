// Where this process shows sandboxed programs what they need and lets them write.
#pragma once

#include <filesystem>

#include "sandbox/sandbox.h"
#include "util/fd.h"

namespace assay::sandbox {

// Why programs of the tier cannot reach, or not execute, what lies in the folder; "" when they can.
// Where the tier shares the host's file system and the harness is root, programs have a uid of
// their own: a folder that is closed to others, such as /root, keeps them from all that lies below
// it.
std::string why_out_of_reach(Tier, const std::filesystem::path& folder);

// A folder of its own, assay-work-PID-XXXXXX, that goes with the object. Those of killed processes
// go when the next one is made beside them.
class Workplace {
 public:
  // In `home`, or in a temporary folder (TMPDIR, /tmp, /var/tmp) where that is "" or programs of
  // the tier cannot reach it. Throws Error when none serves.
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

#include "cli/account.h"

#include <fmt/format.h>

#include "cli/output.h"

namespace assay::cli {

void tell_account(const cases::TimeAccount& account, double wall_s) {
  tell(fmt::format(
      "{:.1f} s in all. Checks and timing took {:.1f} s: submissions {:.1f} s, references {:.1f} "
      "s,\n"
      "cold caches and poison {:.1f} s, starting {} workers {:.1f} s, the rest {:.1f} s.\n",
      wall_s, account.total, account.submission, account.reference, account.timing,
      account.workers_started, account.workers,
      account.total - account.submission - account.reference - account.timing - account.workers));
}

}  // namespace assay::cli

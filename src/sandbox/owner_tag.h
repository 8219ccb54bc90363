// Marks what a harness makes in shared folders as its own.
#pragma once

#include <string>

namespace assay::sandbox {

// "PID-", part of the names of workplaces and memory groups. A forked child keeps the tag of its
// parent if the parent had asked for it before.
const std::string& owner_tag();

inline constexpr char kWorkplacePrefix[] = "assay-work-";
inline constexpr char kGroupPrefix[] = "assay-worker-";

}  // namespace assay::sandbox

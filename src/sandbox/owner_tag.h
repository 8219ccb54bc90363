// Whose the things are that assay makes in folders which all harnesses share.
#pragma once

#include <string>

namespace assay::sandbox {

// Stands in the names of workplaces and memory groups: the number of this process, or of that of
// its parents which was the first to ask before it forked, and a dash.
const std::string& owner_tag();

inline constexpr char kWorkplacePrefix[] = "assay-work-";
inline constexpr char kGroupPrefix[] = "assay-worker-";

}  // namespace assay::sandbox

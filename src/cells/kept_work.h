// What the challenge's own kernels do in a case on the simulated GPU, kept in the build cache,
// which lets go of what is not used: it takes longer to find out than most submissions take, and is
// the same in every run.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "records/simulated_work.h"
#include "spec/spec.h"

namespace assay::cells {

// The file for a case, in `folder`. Its name changes with the library, the spec and this
// executable, which holds the simulator and the generators of inputs.
std::filesystem::path work_file(const std::filesystem::path& folder,
                                const std::filesystem::path& library, const ChallengeSpec&,
                                const std::string& case_name);

// Nothing where there is no such file, or none that can be understood.
// Counts as a use of it.
std::optional<SimulatedWork> load_work(const std::filesystem::path&);

// Throws Error when it cannot be written.
void save_work(const std::filesystem::path&, const SimulatedWork&);

}  // namespace assay::cells

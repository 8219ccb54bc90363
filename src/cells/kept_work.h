// The work of the challenge's own kernels in a case on the simulated GPU, kept in the build cache,
// which evicts unused entries. It takes longer to compute than most submissions take, and is the
// same in every run.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "records/simulated_work.h"
#include "spec/spec.h"

namespace assay::cells {

// The file for a case, in `folder`. Its name changes with the library, the spec and this
// executable, which contains the simulator and the input generators.
std::filesystem::path work_file(const std::filesystem::path& folder,
                                const std::filesystem::path& library, const ChallengeSpec&,
                                const std::string& case_name);

// Nothing if the file does not exist or cannot be parsed. Counts as a use of the entry.
std::optional<SimulatedWork> load_work(const std::filesystem::path&);

// Throws Error if the file cannot be written.
void save_work(const std::filesystem::path&, const SimulatedWork&);

}  // namespace assay::cells

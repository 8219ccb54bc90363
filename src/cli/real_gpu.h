// Setup for commands that measure on the machine's real GPUs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cases/world.h"
#include "cli/harness.h"
#include "processes/gpu_machine.h"

namespace assay::cli {

// Which real GPUs to use, and NVIDIA's libraries (paths or names).
struct GpuChoice {
  std::string driver = processes::kCudaDriver, management = processes::kManagement;
  std::string gpus{};  // "0,1": indices as nvidia-smi numbers them, or UUIDs; "": see chosen_gpus()
};

// Declares --driver, --management and --gpus; with `several` as one that takes a list.
void add_gpu_choice(CLI::App&, GpuChoice&, bool several = false);

// The GPUs that --gpus names, or else the first that CUDA_VISIBLE_DEVICES leaves visible. Throws
// Error if --gpus is no such list, names a GPU twice, or if CUDA_VISIBLE_DEVICES hides all.
std::vector<processes::RealGpu> chosen_gpus(const GpuChoice&);

// Where cells are measured: a GPU, or the processor.
struct Place {
  cases::World world;
  std::optional<processes::RealGpu> gpu{};  // on Device::cuda only, as is its description
  std::optional<GpuMachine> machine{};
};

// The chosen GPU on Device::cuda, else the processor; a GPU is recorded in the harness's machine.
// The roofline of a GPU's world comes from copies measured now and from the data sheet `sheet`; ""
// selects the sheet by the GPU's name. Throws Error if several GPUs are chosen, if one cannot be
// used, if there is no data sheet or compiler, and if --gpus is given for another device.
Place place_on(Device, Harness&, const GpuChoice&, const std::string& sheet);

// The same for any number of different GPUs of one kind, because a board compares nothing else. The
// harness's machine has the first.
std::vector<Place> places_on(Device, Harness&, const GpuChoice&, const std::string& sheet);

}  // namespace assay::cli

#include "cli/real_gpu.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include "assay/error.h"
#include "cli/output.h"
#include "grade/gpu.h"
#include "processes/gpu_watch.h"

namespace assay::cli {

using processes::RealGpu;

namespace {

// What CUDA accepts in CUDA_VISIBLE_DEVICES: 0, GPU-8932f937-..., MIG-GPU-.../1/0.
bool can_name_a_gpu(std::string_view id) {
  return !id.empty() && id.front() != '-' && std::ranges::all_of(id, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '/';
  });
}

std::vector<std::string> parts_of(std::string_view list) {
  std::vector<std::string> parts(1);
  for (const char c : list) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::string from_environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The world of a GPU; its state and its speed of copying are read anew each time.
cases::World world_of(const RealGpu& gpu, const GpuMachine& machine, const std::string& management,
                      const Harness& harness) {
  cases::World world = cases::real_world(*harness.builder);
  world.roofline = [gpu, management, flops = gpu_named(harness.gpu).fastest_flops()] {
    return Roofline{.bytes_per_s = processes::find_gpu(gpu, management).copy_bytes_per_s,
                    .flops_per_s = flops};
  };
  if (machine.no_management.empty()) {
    const auto begin = [management, id = machine.pci_bus_id] {
      return std::make_shared<processes::GpuWatch>(management, id);
    };
    world.gpu_state = [begin, watch = begin()]() mutable {
      try {
        return watch->state();
      } catch (const Error&) {  // one that failed stays so, and the driver may answer another
        watch = begin();
        return watch->state();
      }
    };
  }
  return world;
}

std::vector<GpuMachine> described(const std::vector<RealGpu>& gpus, const std::string& management) {
  std::vector<GpuMachine> machines;
  for (const RealGpu& gpu : gpus) {
    const GpuMachine machine = processes::find_gpu(gpu, management);
    for (std::size_t i = 0; i < machines.size(); ++i) {
      const GpuMachine& other = machines[i];
      if (other.name != machine.name) {
        throw Error(
            fmt::format("--gpus names different GPUs: '{}' is {} and '{}' is {}. Results "
                        "of different GPUs are never compared: measure on one kind",
                        gpus[i].visible, other.name, gpu.visible, machine.name));
      }
      // Parts of one GPU by MIG have its address too.
      if (other.pci_bus_id == machine.pci_bus_id && !machine.mig.value_or(false)) {
        throw Error(fmt::format("--gpus names one GPU twice: '{}' and '{}' are both at {}",
                                gpus[i].visible, gpu.visible, machine.pci_bus_id));
      }
    }
    machines.push_back(machine);
  }
  return machines;
}

}  // namespace

void add_gpu_choice(CLI::App& app, GpuChoice& choice, bool several) {
  app.add_option("--driver", choice.driver, "of a real GPU: CUDA's driver library")
      ->capture_default_str();
  app.add_option("--management", choice.management,
                 "of a real GPU: NVIDIA's management library, if there is one")
      ->capture_default_str();
  app.add_option("--gpus", choice.gpus,
                 several ? "real GPUs to measure on, side by side: indices as nvidia-smi numbers\n"
                           "them, or UUIDs, separated by commas (default: one, the first that\n"
                           "CUDA_VISIBLE_DEVICES leaves visible)"
                         : "the real GPU to use: its index as nvidia-smi numbers it, or its UUID\n"
                           "(default: the first that CUDA_VISIBLE_DEVICES leaves visible)");
}

std::vector<RealGpu> chosen_gpus(const GpuChoice& choice) {
  if (choice.gpus.empty()) {
    const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
    if (visible == nullptr) return {{choice.driver}};
    const std::string first = parts_of(visible).front();
    if (!can_name_a_gpu(first)) {
      throw Error(
          fmt::format("CUDA_VISIBLE_DEVICES is '{}', which hides all GPUs: set it, or name "
                      "one with --gpus",
                      visible));
    }
    return {{choice.driver, first, from_environment("CUDA_DEVICE_ORDER")}};
  }
  std::vector<RealGpu> gpus;
  for (const std::string& id : parts_of(choice.gpus)) {
    if (!can_name_a_gpu(id)) {
      throw Error(
          fmt::format("--gpus {} is no list of GPUs: write indices or UUIDs as "
                      "`nvidia-smi -L` shows them, separated by commas, such as 0,1",
                      choice.gpus));
    }
    if (std::ranges::find(gpus, id, &RealGpu::visible) != gpus.end())
      throw Error(fmt::format("--gpus {} names '{}' twice", choice.gpus, id));
    gpus.push_back({choice.driver, id, "PCI_BUS_ID"});
  }
  return gpus;
}

std::vector<Place> places_on(Device device, Harness& harness, const GpuChoice& choice,
                             const std::string& sheet) {
  std::vector<Place> places;
  if (device != Device::cuda) {
    if (!choice.gpus.empty())
      throw Error("--gpus names real GPUs, which only --device cuda measures on");
    places.push_back({.world = cases::real_world(*harness.builder)});
    return places;
  }
  const std::vector<RealGpu> gpus = chosen_gpus(choice);
  const std::vector<GpuMachine> machines = described(gpus, choice.management);
  const GpuMachine& first = harness.machine.gpu.emplace(machines.front());
  if (first.isolation != to_string(sandbox::Tier::landlock)) {
    tell(
        "note: this kernel has no Landlock (Linux 5.13 or later), so a fault of the GPU's driver "
        "could let an answer at the files of this user\n");
  }
  if (!harness.builder->cuda_toolkit())
    throw Error(fmt::format("{}; it is looked for in PATH, CUDA_HOME and ASSAY_NVCC", kNoToolkit));
  harness.gpu = sheet.empty() ? sheet_of(first.name) : sheet;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    places.push_back({.world = world_of(gpus[i], machines[i], choice.management, harness),
                      .gpu = gpus[i],
                      .machine = machines[i]});
  }
  return places;
}

Place place_on(Device device, Harness& harness, const GpuChoice& choice, const std::string& sheet) {
  if (device == Device::cuda && chosen_gpus(choice).size() > 1)
    throw Error(fmt::format("--gpus {} names several GPUs: this command uses one", choice.gpus));
  return std::move(places_on(device, harness, choice, sheet).front());
}

}  // namespace assay::cli

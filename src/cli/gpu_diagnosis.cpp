#include "cli/gpu_diagnosis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <optional>
#include <string_view>

namespace assay::cli {
namespace {

using State = Diagnosis::State;

constexpr const char* kNotTold = "not told";

struct Release {
  int major = 0, minor = 0;
};

// Parses "13.0" at the beginning of the text.
std::optional<Release> parse_release(std::string_view text) {
  Release found;
  const char* const end = text.data() + text.size();
  const auto [point, bad_major] = std::from_chars(text.data(), end, found.major);
  if (bad_major != std::errc() || point == end || *point != '.') return std::nullopt;
  const auto [rest, bad_minor] = std::from_chars(point + 1, end, found.minor);
  if (bad_minor != std::errc()) return std::nullopt;
  return found;
}

std::optional<Release> release_of_nvcc(std::string_view version) {
  constexpr std::string_view kWord = "release ";
  const std::size_t at = version.find(kWord);
  if (at == std::string_view::npos) return std::nullopt;
  return parse_release(version.substr(at + kWord.size()));
}

std::string on_off(std::optional<bool> value) {
  if (!value) return kNotTold;
  return *value ? "on" : "off";
}

std::string mhz(std::optional<double> now, std::optional<double> most) {
  const auto text = [](std::optional<double> value) {
    return value ? fmt::format("{:.0f}", *value) : std::string(kNotTold);
  };
  return fmt::format("{} of at most {} MHz", text(now), text(most));
}

std::string clocks(const GpuMachine& gpu) {
  const GpuState& state = gpu.state;
  std::string text =
      fmt::format("multiprocessors {}, memory {}, right after it was measured",
                  mhz(state.sm_mhz, gpu.max_sm_mhz), mhz(state.memory_mhz, gpu.max_memory_mhz));
  if (state.temperature_c) text += fmt::format("; {:.0f} °C", *state.temperature_c);
  if (!state.throttle_reasons) {
    text += "; what holds them down is not told";
  } else if (!state.throttle_reasons->empty()) {
    text += fmt::format("; held down by {}", fmt::join(*state.throttle_reasons, ", "));
  }
  return text;
}

Diagnosis processes(const GpuMachine& gpu) {
  if (!gpu.other_processes) return {"GPU, processes", "who else computes on it is not told"};
  if (*gpu.other_processes == 0) return {"GPU, processes", "nobody else computes on it"};
  return {"GPU, processes",
          fmt::format("{} of others compute on it: what is timed is slower by their work",
                      *gpu.other_processes),
          State::note};
}

// Within a major version drivers run machine code of later toolkits (NVIDIA, "CUDA Compatibility");
// they compile PTX only if it is no newer than the driver.
Diagnosis compiler(const GpuMachine& gpu, const Release& nvcc, const Release& driver) {
  constexpr const char* kName = "GPU, nvcc";
  if (nvcc.major < driver.major || (nvcc.major == driver.major && nvcc.minor <= driver.minor)) {
    return {kName, fmt::format("{}.{}, and the driver is for CUDA {}: machine code and PTX run",
                               nvcc.major, nvcc.minor, gpu.driver)};
  }
  if (nvcc.major == driver.major) {
    return {
        kName,
        fmt::format("{}.{} is later than the driver's CUDA {}: machine code runs, for the major "
                    "version is the same; PTX that has to be compiled by the driver does not",
                    nvcc.major, nvcc.minor, gpu.driver),
        State::note};
  }
  return {
      kName,
      fmt::format("{}.{} is of a later major version than the driver's CUDA {}: what it compiles "
                  "does not run here; install NVIDIA's driver for CUDA {}",
                  nvcc.major, nvcc.minor, gpu.driver, nvcc.major),
      State::note};
}

}  // namespace

std::vector<Diagnosis> gpu_diagnosis(const GpuMachine& gpu, const std::string& nvcc, bool is_root) {
  std::vector<Diagnosis> found;
  found.push_back(
      {"GPU",
       fmt::format("{} at {}, compute capability {}, {} multiprocessors, {:.1f} GiB, ECC {}, "
                   "MIG {}",
                   gpu.name, gpu.pci_bus_id, gpu.compute_capability, gpu.multiprocessors,
                   gpu.memory_bytes / (1 << 30), on_off(gpu.ecc), on_off(gpu.mig))});
  found.push_back(
      {"GPU, driver", fmt::format("{}, for CUDA {}; persistence mode {}",
                                  gpu.driver_release.value_or("release " + std::string(kNotTold)),
                                  gpu.driver, on_off(gpu.persistence))});
  const auto compiled_by = release_of_nvcc(nvcc), run_by = parse_release(gpu.driver);
  if (compiled_by && run_by) found.push_back(compiler(gpu, *compiled_by, *run_by));
  found.push_back(
      {"GPU, speed", fmt::format("copy {:.0f} GB/s, bf16 matrices by mma.sync {:.0f} "
                                 "TFLOP/s",
                                 gpu.copy_bytes_per_s / 1e9, gpu.bf16_flops_per_s / 1e12)});
  if (!gpu.no_management.empty()) {
    found.push_back({"GPU, management", gpu.no_management, State::note});
    return found;
  }
  found.push_back({"GPU, clocks", clocks(gpu)});
  found.push_back(
      {"GPU, locked clocks",
       fmt::format("only root may lock clocks, and this user is {}; assay leaves them as "
                   "they are",
                   is_root ? "root" : "not")});
  found.push_back(processes(gpu));
  return found;
}

}  // namespace assay::cli

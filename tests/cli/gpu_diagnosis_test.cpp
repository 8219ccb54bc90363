// The diagnosis of a GPU that reports everything and of one that reports little.
#include "cli/gpu_diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace assay::cli {
namespace {

using ::testing::HasSubstr;
using State = Diagnosis::State;

constexpr const char* kNvcc = "Cuda compilation tools, release 13.0, V13.0.88";

GpuMachine machine() {
  GpuMachine gpu;
  gpu.name = "NVIDIA H200";
  gpu.driver = "13.0";
  gpu.pci_bus_id = "0000:3b:00.0";
  gpu.compute_capability = "9.0";
  gpu.multiprocessors = 132;
  gpu.memory_bytes = 150e9;
  gpu.ecc = true;
  gpu.copy_bytes_per_s = 4.32e12;
  gpu.bf16_flops_per_s = 6.5e14;
  return gpu;
}

GpuMachine managed() {
  GpuMachine gpu = machine();
  gpu.driver_release = "580.95.05";
  gpu.max_sm_mhz = 1980;
  gpu.max_memory_mhz = 3201;
  gpu.mig = false;
  gpu.persistence = true;
  gpu.state.sm_mhz = 1755;
  gpu.state.memory_mhz = 3201;
  gpu.state.temperature_c = 41;
  gpu.state.throttle_reasons = {"sw_power_cap"};
  gpu.other_processes = 0;
  return gpu;
}

Diagnosis find(const std::vector<Diagnosis>& findings, const std::string& name) {
  const auto found = std::ranges::find(findings, name, &Diagnosis::name);
  return found == findings.end() ? Diagnosis{name, "nothing is said", State::bad} : *found;
}

TEST(GpuDiagnosis, SayAllThatIsTold) {
  const auto found = gpu_diagnosis(managed(), kNvcc, false);
  EXPECT_EQ(find(found, "GPU").value,
            "NVIDIA H200 at 0000:3b:00.0, compute capability 9.0, 132 multiprocessors, 139.7 GiB, "
            "ECC on, MIG off");
  EXPECT_EQ(find(found, "GPU, driver").value, "580.95.05, for CUDA 13.0; persistence mode on");
  EXPECT_EQ(find(found, "GPU, speed").value,
            "copy 4320 GB/s, bf16 matrices by mma.sync 650 TFLOP/s");
  EXPECT_EQ(
      find(found, "GPU, clocks").value,
      "multiprocessors 1755 of at most 1980 MHz, memory 3201 of at most 3201 MHz, right after "
      "it was measured; 41 °C; held down by sw_power_cap");
  EXPECT_THAT(find(found, "GPU, locked clocks").value, HasSubstr("this user is not;"));
  EXPECT_THAT(find(gpu_diagnosis(managed(), kNvcc, true), "GPU, locked clocks").value,
              HasSubstr("this user is root;"));
  EXPECT_EQ(find(found, "GPU, processes").value, "nobody else computes on it");
  for (const Diagnosis& f : found) EXPECT_EQ(f.state, State::ok) << f.name;
}

TEST(GpuDiagnosis, InventNothing) {
  const auto found = gpu_diagnosis(machine(), "", false);
  EXPECT_THAT(find(found, "GPU").value, HasSubstr("MIG not told"));
  EXPECT_EQ(find(found, "GPU, driver").value,
            "release not told, for CUDA 13.0; persistence mode not told");
  EXPECT_EQ(find(found, "GPU, clocks").value,
            "multiprocessors not told of at most not told MHz, memory not told of at most not told "
            "MHz, right after it was measured; what holds them down is not told");
  EXPECT_EQ(find(found, "GPU, processes").value, "who else computes on it is not told");
  EXPECT_EQ(find(found, "GPU, nvcc").value, "nothing is said");
}

TEST(GpuDiagnosis, WithoutAManagementLibraryTheyEndWithWhy) {
  GpuMachine gpu = machine();
  gpu.no_management = "no management library: cannot be loaded";
  const auto found = gpu_diagnosis(gpu, kNvcc, false);
  EXPECT_EQ(found.back().name, "GPU, management");
  EXPECT_EQ(found.back().value, gpu.no_management);
  EXPECT_EQ(found.back().state, State::note);
  EXPECT_EQ(find(found, "GPU, clocks").value, "nothing is said");
}

TEST(GpuDiagnosis, OthersThatComputeAreANote) {
  GpuMachine gpu = managed();
  gpu.other_processes = 2;
  const Diagnosis found = find(gpu_diagnosis(gpu, kNvcc, false), "GPU, processes");
  EXPECT_EQ(found.value, "2 of others compute on it: what is timed is slower by their work");
  EXPECT_EQ(found.state, State::note);
}

TEST(GpuDiagnosis, WhatFollowsFromTheVersionsOfNvccAndDriver) {
  struct Row {
    const char *driver, *text;
    State state;
  };
  for (const auto& [driver, text, state] :
       {Row{"13.0", "machine code and PTX run", State::ok},
        Row{"14.0", "machine code and PTX run", State::ok},
        Row{"13.10", "machine code and PTX run", State::ok},
        Row{"12.8", "install NVIDIA's driver for CUDA 13", State::note}}) {
    GpuMachine gpu = managed();
    gpu.driver = driver;
    const Diagnosis found = find(gpu_diagnosis(gpu, kNvcc, false), "GPU, nvcc");
    EXPECT_THAT(found.value, HasSubstr(text)) << driver;
    EXPECT_EQ(found.state, state) << driver;
  }
  const Diagnosis newer =
      find(gpu_diagnosis(managed(), "Cuda compilation tools, release 13.1, V13.1.1", false),
           "GPU, nvcc");
  EXPECT_THAT(newer.value,
              HasSubstr("13.1 is later than the driver's CUDA 13.0: machine code runs"));
  EXPECT_EQ(newer.state, State::note);
}

}  // namespace
}  // namespace assay::cli

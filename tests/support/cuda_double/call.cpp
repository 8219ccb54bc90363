#include "support/cuda_double/call.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <stdexcept>
#include <string_view>

#include "support/cuda_double/cuda_double.h"
#include "support/faults.h"

namespace assay::gpu {
namespace {

using testing::Faults;

constexpr auto kFunctions = std::to_array<std::string_view>({
#define ASSAY_NAME(member, name, parameters) #name,
    ASSAY_DRIVER_FUNCTIONS(ASSAY_NAME)
#undef ASSAY_NAME
});

Faults parse(const char* text) { return {text, kFunctions, "gpu/driver.h"}; }

struct State {
  std::mutex mutex;
  Faults faults;
  std::unique_ptr<SimulatedGpu> gpu = std::make_unique<SimulatedGpu>();
  std::uint64_t generation = 1;  // of gpu: contexts of an older generation are not current
};

Faults faults_of_environment() {
  const char* const text = std::getenv("ASSAY_CUDA_DOUBLE");
  if (text == nullptr) return {};
  try {
    return parse(text);
  } catch (const std::invalid_argument& e) {
    fmt::print(stderr, "libcuda_double: environment variable ASSAY_CUDA_DOUBLE: {}\n", e.what());
    std::abort();
  }
}

// Never destroyed: threads may still call when the process ends.
State& state() {
  static State& only = *[] {
    auto* const made = new State;
    made->faults = faults_of_environment();
    return made;
  }();
  return only;
}

struct Current {
  CUcontext context = nullptr;
  std::uint64_t generation = 0;
};
thread_local Current current;

CUresult refusal_of(Needs needs, const SimulatedGpu& gpu) {
  if (needs == Needs::nothing) return kSuccess;
  if (!gpu.initialised) return kNotInitialized;
  if (needs == Needs::driver) return kSuccess;
  return current_context() == nullptr ? kInvalidContext : gpu.broken;
}

}  // namespace

Call::Call(const char* function, Needs needs) : lock_(state().mutex) {
  const auto fault = state().faults.next(function);
  if (fault && fault->hangs) {
    lock_.unlock();
    while (true) ::pause();
  }
  if (fault) {
    refusal_ = fault->code;
  } else if (const CUresult code = refusal_of(needs, gpu()); code != kSuccess) {
    refusal_ = code;
  }
}

SimulatedGpu& Call::gpu() const { return *state().gpu; }

CUcontext current_context() {
  return current.generation == state().generation ? current.context : nullptr;
}

void set_current_context(CUcontext context) { current = {context, state().generation}; }

CUresult code_of_exception(const char* function) {
  try {
    throw;
  } catch (const sim::Unsupported& e) {
    fmt::print(stderr, "libcuda_double: {}: not simulated: {}\n", function, e.what());
    return kNotSupported;
  } catch (const sim::TooLarge& e) {
    fmt::print(stderr, "libcuda_double: {}: {}\n", function, e.what());
    return kLaunchOutOfResources;
  } catch (const std::bad_alloc&) {
    return kOutOfMemory;
  } catch (const std::exception& e) {
    fmt::print(stderr, "libcuda_double: {}: {}\n", function, e.what());
    return kUnknown;
  }
}

}  // namespace assay::gpu

int assay_cuda_double_faults(const char* text) {
  using namespace assay::gpu;
  const std::lock_guard lock(state().mutex);
  try {
    state().faults = parse(text);
    return 0;
  } catch (const std::invalid_argument& e) {
    fmt::print(stderr, "libcuda_double: {}\n", e.what());
    return 1;
  }
}

void assay_cuda_double_reset() {
  using namespace assay::gpu;
  const std::lock_guard lock(state().mutex);
  state().faults = {};
  state().gpu = nullptr;  // before the next one is made: both would reserve the device's addresses
  state().gpu = std::make_unique<SimulatedGpu>();
  ++state().generation;
}

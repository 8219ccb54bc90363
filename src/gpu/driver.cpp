#include "gpu/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace assay::gpu {
namespace {

void* open_library(const std::string& library) {
  void* const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return handle;
  const char* const reason = ::dlerror();
  throw DriverError(kSharedObjectInitFailed,
                    fmt::format("no CUDA driver: {}; install NVIDIA's driver (CUDA 12.4 or later), "
                                "and check that nvidia-smi lists the GPU",
                                reason != nullptr ? reason : library + " cannot be loaded"));
}

void* find_function(void* library, const std::string& path, const char* name) {
  void* const function = ::dlsym(library, name);
  if (function != nullptr) return function;
  throw DriverError(kSharedObjectSymbolNotFound,
                    fmt::format("the CUDA driver is too old: {} has no function {}; install "
                                "NVIDIA's driver for CUDA 12.4 or later",
                                path, name));
}

}  // namespace

Driver::Driver(const std::string& library) : library_(open_library(library)) {
// NOLINTBEGIN(bugprone-macro-parentheses): a type has none there
#define ASSAY_RESOLVE(member, name, parameters) \
  member = reinterpret_cast<CUresult(*) parameters>(find_function(library_, library, #name));
  ASSAY_DRIVER_FUNCTIONS(ASSAY_RESOLVE)
#undef ASSAY_RESOLVE
  // NOLINTEND(bugprone-macro-parentheses)
  if (const CUresult result = init(0); result != kSuccess) {
    throw DriverError(result, fmt::format("the CUDA driver {} does not start: {}; check that "
                                          "nvidia-smi lists the GPU, and that this user may open "
                                          "/dev/nvidia*",
                                          library, text_of(result)));
  }
}

void Driver::require(CUresult result, const char* what) const {
  if (result != kSuccess) throw DriverError(result, fmt::format("{}: {}", what, text_of(result)));
}

std::string Driver::text_of(CUresult result) const {
  const char *name = nullptr, *text = nullptr;
  if (error_name(result, &name) != kSuccess || name == nullptr) {
    return fmt::format("CUDA error {}, which this driver does not know", result);
  }
  if (error_string(result, &text) != kSuccess || text == nullptr) return name;
  return fmt::format("{}: {}", name, text);
}

}  // namespace assay::gpu

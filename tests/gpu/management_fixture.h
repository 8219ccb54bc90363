// The management library on the test double, reset to before nvmlInit for each test.
#pragma once

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "gpu/management.h"
#include "support/nvml_double/nvml_double.h"
#include "support/paths.h"

namespace assay::gpu {

inline constexpr char kBusId[] = "0000:3b:00.0";

inline std::string nvml_double_path() {
  return testing::binary_dir() + "/tests/libnvidia-ml-double.so";
}

// A function that only the double has; see support/nvml_double/nvml_double.h.
template <class Function>
Function* of_nvml_double(const char* name) {
  void* const library = ::dlopen(nvml_double_path().c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const function = library == nullptr ? nullptr : ::dlsym(library, name);
  if (function == nullptr) throw std::runtime_error(::dlerror());
  return reinterpret_cast<Function*>(function);
}
inline int set_nvml_faults(const std::string& text) {
  return of_nvml_double<int(const char*)>("assay_nvml_double_faults")(text.c_str());
}
inline void reset_nvml_double() { of_nvml_double<void()>("assay_nvml_double_reset")(); }
inline NvmlDoubleState& nvml_double_state() {
  return *of_nvml_double<NvmlDoubleState*()>("assay_nvml_double_state")();
}

class ManagementTest : public ::testing::Test {
 protected:
  void SetUp() override { reset_nvml_double(); }
  void TearDown() override { reset_nvml_double(); }
};

}  // namespace assay::gpu

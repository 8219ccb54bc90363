// The driver on the test double, reset to before cuInit for each test.
#pragma once

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "gpu/driver.h"
#include "support/paths.h"

namespace assay::gpu {

inline std::string double_path() { return testing::binary_dir() + "/tests/libcuda_double.so"; }

// A function that only the double has; see support/cuda_double/cuda_double.h.
template <class Function>
Function* of_double(const char* name) {
  void* const library = ::dlopen(double_path().c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const function = library == nullptr ? nullptr : ::dlsym(library, name);
  if (function == nullptr) throw std::runtime_error(::dlerror());
  return reinterpret_cast<Function*>(function);
}
inline int set_faults(const char* text) {
  return of_double<int(const char*)>("assay_cuda_double_faults")(text);
}
inline void reset_double() { of_double<void()>("assay_cuda_double_reset")(); }

// A number where the API wants a pointer.
inline void* as_pointer(std::uintptr_t number) { return std::bit_cast<void*>(number); }

inline constexpr std::size_t kStep = 2 << 20;  // granularity of memory

// add: out[t] = t + n for each thread t. roomy has 1 KiB of static shared memory. stuck waits for a
// second warp. The others are named after what they do.
inline constexpr char kPtx[] = R"(.version 9.0
.target sm_90
.address_size 64
.visible .global .align 4 .u32 counter = 7;
.visible .entry add(.param .u64 out, .param .u32 n) {
  .reg .b32 %r<4>; .reg .b64 %rd<4>;
  mov.u32 %r1, %tid.x;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r2, [n];
  mad.wide.u32 %rd2, %r1, 4, %rd1;
  add.u32 %r3, %r1, %r2;
  st.global.u32 [%rd2], %r3;
  ret;
}
.visible .entry nothing() { ret; }
.visible .entry stray() {
  .reg .b64 %rd<2>;
  mov.u64 %rd1, 64;
  st.global.u32 [%rd1], 1;
  ret;
}
.visible .entry crooked(.param .u64 out) {
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [out];
  st.global.u32 [%rd1+1], 1;
  ret;
}
.visible .entry ranks(.param .u64 out) {
  .reg .b32 %r<3>; .reg .b64 %rd<3>;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %cluster_nctarank;
  ld.param.u64 %rd1, [out];
  mad.wide.u32 %rd2, %r1, 4, %rd1;
  st.global.u32 [%rd2], %r2;
  ret;
}
.visible .entry paired() .reqnctapercluster 2 { ret; }
.visible .entry trapped() { trap; }
.visible .entry stuck() {
  .reg .pred %p<2>; .reg .b32 %r<2>;
  mov.u32 %r1, %tid.x;
  setp.lt.u32 %p1, %r1, 32;
  @%p1 bar.sync 1, 64;
  ret;
}
.visible .entry roomy() { .shared .align 4 .b8 s[1024]; .reg .b32 %r<2>; mov.u32 %r1, s; ret; }
)";

class DriverTest : public ::testing::Test {
 protected:
  // Resets the double before the driver starts, which calls cuInit.
  struct Fresh {
    Fresh() { reset_double(); }
  };
  Fresh fresh_;
  Driver cu{double_path()};
};

// With a current context, mapped memory and the kernels above.
class ContextTest : public DriverTest {
 protected:
  ContextTest() {
    CUcontext context = nullptr;
    EXPECT_EQ(cu.primary_retain(&context, 0), kSuccess);
    EXPECT_EQ(cu.context_set_current(context), kSuccess);
  }

  CUdeviceptr reserve(std::size_t bytes) {
    CUdeviceptr address = 0;
    EXPECT_EQ(cu.address_reserve(&address, bytes, 0, 0, 0), kSuccess);
    return address;
  }
  CUmemGenericAllocationHandle create(std::size_t bytes) {
    CUmemGenericAllocationHandle handle = 0;
    const CUmemAllocationProp properties;
    EXPECT_EQ(cu.mem_create(&handle, bytes, &properties, 0), kSuccess);
    return handle;
  }
  CUresult allow(CUdeviceptr address, std::size_t bytes, int flags = 3) {
    const CUmemAccessDesc access{.location = {}, .flags = flags};
    return cu.mem_set_access(address, bytes, &access, 1);
  }
  // Memory that copies and kernels may access.
  CUdeviceptr memory(std::size_t bytes = kStep) {
    const CUdeviceptr address = reserve(bytes);
    EXPECT_EQ(cu.mem_map(address, bytes, 0, create(bytes), 0), kSuccess);
    EXPECT_EQ(allow(address, bytes), kSuccess);
    return address;
  }

  template <class T>
  CUresult upload(CUdeviceptr to, const std::vector<T>& values) {
    return cu.copy_to_device(to, values.data(), values.size() * sizeof(T), nullptr);
  }
  template <class T>
  std::vector<T> download(CUdeviceptr from, std::size_t count) {
    std::vector<T> values(count);
    EXPECT_EQ(cu.copy_to_host(values.data(), from, count * sizeof(T), nullptr), kSuccess);
    return values;
  }

  CUmodule load(const char* ptx = kPtx) {
    CUmodule module = nullptr;
    EXPECT_EQ(cu.module_load(&module, ptx, 0, nullptr, nullptr), kSuccess);
    return module;
  }
  CUfunction kernel(const char* name) {
    if (module_ == nullptr) module_ = load();
    CUfunction function = nullptr;
    EXPECT_EQ(cu.module_function(&function, module_, name), kSuccess);
    return function;
  }
  // One block.
  CUresult launch(CUfunction function, unsigned threads, void** params = nullptr,
                  unsigned shared = 0) {
    return cu.launch(function, 1, 1, 1, threads, 1, 1, shared, nullptr, params, nullptr);
  }

 private:
  CUmodule module_ = nullptr;
};

}  // namespace assay::gpu

// The CUDA runtime on a fake device, with one registered module.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/runtime/api.h"
#include "sim/runtime/fake_device.h"
#include "sim/runtime/fat_binary_bytes.h"
#include "sim/runtime/runtime.h"

namespace assay::sim::cuda {

class RuntimeTest : public testing::Test {
 protected:
  RuntimeTest() {
    fat_.add(1, 80, "the PTX");
    wrapper_.data = fat_.bytes.data();
    KernelInfo info;
    info.name = "_Z3addPfi";
    info.param_bytes = {8, 4};
    info.param_offset = {0, 8};
    info.params_bytes = 12;
    info.static_shared_bytes = 1024;
    info.registers = 32;
    info.max_threads = 512;
    state_.kernels["_Z3addPfi"] = info;
    state_.variables["table"] = 64;
    Runtime::instance().attach(std::make_unique<FakeDevice>(state_));
    handle_ = __cudaRegisterFatBinary(&wrapper_);
    __cudaRegisterFunction(handle_, &stub_, &stub_, "_Z3addPfi", -1, nullptr, nullptr, nullptr,
                           nullptr, nullptr);
    __cudaRegisterVar(handle_, &variable_, &variable_, "table", 0, 64, 1, 0);
    __cudaRegisterFatBinaryEnd(handle_);
  }
  ~RuntimeTest() override {
    __cudaUnregisterFatBinary(handle_);
    Runtime::instance().attach(nullptr);
  }

  cudaError_t launch(dim3 grid, dim3 block, std::size_t shared = 0, cudaStream_t stream = nullptr) {
    return cudaLaunchKernel(&stub_, grid, block, args_, shared, stream);
  }
  // The error that a call leaves for cudaGetLastError.
  static cudaError_t last() { return cudaGetLastError(); }

  FakeState state_;
  FatBinaryBytes fat_;
  FatBinaryWrapper wrapper_;
  void** handle_ = nullptr;
  char stub_ = 0, variable_ = 0;  // their addresses stand for the host's function and variable
  void* pointer_arg_ = reinterpret_cast<void*>(0x1122334455667788);
  int int_arg_ = 42;
  void* args_[2] = {&pointer_arg_, &int_arg_};
};

}  // namespace assay::sim::cuda

// Modules of the double, and what it reports about kernels.
#include "gpu/double_fixture.h"

namespace assay::gpu {
namespace {

using ::testing::HasSubstr;

class DoubleFunction : public ContextTest {
 protected:
  CUresult load_code(const char* image) {
    CUmodule module = nullptr;
    return cu.module_load(&module, image, 0, nullptr, nullptr);
  }
  int attribute(CUfunction function, int which) {
    int value = -1;
    EXPECT_EQ(cu.function_attribute(&value, which, function), kSuccess) << which;
    return value;
  }
};

TEST_F(DoubleFunction, ImagesThatAreNoPtx) {
  EXPECT_EQ(load_code("\x7f"
                      "ELF\2\1\1"),
            kNoBinaryForGpu);
  EXPECT_EQ(load_code(".version 9.0\n.target sm_90\n.address_size 64\n.entry {"), kInvalidPtx);
  EXPECT_EQ(load_code(nullptr), kInvalidValue);
}

TEST_F(DoubleFunction, ErrorLogSaysWhere) {
  char log[100] = "unwritten";
  int names[] = {kJitErrorLogBuffer, kJitErrorLogBufferBytes};
  void* values[] = {log, as_pointer(sizeof log)};
  CUmodule module = nullptr;
  EXPECT_EQ(cu.module_load(&module, ".version 9.0\n.nonsense", 2, names, values), kInvalidPtx);
  EXPECT_THAT(log, HasSubstr("PTX line 2"));
  EXPECT_EQ(reinterpret_cast<std::size_t>(values[1]), std::string(log).size() + 1);
  values[1] = as_pointer(4);
  EXPECT_EQ(cu.module_load(&module, "nonsense", 2, names, values), kInvalidPtx);
  EXPECT_STREQ(log, "PTX");
}

TEST_F(DoubleFunction, NamesInAModule) {
  const CUmodule module = load();
  CUfunction a = nullptr, b = nullptr;
  EXPECT_EQ(cu.module_function(&a, module, "add"), kSuccess);
  EXPECT_EQ(cu.module_function(&b, module, "add"), kSuccess);
  EXPECT_EQ(a, b);
  EXPECT_EQ(cu.module_function(&b, module, "absent"), kNotFound);
  EXPECT_EQ(cu.module_function(&b, nullptr, "add"), kInvalidHandle);
}

TEST_F(DoubleFunction, GlobalVariables) {
  const CUmodule module = load();
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  EXPECT_EQ(cu.module_global(&address, &bytes, module, "counter"), kSuccess);
  EXPECT_EQ(bytes, 4u);
  EXPECT_EQ(download<int>(address, 1)[0], 7);
  EXPECT_EQ(upload<int>(address, {8}), kSuccess);
  EXPECT_EQ(download<int>(address, 1)[0], 8);
  EXPECT_EQ(cu.module_global(&address, &bytes, module, "absent"), kNotFound);
}

TEST_F(DoubleFunction, Parameters) {
  std::size_t offset = 99, bytes = 99;
  const CUfunction add = kernel("add");
  EXPECT_EQ(cu.function_param(add, 0, &offset, &bytes), kSuccess);
  EXPECT_EQ(offset, 0u);
  EXPECT_EQ(bytes, 8u);
  EXPECT_EQ(cu.function_param(add, 1, &offset, &bytes), kSuccess);
  EXPECT_EQ(offset, 8u);
  EXPECT_EQ(bytes, 4u);
  EXPECT_EQ(cu.function_param(add, 2, &offset, &bytes), kInvalidValue);
  EXPECT_EQ(cu.function_param(kernel("nothing"), 0, &offset, &bytes), kInvalidValue);
}

TEST_F(DoubleFunction, Attributes) {
  const CUfunction roomy = kernel("roomy");
  EXPECT_EQ(attribute(roomy, kFunctionMaxThreads), 1024);
  EXPECT_EQ(attribute(roomy, kFunctionSharedBytes), 1024);
  EXPECT_EQ(attribute(roomy, kFunctionLocalBytes), 0);
  EXPECT_GT(attribute(roomy, kFunctionRegisters), 0);
  EXPECT_EQ(attribute(roomy, kFunctionMaxDynamicShared), 47 << 10);
  EXPECT_EQ(attribute(roomy, kFunctionRequiredClusterWidth), 0);
  EXPECT_EQ(attribute(kernel("paired"), kFunctionRequiredClusterWidth), 2);
  EXPECT_EQ(attribute(kernel("paired"), kFunctionRequiredClusterDepth), 1);
  int value = 0;
  EXPECT_EQ(cu.function_attribute(&value, 99, roomy), kInvalidValue);
  EXPECT_EQ(cu.function_attribute(&value, kFunctionMaxThreads, nullptr), kInvalidHandle);
}

TEST_F(DoubleFunction, DynamicSharedMemoryBeyondTheDefaultIsAskedFor) {
  const CUfunction roomy = kernel("roomy");
  EXPECT_EQ(launch(roomy, 32, nullptr, 47 << 10), kSuccess);
  EXPECT_EQ(launch(roomy, 32, nullptr, 48 << 10), kInvalidValue);
  EXPECT_EQ(cu.function_set_attribute(roomy, kFunctionMaxDynamicShared, 226 << 10), kSuccess);
  EXPECT_EQ(attribute(roomy, kFunctionMaxDynamicShared), 226 << 10);
  EXPECT_EQ(launch(roomy, 32, nullptr, 226 << 10), kSuccess);
  EXPECT_EQ(cu.function_set_attribute(roomy, kFunctionMaxDynamicShared, 227 << 10), kInvalidValue);
  EXPECT_EQ(cu.function_set_attribute(roomy, kFunctionMaxThreads, 64), kInvalidValue);
}

TEST_F(DoubleFunction, Occupancy) {
  int blocks = 0;
  EXPECT_EQ(cu.occupancy(&blocks, kernel("nothing"), 128, 0), kSuccess);
  EXPECT_EQ(blocks, 16);
  EXPECT_EQ(cu.occupancy(&blocks, kernel("roomy"), 32, 99 << 10), kSuccess);
  EXPECT_EQ(blocks, 2);
  EXPECT_EQ(cu.occupancy(&blocks, kernel("nothing"), 0, 0), kInvalidValue);
}

}  // namespace
}  // namespace assay::gpu

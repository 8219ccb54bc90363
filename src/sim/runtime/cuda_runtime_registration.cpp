// The functions called by nvcc-generated host code: registration when a program is loaded, and the
// stubs of kernel launches. Registration works without a device and never fails: errors appear at
// first use.
#include "sim/runtime/api.h"
#include "sim/runtime/runtime.h"

namespace assay::sim::cuda {
namespace {

// nvcc's code holds the address of Module::handle.
Module* module_of(void** handle) {
  return reinterpret_cast<Module*>(reinterpret_cast<char*>(handle) - offsetof(Module, handle));
}

}  // namespace

void** __cudaRegisterFatBinary(void* wrapper) {
  Runtime& runtime = Runtime::instance();
  const std::lock_guard lock(runtime.mutex);
  return &runtime.add_module(wrapper)->handle;
}

void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaRegisterRelocatable(void (*register_contents)(void**), const void* wrapper) {
  void** handle = nullptr;
  {
    Runtime& runtime = Runtime::instance();
    const std::lock_guard lock(runtime.mutex);
    handle = &runtime.add_module(wrapper, true)->handle;
  }
  register_contents(handle);
}

void __cudaUnregisterFatBinary(void** handle) {
  Runtime& runtime = Runtime::instance();
  const std::lock_guard lock(runtime.mutex);
  if (handle != nullptr) runtime.remove_module(module_of(handle));
}

void __cudaRegisterFunction(void** handle, const char* host_function, char*,
                            const char* device_name, int, uint3*, uint3*, dim3*, dim3*, int*) {
  Runtime& runtime = Runtime::instance();
  const std::lock_guard lock(runtime.mutex);
  runtime.add_kernel(module_of(handle), host_function, device_name);
}

void __cudaRegisterVar(void** handle, char* host_variable, char*, const char* device_name, int,
                       size_t bytes, int, int) {
  Runtime& runtime = Runtime::instance();
  const std::lock_guard lock(runtime.mutex);
  runtime.add_symbol(module_of(handle), host_variable, {nullptr, device_name, bytes, false});
}

// The host reads the variable through *host_pointer, which is null until __cudaInitModule.
void __cudaRegisterManagedVar(void** handle, void** host_pointer, char*, const char* device_name,
                              int, size_t bytes, int, int) {
  Runtime& runtime = Runtime::instance();
  const std::lock_guard lock(runtime.mutex);
  runtime.add_symbol(module_of(handle), host_pointer,
                     {nullptr, device_name, bytes, true, host_pointer});
}

// nvcc's code calls it before the host first accesses a managed variable.
char __cudaInitModule(void** handle) {
  call([&](Runtime& runtime) { return runtime.open_managed_variables(*module_of(handle)); });
  return 1;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                     CUstream_st* stream) {
  ThreadState::current().configurations.push_back({grid, block, shared_bytes, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes,
                                       void* stream) {
  auto& configurations = ThreadState::current().configurations;
  if (configurations.empty()) return remember(cudaErrorMissingConfiguration);
  const auto c = configurations.back();
  configurations.pop_back();
  *grid = c.grid;
  *block = c.block;
  *shared_bytes = c.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = c.stream;
  return cudaSuccess;
}

// A stub asks only once and keeps the handle, so nothing is loaded here, since that might fail only
// this time.
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host_function) {
  Runtime& runtime = Runtime::instance();
  const std::lock_guard lock(runtime.mutex);
  *kernel = runtime.known_kernel(host_function);
  return *kernel == nullptr ? remember(cudaErrorInvalidDeviceFunction) : cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args,
                               size_t shared_bytes, cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, block, args, shared_bytes, stream);
}
ASSAY_CUDA_PER_THREAD(6, __cudaLaunchKernel, _ptsz);

}  // namespace assay::sim::cuda

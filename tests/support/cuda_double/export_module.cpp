// Modules, and what they hold.
#include <stdexcept>
#include <string_view>

#include "sim/ptx/parser.h"
#include "support/cuda_double/call.h"
#include "support/cuda_double/jit_log.h"

namespace assay::gpu {
namespace {

constexpr std::string_view kElf =
    "\x7f"
    "ELF";

CUresult load(SimulatedGpu& gpu, CUmodule* module, std::string_view ptx, const JitLog& log) {
  try {
    *module = gpu.modules.add({gpu.device().load_module(ptx)});
    return kSuccess;
  } catch (const sim::ptx::ParseError& e) {
    log.write(e.what());
    return kInvalidPtx;
  } catch (const sim::TooLarge& e) {
    log.write(e.what());
    return kOutOfMemory;
  }
}

}  // namespace

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned options, int* names,
                            void** values) {
  return call(__func__, Needs::context, [&](SimulatedGpu& gpu) {
    if (module == nullptr || image == nullptr) return kInvalidValue;
    if (options != 0 && (names == nullptr || values == nullptr)) return kInvalidValue;
    const std::string_view text(static_cast<const char*>(image));
    if (text.starts_with(kElf)) return kNoBinaryForGpu;
    return load(gpu, module, text, JitLog(options, names, values));
  });
}

CUresult cuModuleUnload(CUmodule module) {
  return call(__func__, Needs::context, [&](SimulatedGpu& gpu) {
    return gpu.modules.has(module) ? kSuccess : kInvalidHandle;
  });
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return call(__func__, Needs::context, [&](SimulatedGpu& gpu) {
    if (function == nullptr || name == nullptr) return kInvalidValue;
    if (!gpu.modules.has(module)) return kInvalidHandle;
    try {
      const sim::KernelId id = gpu.device().kernel(module->id, name);
      *function = gpu.functions.find([&](const CUfunc_st& f) { return f.id == id; });
      if (*function == nullptr) *function = gpu.functions.add({id, {}});
      return kSuccess;
    } catch (const std::out_of_range&) {
      return kNotFound;
    }
  });
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, std::size_t* bytes, CUmodule module,
                              const char* name) {
  return call(__func__, Needs::context, [&](SimulatedGpu& gpu) {
    if (name == nullptr || (address == nullptr && bytes == nullptr)) return kInvalidValue;
    if (!gpu.modules.has(module)) return kInvalidHandle;
    try {
      const sim::VariableInfo variable = gpu.device().variable(module->id, name);
      if (address != nullptr) *address = variable.address;
      if (bytes != nullptr) *bytes = variable.bytes;
      return kSuccess;
    } catch (const std::out_of_range&) {
      return kNotFound;
    }
  });
}

}  // namespace assay::gpu

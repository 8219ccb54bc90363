// Errors: the last one of a host thread, names and texts.
#include <algorithm>
#include <iterator>
#include <utility>

#include "sim/runtime/api.h"
#include "sim/runtime/runtime.h"

namespace assay::sim::cuda {
namespace {

struct ErrorText {
  unsigned code;
  const char *name, *text;
};

constexpr ErrorText kErrors[] = {
#define ERROR(code, name, text) {code, #name, text},
#include "sim/runtime/errors.inc"
#undef ERROR
};
constexpr ErrorText kUnknown{0, "unrecognized error code", "unrecognized error code"};

const ErrorText& describe(cudaError_t error) {
  const auto* found = std::find_if(std::begin(kErrors), std::end(kErrors),
                                   [&](const ErrorText& e) { return e.code == error; });
  return found == std::end(kErrors) ? kUnknown : *found;
}

}  // namespace

cudaError_t cudaGetLastError() {
  Runtime& runtime = Runtime::instance();
  const std::lock_guard lock(runtime.mutex);
  const cudaError_t last = std::exchange(ThreadState::current().last, cudaSuccess);
  return runtime.sticky() != cudaSuccess ? runtime.sticky() : last;
}

cudaError_t cudaPeekAtLastError() {
  Runtime& runtime = Runtime::instance();
  const std::lock_guard lock(runtime.mutex);
  return runtime.sticky() != cudaSuccess ? runtime.sticky() : ThreadState::current().last;
}

const char* cudaGetErrorName(cudaError_t error) { return describe(error).name; }
const char* cudaGetErrorString(cudaError_t error) { return describe(error).text; }

}  // namespace assay::sim::cuda

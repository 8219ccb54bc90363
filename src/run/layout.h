// Where the buffers of a case lie in the arenas, their poison and their canaries. Buffers that go
// to device memory have an arena of their own, which the worker does not see: what they hold before
// and after the case.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "assay/challenge.h"
#include "assay/worker.h"
#include "wire/worker.h"

namespace assay::run {

inline constexpr std::size_t kCanaryBytes = 64;
// Room for one callback's request, and for its response.
inline constexpr std::size_t kCallbackPayload = worker::kCallbackBytes;

struct Layout {
  std::vector<wire::BufferSlot> slots;  // one per buffer of the plan
  std::vector<bool> on_device;          // likewise; its offset is then in the device arena
  std::size_t params_offset = 0, slots_offset = 0;
  std::size_t input_bytes = 0, output_bytes = 0, device_bytes = 0;  // capacity that the case needs
  std::size_t callback_response_offset = 0, callback_request_offset = 0;
};

enum class Memory : std::uint8_t { host, device };

// By how much a layout's buffers may lie further back than usual, in every arena.
inline constexpr std::size_t kMostSkew = 5 * 4096 + 3 * 256;

// `callbacks`: reserve room for callback payloads. With Memory::device all buffers but those that
// the plan keeps on the host go to the device. `skew`, a multiple of 256: where every arena's first
// buffer begins, beyond the usual.
Layout make_layout(const CasePlan&, bool callbacks, Memory = Memory::host, std::size_t skew = 0);

// Views of every buffer: inputs in `input`, outputs and inouts in `output`, those of the device in
// `device` (arena bases).
std::vector<BufferView> views(const Layout&, void* input, void* output, void* device = nullptr);

// Fills output buffers and all canaries with a pattern derived from `seed` that is a NaN in every
// float format and never a valid index. inout contents are left alone.
void poison(const CasePlan&, const Layout&, void* output, std::uint64_t seed,
            void* device = nullptr);

// Empty when every canary stands as poison() left it, else which buffer was overrun.
std::string find_overrun(const CasePlan&, const Layout&, const void* output, std::uint64_t seed,
                         const void* device = nullptr);

// Empty when every output still holds its poison (for calls that must not touch their outputs).
std::string find_touched(const CasePlan&, const Layout&, const void* output, std::uint64_t seed,
                         const void* device = nullptr);

// Bytes between a multiple of 256 and the start of the buffer: one element, unless the plan is
// aligned, or the buffer is storage of the submission's own making (`sized_by`). Plain bytes on a
// device are aligned in any case: a GPU, unlike the CPU, cannot access a float that is not.
std::size_t misalignment(const CasePlan&, const BufferPlan&, Memory);

}  // namespace assay::run

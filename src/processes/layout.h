// Where the buffers of a case lie in the arenas, their poison and their canaries. Buffers that go
// to device memory have an arena of their own, which the worker does not see: what they hold before
// and after the case.
//
// A sparse buffer lies in a window of its own: address space of which only the pages around its
// pieces exist. These pages stand side by side in the arena, so that the buffer takes the memory of
// its pieces whatever their distance; what of these pages is no piece is poison, and guarded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "assay/challenge.h"
#include "assay/worker.h"
#include "wire/worker.h"

namespace assay::processes {

inline constexpr std::size_t kCanaryBytes = 64;
// Room for one callback's request, and for its response.
inline constexpr std::size_t kCallbackPayload = worker::kCallbackBytes;

struct Layout {
  std::vector<wire::BufferSlot> slots;  // one per buffer of the plan
  std::vector<bool> on_device;          // likewise; its offset is then in the device arena
  std::size_t params_offset = 0, slots_offset = 0;
  std::size_t input_bytes = 0, output_bytes = 0, device_bytes = 0;  // capacity that the case needs
  std::size_t callback_response_offset = 0, callback_request_offset = 0;
  std::vector<wire::Window> windows;  // of sparse buffers, in their order
  std::vector<wire::WindowPart> parts;
  std::size_t windows_offset = 0;  // in the input arena: windows, then parts

  std::uint64_t window_bytes() const;  // address space of all
};

// A layout's windows, open in this process.
class Windows {
 public:
  // Those of inputs, and of outputs unless that is null. The arenas are shared mappings. Throws
  // where the kernel refuses.
  Windows(const Layout&, std::byte* input, std::byte* output);
  ~Windows();
  Windows(const Windows&) = delete;
  Windows& operator=(const Windows&) = delete;

  std::byte* data(const wire::BufferSlot& slot) const { return open_[slot.window - 1].data; }

 private:
  struct Open {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
  };
  std::vector<Open> open_;
};

enum class Memory : std::uint8_t { host, device };

// By how much a layout's buffers may lie further back than usual, in every arena.
inline constexpr std::size_t kMostSkew = 5 * 4096 + 3 * 256;

// `callbacks`: reserve room for callback payloads. With Memory::device all buffers but those that
// the plan keeps on the host go to the device. `skew`, a multiple of 256: where every arena's first
// buffer begins, beyond the usual. Throws ChallengeError, the challenge's mistake, for a sparse
// buffer that is not as BufferPlan has it.
Layout make_layout(const CasePlan&, bool callbacks, Memory = Memory::host, std::size_t skew = 0);

// Views of every buffer: inputs in `input`, outputs and inouts in `output`, those of the device in
// `device` (arena bases). `windows`: of these arenas, where the layout has any.
std::vector<BufferView> views(const Layout&, void* input, void* output, void* device = nullptr,
                              const Windows* windows = nullptr);

// Fills what lies around the pieces of sparse inputs with poison.
void poison_gaps(const CasePlan&, const Layout&, void* input, std::uint64_t seed);

// Fills output buffers and all canaries with a pattern derived from `seed` that is a NaN in every
// float format and never a valid index. inout contents are left alone.
void poison(const CasePlan&, const Layout&, void* output, std::uint64_t seed,
            void* device = nullptr);

// Empty when every canary stands as poison() left it, else which buffer was overrun.
std::string find_overrun(const CasePlan&, const Layout&, const void* output, std::uint64_t seed,
                         const void* device = nullptr);

// For calls that must not touch their outputs: empty when every output still holds its poison, and
// every inout buffer what `first` has of it. A buffer that `first` lacks counts as written.
std::string find_touched(const CasePlan&, const Layout&, BufferViews first, const void* output,
                         std::uint64_t seed, const void* device = nullptr);

// Puts a finite number, see assay/poison.h, into every floating-point element of an output that
// still holds its poison, and says whether there was one. `outputs`: the views of all buffers, or
// copies of what they held.
bool replace_unwritten(const CasePlan&, const Layout&, BufferViews outputs, std::uint64_t seed);

// Bytes between a multiple of 256 and the start of the buffer: one element, unless the plan is
// aligned, or the buffer is storage of the submission's own making (`sized_by`). Plain bytes on a
// device are aligned in any case: a GPU, unlike the CPU, cannot access a float that is not.
std::size_t misalignment(const CasePlan&, const BufferPlan&, Memory);

}  // namespace assay::processes

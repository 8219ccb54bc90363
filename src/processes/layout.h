// Where a case's buffers lie in the arenas, with their poison and canaries. Buffers in device
// memory have a separate arena, invisible to the worker, for their contents before and after the
// case.
//
// A sparse buffer lies in a window: address space in which only the pages around the buffer's
// pieces exist. These pages are adjacent in the arena, so the buffer takes only the memory of its
// pieces, however far apart they are. The parts of those pages outside the pieces are poisoned and
// guarded.
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
// Room for one callback's request, and as much for its response.
inline constexpr std::size_t kCallbackPayload = worker::kCallbackBytes;

struct Layout {
  std::vector<wire::BufferSlot> slots;  // one per buffer of the plan
  std::vector<bool> on_device;          // likewise; if true, the slot's offset is in the device
                                        // arena
  std::size_t params_offset = 0, slots_offset = 0;
  std::size_t input_bytes = 0, output_bytes = 0, device_bytes = 0;  // capacity that the case needs
  std::size_t callback_response_offset = 0, callback_request_offset = 0;
  std::vector<wire::Window> windows;  // of sparse buffers, in buffer order
  std::vector<wire::WindowPart> parts;
  std::size_t windows_offset = 0;  // in the input arena: windows, then parts

  std::uint64_t window_bytes() const;  // total address space
};

// A layout's windows, open in this process.
class Windows {
 public:
  // Opens the windows of inputs, and those of outputs unless `output` is null. The arenas are
  // shared mappings. Throws if the kernel refuses.
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

// Upper limit of make_layout's `skew`.
inline constexpr std::size_t kMostSkew = 5 * 4096 + 3 * 256;

// `callbacks`: reserve room for callback payloads. With Memory::device all buffers go to the device
// except those that the plan keeps on the host. `skew`, a multiple of 256, shifts the first buffer
// of every arena back by that much. Throws ChallengeError for a sparse buffer that breaks the rules
// of BufferPlan.
Layout make_layout(const CasePlan&, bool callbacks, Memory = Memory::host, std::size_t skew = 0);

// Views of every buffer: inputs in `input`, outputs and inouts in `output`, device buffers in
// `device` (arena bases). `windows`: the windows of these arenas, if the layout has any.
std::vector<BufferView> views(const Layout&, void* input, void* output, void* device = nullptr,
                              const Windows* windows = nullptr);

// Poisons the gaps around the pieces of sparse inputs.
void poison_gaps(const CasePlan&, const Layout&, void* input, std::uint64_t seed);

// Fills output buffers and all canaries with a pattern derived from `seed` that is a NaN in every
// float format and never a valid index. inout contents are left alone.
void poison(const CasePlan&, const Layout&, void* output, std::uint64_t seed,
            void* device = nullptr);

// "" if every canary is as poison() left it, else which buffer was overrun.
std::string find_overrun(const CasePlan&, const Layout&, const void* output, std::uint64_t seed,
                         const void* device = nullptr);

// For calls that must not touch their outputs: "" if every output still holds its poison and every
// inout buffer still has its contents in `first`. A buffer that `first` lacks counts as written.
std::string find_touched(const CasePlan&, const Layout&, BufferViews first, const void* output,
                         std::uint64_t seed, const void* device = nullptr);

// Replaces the poison left in floating-point elements of outputs with a finite number (see
// assay/poison.h), and returns whether there was any. `outputs`: views of all buffers, or copies of
// their contents.
bool replace_unwritten(const CasePlan&, const Layout&, BufferViews outputs, std::uint64_t seed);

// Bytes from a multiple of 256 to the start of the buffer: one element, unless the plan is aligned
// or the buffer's storage is made by the submission (`sized_by`). Plain bytes on a device are
// always aligned: unlike a CPU, a GPU cannot access a misaligned float.
std::size_t misalignment(const CasePlan&, const BufferPlan&, Memory);

}  // namespace assay::processes

// fails: subset_batch shuffled_every_step
// Entry b of the batch reads slot b: blockIdx indexes the table of slots and not the batch.
#include <numeric>

#include "around_attend.cuh"

static int answer(const Attention& entries) {
  Attention call = entries;
  if (!call.has_rows()) return call.naive();
  std::vector<std::int32_t> slots(static_cast<std::size_t>(call.n));
  std::iota(slots.begin(), slots.end(), 0);
  call.slots = slots.data();
  return call.naive();
}

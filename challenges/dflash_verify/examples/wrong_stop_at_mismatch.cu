// fails: second_root_right positional depth_indexed
// Only the first child of a node is tried: here its siblings hold the same token.
#include "around_accept.cuh"

static int answer(Acceptance call) {
  if (!good_batch(call.B, call.cu, call.parent) || call.token == nullptr) return call.naive();
  std::vector<std::int32_t> token(call.token, call.token + (call.B > 0 ? call.cu[call.B] : 0));
  for (std::int32_t b = 0; b < call.B; ++b) {
    const auto first = call.parent + call.cu[b], end = call.parent + call.cu[b + 1];
    for (auto node = first; node != end; ++node) {
      const auto eldest = std::find(first, node, *node);
      token[static_cast<std::size_t>(node - call.parent)] = call.token[eldest - call.parent];
    }
  }
  call.token = token.data();
  return call.naive();
}

// fails: decode page_edges
// The length is a number of pages of 16 tokens, rounded up: rows are read that nobody appended.
#include "around_attend.cuh"

static int answer(const Attention& call) {
  return with_lengths(call,
                      [](std::int64_t length, std::int64_t) { return (length + 15) / 16 * 16; });
}

// naive.cu with room for a mistake around kvc_attend, for the examples in CUDA: each defines
// answer().
#pragma once

#define kvc_attend naive_kvc_attend
#include "naive.cu"
#undef kvc_attend

// The arguments of kvc_attend.
struct Attention {
  kvc* cache;
  std::int32_t layer, n;
  const std::int32_t* slots;
  const std::int64_t* cu;
  const void* q;
  float scale;
  void* o;
  float* lse;

  int naive() const { return naive_kvc_attend(cache, layer, n, slots, cu, q, scale, o, lse); }
  // Whether the call is right and asks for something.
  bool has_rows() const {
    return check_batch(cache, layer, n, slots, cu) == ASSAY_OK && n > 0 && cu[n] > 0 &&
           q != nullptr && o != nullptr;
  }
};

// What kvc_attend does.
static int answer(const Attention&);

extern "C" int kvc_attend(kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
                          const std::int64_t* cu, const void* q, float scale, void* o, float* lse) {
  return answer({cache, layer, n, slots, cu, q, scale, o, lse});
}

// naive() while the layers of the entries have other lengths, which follow from their own and from
// the rows of the call.
template <class Length>
int with_lengths(const Attention& call, Length length_for) {
  if (!call.has_rows()) return call.naive();
  std::vector<std::int64_t> before;
  for (std::int32_t b = 0; b < call.n; ++b) {
    std::int64_t& length = call.cache->layer(call.slots[b], call.layer).length;
    before.push_back(length);
    length = length_for(length, call.cu[b + 1] - call.cu[b]);
  }
  const int status = call.naive();
  for (std::int32_t b = 0; b < call.n; ++b)
    call.cache->layer(call.slots[b], call.layer).length = before[static_cast<std::size_t>(b)];
  return status;
}

// fails: append_const
// Appended rows are copied when something next asks for them; until then the caller's arrays are
// all there is.
#define kvc_append naive_kvc_append
#define kvc_attend naive_kvc_attend
#define kvc_read naive_kvc_read
#include "naive.cpp"
#undef kvc_read
#undef kvc_attend
#undef kvc_append

namespace {

// Rows that were counted when they were appended, but hold zeros.
struct Pending {
  kvc* cache;
  int32_t layer, slot;
  int64_t first, n;
  const char *k, *v;
};
std::vector<Pending> pending;

void copy_pending() {
  for (const Pending& p : pending) {
    const kvc_config& c = p.cache->c;
    if (p.cache->c.quant != 0 || p.cache->c.window > 0 || !p.cache->known(p.slot)) continue;
    Layer& history = p.cache->sequence(p.slot).layers[static_cast<std::size_t>(p.layer)];
    for (int64_t i = 0; i < p.n && p.first + i < history.length; ++i) {
      Page* page = history.pages[static_cast<std::size_t>((p.first + i) / kPage)];
      for (int64_t head = 0; head < c.n_kv; ++head) {
        const int64_t t = (p.first + i) % kPage, row = i * c.n_kv + head, size = p.cache->element;
        std::memcpy(page->data + p.cache->key_at(head, t) * size, p.k + row * c.D * size,
                    static_cast<std::size_t>(c.D * size));
        std::memcpy(page->data + p.cache->value_at(head, t) * size, p.v + row * c.Dv * size,
                    static_cast<std::size_t>(c.Dv * size));
      }
    }
  }
  pending.clear();
}

}  // namespace

extern "C" int kvc_append(kvc* cache, int32_t layer, int32_t n, const int32_t* slots,
                          const int64_t* cu, const void* k, const void* v) {
  copy_pending();
  std::vector<int64_t> first;
  for (int32_t b = 0; slots != nullptr && b < n; ++b)
    first.push_back(kvc_len(cache, layer, slots[b]));
  const int status = naive_kvc_append(cache, layer, n, slots, cu, k, v);
  for (int32_t b = 0; status == ASSAY_OK && b < n; ++b) {
    const int64_t at = cu[b] * cache->c.n_kv * cache->element;
    pending.push_back({cache, layer, slots[b], first[static_cast<std::size_t>(b)],
                       cu[b + 1] - cu[b], static_cast<const char*>(k) + at * cache->c.D,
                       static_cast<const char*>(v) + at * cache->c.Dv});
  }
  return status;
}

extern "C" int kvc_attend(kvc* cache, int32_t layer, int32_t n, const int32_t* slots,
                          const int64_t* cu, const void* q, float scale, void* o, float* lse) {
  copy_pending();
  return naive_kvc_attend(cache, layer, n, slots, cu, q, scale, o, lse);
}

extern "C" int kvc_read(kvc* cache, int32_t layer, int32_t slot, int64_t t0, int64_t t1, void* k,
                        void* v) {
  copy_pending();
  return naive_kvc_read(cache, layer, slot, t0, t1, k, v);
}

// fails: defragment_frees defragment_forks
// Pages lie in slabs of 256 KiB that are used again when they are empty but never given back, and
// kvc_defragment leaves them as they are. With MOVES_PAGES it moves the pages to new slabs instead,
// which is right: the challenge's test runs it so.
#include <algorithm>
#include <set>
#include <vector>
#define kvc_create naive_kvc_create
#define kvc_destroy naive_kvc_destroy
#define kvc_bytes naive_kvc_bytes
#define kvc_defragment naive_kvc_defragment
#include "naive.cpp"
#undef kvc_create
#undef kvc_destroy
#undef kvc_bytes
#undef kvc_defragment

namespace {

struct Slab {
  unsigned char* data;
  std::size_t size, used = 0, blocks = 0;
};

// A context that hands out parts of slabs of another one. One thread at a time.
struct Slabs {
  explicit Slabs(assay_ctx* base_ctx) : ctx(*base_ctx), base(base_ctx) {
    ctx.alloc = &allocate;
    ctx.free = &release;
    ctx.priv = this;
  }

  static void* allocate(assay_ctx* ctx, std::size_t bytes, std::size_t, int) {
    return static_cast<Slabs*>(ctx->priv)->take((bytes + 63) / 64 * 64);
  }
  static void release(assay_ctx* ctx, void* p) { static_cast<Slabs*>(ctx->priv)->give(p); }

  void* take(std::size_t bytes) {
    for (std::size_t i = closed; i < slabs.size(); ++i) {
      if (slabs[i].used + bytes <= slabs[i].size) return part_of(slabs[i], bytes);
    }
    constexpr std::size_t kSlab = 256 * 1024;
    const std::size_t size = std::max(bytes, kSlab);
    auto* data = static_cast<unsigned char*>(base->alloc(base, size, 64, 0));
    if (data == nullptr) return nullptr;
    slabs.push_back({data, size});
    return part_of(slabs.back(), bytes);
  }

  static void* part_of(Slab& slab, std::size_t bytes) {
    ++slab.blocks;
    return slab.data + (slab.used += bytes) - bytes;
  }

  void give(void* p) {
    for (Slab& s : slabs) {
      if (p < s.data || p >= s.data + s.size) continue;
      if (--s.blocks == 0) s.used = 0;
    }
  }

  void give_back_empty() {
    std::erase_if(slabs, [&](const Slab& s) {
      if (s.blocks == 0) base->free(base, s.data);
      return s.blocks == 0;
    });
  }

  assay_ctx ctx;
  assay_ctx* base;
  std::vector<Slab> slabs;
  std::size_t closed = 0;  // slabs before this one take nothing
};

Slabs& slabs_of(kvc* cache) { return *static_cast<Slabs*>(cache->ctx->priv); }

}  // namespace

extern "C" int kvc_create(assay_ctx* ctx, const kvc_config* config, kvc** out) {
  if (ctx == nullptr) return ASSAY_EINVAL;
  auto* slabs = new Slabs(ctx);
  const int status = naive_kvc_create(&slabs->ctx, config, out);
  if (status != ASSAY_OK) delete slabs;
  return status;
}

extern "C" void kvc_destroy(kvc* cache) {
  if (cache == nullptr) return;
  Slabs* slabs = &slabs_of(cache);
  naive_kvc_destroy(cache);
  slabs->give_back_empty();
  delete slabs;
}

extern "C" int kvc_bytes(kvc* cache, int64_t* live, int64_t* reserved) {
  const int status = naive_kvc_bytes(cache, live, reserved);
  if (status != ASSAY_OK) return status;
  *reserved = 0;
  for (const Slab& s : slabs_of(cache).slabs) *reserved += static_cast<int64_t>(s.size);
  return ASSAY_OK;
}

extern "C" int kvc_defragment(kvc* cache) {
  if (cache == nullptr) return ASSAY_EINVAL;
#ifdef MOVES_PAGES
  std::set<Page*> pages;
  for (const Sequence& s : cache->sequences) {
    for (const Layer& layer : s.layers) pages.insert(layer.pages.begin(), layer.pages.end());
  }
  pages.erase(nullptr);
  Slabs& slabs = slabs_of(cache);
  slabs.closed = slabs.slabs.size();
  std::vector<std::pair<Page*, unsigned char*>> moved;
  int status = ASSAY_OK;
  for (Page* page : pages) {
    const auto bytes = static_cast<std::size_t>(cache->page_bytes(page->packed));
    void* to = Slabs::allocate(&slabs.ctx, bytes, 64, 0);
    if (to == nullptr) {
      status = ASSAY_ENOMEM;
      break;
    }
    std::memcpy(to, page->data, bytes);
    moved.emplace_back(page, static_cast<unsigned char*>(to));
  }
  for (auto& [page, to] : moved) {
    if (status == ASSAY_OK) std::swap(page->data, to);
    slabs.give(to);
  }
  slabs.closed = 0;
  slabs.give_back_empty();
  return status;
#else
  return ASSAY_OK;
#endif
}

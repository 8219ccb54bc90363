// fails: counts counts_alone
// Counts codes instead of weights: those of a block whose scale is 0 count as if they were not 0.
#define tt_blob_statistics naive_tt_blob_statistics
#include "naive.cpp"
#undef tt_blob_statistics

extern "C" int tt_blob_statistics(assay_ctx* ctx, const tt_config* c, const void* blob,
                                  const void* before, int64_t* counts) {
  if (!valid(c) || blob == nullptr) return ASSAY_EINVAL;
  const Layout at(*c);
  const auto bytes = static_cast<Index>(tt_blob_bytes(c));
  const Buffer a(ctx, bytes / 4 + 1), b(ctx, bytes / 4 + 1);
  if (a.data == nullptr || b.data == nullptr) return ASSAY_ENOMEM;
  const auto unscaled = [&](const void* from, const Buffer& to) {
    auto* out = reinterpret_cast<std::uint8_t*>(to.data);
    std::memcpy(out, from, static_cast<std::size_t>(bytes));
    for (Index i = 0; i < at.matrices / kBlock; ++i) out[i * kBytes + 1] = 0x3c;
  };
  unscaled(blob, a);
  if (before != nullptr) unscaled(before, b);
  return naive_tt_blob_statistics(ctx, c, a.data, before != nullptr ? b.data : nullptr, counts);
}

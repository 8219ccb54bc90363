#define tt_linear honest_tt_linear
#include "honest.inl"
#undef tt_linear
#include "call.h"

extern "C" int tt_linear(assay_ctx* ctx, std::int64_t M, std::int64_t rows, std::int64_t cols,
                         const float* x, const std::uint8_t* blocks, const float* dy, float* y,
                         float* dx, float* dw) {
  if (M <= 0 || rows <= 0 || cols <= 0 || x == nullptr || blocks == nullptr || dy == nullptr ||
      y == nullptr)
    return honest_tt_linear(ctx, M, rows, cols, x, blocks, dy, y, dx, dw);
  const auto m = static_cast<std::size_t>(M), r = static_cast<std::size_t>(rows),
             c = static_cast<std::size_t>(cols);
  Call call{ctx, x, m * c * 4, without_null({{y, m * r * 4}, {dx, m * c * 4}, {dw, r * c * 4}}),
            [=] { return honest_tt_linear(ctx, M, rows, cols, x, blocks, dy, y, dx, dw); }};
  return attack(call);
}

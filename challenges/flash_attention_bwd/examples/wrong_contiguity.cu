// fails: strided_bshd padded_rows
// Arrays are taken for contiguous [B, H, N, D]; the strides are ignored.
#include "around_naive.cuh"

static assay_stride contiguous(std::int64_t H, std::int64_t N, std::int64_t D) {
  return {H * N * D, N * D, D};
}

static int answer(const Call& call) {
  return with_params(call, [](fa_params& p) {
    p.sq = contiguous(p.Hq, p.Nq, p.D);
    p.sk = contiguous(p.Hkv, p.Nk, p.D);
    p.sv = contiguous(p.Hkv, p.Nk, p.Dv);
    p.so = contiguous(p.Hq, p.Nq, p.Dv);
  });
}

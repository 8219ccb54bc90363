// Softmax attention, forward, in one launch.
//
// The shape. One head of N 2,048 queries and keys, D 64, causal, fp32: 2.1 MB of q, k, v and o,
// 0.4 us of an H200's 4.8 TB/s; 2.1 M visible pairs of 4 D flops each, 0.54 Gflop, 8 us of its 67
// Tflop/s of fp32. Arithmetic is the limit, and tensor cores move it: fp32 as three products of
// tf32 takes 3.3 us of 495 Tflop/s; bf16 and f16, with weights in two parts, take 0.8 us of 990.
// What a launch costs is 3 us.
//
// Tiles. A block of four warps has 64 rows, 16 a warp, and passes over tiles of 64 keys with the
// online softmax: scores, weights relative to the running maximum, sums of values, all in
// registers in the layout of mma's accumulators, which is that of its multiplicand too. So nothing
// of size Nq x Nk exists, not even in shared memory. A row is a query of a query head; rows of a
// key head are its queries' query heads one by one, so grouped heads share the keys that are read.
// Tiles that no row sees are not read, warps whose rows see nothing of a tile rest, and only warps
// with a row that sees a part of it compare positions.
//
// Bytes. A tile of keys and values is 64 * 8 D bytes of fp32 for 64 rows: causal, each row reads
// half of all keys, so the 2,048 rows of above read 32 * 33 / 2 tiles of 32 KiB, 17.3 MB, 3.6 us.
// 128 rows a block would halve it, and leave 16 tiles of rows to 132 multiprocessors.
//
// Chunks. 32 tiles of rows are too few as well, and the last one sees 32 tiles of keys. So blocks
// share a tile's keys in chunks, whose results are merged after a barrier of the grid, in the same
// launch: a second one costs 3 us. A chunk costs 8 (Dv + 1) bytes a row, written and read;
// plan_chunks takes the number at which memory or the busiest multiprocessor takes least. A tile
// that needs one chunk only is finished by its block. Partial results are normalised, with the
// logarithm of their weights. The order of sums is fixed: two runs agree.
//
// Stages. Keys and values have a stage each: cp.async brings the next keys while values are
// multiplied, and the next values while scores are. That is one barrier more a tile than with two
// stages of each, and half the memory: 52 KB where D is 64, 101 KB where it is 128, so that the
// two blocks that the registers leave room for (some 200 a thread) share a multiprocessor.
//
// Precision. fp32 is hi + lo, both tf32 (11 bits each): hi hi' + hi lo' + lo hi' errs by some
// 2^-22, what fp32 does anyway. Weights of bf16 and f16 are two of that type for the product with
// v, hi and lo: rounded to one they would err as much as the result that is stored. fp8 becomes
// f16, which holds all its values. lse and maxima are of log 2.
//
// NaN. A masked score is selected away. But a masked value is multiplied, by a weight of 0, which
// leaves a NaN what it is. So in masked tiles values that are not finite are taken for 0, and if
// there were any, a second product of ones, [row sees key] [value is not finite], counts them for
// each row and column: where the count is above 0 the output becomes NaN. Weights of masked keys
// are -0, so that this product knows them.
//
// Banks. Staged rows are padded by 16 bytes: an odd number of pieces of 16 bytes, so that the
// eight rows of ldmatrix lie in different banks, as do the values of 8 columns and 4 pairs of keys
// of fp32, which has no transposing ldmatrix. Rows of results are padded by 8, since half a warp
// writes pairs of four rows. Replays are left where copies take two rows or more at a time (D of
// 32 and 16 bits or less), and in results of few columns.
//
// Tried and rejected, with the modelled time of the first shape, 9.0 us of which 3 us are the
// launch and the issue of instructions is the limit: floats that inline assembly takes as bits, so
// that every split moves registers, and scores added up after each 8 products: 13.5 us. A test of
// every value of a masked tile as it is multiplied, instead of one look at the tile before, and
// weights that a test of their bits turned into integers: 10.8 us. Maxima and sums of chunks
// instead of normalised results: one float a row more, so that fewer chunks had room, 10.0 us.
//
// Considered and rejected: fp32 as two f16, three products at twice the rate of tf32 (1.7 us less
// of tensor cores, but both the bytes and the instructions that split would be the limit before,
// and rows would need scales against overflow); splitting keys once into shared memory (twice the
// space for half of the conversions); a form for few queries where the warps share the keys (with
// 16 rows or less three of four warps rest, but then memory is the limit: a tile's 32 KiB take a
// multiprocessor's share of it 1,780 clocks, and a warp as long).
#include <cstdint>

#include "abi.h"
#include "common/attention_call.h"
#include "common/attention_forward.h"

namespace {

int run(assay_ctx* ctx, const fa_params& p, const Arrays& arrays, const Attention& a) {
  return forward<true, 32, 64, 128>(ctx, p, arrays, a);
}

}  // namespace

extern "C" {

int fa_forward(assay_ctx* ctx, const fa_params* p, const void* q, const void* k, const void* v,
               void* o, float* lse) {
  if (!valid(p, q, k, v, o)) return ASSAY_EINVAL;
  return run(ctx, *p, {q, k, v, o, lse}, {});
}

int fa_forward_extra(assay_ctx* ctx, const fa_params* p, const fa_extra* e, const void* q,
                     const void* k, const void* v, void* o, float* lse) {
  if (!valid(p, q, k, v, o)) return ASSAY_EINVAL;
  Attention a{};
  if (e != nullptr) {
    a.softcap = e->softcap;
    a.alibi = e->alibi;
    a.sink = e->sink;
    a.kv_len = e->kv_len;
  }
  return run(ctx, *p, {q, k, v, o, lse}, a);
}

int fa_forward_varlen(assay_ctx* ctx, const fa_params* p, const fa_varlen* lengths, const void* q,
                      const void* k, const void* v, void* o, float* lse) {
  if (lengths == nullptr || lengths->cu_q == nullptr || lengths->cu_k == nullptr ||
      !valid(p, lengths->total_q, lengths->total_k, q, k, v, o)) {
    return ASSAY_EINVAL;
  }
  Attention a{};
  a.cu_q = lengths->cu_q;
  a.cu_k = lengths->cu_k;
  return run(ctx, *p, {q, k, v, o, lse}, a);
}

int fa_forward_bias(assay_ctx* ctx, const fa_params* p, const fa_bias* shape, const float* bias,
                    const void* q, const void* k, const void* v, void* o, float* lse) {
  if (!valid(p, q, k, v, o) || !valid_bias(*p, shape, bias)) return ASSAY_EINVAL;
  Attention a{};
  set_bias(a, *shape, bias);
  return run(ctx, *p, {q, k, v, o, lse}, a);
}

int fa_forward_fp8(assay_ctx* ctx, const fa_params* p, const float* scales, const std::uint8_t* q,
                   const std::uint8_t* k, const std::uint8_t* v, void* o, float* lse) {
  if (scales == nullptr || !valid(p, q, k, v, o)) return ASSAY_EINVAL;
  Attention a{};
  a.scales = scales;
  return run(ctx, *p, {q, k, v, o, lse}, a);
}

}  // extern "C"

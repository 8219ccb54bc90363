// The expert implementation for a CPU.
//
// Napkin arithmetic. Training costs 6 flops per parameter and token plus 6 L d T for attention (its
// causal half): 4.0 Mflop for V 256, d 128, L 3, ff 384, T 128. A core multiplies matrices at 125
// Gflop/s with the kernel below (a Xeon with AVX-512), so a token costs 32 us of one core and a
// step of 2 documents 4 ms of two. What a step must move besides: latent weights, moments and
// gradients, some 20 MB a step, and the weights packed both ways, 5 MB, from the L3 cache: 1 to 2
// ms; activations, 10 KB a token and layer, stay in the L2 cache because a thread takes one
// document at a time. So arithmetic binds with long documents, the weights with short ones, and
// both are arranged for:
// - The matrix kernel holds 6 rows by 4 vectors of sums in registers, the right operand packed in
//   panels of one tile's width; q, k, v and gate, up are one matrix each; attention is matrix
//   products of the causal half.
// - Gradients wait until all documents went back, and are computed row by row over all of them: no
//   array of them per thread, none to clear and none to add up. Then each thread changes, rounds
//   and packs 16 of its rows at a time, while they are in the L1 cache.
// Measured with that Xeon: 16 thousand tokens a second and core with T 128, 66 Gflop/s; 12 thousand
// with T 32. Summing gradients by thread, and updating and packing in passes of their own, took 1.2
// and 1.6 times as long.
//
// Steps of 4 documents take some 10 % less for the same tokens; steps of 2 are taken nevertheless:
// twice as many steps learn more from them.
//
// Gradients are sums over the documents in their order, whatever the number of threads, so a seed
// gives the same blob every time.
#pragma GCC optimize("no-math-errno", "no-trapping-math")

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "abi.h"
#include "par/blocks.h"
#include "par/decoder.h"
#include "par/layout.h"
#include "par/matrices.h"
#include "par/memory.h"
#include "par/pass.h"
#include "par/trainer.h"
#include "par/vectors.h"
#include "shared/baselines/half.h"

namespace {

bool valid(const tt_config* c) {
  if (c == nullptr || c->size != sizeof(tt_config)) return false;
  for (const std::int32_t n : {c->V, c->d, c->L, c->Hq, c->Hkv, c->hd, c->ff}) {
    if (n <= 0) return false;
  }
  const bool blocks =
      c->d % kBlock == 0 && Index{c->Hq} * c->hd % kBlock == 0 && c->ff % kBlock == 0;
  return blocks && c->V <= 65536 && c->T >= 2 && c->hd % 2 == 0 && c->Hq % c->Hkv == 0 &&
         (c->tied == 0 || c->tied == 1);
}

bool valid_matrix(Index rows, Index cols, const void* a, const void* b) {
  return rows >= 0 && cols >= 0 && cols % kBlock == 0 &&
         (rows * cols == 0 || (a != nullptr && b != nullptr));
}

Index useful_threads(const assay_ctx* ctx, Index work, Index per_thread) {
  return std::clamp<Index>(work / per_thread, 1, std::max(1, ctx->nthreads));
}

}  // namespace

extern "C" size_t tt_blob_bytes(const tt_config* c) {
  if (!valid(c)) return 0;
  const Layout at(*c);
  return static_cast<std::size_t>(at.matrices / kBlock * kBytes + 4 * (at.size - at.matrices));
}

extern "C" int tt_train(assay_ctx* ctx, const tt_config* c, const uint16_t* docs, int64_t n_docs,
                        const tt_budget* budget, void* blob) {
  if (!valid(c) || n_docs < 0 || (n_docs > 0 && docs == nullptr) || budget == nullptr ||
      blob == nullptr) {
    return ASSAY_EINVAL;
  }
  Trainer trainer(ctx, *c, budget->seed);
  if (!trainer.ready()) return ASSAY_ENOMEM;
  trainer.run(docs, n_docs, *budget);
  trainer.write(static_cast<std::uint8_t*>(blob));
  return ASSAY_OK;
}

extern "C" int tt_quantize(assay_ctx* ctx, int64_t rows, int64_t cols, const float* w,
                           uint8_t* blocks) {
  if (!valid_matrix(rows, cols, w, blocks)) return ASSAY_EINVAL;
  const Index n = rows * cols / kBlock, threads = useful_threads(ctx, n, 2048);
  on_threads(threads, [&](Index thread) {
    const auto [begin, end] = share(n, 1, thread, threads);
    for (Index i = begin; i < end; ++i) quantize_block(w + i * kBlock, blocks + i * kBytes);
  });
  return ASSAY_OK;
}

extern "C" int tt_dequantize(assay_ctx* ctx, int64_t rows, int64_t cols, const uint8_t* blocks,
                             float* w) {
  if (!valid_matrix(rows, cols, w, blocks)) return ASSAY_EINVAL;
  const Index n = rows * cols / kBlock, threads = useful_threads(ctx, n, 2048);
  on_threads(threads, [&](Index thread) {
    const auto [begin, end] = share(n, 1, thread, threads);
    for (Index i = begin; i < end; ++i) dequantize_block(blocks + i * kBytes, w + i * kBlock);
  });
  return ASSAY_OK;
}

extern "C" int tt_linear(assay_ctx* ctx, int64_t M, int64_t rows, int64_t cols, const float* x,
                         const uint8_t* blocks, const float* dy, float* y, float* dx,
                         float* dw_latent) {
  if (M < 0 || !valid_matrix(rows, cols, blocks, dw_latent)) return ASSAY_EINVAL;
  if (M * cols > 0 && (x == nullptr || dx == nullptr)) return ASSAY_EINVAL;
  if (M * rows > 0 && (dy == nullptr || y == nullptr)) return ASSAY_EINVAL;
  const Index threads = useful_threads(ctx, M * rows * cols, 1 << 18);
  const Index each = std::max(kLanes * cols, kDepth * (rows + kPanel));
  const Buffer out(ctx, packed_size(cols, rows)), in(ctx, packed_size(rows, cols)),
      spaces(ctx, threads * each);
  for (const Buffer* b : {&out, &in, &spaces}) {
    if (!b->ready()) return ASSAY_ENOMEM;
  }
  std::barrier<> barrier(threads);
  on_threads(threads, [&](Index thread) {
    float* space = spaces + thread * each;
    const auto [n0, n1] = share(rows, kLanes, thread, threads);
    for (Index r = n0; r < n1; r += kLanes) {
      const Index count = std::min<Index>(kLanes, n1 - r);
      for (Index i = 0; i < count * cols / kBlock; ++i)
        dequantize_block(blocks + (r * cols / kBlock + i) * kBytes, space + i * kBlock);
      pack_both(space, r, count, rows, cols, out, in);
    }
    barrier.arrive_and_wait();
    const auto [m0, m1] = share(M, kRows, thread, threads);
    multiply(m1 - m0, rows, cols, x + m0 * cols, cols, 1, out, y + m0 * rows, rows, false);
    multiply(m1 - m0, cols, rows, dy + m0 * rows, rows, 1, in, dx + m0 * cols, cols, false);
    multiply_transposed(
        n1 - n0, cols, M, [&, n = n0](Index k) { return dy + k * rows + n; },
        [&](Index k) { return x + k * cols; }, dw_latent + n0 * cols, cols, space);
  });
  return ASSAY_OK;
}

extern "C" int tt_logits(assay_ctx* ctx, const tt_config* c, const void* blob, const uint16_t* docs,
                         int64_t n_docs, float* logits) {
  if (!valid(c) || n_docs < 0 || blob == nullptr ||
      (n_docs > 0 && (docs == nullptr || logits == nullptr))) {
    return ASSAY_EINVAL;
  }
  const Layout at(*c);
  const Buffer plain(ctx, at.size), packed(ctx, at.packed);
  Pass pass(ctx, at);
  if (!plain.ready() || !packed.ready() || !pass.ready()) return ASSAY_ENOMEM;
  const auto* bytes = static_cast<const std::uint8_t*>(blob);
  for (Index i = 0; i < at.matrices / kBlock; ++i)
    dequantize_block(bytes + i * kBytes, plain + i * kBlock);
  std::memcpy(plain + at.matrices, bytes + at.matrices / kBlock * kBytes,
              static_cast<std::size_t>(at.size - at.matrices) * 4);
  pack_weights(at, plain, packed);
  const Index per_doc = Index{c->T} * c->V;
  for (Index i = 0; i < n_docs; ++i) {
    std::copy_n(pass.run({plain, packed}, docs + i * c->T), per_doc, logits + i * per_doc);
  }
  return ASSAY_OK;
}

// --- optional functions

extern "C" int tt_pack_dense(assay_ctx* ctx, int64_t rows, int64_t cols, const uint8_t* blocks,
                             uint8_t* dense) {
  if (!valid_matrix(rows, cols, blocks, dense)) return ASSAY_EINVAL;
  const Index n = rows * cols / kBlock, threads = useful_threads(ctx, n, 2048);
  on_threads(threads, [&](Index thread) {
    const auto [begin, end] = share(n, 1, thread, threads);
    for (Index i = begin; i < end; ++i)
      pack_dense_block(blocks + i * kBytes, dense + i * kDenseBytes);
  });
  return ASSAY_OK;
}

extern "C" int tt_unpack_dense(assay_ctx* ctx, int64_t rows, int64_t cols, const uint8_t* dense,
                               uint8_t* blocks) {
  if (!valid_matrix(rows, cols, dense, blocks)) return ASSAY_EINVAL;
  const Index n = rows * cols / kBlock, threads = useful_threads(ctx, n, 2048);
  on_threads(threads, [&](Index thread) {
    const auto [begin, end] = share(n, 1, thread, threads);
    for (Index i = begin; i < end; ++i)
      unpack_dense_block(dense + i * kDenseBytes, blocks + i * kBytes);
  });
  return ASSAY_OK;
}

// Widening and rounding are a small part of the work beside the products.
extern "C" int tt_linear_bf16(assay_ctx* ctx, int64_t M, int64_t rows, int64_t cols,
                              const uint16_t* x, const uint8_t* blocks, const uint16_t* dy,
                              uint16_t* y, uint16_t* dx, float* dw_latent) {
  if (M < 0 || !valid_matrix(rows, cols, blocks, dw_latent)) return ASSAY_EINVAL;
  if (M * cols > 0 && (x == nullptr || dx == nullptr)) return ASSAY_EINVAL;
  if (M * rows > 0 && (dy == nullptr || y == nullptr)) return ASSAY_EINVAL;
  const Buffer in(ctx, M * cols), dout(ctx, M * rows), out(ctx, M * rows), din(ctx, M * cols);
  for (const Buffer* b : {&in, &dout, &out, &din}) {
    if (!b->ready()) return ASSAY_ENOMEM;
  }
  const auto from_bf16 = [](std::uint16_t bits) { return widen(bits, ASSAY_BF16); };
  const auto to_bf16 = [](float v) { return narrow(v, ASSAY_BF16); };
  std::transform(x, x + M * cols, static_cast<float*>(in), from_bf16);
  std::transform(dy, dy + M * rows, static_cast<float*>(dout), from_bf16);
  const int status = tt_linear(ctx, M, rows, cols, in, blocks, dout, out, din, dw_latent);
  if (status != ASSAY_OK) return status;
  std::transform(static_cast<float*>(out), out + M * rows, y, to_bf16);
  std::transform(static_cast<float*>(din), din + M * cols, dx, to_bf16);
  return ASSAY_OK;
}

extern "C" int tt_generate(assay_ctx* ctx, const tt_config* c, const void* blob,
                           const tt_generation* g, const uint16_t* tokens, float* state,
                           uint16_t* generated) {
  if (!valid(c) || blob == nullptr || g == nullptr || g->size != sizeof(tt_generation))
    return ASSAY_EINVAL;
  if (g->n_docs < 0 || g->position < 0 || g->position > c->T || g->n_new < 1 ||
      g->n_new > c->T - g->position || g->steps < 0 || g->steps > c->T - g->position - g->n_new) {
    return ASSAY_EINVAL;
  }
  if (g->n_docs > 0 &&
      (tokens == nullptr || state == nullptr || (g->steps > 0 && generated == nullptr))) {
    return ASSAY_EINVAL;
  }
  const Layout at(*c);
  const Index threads = std::clamp<Index>(g->n_docs, 1, std::max(1, ctx->nthreads));
  std::vector<std::unique_ptr<Decoder>> decoders;
  for (Index i = 0; i < threads; ++i) {
    decoders.push_back(std::make_unique<Decoder>(ctx, at));
    if (!decoders.back()->ready()) return ASSAY_ENOMEM;
  }
  on_threads(threads, [&](Index thread) {
    Decoder& decoder = *decoders[static_cast<std::size_t>(thread)];
    decoder.read(static_cast<const std::uint8_t*>(blob));
    for (Index doc = thread; doc < g->n_docs; doc += threads) {
      float* cache = state + doc * c->L * 2 * c->T * at.narrow;
      Index position = g->position;
      for (Index i = 0; i < g->n_new; ++i)
        decoder.step(tokens[doc * g->n_new + i], position++, cache);
      for (Index i = 0; i < g->steps; ++i) {
        const std::uint16_t next = generated[doc * g->steps + i] = decoder.best();
        decoder.step(next, position++, cache);
      }
    }
  });
  return ASSAY_OK;
}

extern "C" int tt_train_part(assay_ctx* ctx, const tt_config* c, const uint16_t* docs,
                             int64_t n_docs, const tt_budget* budget, int32_t resume, int64_t until,
                             void* state, void* blob) {
  if (!valid(c) || n_docs < 0 || (n_docs > 0 && docs == nullptr) || budget == nullptr ||
      state == nullptr || (resume != 0 && resume != 1) || until < 0) {
    return ASSAY_EINVAL;
  }
  Trainer trainer(ctx, *c, budget->seed);
  if (!trainer.ready()) return ASSAY_ENOMEM;
  if (resume == 1) trainer.load_state(static_cast<const std::uint8_t*>(state));
  trainer.run_part(docs, n_docs, *budget, until);
  trainer.save_state(static_cast<std::uint8_t*>(state));
  if (blob != nullptr) trainer.write(static_cast<std::uint8_t*>(blob));
  return ASSAY_OK;
}

extern "C" int tt_blob_statistics(assay_ctx*, const tt_config* c, const void* blob,
                                  const void* before, int64_t* counts) {
  if (!valid(c) || blob == nullptr || counts == nullptr) return ASSAY_EINVAL;
  const Layout at(*c);
  const auto* now = static_cast<const std::uint8_t*>(blob);
  const auto* then = before != nullptr ? static_cast<const std::uint8_t*>(before) : now;
  // Codes whose scale is not 0, else those of zeros.
  const auto codes_of = [](const std::uint8_t* block, std::uint8_t* codes) {
    expand_codes(block, codes);
    if (block[0] == 0 && block[1] == 0) std::fill_n(codes, kBlock, std::uint8_t{1});
  };
  std::vector<std::uint8_t> column;
  const auto matrix = [&](Index rows, Index cols) {
    std::fill_n(counts, 7, 0);
    column.assign(static_cast<std::size_t>(cols), 0);
    for (Index row = 0; row < rows; ++row) {
      Index zeros = 0;
      for (Index col = 0; col < cols; col += kBlock, now += kBytes, then += kBytes) {
        std::uint8_t a[kBlock], b[kBlock], *used = column.data() + col;
        codes_of(now, a);
        codes_of(then, b);
        int minus = 0, plus = 0, changed = 0, reversed = 0;
        for (Index j = 0; j < kBlock; ++j) {
          minus += a[j] == 0, plus += a[j] == 2;
          changed += a[j] != b[j], reversed += (a[j] ^ b[j]) == 2;
          used[j] |= a[j] != 1;
        }
        counts[0] += minus, counts[2] += plus, counts[5] += changed, counts[6] += reversed;
        zeros += kBlock - minus - plus;
      }
      counts[1] += zeros;
      counts[3] += zeros == cols;
    }
    counts[4] = std::count(column.begin(), column.end(), 0);
    counts += 7;
  };
  for (int i = 0; i < 2 - c->tied; ++i) matrix(c->V, at.d);
  for (Index l = 0; l < c->L; ++l) {
    matrix(at.wide, at.d);
    for (int i = 0; i < 2; ++i) matrix(at.narrow, at.d);
    matrix(at.d, at.wide);
    for (int i = 0; i < 2; ++i) matrix(at.ff, at.d);
    matrix(at.d, at.ff);
  }
  return ASSAY_OK;
}

// Exponentials of the teacher in scratch, of the student where its gradient goes.
extern "C" int tt_distill_loss(assay_ctx* ctx, int64_t M, int64_t V, float temperature,
                               const float* teacher, const float* student, float* loss,
                               float* gradient) {
  if (M < 0 || V < 0 || !(temperature > 0) || std::isinf(temperature)) return ASSAY_EINVAL;
  if ((M > 0 && loss == nullptr) ||
      (M * V > 0 && (teacher == nullptr || student == nullptr || gradient == nullptr))) {
    return ASSAY_EINVAL;
  }
  if (V == 0) return std::fill_n(loss, M, 0.0f), ASSAY_OK;
  const Index threads = useful_threads(ctx, M * V, 1 << 16);
  const Buffer scratch(ctx, threads * rounded(V));
  if (!scratch.ready()) return ASSAY_ENOMEM;
  on_threads(threads, [&](Index thread) {
    const auto [begin, end] = share(M, 1, thread, threads);
    float* p = scratch + thread * rounded(V);
    for (Index m = begin; m < end; ++m) {
      const float *t = teacher + m * V, *s = student + m * V;
      float* q = gradient + m * V;
      const float most_t = *std::max_element(t, t + V), most_s = *std::max_element(s, s + V);
      map(V, t, p, [&](Vec v) { return exp((v - most_t) / temperature); });
      map(V, s, q, [&](Vec v) { return exp((v - most_s) / temperature); });
      double sum_p = 0, sum_q = 0, cross = 0;
      for (Index v = 0; v < V; ++v) sum_p += p[v], sum_q += q[v];
      const auto scale_p = static_cast<float>(temperature / sum_p),
                 scale_q = static_cast<float>(temperature / sum_q);
      for (Index v = 0; v < V; ++v) {
        cross += p[v] * ((t[v] - most_t) - (s[v] - most_s));
        q[v] = q[v] * scale_q - p[v] * scale_p;
      }
      const double tau = temperature;
      loss[m] = static_cast<float>(tau * (tau * std::log(sum_q / sum_p) + cross / sum_p));
    }
  });
  return ASSAY_OK;
}

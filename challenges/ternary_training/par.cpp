// The expert implementation for a CPU.
//
// Napkin arithmetic. Training costs 6 flops per parameter and token plus 6 L d T for attention (its
// causal half): 4.0 Mflop for V 256, d 128, L 3, ff 384, T 128. A core of the machine this was
// written on multiplies matrices at 95 Gflop/s with the kernel below, so a token costs 43 us of one
// core and a step of 2 documents 6 ms of two. What a step must move besides: the weights, twice
// packed, 5 MB; gradients, moments and latent weights, some 20 MB a step from the L3 cache, 1 ms;
// activations, 10 KB a token and layer, stay in the L2 and L3 caches because a thread takes one
// document at a time. So arithmetic binds, and everything is arranged for the matrix kernel: 6 rows
// by 4 vectors of sums in registers, the right operand packed in panels of one tile's width
// (weights once a step, both ways round), q, k, v and gate, up as one matrix each, attention as
// matrix products of the causal half. Measured with steps of 4 documents: 18 thousand tokens a
// second and core, 73 Gflop/s, 77 % of the kernel alone. Steps of 2 take some 10 % longer for the
// same tokens and are taken nevertheless: twice as many steps learn more from them.
//
// Each thread sums the gradients of its own documents; the sums are added in a fixed order, so
// that a seed gives the same blob every time.
#pragma GCC optimize("no-math-errno", "no-trapping-math")

#include <algorithm>
#include <barrier>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "abi.h"

namespace {

using Index = std::int64_t;
constexpr Index kBlock = 128, kBytes = 34;

#if defined(__AVX512F__)
constexpr Index kLanes = 16, kVectors = 4;
#else
constexpr Index kLanes = 8, kVectors = 2;
#endif
constexpr Index kRows = 6, kPanel = kLanes * kVectors, kDepth = 256;
typedef float Vec __attribute__((vector_size(4 * kLanes)));
typedef std::int32_t VecI __attribute__((vector_size(4 * kLanes)));

Vec load(const float* p) {
  Vec v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
void store(float* p, Vec v) { std::memcpy(p, &v, sizeof v); }
float sum(Vec v) {
  float s = 0;
  for (Index i = 0; i < kLanes; ++i) s += v[i];
  return s;
}

// e^x to about 2 ulp for x <= 88; below -87 it is as good as 0.
Vec exp(Vec x) {
  const Vec low = Vec{} - 87.0f, high = Vec{} + 88.0f;
  x = x < low ? low : x;
  x = x > high ? high : x;
  const Vec magic = Vec{} + 12582912.0f;  // 1.5 2^23: the sum's low bits are the integer
  const Vec shifted = x * 1.44269504f + magic, n = shifted - magic;
  const Vec r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  Vec p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  VecI bits, power;
  std::memcpy(&bits, &p, sizeof bits);
  std::memcpy(&power, &shifted, sizeof power);
  bits += power << 23;  // magic's own bits are shifted out
  std::memcpy(&p, &bits, sizeof p);
  return p;
}

// f(vector at i) for i in [0, n), the rest of the last vector filled up with 0 and not stored.
template <class F>
void map(Index n, const float* x, float* y, F f) {
  Index i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, f(load(x + i)));
  if (i == n) return;
  Vec v{};
  std::memcpy(&v, x + i, static_cast<std::size_t>(n - i) * 4);
  v = f(v);
  std::memcpy(y + i, &v, static_cast<std::size_t>(n - i) * 4);
}

float dot(const float* a, const float* b, Index n) {
  Vec s{};
  Index i = 0;
  for (; i + kLanes <= n; i += kLanes) s += load(a + i) * load(b + i);
  float rest = sum(s);
  for (; i < n; ++i) rest += a[i] * b[i];
  return rest;
}

// --- matrix products
// -------------------------------------------------------------------------------

// Panels of kPanel columns, [K][width] each; the last one is as wide as the columns left, rounded
// up to whole vectors.
Index rounded(Index n) { return (n + kLanes - 1) / kLanes * kLanes; }
Index packed_size(Index K, Index N) { return K * rounded(N); }

// B [K, N], rows ld apart.
void pack(Index K, Index N, const float* b, Index ld, float* out) {
  for (Index n = 0; n < N; n += kPanel) {
    const Index cols = std::min(kPanel, N - n), width = rounded(cols);
    for (Index k = 0; k < K; ++k, out += width) {
      for (Index j = 0; j < cols; ++j) out[j] = b[k * ld + n + j];
      for (Index j = cols; j < width; ++j) out[j] = 0;
    }
  }
}

// The same for B given as its transpose [N, K], rows ld apart.
void pack_transposed(Index K, Index N, const float* bt, Index ld, float* out) {
  for (Index n = 0; n < N; n += kPanel) {
    const Index cols = std::min(kPanel, N - n), width = rounded(cols);
    for (Index k0 = 0; k0 < K; k0 += 16) {
      const Index k1 = std::min(K, k0 + 16);
      for (Index j = 0; j < cols; ++j) {
        for (Index k = k0; k < k1; ++k) out[k * width + j] = bt[(n + j) * ld + k];
      }
      for (Index k = k0; k < k1; ++k)
        std::fill(out + k * width + cols, out + (k + 1) * width, 0.0f);
    }
    out += K * width;
  }
}

// C [R, V vectors] (+)= A B; A's element (r, k) stands at a[r rs + k cs].
template <int R, int V>
void tile(Index K, const float* a, Index rs, Index cs, const float* b, float* c, Index ldc,
          Index cols, bool add) {
  Vec s[R][V] = {};
  for (Index k = 0; k < K; ++k) {
    Vec bv[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) bv[v] = load(b + (k * V + v) * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Vec av = Vec{} + a[r * rs + k * cs];
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) s[r][v] += av * bv[v];
    }
  }
  for (int r = 0; r < R; ++r) {
    float* row = c + r * ldc;
    for (int v = 0; v < V; ++v) {
      const Index left = cols - v * kLanes;
      if (left >= kLanes) {
        store(row + v * kLanes, add ? load(row + v * kLanes) + s[r][v] : s[r][v]);
        continue;
      }
      for (Index i = 0; i < left; ++i)
        row[v * kLanes + i] = (add ? row[v * kLanes + i] : 0) + s[r][v][i];
    }
  }
}

using Tile = void (*)(Index, const float*, Index, Index, const float*, float*, Index, Index, bool);

template <int V>
Tile tile_of_rows(Index rows) {
  constexpr Tile kTiles[] = {tile<1, V>, tile<2, V>, tile<3, V>,
                             tile<4, V>, tile<5, V>, tile<6, V>};
  return kTiles[rows - 1];
}

Tile tile_for(Index rows, Index vectors) {
#if defined(__AVX512F__)
  if (vectors == 4) return tile_of_rows<4>(rows);
  if (vectors == 3) return tile_of_rows<3>(rows);
#endif
  return vectors == 2 ? tile_of_rows<2>(rows) : tile_of_rows<1>(rows);
}

// C [M, N] (+)= A [M, K] B, where B is rows [skip, skip + K) of what was packed, packed_K deep if
// that is not K.
void multiply(Index M, Index N, Index K, const float* a, Index rs, Index cs, const float* b,
              float* c, Index ldc, bool add, Index packed_K = 0, Index skip = 0) {
  packed_K = std::max(packed_K, K);
  for (Index n = 0; n < N; n += kPanel) {
    const Index cols = std::min(kPanel, N - n), width = rounded(cols);
    for (Index m = 0; m < M; m += kRows) {
      const Index rows = std::min(kRows, M - m);
      tile_for(rows, width / kLanes)(K, a + m * rs, rs, cs, b + skip * width, c + m * ldc + n, ldc,
                                     cols, add);
    }
    b += packed_K * width;
  }
}

// C [M, N] += A^T B for A [K, M] with rows ld apart and B packed; `space` holds kDepth M floats.
void multiply_transposed(Index M, Index N, Index K, const float* a, Index ld, const float* b,
                         float* c, Index ldc, float* space) {
  for (Index k0 = 0; k0 < K; k0 += kDepth) {
    const Index depth = std::min(kDepth, K - k0);
    for (Index m = 0; m < M; m += kRows) {
      const Index rows = std::min(kRows, M - m);
      float* out = space + m * depth;
      for (Index k = 0; k < depth; ++k) {
        for (Index r = 0; r < rows; ++r) out[k * rows + r] = a[(k0 + k) * ld + m + r];
      }
    }
    const float* panel = b;
    for (Index n = 0; n < N; n += kPanel) {
      const Index cols = std::min(kPanel, N - n), width = rounded(cols);
      for (Index m = 0; m < M; m += kRows) {
        const Index rows = std::min(kRows, M - m);
        tile_for(rows, width / kLanes)(depth, space + m * depth, 1, rows, panel + k0 * width,
                                       c + m * ldc + n, ldc, cols, true);
      }
      panel += K * width;
    }
  }
}

// --- blocks
// ------------------------------------------------------------------------------------------

float half_to_float(unsigned bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  return exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                       : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
}

// v >= 0, to nearest, ties to even; 65504 at most.
unsigned half_from(double v) {
  v = std::min(v, 65504.0);
  if (!(v > 0)) return 0;
  const int exponent = std::max(std::ilogb(v), -14);
  return static_cast<unsigned>(std::nearbyint(std::ldexp(v, 10 - exponent))) +
         (static_cast<unsigned>(exponent + 14) << 10);
}

unsigned block_scale(const float* w) {
  double part[8] = {};
  for (Index j = 0; j < kBlock; j += 8) {
    for (Index i = 0; i < 8; ++i) part[i] += std::abs(static_cast<double>(w[j + i]));
  }
  double total = 0;
  for (const double p : part) total += p;
  return half_from(total / kBlock);
}

void quantize_block(const float* w, std::uint8_t* block) {
  const unsigned bits = block_scale(w);
  const float half = bits != 0 ? half_to_float(bits) / 2 : std::numeric_limits<float>::infinity();
  std::uint8_t codes[kBlock];
  for (Index j = 0; j < kBlock; ++j) {
    codes[j] = static_cast<std::uint8_t>(1 + (w[j] > half ? 1 : 0) - (w[j] < -half ? 1 : 0));
  }
  block[0] = static_cast<std::uint8_t>(bits);
  block[1] = static_cast<std::uint8_t>(bits >> 8);
  for (Index j = 0; j < kBlock; j += 4) {
    block[2 + j / 4] = static_cast<std::uint8_t>(codes[j] | codes[j + 1] << 2 | codes[j + 2] << 4 |
                                                 codes[j + 3] << 6);
  }
}

void dequantize_block(const std::uint8_t* block, float* w) {
  const float s = half_to_float(static_cast<unsigned>(block[0] | block[1] << 8));
  for (Index j = 0; j < kBlock; ++j) {
    w[j] = static_cast<float>((block[2 + j / 4] >> (j % 4 * 2) & 3) - 1) * s;
  }
}

// What a block of these weights would say, without the detour over bytes.
void round_block(const float* w, float* out) {
  const unsigned bits = block_scale(w);
  const float s = half_to_float(bits),
              half = bits != 0 ? s / 2 : std::numeric_limits<float>::infinity();
  for (Index j = 0; j < kBlock; ++j) out[j] = w[j] > half ? s : w[j] < -half ? -s : 0.0f;
}

// A code a byte, which vectors can work on.
void expand_codes(const std::uint8_t* block, std::uint8_t* codes) {
  for (Index j = 0; j < kBlock; ++j) codes[j] = block[2 + j / 4] >> (j % 4 * 2) & 3;
}

// Dense blocks are made for vectors: byte m of a group of `bytes` takes the m-th code of each run
// of so many.
template <Index bytes, Index digits>
void pack_group(const std::uint8_t* codes, std::uint8_t* dense) {
  std::uint16_t number[bytes] = {};
  for (Index n = 0; n < 5; ++n) {
    for (Index m = 0; m < bytes; ++m) {
      number[m] =
          static_cast<std::uint16_t>(number[m] * 3 + (n < digits ? codes[n * bytes + m] : 0));
    }
  }
  for (Index m = 0; m < bytes; ++m) {
    dense[m] = static_cast<std::uint8_t>((number[m] * 256u + 242) / 243);
  }
}

template <Index bytes, Index digits>
void unpack_group(const std::uint8_t* dense, std::uint8_t* codes) {
  std::uint16_t rest[bytes];
  std::copy_n(dense, bytes, rest);
  for (Index n = 0; n < digits; ++n) {
    for (Index m = 0; m < bytes; ++m) {
      const auto tripled = static_cast<std::uint16_t>(rest[m] * 3);
      codes[n * bytes + m] = static_cast<std::uint8_t>(tripled >> 8);
      rest[m] = tripled & 255;
    }
  }
}

constexpr Index kDenseBytes = 28;

void pack_dense_block(const std::uint8_t* block, std::uint8_t* dense) {
  std::uint8_t codes[kBlock];
  expand_codes(block, codes);
  pack_group<16, 5>(codes, dense);
  pack_group<8, 5>(codes + 80, dense + 16);
  pack_group<2, 4>(codes + 120, dense + 24);
  std::memcpy(dense + 26, block, 2);
}

void unpack_dense_block(const std::uint8_t* dense, std::uint8_t* block) {
  std::uint8_t codes[kBlock];
  unpack_group<16, 5>(dense, codes);
  unpack_group<8, 5>(dense + 16, codes + 80);
  unpack_group<2, 4>(dense + 24, codes + 120);
  std::memcpy(block, dense + 26, 2);
  for (Index i = 0; i < 32; ++i) {
    const std::uint8_t* c = codes + 4 * i;
    block[2 + i] = static_cast<std::uint8_t>(c[0] | c[1] << 2 | c[2] << 4 | c[3] << 6);
  }
}

float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// To nearest, ties to even; finite numbers only.
std::uint16_t to_bf16(float v) {
  const auto bits = std::bit_cast<std::uint32_t>(v);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// --- memory and threads
// ------------------------------------------------------------------------------

class Buffer {
 public:
  Buffer(assay_ctx* ctx, Index floats)
      : ctx_(ctx),
        data_(static_cast<float*>(
            ctx->alloc(ctx, static_cast<std::size_t>(floats) * 4 + 64, 64, 0))) {}
  ~Buffer() {
    if (data_ != nullptr) ctx_->free(ctx_, data_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  operator float*() const { return data_; }
  bool ready() const { return data_ != nullptr; }

 private:
  assay_ctx* ctx_;
  float* data_;
};

// f(i) for i in [0, n), each on its own thread.
template <class F>
void on_threads(Index n, F f) {
  std::vector<std::thread> threads;
  for (Index i = 1; i < n; ++i) threads.emplace_back(f, i);
  f(Index{0});
  for (std::thread& t : threads) t.join();
}

// The i-th of n about equal shares of [0, total) in multiples of `grain`.
std::pair<Index, Index> share(Index total, Index grain, Index i, Index n) {
  const Index pieces = (total + grain - 1) / grain;
  return {std::min(total, pieces * i / n * grain), std::min(total, pieces * (i + 1) / n * grain)};
}

// --- the model
// -----------------------------------------------------------------------------------------

// A matrix [rows, cols] at an offset of all weights, and where its packings lie: towards the
// outputs and, for gradients, towards the inputs.
struct MatrixAt {
  Index rows = 0, cols = 0, offset = 0, forward = 0, backward = 0;
};

struct LayerAt {
  MatrixAt qkv, o, gate_up, down;
  Index attention_norm = 0, query_norm = 0, key_norm = 0, ff_norm = 0;
};

// An array of all weights in the blob's order: `matrices` of them in blocks, then the norms.
struct Layout {
  explicit Layout(const tt_config& config)
      : c(config),
        wide(Index{c.Hq} * c.hd),
        narrow(Index{c.Hkv} * c.hd),
        qkv(wide + 2 * narrow),
        ff(c.ff),
        d(c.d) {
    embedding = matrix(c.V, d);
    head = c.tied ? embedding : matrix(c.V, d);
    for (Index l = 0; l < c.L; ++l) {
      LayerAt at;
      at.qkv = matrix(qkv, d);
      at.o = matrix(d, wide);
      at.gate_up = matrix(2 * ff, d);
      at.down = matrix(d, ff);
      layers.push_back(at);
    }
    matrices = size;
    for (LayerAt& at : layers) {
      at.attention_norm = std::exchange(size, size + d);
      at.query_norm = std::exchange(size, size + c.hd);
      at.key_norm = std::exchange(size, size + c.hd);
      at.ff_norm = std::exchange(size, size + d);
    }
    final_norm = std::exchange(size, size + d);
  }

  template <class F>
  void each_matrix(F f) const {
    f(head);
    for (const LayerAt& l : layers) f(l.qkv), f(l.o), f(l.gate_up), f(l.down);
  }

  tt_config c;
  Index wide, narrow, qkv, ff, d, matrices = 0, size = 0, packed = 0, final_norm = 0;
  MatrixAt embedding, head;
  std::vector<LayerAt> layers;

 private:
  MatrixAt matrix(Index rows, Index cols) {
    MatrixAt m{rows, cols, size, packed, packed + packed_size(cols, rows)};
    size += rows * cols;
    packed = m.backward + packed_size(rows, cols);
    return m;
  }
};

// Weights as the blocks say, and packed.
struct Weights {
  const float *plain, *packed;
};

// One document through the model and back. Arrays are [T, ...].
class Pass {
 public:
  Pass(assay_ctx* ctx, const Layout& at)
      : at_(at), c_(at.c), T_(at.c.T), memory_(ctx, lay_out(nullptr)) {
    if (ready()) lay_out(memory_);
    const Index half = c_.hd / 2;
    for (Index i = 0; ready() && i < half; ++i) {
      const double frequency =
          std::pow(static_cast<double>(c_.theta), -2.0 * static_cast<double>(i) / c_.hd);
      for (Index t = 0; t < T_; ++t) {
        cos_[t * half + i] = static_cast<float>(std::cos(static_cast<double>(t) * frequency));
        sin_[t * half + i] = static_cast<float>(std::sin(static_cast<double>(t) * frequency));
      }
    }
  }
  bool ready() const { return memory_.ready(); }

  const float* run(const Weights& w, const std::uint16_t* tokens) {
    for (Index t = 0; t < T_; ++t) {
      std::memcpy(x_ + t * at_.d, w.plain + at_.embedding.offset + tokens[t] * at_.d,
                  static_cast<std::size_t>(at_.d) * 4);
    }
    for (std::size_t l = 0; l < at_.layers.size(); ++l) layer_forward(w, at_.layers[l], kept_[l]);
    rms(T_, at_.d, x_, at_.d, w.plain + at_.final_norm, h_, at_.d, r_);
    apply(w, at_.head, h_, logits_, false);
    return logits_;
  }

  // Adds the gradient of the document's mean loss to g.
  void train(const Weights& w, const std::uint16_t* tokens, float* g) {
    run(w, tokens);
    losses_to_gradients(tokens);
    weight_gradient(at_.head, logits_, c_.V, h_, g);
    apply_back(w, at_.head, logits_, c_.V, dh_, false);
    rms_back(T_, at_.d, x_, at_.d, w.plain + at_.final_norm, r_, dh_, at_.d, dx_, at_.d,
             g + at_.final_norm, false);
    for (std::size_t l = at_.layers.size(); l-- > 0;) layer_backward(w, at_.layers[l], kept_[l], g);
    for (Index t = 0; t < T_; ++t) {
      float* row = g + at_.embedding.offset + tokens[t] * at_.d;
      for (Index i = 0; i < at_.d; ++i) row[i] += dx_[t * at_.d + i];
    }
  }

 private:
  struct Kept {
    float *x, *h, *qkv, *turned, *p, *a, *x2, *h2, *gate_up, *s, *r, *r2, *rq, *rk;
  };

  // Hands out memory, or with null counts it.
  Index lay_out(float* memory) {
    Index used = 0;
    const auto take = [&](Index n) {
      float* p = memory != nullptr ? memory + used : nullptr;
      used += (n + 15) / 16 * 16;
      return p;
    };
    const Index d = at_.d, ff = at_.ff, qkv = at_.qkv, wide = at_.wide, turned = wide + at_.narrow;
    kept_.clear();
    for (Index l = 0; l < c_.L; ++l) {
      Kept k{};
      k.x = take(T_ * d), k.h = take(T_ * d), k.qkv = take(T_ * qkv), k.turned = take(T_ * turned);
      k.p = take(c_.Hq * T_ * T_), k.a = take(T_ * wide), k.x2 = take(T_ * d), k.h2 = take(T_ * d);
      k.gate_up = take(T_ * 2 * ff), k.s = take(T_ * ff), k.r = take(T_), k.r2 = take(T_);
      k.rq = take(T_ * c_.Hq), k.rk = take(T_ * c_.Hkv);
      kept_.push_back(k);
    }
    x_ = take(T_ * d), h_ = take(T_ * d), dx_ = take(T_ * d), dh_ = take(T_ * d), r_ = take(T_);
    logits_ = take(T_ * c_.V), dgate_up_ = take(T_ * 2 * ff), ds_ = take(T_ * ff),
    da_ = take(T_ * wide);
    dturned_ = take(T_ * turned), dqkv_ = take(T_ * qkv), scores_ = take(T_ * T_);
    const Index widest = std::max({d, ff, wide, std::max<Index>(T_, c_.hd)});
    packed_ = take(std::max(T_ * rounded(widest), rounded(T_) * widest));
    transposed_ = take(kDepth * std::max({qkv, 2 * ff, d, Index{c_.V}, T_}));
    cos_ = take(T_ * c_.hd / 2), sin_ = take(T_ * c_.hd / 2);
    return used;
  }

  // y (+)= x W^T
  void apply(const Weights& w, const MatrixAt& m, const float* x, float* y, bool add) {
    multiply(T_, m.rows, m.cols, x, m.cols, 1, w.packed + m.forward, y, m.rows, add);
  }
  // dx (+)= dy W
  void apply_back(const Weights& w, const MatrixAt& m, const float* dy, Index ld, float* dx,
                  bool add) {
    multiply(T_, m.cols, m.rows, dy, ld, 1, w.packed + m.backward, dx, m.cols, add);
  }
  // The gradient of W += dy^T x
  void weight_gradient(const MatrixAt& m, const float* dy, Index ld, const float* x, float* g) {
    pack(T_, m.cols, x, m.cols, packed_);
    multiply_transposed(m.rows, m.cols, T_, dy, ld, packed_, g + m.offset, m.cols, transposed_);
  }

  // Rows of n, ldx and ldy apart.
  void rms(Index rows, Index n, const float* x, Index ldx, const float* w, float* y, Index ldy,
           float* r) const {
    for (Index i = 0; i < rows; ++i, x += ldx, y += ldy) {
      const float q = r[i] = 1 / std::sqrt(dot(x, x, n) / static_cast<float>(n) + c_.eps);
      for (Index j = 0; j < n; ++j) y[j] = x[j] * q * w[j];
    }
  }

  void rms_back(Index rows, Index n, const float* x, Index ldx, const float* w, const float* r,
                const float* dy, Index ldy, float* dx, Index lddx, float* dw, bool add) const {
    for (Index i = 0; i < rows; ++i, x += ldx, dy += ldy, dx += lddx) {
      const float q = r[i];
      Vec part{};
      Index j = 0;
      for (; j + kLanes <= n; j += kLanes) {
        const Vec v = load(dy + j) * load(x + j);
        part += v * load(w + j);
        store(dw + j, load(dw + j) + v * q);
      }
      float projection = sum(part);
      for (; j < n; ++j) {
        const float v = dy[j] * x[j];
        projection += v * w[j];
        dw[j] += v * q;
      }
      projection *= q * q / static_cast<float>(n);
      for (j = 0; j < n; ++j) {
        const float v = q * (dy[j] * w[j] - x[j] * projection);
        dx[j] = add ? dx[j] + v : v;
      }
    }
  }

  // Heads of all rows, ld apart, by their position's angles; direction -1 turns back.
  void rope(Index heads, float* x, Index ld, float direction) const {
    const Index half = c_.hd / 2;
    for (Index t = 0; t < T_; ++t) {
      const float *cos = cos_ + t * half, *sin = sin_ + t * half;
      for (Index h = 0; h < heads; ++h) {
        float *a = x + t * ld + h * c_.hd, *b = a + half;
        for (Index i = 0; i < half; ++i) {
          const float u = a[i], v = b[i], s = direction * sin[i];
          a[i] = u * cos[i] - v * s;
          b[i] = u * s + v * cos[i];
        }
      }
    }
  }

  // Norms of the heads; each position's norm factors stand together.
  void norm_heads(const Weights& w, const LayerAt& at, const Kept& k) const {
    const Index hd = c_.hd, turned = at_.wide + at_.narrow;
    for (Index t = 0; t < T_; ++t) {
      rms(c_.Hq, hd, k.qkv + t * at_.qkv, hd, w.plain + at.query_norm, k.turned + t * turned, hd,
          k.rq + t * c_.Hq);
      rms(c_.Hkv, hd, k.qkv + t * at_.qkv + at_.wide, hd, w.plain + at.key_norm,
          k.turned + t * turned + at_.wide, hd, k.rk + t * c_.Hkv);
    }
    rope(c_.Hq + c_.Hkv, k.turned, turned, 1);
  }

  void norm_heads_back(const Weights& w, const LayerAt& at, const Kept& k, float* g) const {
    const Index hd = c_.hd, turned = at_.wide + at_.narrow;
    rope(c_.Hq + c_.Hkv, dturned_, turned, -1);
    for (Index t = 0; t < T_; ++t) {
      rms_back(c_.Hq, hd, k.qkv + t * at_.qkv, hd, w.plain + at.query_norm, k.rq + t * c_.Hq,
               dturned_ + t * turned, hd, dqkv_ + t * at_.qkv, hd, g + at.query_norm, false);
      rms_back(c_.Hkv, hd, k.qkv + t * at_.qkv + at_.wide, hd, w.plain + at.key_norm,
               k.rk + t * c_.Hkv, dturned_ + t * turned + at_.wide, hd,
               dqkv_ + t * at_.qkv + at_.wide, hd, g + at.key_norm, false);
    }
  }

  // Rows [t, t + n) see the keys before t + n: one slab of the causal half.
  template <class F>
  void slabs(F f) const {
    for (Index t = 0; t < T_; t += kPanel) f(t, std::min(kPanel, T_ - t), std::min(T_, t + kPanel));
  }

  void softmax_rows(float* p, Index first, Index n, Index seen) const {
    const float scale = 1 / std::sqrt(static_cast<float>(c_.hd));
    for (Index t = first; t < first + n; ++t) {
      float* row = p + t * T_;
      float most = row[0], total = 0;
      for (Index u = 0; u <= t; ++u) most = std::max(most, row[u]);
      map(t + 1, row, row, [&](Vec v) { return exp((v - most) * scale); });
      for (Index u = 0; u <= t; ++u) total += row[u];
      for (Index u = 0; u <= t; ++u) row[u] *= 1 / total;
      for (Index u = t + 1; u < seen; ++u) row[u] = 0;
    }
  }

  void attention(const Kept& k) {
    const Index hd = c_.hd, turned = at_.wide + at_.narrow, group = c_.Hq / c_.Hkv;
    for (Index j = 0; j < c_.Hq; ++j) {
      float* p = k.p + j * T_ * T_;
      pack_transposed(hd, T_, k.turned + at_.wide + j / group * hd, turned, packed_);
      slabs([&](Index t, Index n, Index seen) {
        multiply(n, seen, hd, k.turned + t * turned + j * hd, turned, 1, packed_, p + t * T_, T_,
                 false);
        softmax_rows(p, t, n, seen);
      });
      pack(T_, hd, k.qkv + at_.wide + at_.narrow + j / group * hd, at_.qkv, packed_);
      slabs([&](Index t, Index n, Index seen) {
        multiply(n, hd, seen, p + t * T_, T_, 1, packed_, k.a + t * at_.wide + j * hd, at_.wide,
                 false, T_);
      });
    }
  }

  // p (dp - p . dp) / sqrt(hd) for the rows of a slab, in place of dp.
  void softmax_rows_back(const float* p, float* dp, Index first, Index n, Index seen) const {
    const float scale = 1 / std::sqrt(static_cast<float>(c_.hd));
    for (Index t = first; t < first + n; ++t) {
      const float* row = p + t * T_;
      float* out = dp + t * T_;
      const float projection = dot(row, out, seen);
      for (Index u = 0; u < seen; ++u) out[u] = row[u] * (out[u] - projection) * scale;
    }
  }

  void attention_back(const Kept& k) {
    const Index hd = c_.hd, turned = at_.wide + at_.narrow, group = c_.Hq / c_.Hkv;
    const Index values = at_.wide + at_.narrow;
    for (Index t = 0; t < T_; ++t) {
      std::fill_n(dturned_ + t * turned + at_.wide, at_.narrow, 0.0f);
      std::fill_n(dqkv_ + t * at_.qkv + values, at_.narrow, 0.0f);
    }
    for (Index j = 0; j < c_.Hq; ++j) {
      const float* p = k.p + j * T_ * T_;
      const Index kv = j / group * hd;
      // dv += p^T da
      pack(T_, hd, da_ + j * hd, at_.wide, packed_);
      slabs([&](Index t, Index n, Index) {
        multiply(n, hd, T_ - t, p + t * T_ + t, 1, T_, packed_, dqkv_ + t * at_.qkv + values + kv,
                 at_.qkv, true, T_, t);
      });
      // dp = da v^T, then ds in its place
      pack_transposed(hd, T_, k.qkv + values + kv, at_.qkv, packed_);
      slabs([&](Index t, Index n, Index seen) {
        multiply(n, seen, hd, da_ + t * at_.wide + j * hd, at_.wide, 1, packed_, scores_ + t * T_,
                 T_, false);
        softmax_rows_back(p, scores_, t, n, seen);
      });
      // dq = ds k; dk += ds^T q
      pack(T_, hd, k.turned + at_.wide + kv, turned, packed_);
      slabs([&](Index t, Index n, Index seen) {
        multiply(n, hd, seen, scores_ + t * T_, T_, 1, packed_, dturned_ + t * turned + j * hd,
                 turned, false, T_);
      });
      pack(T_, hd, k.turned + j * hd, turned, packed_);
      slabs([&](Index t, Index n, Index) {
        multiply(n, hd, T_ - t, scores_ + t * T_ + t, 1, T_, packed_,
                 dturned_ + t * turned + at_.wide + kv, turned, true, T_, t);
      });
    }
  }

  void layer_forward(const Weights& w, const LayerAt& at, const Kept& k) {
    const Index d = at_.d, ff = at_.ff;
    std::memcpy(k.x, x_, static_cast<std::size_t>(T_ * d) * 4);
    rms(T_, d, k.x, d, w.plain + at.attention_norm, k.h, d, k.r);
    apply(w, at.qkv, k.h, k.qkv, false);
    norm_heads(w, at, k);
    attention(k);
    apply(w, at.o, k.a, x_, true);
    std::memcpy(k.x2, x_, static_cast<std::size_t>(T_ * d) * 4);
    rms(T_, d, k.x2, d, w.plain + at.ff_norm, k.h2, d, k.r2);
    apply(w, at.gate_up, k.h2, k.gate_up, false);
    for (Index t = 0; t < T_; ++t) {
      const float *gate = k.gate_up + t * 2 * ff, *up = gate + ff;
      for (Index i = 0; i < ff; i += kLanes) {  // ff is a multiple of 128
        const Vec z = load(gate + i);
        store(k.s + t * ff + i, z / (1.0f + exp(-z)) * load(up + i));
      }
    }
    apply(w, at.down, k.s, x_, true);
  }

  // dx_ is the gradient of the layer's output, then of its input.
  void layer_backward(const Weights& w, const LayerAt& at, const Kept& k, float* g) {
    const Index d = at_.d, ff = at_.ff;
    weight_gradient(at.down, dx_, d, k.s, g);
    apply_back(w, at.down, dx_, d, ds_, false);
    for (Index t = 0; t < T_; ++t) {
      const float *gate = k.gate_up + t * 2 * ff, *up = gate + ff;
      float *dgate = dgate_up_ + t * 2 * ff, *dup = dgate + ff;
      for (Index i = 0; i < ff; i += kLanes) {
        const Vec z = load(gate + i), sigmoid = 1.0f / (1.0f + exp(-z)),
                  ds = load(ds_ + t * ff + i);
        store(dup + i, ds * z * sigmoid);
        store(dgate + i, ds * load(up + i) * sigmoid * (1.0f + z * (1.0f - sigmoid)));
      }
    }
    weight_gradient(at.gate_up, dgate_up_, 2 * ff, k.h2, g);
    apply_back(w, at.gate_up, dgate_up_, 2 * ff, dh_, false);
    rms_back(T_, d, k.x2, d, w.plain + at.ff_norm, k.r2, dh_, d, dx_, d, g + at.ff_norm, true);

    weight_gradient(at.o, dx_, d, k.a, g);
    apply_back(w, at.o, dx_, d, da_, false);
    attention_back(k);
    norm_heads_back(w, at, k, g);
    weight_gradient(at.qkv, dqkv_, at_.qkv, k.h, g);
    apply_back(w, at.qkv, dqkv_, at_.qkv, dh_, false);
    rms_back(T_, d, k.x, d, w.plain + at.attention_norm, k.r, dh_, d, dx_, d, g + at.attention_norm,
             true);
  }

  // Logits become the gradient of the mean loss over positions 0 .. T - 2.
  void losses_to_gradients(const std::uint16_t* tokens) {
    const Index V = c_.V;
    const float part = 1 / static_cast<float>(T_ - 1);
    for (Index t = 0; t + 1 < T_; ++t) {
      float* row = logits_ + t * V;
      float most = row[0], total = 0;
      for (Index v = 1; v < V; ++v) most = std::max(most, row[v]);
      map(V, row, row, [&](Vec v) { return exp(v - most); });
      for (Index v = 0; v < V; ++v) total += row[v];
      for (Index v = 0; v < V; ++v) row[v] *= part / total;
      row[tokens[t + 1]] -= part;
    }
    std::fill_n(logits_ + (T_ - 1) * V, V, 0.0f);
  }

  const Layout& at_;
  const tt_config& c_;
  const Index T_;
  std::vector<Kept> kept_;
  Buffer memory_;
  float *x_, *h_, *dx_, *dh_, *r_, *logits_, *dgate_up_, *ds_, *da_, *dturned_, *dqkv_, *scores_,
      *packed_, *transposed_, *cos_, *sin_;
};

void pack_weights(const Layout& at, const float* plain, float* packed, Index thread,
                  Index threads) {
  Index number = 0;
  at.each_matrix([&](const MatrixAt& m) {
    if (number++ % threads == thread)
      pack_transposed(m.cols, m.rows, plain + m.offset, m.cols, packed + m.forward);
    if (number++ % threads == thread)
      pack(m.rows, m.cols, plain + m.offset, m.cols, packed + m.backward);
  });
}

// --- training
// ----------------------------------------------------------------------------------------

// Found by experiment. Codes flip as the latent weights move by a good part of their scale, so the
// rate is best at about 2 % of the scale a step: faster, and attention never finds its places.
struct Recipe {
  float rate = 2e-3f, norm_rate = 1e-2f, beta1 = 0.9f, beta2 = 0.98f, clip = 1;
  float init = 0.1f, embedding_init = 0.05f;
  double warmup = 0.05;
  double passes = 8;  // over few documents: more learn them by heart
  Index batch = 2;    // documents
};
constexpr Recipe kRecipe;

struct Generator {
  std::uint64_t state;
  std::uint64_t next() {
    std::uint64_t z = state += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  double uniform() { return static_cast<double>((next() >> 11) + 1) * 0x1p-53; }
  float normal() {
    return static_cast<float>(std::sqrt(-2 * std::log(uniform())) *
                              std::cos(6.283185307179586 * uniform()));
  }
};

class Trainer {
 public:
  Trainer(assay_ctx* ctx, const tt_config& c, std::uint64_t seed)
      : at_(c),
        threads_(std::max<Index>(1, std::min<Index>(ctx->nthreads, kRecipe.batch))),
        barrier_(threads_),
        latent_(ctx, at_.size),
        plain_(ctx, at_.size),
        packed_(ctx, at_.packed),
        first_(ctx, at_.size),
        second_(ctx, at_.size),
        gradients_(ctx, at_.size * threads_),
        squares_(static_cast<std::size_t>(threads_)) {
    for (Index i = 0; i < threads_; ++i) passes_.push_back(std::make_unique<Pass>(ctx, at_));
    if (!ready()) return;
    Generator random{seed};
    for (Index i = 0; i < at_.matrices; ++i) {
      latent_[i] = (i < at_.embedding.rows * at_.d ? kRecipe.embedding_init : kRecipe.init) *
                   random.normal();
    }
    std::fill(latent_ + at_.matrices, latent_ + at_.size, 1.0f);
    std::fill_n(static_cast<float*>(first_), at_.size, 0.0f);
    std::fill_n(static_cast<float*>(second_), at_.size, 0.0f);
  }
  bool ready() const {
    for (const Buffer* b : {&latent_, &plain_, &packed_, &first_, &second_, &gradients_}) {
      if (!b->ready()) return false;
    }
    return std::all_of(passes_.begin(), passes_.end(), [](const auto& p) { return p->ready(); });
  }

  void run(const std::uint16_t* docs, Index n_docs, const tt_budget& budget) {
    docs_ = docs;
    n_docs_ = n_docs;
    budget_ = budget;
    start_ = std::chrono::steady_clock::now();
    if (!plan_step()) return;
    on_threads(threads_, [this](Index thread) {
      do {
        step(thread);
        if (thread == 0) ++steps_, go_on_ = plan_step();
        barrier_.arrive_and_wait();
      } while (go_on_);
    });
  }

  // As many steps as fit into `until` tokens since the first of all; rates go by tokens alone.
  void run_part(const std::uint16_t* docs, Index n_docs, const tt_budget& budget, Index until) {
    until_ = until;
    by_tokens_ = true;
    run(docs, n_docs, budget);
  }

  // Everything that the next step depends on.
  void save(std::uint8_t* state) const {
    std::memcpy(state, &steps_, sizeof steps_);
    state += sizeof steps_;
    for (const Buffer* part : {&latent_, &first_, &second_}) {
      std::memcpy(state, *part, static_cast<std::size_t>(at_.size) * 4);
      state += at_.size * 4;
    }
  }
  void load(const std::uint8_t* state) {
    std::memcpy(&steps_, state, sizeof steps_);
    state += sizeof steps_;
    for (const Buffer* part : {&latent_, &first_, &second_}) {
      std::memcpy(*part, state, static_cast<std::size_t>(at_.size) * 4);
      state += at_.size * 4;
    }
  }

  void write(std::uint8_t* blob) const {
    for (Index i = 0; i < at_.matrices / kBlock; ++i)
      quantize_block(latent_ + i * kBlock, blob + i * kBytes);
    std::memcpy(blob + at_.matrices / kBlock * kBytes, latent_ + at_.matrices,
                static_cast<std::size_t>(at_.size - at_.matrices) * 4);
  }

 private:
  // Whether another step fits the budget, and its learning rate: up over the warm-up, then down to
  // 0.
  bool plan_step() {
    const double elapsed =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    longest_ = std::max(longest_, elapsed - last_);
    last_ = elapsed;
    const double tokens = static_cast<double>(kRecipe.batch) * at_.c.T,
                 most = std::min(static_cast<double>(budget_.max_tokens),
                                 kRecipe.passes * static_cast<double>(n_docs_) * at_.c.T);
    const double seconds = 0.96 * budget_.seconds;
    if (n_docs_ == 0 ||
        tokens * static_cast<double>(steps_ + 1) > std::min(most, static_cast<double>(until_)) ||
        elapsed + 1.5 * longest_ > seconds)
      return false;
    // Early on the clock does not count: a stalled step would change a run that its tokens end.
    const bool clock_counts = !by_tokens_ && elapsed > 0.25 * seconds;
    const double progress =
        std::max(tokens * static_cast<double>(steps_) / most, clock_counts ? elapsed / seconds : 0);
    rate_ = static_cast<float>(progress < kRecipe.warmup ? progress / kRecipe.warmup + 0.02
                                                         : (1 - progress) / (1 - kRecipe.warmup));
    return true;
  }

  void step(Index thread) {
    const auto [begin, end] = share(at_.size, kBlock, thread, threads_);
    for (Index i = begin; i < end; i += kBlock) {
      if (i < at_.matrices)
        round_block(latent_ + i, plain_ + i);
      else
        std::copy(latent_ + i, latent_ + std::min(end, i + kBlock), plain_ + i);
    }
    barrier_.arrive_and_wait();
    pack_weights(at_, plain_, packed_, thread, threads_);
    barrier_.arrive_and_wait();
    float* g = gradients_ + thread * at_.size;
    std::fill_n(g, at_.size, 0.0f);
    for (Index i = thread; i < kRecipe.batch; i += threads_) {
      const Index doc = (steps_ * kRecipe.batch + i) % n_docs_;
      passes_[static_cast<std::size_t>(thread)]->train({plain_, packed_}, docs_ + doc * at_.c.T, g);
    }
    barrier_.arrive_and_wait();
    squares_[static_cast<std::size_t>(thread)] = add_gradients(begin, end);
    barrier_.arrive_and_wait();
    adam(begin, end);
    barrier_.arrive_and_wait();
  }

  // Into the first thread's; the sum of squares.
  double add_gradients(Index begin, Index end) {
    float* g = gradients_;
    double total = 0;
    for (Index i = begin; i < end; i += kBlock) {
      const Index stop = std::min(end, i + kBlock);
      for (Index t = 1; t < threads_; ++t) {
        for (Index j = i; j < stop; ++j) g[j] += g[t * at_.size + j];
      }
      total += static_cast<double>(dot(g + i, g + i, stop - i));
    }
    return total;
  }

  void adam(Index begin, Index end) {
    double total = 0;
    for (const double s : squares_) total += s;
    const double norm = std::sqrt(total) / static_cast<double>(kRecipe.batch);
    const auto factor =
        static_cast<float>(std::min(1.0, static_cast<double>(kRecipe.clip) / (norm + 1e-6)) /
                           static_cast<double>(kRecipe.batch));
    const auto n = static_cast<float>(steps_ + 1);
    const float correct1 = 1 / (1 - std::pow(kRecipe.beta1, n)),
                correct2 = 1 / (1 - std::pow(kRecipe.beta2, n));
    const Index middle = std::clamp(at_.matrices, begin, end);
    update(begin, middle, rate_ * kRecipe.rate, factor, correct1, correct2);
    update(middle, end, rate_ * kRecipe.norm_rate, factor, correct1, correct2);
  }

  void update(Index begin, Index end, float rate, float factor, float correct1, float correct2) {
    float *w = latent_, *m = first_, *v = second_;
    const float* gradient = gradients_;
    for (Index i = begin; i < end; ++i) {
      const float g = gradient[i] * factor;
      m[i] += (1 - kRecipe.beta1) * (g - m[i]);
      v[i] += (1 - kRecipe.beta2) * (g * g - v[i]);
      w[i] -= rate * correct1 * m[i] / (std::sqrt(v[i] * correct2) + 1e-8f);
    }
  }

  const Layout at_;
  const Index threads_;
  std::barrier<> barrier_;
  Buffer latent_, plain_, packed_, first_, second_, gradients_;
  std::vector<double> squares_;
  std::vector<std::unique_ptr<Pass>> passes_;
  const std::uint16_t* docs_ = nullptr;
  Index n_docs_ = 0, steps_ = 0, until_ = std::numeric_limits<Index>::max();
  bool by_tokens_ = false;
  tt_budget budget_{};
  std::chrono::steady_clock::time_point start_;
  double longest_ = 0, last_ = 0;
  float rate_ = 0;
  bool go_on_ = true;
};

// --- generation
// --------------------------------------------------------------------------------------

// A model that is given one token at a time. A token's work is one pass over all weights and over
// the keys and values of its document.
class Decoder {
 public:
  Decoder(assay_ctx* ctx, const Layout& at)
      : at_(at),
        c_(at.c),
        weights_(ctx, at.size),
        work_(ctx, 2 * at.d + at.qkv + at.wide + 3 * at.ff + c_.T + c_.V + c_.hd) {}
  bool ready() const { return weights_.ready() && work_.ready(); }

  void read(const std::uint8_t* blob) {
    for (Index i = 0; i < at_.matrices / kBlock; ++i)
      dequantize_block(blob + i * kBytes, weights_ + i * kBlock);
    std::memcpy(weights_ + at_.matrices, blob + at_.matrices / kBlock * kBytes,
                static_cast<std::size_t>(at_.size - at_.matrices) * 4);
    for (Index i = 0; i < c_.hd / 2; ++i) {
      frequencies_.push_back(
          std::pow(static_cast<double>(c_.theta), -2.0 * static_cast<double>(i) / c_.hd));
    }
  }

  // Takes a token in; the residual stream stays for logits(). The cache is [L, 2, Hkv, T, hd].
  void step(std::uint16_t token, Index position, float* cache) {
    const Index d = at_.d, ff = at_.ff, hd = c_.hd, T = c_.T, group = c_.Hq / c_.Hkv;
    float *x = work_, *h = x + d, *qkv = h + d, *a = qkv + at_.qkv, *gate_up = a + at_.wide,
          *s = gate_up + 2 * ff, *p = s + ff;
    float* turning = p + T + c_.V;
    for (Index i = 0; i < hd / 2; ++i) {
      const double angle =
          static_cast<double>(position) * frequencies_[static_cast<std::size_t>(i)];
      turning[i] = static_cast<float>(std::cos(angle));
      turning[hd / 2 + i] = static_cast<float>(std::sin(angle));
    }
    std::copy_n(weights_ + at_.embedding.offset + token * d, d, x);
    for (const LayerAt& layer : at_.layers) {
      norm(d, x, weights_ + layer.attention_norm, h);
      apply(layer.qkv, h, qkv);
      float *keys = cache, *values = cache + at_.narrow * T;
      cache += 2 * at_.narrow * T;
      for (Index j = 0; j < c_.Hkv; ++j) {
        float* k = qkv + at_.wide + j * hd;
        turn(k, weights_ + layer.key_norm, turning);
        std::copy_n(k, hd, keys + (j * T + position) * hd);
        std::copy_n(k + at_.narrow, hd, values + (j * T + position) * hd);
      }
      for (Index j = 0; j < c_.Hq; ++j) {
        turn(qkv + j * hd, weights_ + layer.query_norm, turning);
        attend(qkv + j * hd, keys + j / group * T * hd, values + j / group * T * hd, position + 1,
               p, a + j * hd);
      }
      apply(layer.o, a, h);
      for (Index i = 0; i < d; ++i) x[i] += h[i];
      norm(d, x, weights_ + layer.ff_norm, h);
      apply(layer.gate_up, h, gate_up);
      for (Index i = 0; i < ff; ++i)
        s[i] = gate_up[i] / (1 + std::exp(-gate_up[i])) * gate_up[ff + i];
      apply(layer.down, s, h);
      for (Index i = 0; i < d; ++i) x[i] += h[i];
    }
  }

  std::uint16_t best() {
    float *x = work_, *h = x + at_.d,
          *logits = work_ + 2 * at_.d + at_.qkv + at_.wide + 3 * at_.ff + c_.T;
    norm(at_.d, x, weights_ + at_.final_norm, h);
    apply(at_.head, h, logits);
    return static_cast<std::uint16_t>(std::max_element(logits, logits + c_.V) - logits);
  }

 private:
  void apply(const MatrixAt& m, const float* x, float* y) const {
    for (Index r = 0; r < m.rows; ++r) y[r] = dot(weights_ + m.offset + r * m.cols, x, m.cols);
  }

  void norm(Index n, const float* x, const float* w, float* y) const {
    const float r = 1 / std::sqrt(dot(x, x, n) / static_cast<float>(n) + c_.eps);
    for (Index i = 0; i < n; ++i) y[i] = x[i] * r * w[i];
  }

  void turn(float* x, const float* w, const float* turning) const {
    const Index half = c_.hd / 2;
    norm(c_.hd, x, w, x);
    for (Index i = 0; i < half; ++i) {
      const float a = x[i], b = x[i + half], cos = turning[i], sin = turning[half + i];
      x[i] = a * cos - b * sin;
      x[i + half] = a * sin + b * cos;
    }
  }

  void attend(const float* q, const float* keys, const float* values, Index n, float* p,
              float* out) const {
    const Index hd = c_.hd;
    const float scale = 1 / std::sqrt(static_cast<float>(hd));
    float most = -std::numeric_limits<float>::infinity(), total = 0;
    for (Index u = 0; u < n; ++u) most = std::max(most, p[u] = dot(q, keys + u * hd, hd) * scale);
    for (Index u = 0; u < n; ++u) total += p[u] = std::exp(p[u] - most);
    std::fill_n(out, hd, 0.0f);
    for (Index u = 0; u < n; ++u) {
      const float share = p[u] / total;
      for (Index i = 0; i < hd; ++i) out[i] += share * values[u * hd + i];
    }
  }

  const Layout& at_;
  const tt_config& c_;
  Buffer weights_, work_;
  std::vector<double> frequencies_;
};

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
  const Buffer w(ctx, rows * cols), out(ctx, packed_size(cols, rows)),
      in(ctx, packed_size(rows, cols)), inputs(ctx, packed_size(M, cols)),
      space(ctx, kDepth * (rows + kRows * threads));
  for (const Buffer* b : {&w, &out, &in, &inputs, &space}) {
    if (!b->ready()) return ASSAY_ENOMEM;
  }
  std::barrier<> barrier(threads);
  on_threads(threads, [&](Index thread) {
    const auto [first, last] = share(rows * cols / kBlock, 1, thread, threads);
    for (Index i = first; i < last; ++i) dequantize_block(blocks + i * kBytes, w + i * kBlock);
    barrier.arrive_and_wait();
    if (thread == 0) pack_transposed(cols, rows, w, cols, out);
    if (thread == threads - 1) {
      pack(rows, cols, w, cols, in);
      pack(M, cols, x, cols, inputs);
    }
    barrier.arrive_and_wait();
    const auto [m0, m1] = share(M, kRows, thread, threads);
    multiply(m1 - m0, rows, cols, x + m0 * cols, cols, 1, out, y + m0 * rows, rows, false);
    multiply(m1 - m0, cols, rows, dy + m0 * rows, rows, 1, in, dx + m0 * cols, cols, false);
    const auto [n0, n1] = share(rows, kRows, thread, threads);
    std::fill(dw_latent + n0 * cols, dw_latent + n1 * cols, 0.0f);
    multiply_transposed(n1 - n0, cols, M, dy + n0, rows, inputs, dw_latent + n0 * cols, cols,
                        space + kDepth * n0);
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
  pack_weights(at, plain, packed, 0, 1);
  const Index per_doc = Index{c->T} * c->V;
  for (Index i = 0; i < n_docs; ++i) {
    std::copy_n(pass.run({plain, packed}, docs + i * c->T), per_doc, logits + i * per_doc);
  }
  return ASSAY_OK;
}

// --- optional functions
// ----------------------------------------------------------------------------------------

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
  if (resume == 1) trainer.load(static_cast<const std::uint8_t*>(state));
  trainer.run_part(docs, n_docs, *budget, until);
  trainer.save(static_cast<std::uint8_t*>(state));
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

// A sample entrant by assay's authors, "textbook": every step as a textbook would print it, in
// CUDA. Attention passes over tiles of 64 keys in shared memory, where every row has a word of 64
// bits that says which of them it sees: all of the prefix, and of the nodes its ancestors.
// Acceptance is a block an item that walks down its tree and reads a row of logits when it gets
// there. bfloat16 attention; greedy only.
#include <cuda_bf16.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <vector>

#include "abi.h"

namespace {

constexpr int kWarp = 32;

cudaStream_t stream_of(const assay_ctx* ctx) { return static_cast<cudaStream_t>(ctx->stream); }

int launch_status() { return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL; }

// Scratch on the device that goes back when it leaves its scope; filled from the host where `from`
// is given.
template <class T>
class DeviceArray {
 public:
  DeviceArray(assay_ctx* ctx, std::int64_t n, const T* from = nullptr)
      : ctx_(ctx),
        data_(static_cast<T*>(ctx->alloc(ctx, bytes(std::max<std::int64_t>(n, 1)), 256, 1))) {
    if (data_ != nullptr && from != nullptr && n > 0) {
      cudaMemcpyAsync(data_, from, bytes(n), cudaMemcpyHostToDevice, stream_of(ctx));
    }
  }
  ~DeviceArray() {
    if (data_ != nullptr) ctx_->free(ctx_, data_);
  }
  DeviceArray(const DeviceArray&) = delete;
  T* data() const { return data_; }
  explicit operator bool() const { return data_ != nullptr; }

  std::vector<T> read(std::int64_t n) const {
    std::vector<T> host(static_cast<std::size_t>(n));
    cudaMemcpyAsync(host.data(), data_, bytes(n), cudaMemcpyDeviceToHost, stream_of(ctx_));
    cudaStreamSynchronize(stream_of(ctx_));
    return host;
  }

 private:
  static std::size_t bytes(std::int64_t n) { return static_cast<std::size_t>(n) * sizeof(T); }
  assay_ctx* ctx_;
  T* data_;
};

// --- what is legal ---

bool good_tree(std::int64_t n, const std::int32_t* parent) {
  for (std::int64_t i = 0; i < n; ++i) {
    if (parent == nullptr || parent[i] >= i || parent[i] < -1) return false;
  }
  return true;
}

bool good_offsets(std::int32_t B, const std::int64_t* cu) {
  if (B < 0 || (B > 0 && (cu == nullptr || cu[0] != 0))) return false;
  for (std::int32_t b = 0; b < B; ++b) {
    if (cu[b] > cu[b + 1]) return false;
  }
  return true;
}

bool good_batch(std::int32_t B, const std::int64_t* cu, const std::int32_t* parent) {
  if (!good_offsets(B, cu)) return false;
  for (std::int32_t b = 0; b < B; ++b) {
    if (cu[b + 1] == cu[b]) continue;
    if (parent == nullptr || !good_tree(cu[b + 1] - cu[b], parent + cu[b])) return false;
  }
  return true;
}

bool good_prefixes(std::int32_t B, const std::int64_t* P) {
  for (std::int32_t b = 0; b < B; ++b) {
    if (P == nullptr || P[b] < 1) return false;
  }
  return true;
}

std::int64_t most_nodes(std::int32_t B, const std::int64_t* cu) {
  std::int64_t most = 0;
  for (std::int32_t b = 0; b < B; ++b) most = std::max(most, cu[b + 1] - cu[b]);
  return most;
}

// --- masks ---

// A block for each item, a thread for each node. depth and pos may be null.
__global__ void ancestor_bits(const std::int64_t* P, const std::int64_t* cu,
                              const std::int32_t* parent, std::int64_t ldm, std::uint64_t* bits,
                              std::int32_t* depth, std::int64_t* pos) {
  const std::int64_t first = cu[blockIdx.x], n = cu[blockIdx.x + 1] - first;
  for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) {
    std::uint64_t* row = bits + (first + i) * ldm;
    for (std::int64_t w = 0; w < ldm; ++w) row[w] = 0;
    std::int32_t levels = 0;
    for (std::int64_t a = i; a >= 0; a = parent[first + a]) {
      row[a / 64] |= std::uint64_t{1} << (a % 64);
      ++levels;
    }
    if (depth != nullptr) depth[first + i] = levels;
    if (pos != nullptr) pos[first + i] = P[blockIdx.x] + levels - 1;
  }
}

// A block for each row.
__global__ void full_mask(std::int64_t P, std::int64_t n, const std::int32_t* parent,
                          std::uint8_t* M) {
  const std::int64_t i = blockIdx.x;
  std::uint8_t* row = M + i * (P + n);
  for (std::int64_t j = threadIdx.x; j < P + n; j += blockDim.x) row[j] = j < P && j <= i;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (std::int64_t a = i - P; a >= 0; a = parent[a]) row[P + a] = 1;
}

// --- attention ---

constexpr int kTile = 64, kSide = 16, kThreads = kSide * kSide, kRows = kTile / kSide;

__device__ float to_float(float x) { return x; }
__device__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ void put(float& out, float x) { out = x; }
__device__ void put(__nv_bfloat16& out, float x) { out = __float2bfloat16(x); }

// Rows are padded by one element, so that a column lies in different banks.
template <int D>
struct Shared {
  std::uint64_t sees[kTile];  // the keys of the tile that each row sees
  float q[kTile][D + 1];
  float kv[kTile][D + 1];     // keys, then values of the same tile
  float p[kTile][kTile + 1];  // weights relative to the running maximum
};

struct Batch {
  std::int64_t Hq, Hkv, words;
  float scale;
  const std::int64_t *P, *cu;
  const std::uint64_t* ancestors;  // [Ntot, words]
};

// The rows of a block: the query heads of the block's key head, node by node.
struct Rows {
  std::int64_t first, count, node, head,
      group;  // node: first of the item; head: first of the group
  __device__ std::int64_t query(std::int64_t r, std::int64_t Hq) const {
    return (node + (first + r) / group) * Hq + head + (first + r) % group;
  }
};

template <int D, class T>
__device__ void load_queries(Shared<D>& s, const Rows& rows, std::int64_t Hq, const T* q) {
  for (int at = threadIdx.x; at < kTile * D; at += kThreads) {
    const int r = at / D, d = at % D;
    s.q[r][d] = r < rows.count ? to_float(q[rows.query(r, Hq) * D + d]) : 0.0f;
  }
}

template <int D, class T>
__device__ void load_tile(Shared<D>& s, const T* data, std::int64_t step, std::int64_t count) {
  for (int at = threadIdx.x; at < kTile * D; at += kThreads) {
    const int r = at / D, d = at % D;
    s.kv[r][d] = r < count ? to_float(data[r * step + d]) : 0.0f;
  }
}

// Over the 16 threads that share the same rows: half a warp.
__device__ float row_max(float x) {
  for (int offset = kSide / 2; offset > 0; offset /= 2) {
    x = fmaxf(x, __shfl_xor_sync(~0u, x, offset));
  }
  return x;
}
__device__ float row_sum(float x) {
  for (int offset = kSide / 2; offset > 0; offset /= 2) x += __shfl_xor_sync(~0u, x, offset);
  return x;
}

// The running softmax of a thread's rows.
template <int D>
struct Online {
  float max[kRows], sum[kRows], output[kRows][D / kSide];
};

// Weights of a tile of keys: s.p.
template <int D>
__device__ void add_scores(Shared<D>& s, Online<D>& state, float scale) {
  const int tx = threadIdx.x % kSide, ty = threadIdx.x / kSide;
  float score[kRows][kRows] = {};  // of the keys tx + 16 c
#pragma unroll 4
  for (int d = 0; d < D; ++d) {
    float key[kRows];
    for (int c = 0; c < kRows; ++c) key[c] = s.kv[tx + kSide * c][d];
    for (int r = 0; r < kRows; ++r) {
      const float query = s.q[ty * kRows + r][d];
      for (int c = 0; c < kRows; ++c) score[r][c] += query * key[c];
    }
  }
  for (int r = 0; r < kRows; ++r) {
    const std::uint64_t sees = s.sees[ty * kRows + r];
    float largest = state.max[r];
    for (int c = 0; c < kRows; ++c) {
      // Selected, not added: what is masked may be NaN.
      score[r][c] = (sees >> (tx + kSide * c) & 1) != 0 ? score[r][c] * scale : -INFINITY;
      largest = fmaxf(largest, score[r][c]);
    }
    largest = row_max(largest);
    const float base = largest == -INFINITY ? 0.0f : largest;  // no score above -inf yet
    const float keep = expf(state.max[r] - base);
    float added = 0;
    for (int c = 0; c < kRows; ++c) {
      const float weight = expf(score[r][c] - base);
      s.p[ty * kRows + r][tx + kSide * c] = weight;
      added += weight;
    }
    state.max[r] = largest;
    state.sum[r] = state.sum[r] * keep + row_sum(added);
    for (float& x : state.output[r]) x *= keep;
  }
}

template <int D, bool kAllVisible>
__device__ void add_values(const Shared<D>& s, Online<D>& state) {
  const int tx = threadIdx.x % kSide, ty = threadIdx.x / kSide;
#pragma unroll 4
  for (int j = 0; j < kTile; ++j) {
    for (int r = 0; r < kRows; ++r) {
      if (!kAllVisible && (s.sees[ty * kRows + r] >> j & 1) == 0) continue;
      const float p = s.p[ty * kRows + r][j];
      for (int c = 0; c < D / kSide; ++c) state.output[r][c] += p * s.kv[j][tx + kSide * c];
    }
  }
}

template <int D, class T>
__global__ void __launch_bounds__(kThreads)
    tree_attention(Batch batch, const T* q, const T* const* kc, const T* const* vc, T* o,
                   float* lse) {
  extern __shared__ std::uint64_t memory[];
  auto& s = *reinterpret_cast<Shared<D>*>(memory);
  const std::int64_t b = blockIdx.x / batch.Hkv, kv = blockIdx.x % batch.Hkv;
  const std::int64_t P = batch.P[b], node = batch.cu[b], n = batch.cu[b + 1] - node;
  const std::int64_t group = batch.Hq / batch.Hkv;
  Rows rows{static_cast<std::int64_t>(blockIdx.y) * kTile, 0, node, kv * group, group};
  rows.count = min(n * group - rows.first, std::int64_t{kTile});
  if (rows.count <= 0) return;
  const int tx = threadIdx.x % kSide, ty = threadIdx.x / kSide;
  const std::int64_t step = batch.Hkv * D;
  const T* k = kc[b] + kv * D;
  const T* v = vc[b] + kv * D;
  load_queries(s, rows, batch.Hq, q);
  Online<D> state;
  for (int r = 0; r < kRows; ++r) {
    state.max[r] = -INFINITY;
    state.sum[r] = 0;
    for (float& x : state.output[r]) x = 0;
  }

  // Tiles of the prefix, then of the nodes, so that a tile of nodes is a word of their ancestors'
  // bits.
  const std::int64_t prefix_tiles = (P + kTile - 1) / kTile, node_tiles = (n + kTile - 1) / kTile;
  for (std::int64_t t = 0; t < prefix_tiles + node_tiles; ++t) {
    const bool prefix = t < prefix_tiles;
    const std::int64_t word = t - prefix_tiles;
    const std::int64_t j = prefix ? t * kTile : P + word * kTile;
    const std::int64_t count = min((prefix ? P : P + n) - j, std::int64_t{kTile});
    __syncthreads();  // the values before have been used
    if (threadIdx.x < kTile) {
      const int r = threadIdx.x;
      std::uint64_t sees = ~std::uint64_t{0} >> (kTile - count);
      if (!prefix) {
        const std::int64_t at = node + (rows.first + r) / group;
        sees = r < rows.count ? batch.ancestors[at * batch.words + word] : 0;
      }
      s.sees[r] = sees;
    }
    load_tile(s, k + j * step, step, count);
    __syncthreads();
    add_scores(s, state, batch.scale);
    __syncthreads();
    load_tile(s, v + j * step, step, count);
    __syncthreads();
    if (prefix && count == kTile) {
      add_values<D, true>(s, state);
    } else {
      add_values<D, false>(s, state);
    }
  }

  for (int r = 0; r < kRows && ty * kRows + r < rows.count; ++r) {
    const std::int64_t row = rows.query(ty * kRows + r, batch.Hq);
    for (int c = 0; c < D / kSide; ++c) {
      put(o[row * D + tx + kSide * c], state.output[r][c] / state.sum[r]);
    }
    if (tx == 0 && lse != nullptr) lse[row] = state.max[r] + logf(state.sum[r]);
  }
}

template <int D, class T>
int launch_attention(assay_ctx* ctx, const fa_params& p, std::int64_t tiles, const Batch& batch,
                     const void* q, const void* const* kc, const void* const* vc, void* o,
                     float* lse) {
  const auto kernel = tree_attention<D, T>;
  constexpr int kBytes = sizeof(Shared<D>);  // above 48 KiB a kernel must ask for it
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes) !=
      cudaSuccess) {
    return ASSAY_EINTERNAL;
  }
  const dim3 grid(static_cast<unsigned>(p.B * p.Hkv), static_cast<unsigned>(tiles));
  kernel<<<grid, kThreads, kBytes, stream_of(ctx)>>>(
      batch, static_cast<const T*>(q), reinterpret_cast<const T* const*>(kc),
      reinterpret_cast<const T* const*>(vc), static_cast<T*>(o), lse);
  return launch_status();
}

// --- acceptance ---

struct Candidate {
  float value;
  std::int32_t index;
};

// The larger value, the lower index on ties; every thread gets the block's.
__device__ Candidate block_best(Candidate c) {
  __shared__ Candidate shared[kThreads / kWarp];
  const auto better = [](const Candidate& a, const Candidate& b) {
    return a.value > b.value || (a.value == b.value && a.index < b.index);
  };
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const Candidate other{__shfl_xor_sync(~0u, c.value, offset),
                          __shfl_xor_sync(~0u, c.index, offset)};
    if (better(other, c)) c = other;
  }
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = c;
  __syncthreads();
  for (const Candidate& other : shared) {
    if (better(other, c)) c = other;
  }
  __syncthreads();
  return c;
}

struct Accepted {
  std::int32_t *path, *count, *bonus, *nan;
};

// A block walks down the tree of an item. eos and budget may be null.
__global__ void __launch_bounds__(kThreads)
    accept(std::int32_t V, const std::int64_t* cu, const std::int32_t* parent,
           const std::int32_t* token, const float* root_logits, const float* node_logits,
           const std::int32_t* eos, const std::int32_t* budget, Accepted out) {
  const std::int64_t b = blockIdx.x, first = cu[b];
  const auto n = static_cast<std::int32_t>(cu[b + 1] - first);
  const std::int32_t limit = budget != nullptr ? budget[b] : INT_MAX;
  std::int32_t current = -1, count = 0, bonus = -1;
  bool nan = false;
  while (count < limit) {
    // A node's logits verify its children.
    const float* x = current < 0 ? root_logits + b * V : node_logits + (first + current) * V;
    Candidate best{-INFINITY, INT_MAX};
    bool mine = false;
    for (std::int32_t v = threadIdx.x; v < V; v += kThreads) {
      mine |= isnan(x[v]);
      if (x[v] > best.value || best.index == INT_MAX) best = {x[v], v};
    }
    nan = __syncthreads_or(mine);
    if (nan) break;
    const std::int32_t wanted = block_best(best).index;
    Candidate child{0, INT_MAX};  // the lowest wins, since all have the same value
    for (std::int32_t i = current + 1 + threadIdx.x; i < n; i += kThreads) {
      if (parent[first + i] != current || token[first + i] != wanted) continue;
      child.index = i;
      break;
    }
    child = block_best(child);
    if (child.index == INT_MAX) {
      bonus = wanted;
      break;
    }
    if (threadIdx.x == 0) out.path[first + count] = child.index;
    ++count;
    current = child.index;
    if (eos != nullptr && eos[b] >= 0 && wanted == eos[b]) break;
  }
  for (std::int32_t i = count + threadIdx.x; i < n; i += kThreads) out.path[first + i] = -1;
  if (threadIdx.x != 0) return;
  out.count[b] = count;
  out.bonus[b] = bonus;
  out.nan[b] = nan;
}

// --- compaction ---

struct Moves {
  std::int32_t caches;
  std::int64_t row_words;
  const std::int64_t *P, *cu;
  const std::int32_t *path, *count;
};

// A block for each cache. A thread has words of a row to itself and moves them row by row, in
// ascending order: what it overwrites has been moved already or is not wanted.
template <class Word>
__global__ void compact(Moves m, Word* const* kv) {
  const std::int64_t b = blockIdx.x / m.caches;
  Word* rows = kv[blockIdx.x] + m.P[b] * m.row_words;
  for (std::int64_t at = threadIdx.x; at < m.row_words; at += blockDim.x) {
    for (std::int32_t j = 0; j < m.count[b]; ++j) {
      const std::int64_t from = m.path[m.cu[b] + j];
      if (from != j) rows[j * m.row_words + at] = rows[from * m.row_words + at];
    }
  }
}

}  // namespace

extern "C" {

int dv_mask(assay_ctx* ctx, int32_t B, const int64_t* P, const int64_t* cu, const int32_t* parent,
            int64_t ldm, uint64_t* bits, int32_t* depth, int64_t* pos) {
  if (!good_batch(B, cu, parent) || !good_prefixes(B, P)) return ASSAY_EINVAL;
  if (most_nodes(B, cu) > 64 * ldm) return ASSAY_EINVAL;
  if (B == 0 || cu[B] == 0) return ASSAY_OK;
  if (bits == nullptr || depth == nullptr || pos == nullptr) return ASSAY_EINVAL;
  const DeviceArray<std::int64_t> prefixes(ctx, B, P), offsets(ctx, B + 1, cu);
  const DeviceArray<std::int32_t> parents(ctx, cu[B], parent);
  if (!prefixes || !offsets || !parents) return ASSAY_ENOMEM;
  ancestor_bits<<<static_cast<unsigned>(B), 128, 0, stream_of(ctx)>>>(
      prefixes.data(), offsets.data(), parents.data(), ldm, bits, depth, pos);
  return launch_status();
}

int dv_full_mask(assay_ctx* ctx, int64_t P, int64_t n, const int32_t* parent, uint8_t* M) {
  if (P < 1 || n < 0 || !good_tree(n, parent) || M == nullptr) return ASSAY_EINVAL;
  const DeviceArray<std::int32_t> parents(ctx, n, parent);
  if (!parents) return ASSAY_ENOMEM;
  full_mask<<<static_cast<unsigned>(P + n), 128, 0, stream_of(ctx)>>>(P, n, parents.data(), M);
  return launch_status();
}

int dv_attention(assay_ctx* ctx, const fa_params* p, const int64_t* P, const int64_t* cu,
                 const int32_t* parent, const void* q, const void* const* kc, const void* const* vc,
                 void* o, float* lse) {
  if (p == nullptr || p->size != sizeof(fa_params) || p->B < 0 || p->B > INT_MAX)
    return ASSAY_EINVAL;
  if (p->Hkv < 1 || p->Hq < 0 || p->Hq % p->Hkv != 0 || p->D < 1) return ASSAY_EINVAL;
  const auto B = static_cast<std::int32_t>(p->B);
  if (!good_batch(B, cu, parent) || !good_prefixes(B, P)) return ASSAY_EINVAL;
  if (B == 0 || cu[B] == 0 || p->Hq == 0) return ASSAY_OK;
  if (q == nullptr || o == nullptr || kc == nullptr || vc == nullptr) return ASSAY_EINVAL;
  for (std::int32_t b = 0; b < B; ++b) {
    if (kc[b] == nullptr || vc[b] == nullptr) return ASSAY_EINVAL;
  }
  if (p->Dv != p->D || (p->D != 32 && p->D != 64 && p->D != 128)) return ASSAY_ENOTSUP;
  if (p->dtype != ASSAY_F32 && p->dtype != ASSAY_BF16) return ASSAY_ENOTSUP;
  const std::int64_t most = most_nodes(B, cu), words = (most + 63) / 64;
  const DeviceArray<std::int64_t> prefixes(ctx, B, P), offsets(ctx, B + 1, cu);
  const DeviceArray<std::int32_t> parents(ctx, cu[B], parent);
  const DeviceArray<const void*> keys(ctx, B, kc), values(ctx, B, vc);
  const DeviceArray<std::uint64_t> ancestors(ctx, cu[B] * words);
  if (!prefixes || !offsets || !parents || !keys || !values || !ancestors) return ASSAY_ENOMEM;
  ancestor_bits<<<static_cast<unsigned>(B), 128, 0, stream_of(ctx)>>>(
      prefixes.data(), offsets.data(), parents.data(), words, ancestors.data(), nullptr, nullptr);
  const Batch batch{p->Hq,           p->Hkv,         words,           p->scale,
                    prefixes.data(), offsets.data(), ancestors.data()};
  const std::int64_t tiles = (most * (p->Hq / p->Hkv) + kTile - 1) / kTile;
  const bool f32 = p->dtype == ASSAY_F32;
  const auto run =
      p->D == 32   ? (f32 ? launch_attention<32, float> : launch_attention<32, __nv_bfloat16>)
      : p->D == 64 ? (f32 ? launch_attention<64, float> : launch_attention<64, __nv_bfloat16>)
                   : (f32 ? launch_attention<128, float> : launch_attention<128, __nv_bfloat16>);
  return run(ctx, *p, tiles, batch, q, keys.data(), values.data(), o, lse);
}

int dv_accept(assay_ctx* ctx, int32_t B, int32_t V, const int64_t* cu, const int32_t* parent,
              const int32_t* token, const float* root_logits, const float* node_logits,
              const int32_t* eos, const int32_t* budget, const dv_sampling* sampling,
              int32_t* acc_node, int32_t* n_acc, int32_t* bonus) {
  if (!good_batch(B, cu, parent)) return ASSAY_EINVAL;
  if (B == 0) return ASSAY_OK;
  const std::int64_t nodes = cu[B];
  if (V < 1 || root_logits == nullptr || n_acc == nullptr || bonus == nullptr) return ASSAY_EINVAL;
  if (nodes > 0 && (token == nullptr || node_logits == nullptr || acc_node == nullptr)) {
    return ASSAY_EINVAL;
  }
  for (std::int64_t i = 0; i < nodes; ++i) {
    if (token[i] < 0 || token[i] >= V) return ASSAY_EINVAL;
  }
  for (std::int32_t b = 0; budget != nullptr && b < B; ++b) {
    if (budget[b] < 0) return ASSAY_EINVAL;
  }
  if (sampling != nullptr && sampling->mode != DV_GREEDY) return ASSAY_ENOTSUP;
  const DeviceArray<std::int64_t> offsets(ctx, B + 1, cu);
  const DeviceArray<std::int32_t> parents(ctx, nodes, parent), tokens(ctx, nodes, token);
  const DeviceArray<std::int32_t> ends(ctx, B, eos), budgets(ctx, B, budget);
  const DeviceArray<std::int32_t> path(ctx, nodes), results(ctx, 3 * std::int64_t{B});
  if (!offsets || !parents || !tokens || !ends || !budgets || !path || !results)
    return ASSAY_ENOMEM;
  accept<<<static_cast<unsigned>(B), kThreads, 0, stream_of(ctx)>>>(
      V, offsets.data(), parents.data(), tokens.data(), root_logits, node_logits,
      eos != nullptr ? ends.data() : nullptr, budget != nullptr ? budgets.data() : nullptr,
      {path.data(), results.data(), results.data() + B, results.data() + 2 * std::int64_t{B}});
  if (const int status = launch_status(); status != ASSAY_OK) return status;
  const std::vector<std::int32_t> found = results.read(3 * std::int64_t{B});
  const auto nan = found.begin() + 2 * std::int64_t{B};
  if (std::any_of(nan, nan + B, [](std::int32_t x) { return x != 0; })) return ASSAY_EINVAL;
  if (nodes > 0) {
    const std::vector<std::int32_t> accepted = path.read(nodes);
    std::copy(accepted.begin(), accepted.end(), acc_node);
  }
  std::copy(found.begin(), found.begin() + B, n_acc);
  std::copy(found.begin() + B, nan, bonus);
  return ASSAY_OK;
}

int dv_compact(assay_ctx* ctx, int32_t B, const int64_t* P, const int64_t* cu,
               const int32_t* acc_node, const int32_t* n_acc, int64_t row_bytes, int32_t caches,
               void* const* kv) {
  if (!good_offsets(B, cu) || !good_prefixes(B, P) || row_bytes < 0 || caches < 0) {
    return ASSAY_EINVAL;
  }
  if (B > 0 && (n_acc == nullptr || (cu[B] > 0 && acc_node == nullptr))) return ASSAY_EINVAL;
  for (std::int32_t b = 0; b < B; ++b) {
    const std::int64_t n = cu[b + 1] - cu[b];
    if (n_acc[b] < 0 || n_acc[b] > n) return ASSAY_EINVAL;
    std::int32_t before = -1;
    for (std::int32_t j = 0; j < n_acc[b]; ++j) {
      const std::int32_t node = acc_node[cu[b] + j];
      if (node <= before || node >= n) return ASSAY_EINVAL;
      before = node;
    }
  }
  const std::int64_t all = row_bytes > 0 ? std::int64_t{B} * caches : 0;
  bool words = row_bytes % 4 == 0;
  for (std::int64_t c = 0; c < all; ++c) {
    if (kv == nullptr || kv[c] == nullptr) return ASSAY_EINVAL;
    words = words && reinterpret_cast<std::uintptr_t>(kv[c]) % 4 == 0;
  }
  if (all == 0 || cu[B] == 0) return ASSAY_OK;
  const DeviceArray<std::int64_t> prefixes(ctx, B, P), offsets(ctx, B + 1, cu);
  const DeviceArray<std::int32_t> path(ctx, cu[B], acc_node), counts(ctx, B, n_acc);
  const DeviceArray<void*> rows(ctx, all, kv);
  if (!prefixes || !offsets || !path || !counts || !rows) return ASSAY_ENOMEM;
  const Moves moves{caches,          words ? row_bytes / 4 : row_bytes,
                    prefixes.data(), offsets.data(),
                    path.data(),     counts.data()};
  const auto grid = static_cast<unsigned>(all);
  if (words) {
    compact<<<grid, 128, 0, stream_of(ctx)>>>(moves,
                                              reinterpret_cast<std::uint32_t* const*>(rows.data()));
  } else {
    compact<<<grid, 128, 0, stream_of(ctx)>>>(moves,
                                              reinterpret_cast<unsigned char* const*>(rows.data()));
  }
  return launch_status();
}

int dv_generate(assay_ctx* ctx, const dv_loop* loop, const dv_model* m, int32_t* out,
                int64_t* n_out) {
  if (loop == nullptr || m == nullptr || n_out == nullptr || loop->size != sizeof(dv_loop)) {
    return ASSAY_EINVAL;
  }
  if (m->size != sizeof(dv_model) || m->V < 1 || m->max_nodes < 0 || loop->n_prompt < 1) {
    return ASSAY_EINVAL;
  }
  if (loop->prompt == nullptr || loop->max_new < 0 || (loop->max_new > 0 && out == nullptr)) {
    return ASSAY_EINVAL;
  }
  const std::int64_t most = loop->n_prompt + 1 + m->max_nodes, V = m->V;
  const DeviceArray<float> logits(ctx, loop->max_new > 0 ? most * V : 1);
  if (!logits) return ASSAY_ENOMEM;
  std::vector<std::int32_t> text(loop->prompt, loop->prompt + loop->n_prompt);
  const std::int64_t limit = loop->n_prompt + loop->max_new;
  std::int64_t cached = 0;
  for (bool more = loop->max_new > 0; more;) {
    // The tokens that the cache lacks and the tree behind them are one tree again: a chain first.
    const auto length = static_cast<std::int64_t>(text.size()), fresh = length - cached;
    const auto capacity = static_cast<std::size_t>(fresh + m->max_nodes);
    std::vector<std::int32_t> token(capacity), parent(static_cast<std::size_t>(m->max_nodes) + 1);
    std::copy(text.begin() + cached, text.end(), token.begin());
    std::int32_t n = 0;
    int status = m->draft(m->user, length, text.data(), &n, parent.data(), token.data() + fresh);
    if (status != ASSAY_OK) return status;
    if (n < 0 || n > m->max_nodes || !good_tree(n, parent.data())) return ASSAY_EINVAL;
    const std::int64_t rows = fresh + n, words = (rows + 63) / 64;
    std::vector<std::uint64_t> bits(static_cast<std::size_t>(rows * words));
    std::vector<std::int64_t> pos(static_cast<std::size_t>(rows));
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t up =
          r < fresh ? r - 1 : fresh + parent[static_cast<std::size_t>(r - fresh)];
      std::uint64_t* row = bits.data() + r * words;
      if (up >= 0) std::copy_n(bits.data() + up * words, words, row);
      row[r / 64] |= std::uint64_t{1} << (r % 64);
      pos[static_cast<std::size_t>(r)] = up < 0 ? cached : pos[static_cast<std::size_t>(up)] + 1;
    }
    status = m->verify(m->user, rows, token.data(), pos.data(), words, bits.data(), logits.data());
    if (status != ASSAY_OK) return status;
    const std::int64_t nodes[2] = {0, n};
    const auto budget =
        static_cast<std::int32_t>(std::min<std::int64_t>(limit - length, INT32_MAX));
    std::int32_t accepted = 0, bonus = -1;
    std::vector<std::int32_t> path(static_cast<std::size_t>(n) + 1);
    status = dv_accept(ctx, 1, m->V, nodes, parent.data(), token.data() + fresh,
                       logits.data() + (fresh - 1) * V, logits.data() + fresh * V, &loop->eos,
                       &budget, nullptr, path.data(), &accepted, &bonus);
    if (status != ASSAY_OK) return status;
    std::vector<std::int64_t> keep;
    for (std::int64_t r = 0; r < fresh; ++r) keep.push_back(r);
    for (std::int32_t j = 0; j < accepted; ++j) {
      keep.push_back(fresh + path[static_cast<std::size_t>(j)]);
      text.push_back(token[static_cast<std::size_t>(keep.back())]);
    }
    cached = static_cast<std::int64_t>(text.size());
    if (bonus >= 0) text.push_back(bonus);
    more = bonus >= 0 && bonus != loop->eos && static_cast<std::int64_t>(text.size()) < limit;
    if (more) {
      status = m->commit(m->user, static_cast<std::int64_t>(keep.size()), keep.data());
      if (status != ASSAY_OK) return status;
    }
  }
  const auto emitted = static_cast<std::int64_t>(text.size()) - loop->n_prompt;
  std::copy(text.begin() + loop->n_prompt, text.end(), out);
  std::fill(out + emitted, out + loop->max_new, -1);
  *n_out = emitted;
  return ASSAY_OK;
}

}  // extern "C"

// Sample entrant of assay, not a model's answer. Attention is flash-decoding: the keys of an item
// are split among blocks, each of which takes 64 rows (node by node, the query heads that share a
// key head), and a second launch merges what they found. The host knows the trees, so it makes the
// bits that say which nodes see which, and small tables travel as a parameter of the launch.
// Acceptance is a block an item, which reads a row of logits when it gets there. Supports bf16, all
// head dimensions, and sampling in all three modes.
#include <cuda_bf16.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdint>
#include <vector>

#include "abi.h"

namespace {

constexpr int kWarp = 32;

cudaStream_t stream_of(const assay_ctx* ctx) { return static_cast<cudaStream_t>(ctx->stream); }

int launch_status() { return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL; }

std::int64_t divide_up(std::int64_t n, std::int64_t by) { return (n + by - 1) / by; }

// Scratch on the device that goes back when it leaves its scope.
class Scratch {
 public:
  Scratch(assay_ctx* ctx, std::int64_t bytes)
      : ctx_(ctx),
        data_(bytes > 0 ? ctx->alloc(ctx, static_cast<std::size_t>(bytes), 256, 1) : nullptr),
        failed_(bytes > 0 && data_ == nullptr) {}
  ~Scratch() {
    if (data_ != nullptr) ctx_->free(ctx_, data_);
  }
  Scratch(const Scratch&) = delete;
  bool failed() const { return failed_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  assay_ctx* ctx_;
  void* data_;
  bool failed_;
};

// What the host knows and a kernel needs: words of 64 bits, in the launch's parameters if they fit.
constexpr int kInline = 448;

struct Words {
  const std::int64_t* device;  // null: they are here
  std::int64_t here[kInline];

  __device__ std::int64_t operator[](std::int64_t i) const {
    return device != nullptr ? device[i] : here[i];
  }
};

std::int64_t bytes_outside(const std::vector<std::int64_t>& words) {
  const auto n = static_cast<std::int64_t>(words.size());
  return n <= kInline ? 0 : n * std::int64_t{sizeof(std::int64_t)};
}

// `room` holds bytes_outside.
Words deliver(const assay_ctx* ctx, const std::vector<std::int64_t>& words, const Scratch& room) {
  Words result{};
  if (words.size() <= kInline) {
    std::copy(words.begin(), words.end(), result.here);
  } else {
    result.device = room.as<std::int64_t>();
    cudaMemcpyAsync(room.as<void>(), words.data(), words.size() * sizeof(std::int64_t),
                    cudaMemcpyHostToDevice, stream_of(ctx));
  }
  return result;
}

// --- what is legal ---

bool good_tree(std::int64_t n, const std::int32_t* parent) {
  if (n > 0 && parent == nullptr) return false;
  for (std::int64_t i = 0; i < n; ++i) {
    if (parent[i] < -1 || parent[i] >= i) return false;
  }
  return true;
}

bool good_offsets(std::int32_t B, const std::int64_t* cu) {
  if (B < 0) return false;
  if (B > 0 && (cu == nullptr || cu[0] != 0)) return false;
  for (std::int32_t b = 0; b < B; ++b) {
    if (cu[b + 1] < cu[b]) return false;
  }
  return true;
}

bool good_batch(std::int32_t B, const std::int64_t* cu, const std::int32_t* parent) {
  if (!good_offsets(B, cu)) return false;
  for (std::int32_t b = 0; b < B; ++b) {
    const std::int64_t n = cu[b + 1] - cu[b];
    if (n > 0 && (parent == nullptr || !good_tree(n, parent + cu[b]))) return false;
  }
  return true;
}

bool good_prefixes(std::int32_t B, const std::int64_t* P) {
  if (B > 0 && P == nullptr) return false;
  return std::all_of(P, P + B, [](std::int64_t length) { return length >= 1; });
}

// --- masks ---

// Words: P [B], cu [B + 1], parent [Ntot]. A warp takes a node; a lane has every 32nd word of its
// row, and all lanes walk up to the root together.
__global__ void ancestor_bits(Words words, std::int32_t B, std::int64_t ldm, std::uint64_t* bits,
                              std::int32_t* depth, std::int64_t* pos) {
  const std::int64_t cu = B, parent = 2 * std::int64_t{B} + 1;
  const int lane = threadIdx.x % kWarp;
  const std::int64_t node =
      (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kWarp;
  if (node >= words[cu + B]) return;
  std::int32_t low = 0, high = B;
  while (high - low > 1) {
    const std::int32_t middle = low + (high - low) / 2;
    (words[cu + middle] <= node ? low : high) = middle;
  }
  const std::int64_t first = words[cu + low];
  std::int32_t levels = 0;
  for (std::int64_t base = 0; base < ldm; base += kWarp) {
    std::uint64_t mine = 0;
    levels = 0;
    for (std::int64_t a = node - first; a >= 0; a = words[parent + first + a]) {
      if (a / 64 == base + lane) mine |= std::uint64_t{1} << (a % 64);
      ++levels;
    }
    if (base + lane < ldm) bits[node * ldm + base + lane] = mine;
  }
  if (lane != 0) return;
  depth[node] = levels;
  pos[node] = words[low] + levels - 1;
}

// Words: parent [n]. A block for each row.
__global__ void full_mask(Words parent, std::int64_t P, std::int64_t n, std::uint8_t* M) {
  const std::int64_t i = blockIdx.x;
  std::uint8_t* row = M + i * (P + n);
  for (std::int64_t j = threadIdx.x; j < P + n; j += blockDim.x) row[j] = j < P && j <= i;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (std::int64_t a = i - P; a >= 0; a = parent[a]) row[P + a] = 1;
}

// --- attention ---

constexpr int kTile = 64, kSide = 16, kThreads = kSide * kSide, kRows = kTile / kSide;

__device__ float widen(float x) { return x; }
__device__ float widen(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ void narrow(float x, float* to) { *to = x; }
__device__ void narrow(float x, __nv_bfloat16* to) { *to = __float2bfloat16(x); }

// Words: P [B], cu [B + 1], keys [B], values [B], first word of the item's bits [B], bits of each
// item [n, words of a row].
struct Attention {
  Words words;
  std::int64_t B, Hq, Hkv, D;
  float scale;
  std::int64_t tiles;   // of keys, in a chunk
  std::int64_t chunks;  // of the longest item
  bool vectors;         // rows are aligned to four elements
  const void* q;
  void* o;
  float* lse;      // or null
  float* partial;  // null: there is one chunk; [Ntot, Hq, chunks, D + 2]: output, maximum, sum
};

struct Item {
  std::int64_t P, first, n;  // first: its first node
  const void *k, *v;
  std::int64_t bits, words_of_row;

  __device__ Item(const Attention& a, std::int64_t b)
      : P(a.words[b]),
        first(a.words[a.B + b]),
        n(a.words[a.B + b + 1] - first),
        k(reinterpret_cast<const void*>(a.words[2 * a.B + 1 + b])),
        v(reinterpret_cast<const void*>(a.words[3 * a.B + 1 + b])),
        bits(a.words[4 * a.B + 1 + b]),
        words_of_row((n + 63) / 64) {}
  // The prefix and the nodes are cut into tiles apart, so that a tile of nodes is a word of bits.
  __device__ std::int64_t prefix_tiles() const { return (P + kTile - 1) / kTile; }
  __device__ std::int64_t tiles() const { return prefix_tiles() + words_of_row; }
};

template <int D>
struct Shared {
  float4 q[kTile][D / 4 + 1];
  float4 kv[kTile][D / 4 + 1];     // keys, then values of the same tile
  float4 p[kTile][kTile / 4 + 1];  // weights relative to the running maximum
  std::uint64_t sees[kTile];       // the keys of the tile that each row sees
};

__device__ float max_of_side(float x) {
  for (int offset = kSide / 2; offset > 0; offset /= 2)
    x = fmaxf(x, __shfl_xor_sync(~0u, x, offset));
  return x;
}
__device__ float sum_of_side(float x) {
  for (int offset = kSide / 2; offset > 0; offset /= 2) x += __shfl_xor_sync(~0u, x, offset);
  return x;
}

template <class T>
struct alignas(4 * sizeof(T)) Four {
  T values[4];
};

// Rows of `real` elements to rows of D, filled up with 0. row_at(r): row r, or null.
template <int D, class T, class RowAt>
__device__ void load_rows(float4 (*to)[D / 4 + 1], std::int64_t real, bool vectors,
                          const RowAt& row_at) {
  for (int at = threadIdx.x; at < kTile * (D / 4); at += kThreads) {
    const int r = at / (D / 4), d = at % (D / 4);
    const T* from = row_at(r);
    float x[4] = {};
    if (from != nullptr && vectors && 4 * d < real) {
      const auto four = *reinterpret_cast<const Four<T>*>(from + 4 * d);
      for (int i = 0; i < 4; ++i) x[i] = widen(four.values[i]);
    } else if (from != nullptr) {
      for (int i = 0; i < 4; ++i) {
        if (4 * d + i < real) x[i] = widen(from[4 * d + i]);
      }
    }
    to[r][d] = make_float4(x[0], x[1], x[2], x[3]);
  }
}

__device__ float dot(float4 a, float4 b, float sum) {
  return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
}

// The running softmax of a thread's four rows. Its columns of the output: vectors of kWidth, 16
// kWidth apart. The sum is over the thread's own keys.
template <int D>
struct Online {
  static constexpr int kColumns = D / kSide, kWidth = kColumns < 4 ? kColumns : 4;
  float max[kRows], sum[kRows], output[kRows][kColumns];

  __device__ static int column(int c) {
    const int tx = threadIdx.x % kSide;
    return c / kWidth * kWidth * kSide + tx * kWidth + c % kWidth;
  }
};

template <int D>
__device__ void add_scores(Shared<D>& s, Online<D>& state, float scale) {
  const int tx = threadIdx.x % kSide, ty = threadIdx.x / kSide;
  float score[kRows][kRows] = {};  // of the keys tx + 16 c
#pragma unroll 2
  for (int d = 0; d < D / 4; ++d) {
    float4 key[kRows];
    for (int c = 0; c < kRows; ++c) key[c] = s.kv[tx + kSide * c][d];
    for (int r = 0; r < kRows; ++r) {
      const float4 query = s.q[ty * kRows + r][d];
      for (int c = 0; c < kRows; ++c) score[r][c] = dot(query, key[c], score[r][c]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    const std::uint64_t sees = s.sees[ty * kRows + r] >> tx;
    float largest = state.max[r];
    for (int c = 0; c < kRows; ++c) {
      // Selected, not added: what is masked may be NaN.
      score[r][c] = (sees >> (kSide * c) & 1) != 0 ? score[r][c] * scale : -INFINITY;
      largest = fmaxf(largest, score[r][c]);
    }
    largest = max_of_side(largest);
    const float base = largest == -INFINITY ? 0.0f : largest;  // it has seen nothing yet
    const float keep = expf(state.max[r] - base);
    state.max[r] = largest;
    state.sum[r] *= keep;
    for (float& x : state.output[r]) x *= keep;
    auto* weights = reinterpret_cast<float*>(s.p[ty * kRows + r]);
    for (int c = 0; c < kRows; ++c) {
      const float weight = expf(score[r][c] - base);
      weights[tx + kSide * c] = weight;
      state.sum[r] += weight;
    }
  }
}

template <int D, bool kAllVisible>
__device__ void add_values(const Shared<D>& s, Online<D>& state) {
  using State = Online<D>;
  const int ty = threadIdx.x / kSide;
  for (int j = 0; j < kTile; j += 4) {
    float4 p[kRows];
    for (int r = 0; r < kRows; ++r) p[r] = s.p[ty * kRows + r][j / 4];
    for (int i = 0; i < 4; ++i) {
      const auto* row = reinterpret_cast<const float*>(s.kv[j + i]);
      float value[State::kColumns];
      for (int c = 0; c < State::kColumns; c += State::kWidth) {
        if constexpr (State::kWidth == 4) {
          const float4 four = *reinterpret_cast<const float4*>(row + State::column(c));
          value[c] = four.x, value[c + 1] = four.y, value[c + 2] = four.z, value[c + 3] = four.w;
        } else {
          const float2 two = *reinterpret_cast<const float2*>(row + State::column(c));
          value[c] = two.x, value[c + 1] = two.y;
        }
      }
      for (int r = 0; r < kRows; ++r) {
        if (!kAllVisible && (s.sees[ty * kRows + r] >> (j + i) & 1) == 0) continue;
        const float weight = i == 0 ? p[r].x : i == 1 ? p[r].y : i == 2 ? p[r].z : p[r].w;
        for (int c = 0; c < State::kColumns; ++c)
          state.output[r][c] = fmaf(weight, value[c], state.output[r][c]);
      }
    }
  }
}

// blockIdx: item and key head, 64 rows, chunk of the keys.
template <int D, class T>
__global__ void __launch_bounds__(kThreads) attend(const __grid_constant__ Attention a) {
  extern __shared__ float4 memory[];
  auto& s = *reinterpret_cast<Shared<D>*>(memory);
  const std::int64_t kv = blockIdx.x % a.Hkv, group = a.Hq / a.Hkv;
  const Item item(a, blockIdx.x / a.Hkv);
  const std::int64_t top = static_cast<std::int64_t>(blockIdx.y) * kTile;
  const std::int64_t begin = blockIdx.z * a.tiles, end = min(begin + a.tiles, item.tiles());
  const std::int64_t rows = min(item.n * group - top, std::int64_t{kTile});
  if (rows <= 0 || begin >= end) return;
  const int tx = threadIdx.x % kSide, ty = threadIdx.x / kSide;
  // Where row r stands in q, o and lse.
  const auto place = [&](std::int64_t r) {
    return (item.first + (top + r) / group) * a.Hq + kv * group + (top + r) % group;
  };
  load_rows<D, T>(s.q, a.D, a.vectors, [&](int r) {
    return r < rows ? static_cast<const T*>(a.q) + place(r) * a.D : nullptr;
  });
  Online<D> state;
  for (int r = 0; r < kRows; ++r) {
    state.max[r] = -INFINITY;
    state.sum[r] = 0;
    for (float& x : state.output[r]) x = 0;
  }

  for (std::int64_t t = begin; t < end; ++t) {
    const std::int64_t word = t - item.prefix_tiles();
    const bool prefix = word < 0;
    const std::int64_t j = prefix ? t * kTile : item.P + word * kTile;
    const std::int64_t count = min((prefix ? item.P : item.P + item.n) - j, std::int64_t{kTile});
    const auto row_of = [&](const void* data) {
      return [=, &a](int r) {
        return r < count ? static_cast<const T*>(data) + ((j + r) * a.Hkv + kv) * a.D : nullptr;
      };
    };
    __syncthreads();  // the values before have been used
    if (threadIdx.x < kTile) {
      std::uint64_t sees = ~std::uint64_t{0} >> (kTile - count);
      if (!prefix) {
        const std::int64_t node = (top + threadIdx.x) / group;
        sees =
            threadIdx.x < rows
                ? static_cast<std::uint64_t>(a.words[item.bits + node * item.words_of_row + word])
                : 0;
      }
      s.sees[threadIdx.x] = sees;
    }
    load_rows<D, T>(s.kv, a.D, a.vectors, row_of(item.k));
    __syncthreads();
    add_scores(s, state, a.scale);
    __syncthreads();
    load_rows<D, T>(s.kv, a.D, a.vectors, row_of(item.v));
    __syncthreads();
    if (prefix) {
      add_values<D, true>(s, state);  // behind the end weights and values are 0
    } else {
      add_values<D, false>(s, state);
    }
  }

  for (int r = 0; r < kRows; ++r) {
    const float sum = sum_of_side(state.sum[r]);
    if (ty * kRows + r >= rows) continue;
    const std::int64_t at = place(ty * kRows + r);
    if (a.partial != nullptr) {
      float* out = a.partial + (at * a.chunks + blockIdx.z) * (a.D + 2);
      for (int c = 0; c < Online<D>::kColumns; ++c) {
        if (Online<D>::column(c) < a.D) out[Online<D>::column(c)] = state.output[r][c];
      }
      if (tx == 0) {
        out[a.D] = state.max[r];
        out[a.D + 1] = sum;
      }
      continue;
    }
    for (int c = 0; c < Online<D>::kColumns; ++c) {
      const int column = Online<D>::column(c);
      if (column < a.D) narrow(state.output[r][c] / sum, static_cast<T*>(a.o) + at * a.D + column);
    }
    if (tx == 0 && a.lse != nullptr) a.lse[at] = state.max[r] + logf(sum);
  }
}

// A warp for each row: its chunks become one.
template <class T>
__global__ void __launch_bounds__(kThreads) merge_chunks(const __grid_constant__ Attention a) {
  const int lane = threadIdx.x % kWarp;
  const std::int64_t at =
      static_cast<std::int64_t>(blockIdx.x) * (kThreads / kWarp) + threadIdx.x / kWarp;
  if (at >= a.words[2 * a.B] * a.Hq) return;
  std::int64_t b = 0;
  while (a.words[a.B + b + 1] <= at / a.Hq) ++b;
  const auto chunks = static_cast<int>((Item(a, b).tiles() + a.tiles - 1) / a.tiles);
  const float* from = a.partial + at * a.chunks * (a.D + 2);
  float max = -INFINITY, sum = 0;
  for (int c = 0; c < chunks; ++c) max = fmaxf(max, from[c * (a.D + 2) + a.D]);
  for (int c = 0; c < chunks; ++c) {
    sum += from[c * (a.D + 2) + a.D + 1] * expf(from[c * (a.D + 2) + a.D] - max);
  }
  for (std::int64_t d = lane; d < a.D; d += kWarp) {
    float x = 0;
    for (int c = 0; c < chunks; ++c)
      x += from[c * (a.D + 2) + d] * expf(from[c * (a.D + 2) + a.D] - max);
    narrow(x / sum, static_cast<T*>(a.o) + at * a.D + d);
  }
  if (lane == 0 && a.lse != nullptr) a.lse[at] = max + logf(sum);
}

// Tiles of keys a chunk: the fewest rounds of blocks, but not so many chunks that merging costs
// more than it gains, which is sooner where heads are narrow.
std::int64_t plan(const assay_ctx* ctx, const fa_params& p, const std::int64_t* P,
                  const std::int64_t* cu) {
  int multiprocessors = 1;
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, ctx->device);
  const auto tiles_of = [&](std::int64_t b) {
    return divide_up(P[b], kTile) + divide_up(cu[b + 1] - cu[b], kTile);
  };
  std::int64_t longest = 1;
  for (std::int64_t b = 0; b < p.B; ++b) longest = std::max(longest, tiles_of(b));
  const std::int64_t most_chunks = p.D <= 32 ? 16 : 32;
  std::int64_t best = longest;
  double least = 1e300;
  for (std::int64_t t = divide_up(longest, most_chunks); t <= longest; ++t) {
    std::int64_t blocks = 0;
    for (std::int64_t b = 0; b < p.B; ++b) {
      const std::int64_t rows = (cu[b + 1] - cu[b]) * (p.Hq / p.Hkv);
      blocks += p.Hkv * divide_up(rows, kTile) * divide_up(tiles_of(b), t);
    }
    const double rounds = std::max(1.0, static_cast<double>(blocks) / multiprocessors);
    const double cost = static_cast<double>(t) * rounds + 0.02 * static_cast<double>(longest) / t;
    if (cost >= least) continue;
    least = cost;
    best = t;
  }
  return best;
}

template <int D, class T>
void launch_attention(const Attention& a, std::int64_t row_tiles, std::int64_t rows,
                      cudaStream_t stream) {
  constexpr int kBytes = sizeof(Shared<D>);
  cudaFuncSetAttribute(attend<D, T>, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  const dim3 grid(static_cast<unsigned>(a.B * a.Hkv), static_cast<unsigned>(row_tiles),
                  static_cast<unsigned>(a.chunks));
  attend<D, T><<<grid, kThreads, kBytes, stream>>>(a);
  if (a.partial == nullptr) return;
  const auto blocks = static_cast<unsigned>(divide_up(rows, kThreads / kWarp));
  merge_chunks<T><<<blocks, kThreads, 0, stream>>>(a);
}

template <class T>
void launch_attention_for(const Attention& a, std::int64_t row_tiles, std::int64_t rows,
                          cudaStream_t stream) {
  const auto launch = a.D <= 32    ? launch_attention<32, T>
                      : a.D <= 64  ? launch_attention<64, T>
                      : a.D <= 128 ? launch_attention<128, T>
                                   : launch_attention<256, T>;
  launch(a, row_tiles, rows, stream);
}

// --- acceptance ---

constexpr int kAcceptThreads = 256;

// Words: cu [B + 1], eos [B], budget [B], then for each node its parent above its token.
struct Acceptance {
  Words words;
  std::int64_t B;
  std::int32_t V, mode;
  const float *root_logits, *node_logits;
  float temperature;
  std::int64_t u_item, u_step;
  const float *uniform, *root_q, *node_q;
  double* room;  // of sampling: p and q [B, 2, V]
  std::int32_t *path, *count, *bonus, *nan;
};

struct Best {
  float value;
  std::int32_t index;

  __device__ void take(float other_value, std::int32_t other_index) {
    if (!(other_value > value || (other_value == value && other_index < index))) return;
    value = other_value;
    index = other_index;
  }
};

// What a block reduces over its threads; every thread gets the result.
class Block {
 public:
  struct Shared {
    Best bests[kWarp];
    double sums[kAcceptThreads];
    std::int32_t found;
  };
  __device__ explicit Block(Shared& shared) : s_(shared) {}

  __device__ Best best(Best mine) {
    for (int offset = kWarp / 2; offset > 0; offset /= 2) {
      const float value = __shfl_xor_sync(~0u, mine.value, offset);
      mine.take(value, __shfl_xor_sync(~0u, mine.index, offset));
    }
    if (threadIdx.x % kWarp == 0) s_.bests[threadIdx.x / kWarp] = mine;
    __syncthreads();
    for (unsigned w = 0; w < blockDim.x / kWarp; ++w)
      mine.take(s_.bests[w].value, s_.bests[w].index);
    __syncthreads();
    return mine;
  }

  __device__ std::int32_t lowest(std::int32_t mine) { return best({0, mine}).index; }

  // The sum of all threads' numbers, and in `before` that of the threads before.
  __device__ double sum(double mine, double* before = nullptr) {
    s_.sums[threadIdx.x] = mine;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (unsigned i = 1; i < blockDim.x; ++i) s_.sums[i] += s_.sums[i - 1];
    }
    __syncthreads();
    const double all = s_.sums[blockDim.x - 1];
    if (before != nullptr) *before = threadIdx.x == 0 ? 0 : s_.sums[threadIdx.x - 1];
    __syncthreads();
    return all;
  }

 private:
  Shared& s_;
};

// Weights [V] of a distribution, in memory of the block: a thread has a part without gaps.
struct Distribution {
  double* w;
  std::int32_t begin, end;  // the thread's

  __device__ void normalise(Block& block) {
    double mine = 0;
    for (std::int32_t v = begin; v < end; ++v) mine += w[v];
    const double all = block.sum(mine);
    for (std::int32_t v = begin; v < end && all > 0; ++v) w[v] /= all;
    __syncthreads();
  }

  // The lowest index at which the running sum exceeds u times the total.
  __device__ std::int32_t draw(Block& block, double u) const {
    double mine = 0, before = 0;
    std::int32_t last = -1;
    for (std::int32_t v = begin; v < end; ++v) {
      mine += w[v];
      if (w[v] > 0) last = v;
    }
    const double target = u * block.sum(mine, &before);
    std::int32_t found = INT_MAX;
    double running = before;
    for (std::int32_t v = begin; v < end && found == INT_MAX; ++v) {
      running += w[v];
      if (running > target) found = v;
    }
    found = block.lowest(found);
    // Rounding may leave none: then the last that has any weight.
    const std::int32_t highest = -block.lowest(-last);
    return found < INT_MAX ? found : max(highest, 0);
  }
};

struct Step {
  std::int32_t child, token;  // child -1: the token is the bonus
  bool nan;
};

__device__ std::int32_t parent_of(const Acceptance& a, std::int64_t node) {
  return static_cast<std::int32_t>(a.words[3 * a.B + 1 + node] >> 32);
}
__device__ std::int32_t token_of(const Acceptance& a, std::int64_t node) {
  return static_cast<std::int32_t>(a.words[3 * a.B + 1 + node] & 0xffffffff);
}

__device__ std::int32_t find_child(const Acceptance& a, Block& block, std::int64_t first,
                                   std::int32_t n, std::int32_t current, std::int32_t token) {
  std::int32_t child = INT_MAX;
  for (std::int32_t i = current + 1 + static_cast<std::int32_t>(threadIdx.x);
       i < n && child == INT_MAX; i += static_cast<std::int32_t>(blockDim.x)) {
    if (parent_of(a, first + i) == current && token_of(a, first + i) == token) child = i;
  }
  child = block.lowest(child);
  return child == INT_MAX ? -1 : child;
}

// Modes B and C: children in order, each accepted or rejected.
__device__ Step try_children(const Acceptance& a, Block& block, std::int64_t first, std::int32_t n,
                             std::int32_t current, Distribution p, Distribution q,
                             const float* drafted, const float* u) {
  p.normalise(block);
  for (std::int32_t v = q.begin; v < q.end; ++v) q.w[v] = drafted[v];
  __syncthreads();
  for (std::int32_t i = current + 1; i < n; ++i) {
    if (parent_of(a, first + i) != current) continue;
    const std::int32_t token = token_of(a, first + i);
    const bool accepted = *u++ * q.w[token] < p.w[token];
    if (accepted) return {i, token, false};
    bool left = false;
    for (std::int32_t v = p.begin; v < p.end; ++v) left |= p.w[v] > q.w[v];
    if (__syncthreads_or(left)) {
      for (std::int32_t v = p.begin; v < p.end; ++v) p.w[v] = fmax(p.w[v] - q.w[v], 0.0);
    }
    p.normalise(block);
    if (a.mode != DV_SAMPLE_NO_REPL) continue;
    if (q.begin <= token && token < q.end) q.w[token] = 0;
    q.normalise(block);
  }
  return {-1, p.draw(block, *u), false};
}

// A block for each item.
__global__ void __launch_bounds__(kAcceptThreads) accept(const __grid_constant__ Acceptance a) {
  __shared__ Block::Shared shared;
  Block block(shared);
  const std::int64_t b = blockIdx.x, first = a.words[b];
  const auto n = static_cast<std::int32_t>(a.words[b + 1] - first);
  const std::int64_t eos = a.words[a.B + 1 + b], budget = a.words[2 * a.B + 1 + b];
  const auto thread = static_cast<std::int32_t>(threadIdx.x);
  const auto threads = static_cast<std::int32_t>(blockDim.x);
  const std::int32_t part = (a.V + threads - 1) / threads;
  const std::int32_t begin = min(thread * part, a.V), end = min(begin + part, a.V);
  const Distribution p{a.room + 2 * b * a.V, begin, end}, q{p.w + a.V, begin, end};

  std::int32_t current = -1, count = 0, bonus = -1;
  bool nan = false;
  while (count < budget) {
    const float* x =
        current < 0 ? a.root_logits + b * a.V : a.node_logits + (first + current) * a.V;
    Best best{-INFINITY, INT_MAX};
    bool mine = false;
    for (std::int32_t v = thread; v < a.V; v += threads) {
      mine |= isnan(x[v]);
      best.take(x[v], v);
    }
    nan = __syncthreads_or(mine);
    if (nan) break;
    best = block.best(best);
    Step step{-1, best.index, false};
    if (a.mode != DV_GREEDY) {
      for (std::int32_t v = begin; v < end; ++v) {
        p.w[v] = exp((double{x[v]} - double{best.value}) / double{a.temperature});
      }
      __syncthreads();
      const float* u = a.uniform + b * a.u_item + count * a.u_step;
      if (a.mode == DV_SAMPLE_TREE) {
        step.token = p.draw(block, *u);
      } else {
        const float* drafted =
            current < 0 ? a.root_q + b * a.V : a.node_q + (first + current) * a.V;
        step = try_children(a, block, first, n, current, p, q, drafted, u);
      }
    }
    if (a.mode == DV_GREEDY || a.mode == DV_SAMPLE_TREE)
      step.child = find_child(a, block, first, n, current, step.token);
    __syncthreads();  // p and q have been read
    if (step.child < 0) {
      bonus = step.token;
      break;
    }
    if (thread == 0) a.path[first + count] = step.child;
    ++count;
    current = step.child;
    if (eos >= 0 && step.token == eos) break;
  }
  for (std::int32_t i = count + thread; i < n; i += threads) a.path[first + i] = -1;
  if (thread != 0) return;
  a.count[b] = count;
  a.bonus[b] = bonus;
  a.nan[b] = nan;
}

// --- compaction ---

// Words: P [B], cu [B + 1], accepted [B], caches [B, caches], path [Ntot]. A thread has words of the
// rows to itself and moves each row by row, in ascending order: what it overwrites has been moved
// already or is not wanted.
template <class Word>
__global__ void compact(const __grid_constant__ Words words, std::int64_t B, std::int64_t caches,
                        std::int64_t row_words) {
  const std::int64_t b = blockIdx.x / caches, path = (3 + caches) * B + 1 + words[B + b];
  const std::int64_t accepted = words[2 * B + 1 + b], step = std::int64_t{gridDim.y} * blockDim.x;
  std::int64_t at = static_cast<std::int64_t>(blockIdx.y) * blockDim.x + threadIdx.x;
  for (; at < row_words; at += step) {
    Word* rows = reinterpret_cast<Word*>(words[3 * B + 1 + blockIdx.x]) + words[b] * row_words + at;
    for (std::int64_t j = 0; j < accepted; ++j) {
      const std::int64_t from = words[path + j];
      if (from != j) rows[j * row_words] = rows[from * row_words];
    }
  }
}

template <class T>
void append(std::vector<std::int64_t>& words, const T* from, std::int64_t n) {
  words.insert(words.end(), from, from + n);
}

std::int64_t address(const void* p) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(p));
}

bool aligned(const void* p, std::int64_t bytes) { return address(p) % bytes == 0; }

// The bits of a tree's nodes, [n, words of a row].
void append_bits(std::vector<std::int64_t>& words, std::int64_t n, const std::int32_t* parent) {
  const std::int64_t of_row = divide_up(n, 64);
  const auto first = static_cast<std::int64_t>(words.size());
  words.resize(words.size() + static_cast<std::size_t>(n * of_row));
  std::int64_t* bits = words.data() + first;
  for (std::int64_t i = 0; i < n; ++i) {
    if (parent[i] >= 0) std::copy_n(bits + parent[i] * of_row, of_row, bits + i * of_row);
    const std::uint64_t own = std::uint64_t{1} << (i % 64);
    bits[i * of_row + i / 64] |= static_cast<std::int64_t>(own);
  }
}

}  // namespace

extern "C" {

int dv_mask(assay_ctx* ctx, int32_t B, const int64_t* P, const int64_t* cu, const int32_t* parent,
            int64_t ldm, uint64_t* bits, int32_t* depth, int64_t* pos) {
  if (!good_batch(B, cu, parent) || !good_prefixes(B, P)) return ASSAY_EINVAL;
  for (std::int32_t b = 0; b < B; ++b) {
    if (cu[b + 1] - cu[b] > 64 * ldm) return ASSAY_EINVAL;
  }
  if (B == 0 || cu[B] == 0) return ASSAY_OK;
  if (bits == nullptr || depth == nullptr || pos == nullptr) return ASSAY_EINVAL;
  std::vector<std::int64_t> words;
  append(words, P, B);
  append(words, cu, B + 1);
  append(words, parent, cu[B]);
  const Scratch room(ctx, bytes_outside(words));
  if (room.failed()) return ASSAY_ENOMEM;
  constexpr int kThreadsOfMask = 128;
  const auto blocks = static_cast<unsigned>(divide_up(cu[B] * kWarp, kThreadsOfMask));
  ancestor_bits<<<blocks, kThreadsOfMask, 0, stream_of(ctx)>>>(deliver(ctx, words, room), B, ldm,
                                                               bits, depth, pos);
  return launch_status();
}

int dv_full_mask(assay_ctx* ctx, int64_t P, int64_t n, const int32_t* parent, uint8_t* M) {
  if (P < 1 || n < 0 || !good_tree(n, parent) || M == nullptr) return ASSAY_EINVAL;
  std::vector<std::int64_t> words;
  append(words, parent, n);
  const Scratch room(ctx, bytes_outside(words));
  if (room.failed()) return ASSAY_ENOMEM;
  full_mask<<<static_cast<unsigned>(P + n), 128, 0, stream_of(ctx)>>>(deliver(ctx, words, room), P,
                                                                      n, M);
  return launch_status();
}

int dv_attention(assay_ctx* ctx, const fa_params* p, const int64_t* P, const int64_t* cu,
                 const int32_t* parent, const void* q, const void* const* kc, const void* const* vc,
                 void* o, float* lse) {
  if (p == nullptr || p->size != sizeof(fa_params)) return ASSAY_EINVAL;
  if (p->B < 0 || p->B > INT_MAX || p->Hkv < 1 || p->Hq < 0 || p->Hq % p->Hkv != 0 || p->D < 1)
    return ASSAY_EINVAL;
  const auto B = static_cast<std::int32_t>(p->B);
  if (!good_batch(B, cu, parent) || !good_prefixes(B, P)) return ASSAY_EINVAL;
  if (B == 0 || cu[B] == 0 || p->Hq == 0) return ASSAY_OK;
  if (q == nullptr || o == nullptr || kc == nullptr || vc == nullptr) return ASSAY_EINVAL;
  if (std::any_of(kc, kc + B, [](const void* k) { return k == nullptr; }) ||
      std::any_of(vc, vc + B, [](const void* v) { return v == nullptr; }))
    return ASSAY_EINVAL;
  if (p->Dv != p->D || p->D > 256) return ASSAY_ENOTSUP;
  if (p->dtype != ASSAY_F32 && p->dtype != ASSAY_BF16) return ASSAY_ENOTSUP;

  const std::int64_t four = p->dtype == ASSAY_F32 ? 16 : 8;
  Attention a{};
  a.B = B, a.Hq = p->Hq, a.Hkv = p->Hkv, a.D = p->D;
  a.scale = p->scale;
  a.vectors = p->D % 4 == 0 && aligned(q, four);
  a.q = q, a.o = o, a.lse = lse;
  std::vector<std::int64_t> words, bits;
  append(words, P, B);
  append(words, cu, B + 1);
  for (const void* const* data : {kc, vc}) {
    for (std::int32_t b = 0; b < B; ++b) {
      words.push_back(address(data[b]));
      a.vectors = a.vectors && aligned(data[b], four);
    }
  }
  std::int64_t most_nodes = 0;
  for (std::int32_t b = 0; b < B; ++b) {
    const std::int64_t n = cu[b + 1] - cu[b];
    words.push_back(5 * std::int64_t{B} + 1 + static_cast<std::int64_t>(bits.size()));
    append_bits(bits, n, parent + cu[b]);
    most_nodes = std::max(most_nodes, n);
  }
  append(words, bits.data(), static_cast<std::int64_t>(bits.size()));
  a.tiles = plan(ctx, *p, P, cu);
  a.chunks = 1;
  for (std::int32_t b = 0; b < B; ++b) {
    const std::int64_t tiles = divide_up(P[b], kTile) + divide_up(cu[b + 1] - cu[b], kTile);
    a.chunks = std::max(a.chunks, divide_up(tiles, a.tiles));
  }
  const std::int64_t rows = cu[B] * p->Hq;
  const std::int64_t partial = a.chunks > 1 ? rows * a.chunks * (p->D + 2) : 0;
  const Scratch room(ctx, bytes_outside(words));
  const Scratch parts(ctx, partial * std::int64_t{sizeof(float)});
  if (room.failed() || parts.failed()) return ASSAY_ENOMEM;
  a.words = deliver(ctx, words, room);
  a.partial = parts.as<float>();
  const std::int64_t row_tiles = divide_up(most_nodes * (p->Hq / p->Hkv), kTile);
  if (p->dtype == ASSAY_F32) {
    launch_attention_for<float>(a, row_tiles, rows, stream_of(ctx));
  } else {
    launch_attention_for<__nv_bfloat16>(a, row_tiles, rows, stream_of(ctx));
  }
  return launch_status();
}

int dv_accept(assay_ctx* ctx, int32_t B, int32_t V, const int64_t* cu, const int32_t* parent,
              const int32_t* token, const float* root_logits, const float* node_logits,
              const int32_t* eos, const int32_t* budget, const dv_sampling* sampling,
              int32_t* acc_node, int32_t* n_acc, int32_t* bonus) {
  if (!good_batch(B, cu, parent)) return ASSAY_EINVAL;
  if (B == 0) return ASSAY_OK;
  const std::int64_t nodes = cu[B];
  if (V < 1 || root_logits == nullptr || n_acc == nullptr || bonus == nullptr) return ASSAY_EINVAL;
  if (nodes > 0 && (token == nullptr || node_logits == nullptr || acc_node == nullptr))
    return ASSAY_EINVAL;
  if (std::any_of(token, token + nodes, [V](std::int32_t t) { return t < 0 || t >= V; }))
    return ASSAY_EINVAL;
  if (budget != nullptr && std::any_of(budget, budget + B, [](std::int32_t x) { return x < 0; }))
    return ASSAY_EINVAL;
  const dv_sampling* s = sampling != nullptr && sampling->mode != DV_GREEDY ? sampling : nullptr;
  if (s != nullptr) {
    if (s->size != sizeof(dv_sampling) || s->mode < DV_GREEDY || s->mode > DV_SAMPLE_NO_REPL ||
        !(s->temperature > 0) || s->uniform == nullptr)
      return ASSAY_EINVAL;
    if (s->mode != DV_SAMPLE_TREE && (s->root_q == nullptr || (nodes > 0 && s->node_q == nullptr)))
      return ASSAY_EINVAL;
  }

  std::vector<std::int64_t> words;
  append(words, cu, B + 1);
  for (std::int32_t b = 0; b < B; ++b) words.push_back(eos != nullptr ? eos[b] : -1);
  for (std::int32_t b = 0; b < B; ++b) words.push_back(budget != nullptr ? budget[b] : INT_MAX);
  for (std::int64_t i = 0; i < nodes; ++i)
    words.push_back(std::int64_t{parent[i]} * (std::int64_t{1} << 32) + token[i]);
  const std::int64_t of_results = nodes + 3 * std::int64_t{B};
  const Scratch table(ctx, bytes_outside(words));
  const Scratch results(ctx, of_results * std::int64_t{sizeof(std::int32_t)});
  const Scratch room(ctx,
                     s != nullptr ? 2 * std::int64_t{B} * V * std::int64_t{sizeof(double)} : 0);
  if (table.failed() || results.failed() || room.failed()) return ASSAY_ENOMEM;
  Acceptance a{};
  a.B = B, a.V = V;
  a.root_logits = root_logits, a.node_logits = node_logits;
  if (s != nullptr) {
    a.mode = s->mode, a.temperature = s->temperature;
    a.u_item = s->u_item, a.u_step = s->u_step;
    a.uniform = s->uniform, a.root_q = s->root_q, a.node_q = s->node_q;
  }
  a.room = room.as<double>();
  a.words = deliver(ctx, words, table);
  a.path = results.as<std::int32_t>();
  a.count = a.path + nodes, a.bonus = a.count + B, a.nan = a.bonus + B;
  const auto threads = static_cast<unsigned>(
      std::clamp<std::int64_t>(divide_up(V, kWarp) * kWarp, kWarp, kAcceptThreads));
  accept<<<static_cast<unsigned>(B), threads, 0, stream_of(ctx)>>>(a);
  std::vector<std::int32_t> found(static_cast<std::size_t>(of_results));
  cudaMemcpyAsync(found.data(), a.path, found.size() * sizeof(std::int32_t), cudaMemcpyDeviceToHost,
                  stream_of(ctx));
  if (cudaStreamSynchronize(stream_of(ctx)) != cudaSuccess) return ASSAY_EINTERNAL;
  const std::int32_t* counts = found.data() + nodes;
  if (std::any_of(counts + 2 * std::int64_t{B}, counts + 3 * std::int64_t{B},
                  [](std::int32_t nan) { return nan != 0; }))
    return ASSAY_EINVAL;
  if (nodes > 0) std::copy_n(found.data(), nodes, acc_node);
  std::copy_n(counts, B, n_acc);
  std::copy_n(counts + B, B, bonus);
  return ASSAY_OK;
}

int dv_compact(assay_ctx* ctx, int32_t B, const int64_t* P, const int64_t* cu,
               const int32_t* acc_node, const int32_t* n_acc, int64_t row_bytes, int32_t caches,
               void* const* kv) {
  if (!good_offsets(B, cu) || !good_prefixes(B, P) || row_bytes < 0 || caches < 0)
    return ASSAY_EINVAL;
  if (B > 0 && (n_acc == nullptr || (cu[B] > 0 && acc_node == nullptr))) return ASSAY_EINVAL;
  for (std::int32_t b = 0; b < B; ++b) {
    const std::int64_t n = cu[b + 1] - cu[b];
    if (n_acc[b] < 0 || n_acc[b] > n) return ASSAY_EINVAL;
    for (std::int32_t j = 0; j < n_acc[b]; ++j) {
      const std::int32_t before = j > 0 ? acc_node[cu[b] + j - 1] : -1;
      if (acc_node[cu[b] + j] <= before || acc_node[cu[b] + j] >= n) return ASSAY_EINVAL;
    }
  }
  const std::int64_t all = row_bytes > 0 ? std::int64_t{B} * caches : 0;
  std::int64_t word = 16;
  while (row_bytes % word != 0) word /= 2;
  for (std::int64_t c = 0; c < all; ++c) {
    if (kv == nullptr || kv[c] == nullptr) return ASSAY_EINVAL;
    while (!aligned(kv[c], word)) word /= 2;
  }
  if (all == 0 || cu[B] == 0) return ASSAY_OK;
  std::vector<std::int64_t> words;
  append(words, P, B);
  append(words, cu, B + 1);
  append(words, n_acc, B);
  for (std::int64_t c = 0; c < all; ++c) words.push_back(address(kv[c]));
  append(words, acc_node, cu[B]);
  const Scratch room(ctx, bytes_outside(words));
  if (room.failed()) return ASSAY_ENOMEM;
  const std::int64_t unit = word >= 16 ? 16 : word >= 4 ? 4 : 1;
  const std::int64_t row_words = row_bytes / unit;
  const std::int64_t across = std::min<std::int64_t>(divide_up(row_words, 128), 65535);
  const dim3 grid(static_cast<unsigned>(all), static_cast<unsigned>(across));
  const auto kernel = unit == 16  ? &compact<uint4>
                      : unit == 4 ? &compact<std::uint32_t>
                                  : &compact<std::uint8_t>;
  kernel<<<grid, 128, 0, stream_of(ctx)>>>(deliver(ctx, words, room), B, caches, row_words);
  return launch_status();
}

int dv_generate(assay_ctx* ctx, const dv_loop* loop, const dv_model* m, int32_t* out,
                int64_t* n_out) {
  if (loop == nullptr || m == nullptr || n_out == nullptr || loop->size != sizeof(dv_loop) ||
      m->size != sizeof(dv_model))
    return ASSAY_EINVAL;
  if (m->V < 1 || m->max_nodes < 0 || loop->n_prompt < 1 || loop->prompt == nullptr ||
      loop->max_new < 0 || (loop->max_new > 0 && out == nullptr))
    return ASSAY_EINVAL;
  const std::int64_t V = m->V, limit = loop->n_prompt + loop->max_new;
  const std::int64_t most_rows = loop->n_prompt + 1 + m->max_nodes;
  const Scratch logits(
      ctx, loop->max_new > 0 ? most_rows * V * std::int64_t{sizeof(float)} : std::int64_t{0});
  if (logits.failed()) return ASSAY_ENOMEM;

  std::vector<std::int32_t> text(loop->prompt, loop->prompt + loop->n_prompt);
  std::int64_t cached = 0;
  bool more = loop->max_new > 0;
  while (more) {
    // What the cache lacks is a chain in front of the draft: together they are one tree.
    const auto length = static_cast<std::int64_t>(text.size()), fresh = length - cached;
    std::vector<std::int32_t> token(text.begin() + cached, text.end());
    token.resize(static_cast<std::size_t>(fresh + m->max_nodes));
    std::vector<std::int32_t> parent(static_cast<std::size_t>(m->max_nodes) + 1);
    std::int32_t n = 0;
    int status = m->draft(m->user, length, text.data(), &n, parent.data(), token.data() + fresh);
    if (status != ASSAY_OK) return status;
    if (n < 0 || n > m->max_nodes || !good_tree(n, parent.data())) return ASSAY_EINVAL;

    std::vector<std::int32_t> link;
    for (std::int64_t r = 0; r < fresh; ++r) link.push_back(static_cast<std::int32_t>(r - 1));
    for (std::int32_t i = 0; i < n; ++i)
      link.push_back(static_cast<std::int32_t>(fresh) + parent[static_cast<std::size_t>(i)]);
    const std::int64_t rows = fresh + n, of_row = divide_up(rows, 64);
    std::vector<std::int64_t> bits, pos;
    append_bits(bits, rows, link.data());
    for (const std::int32_t up : link)
      pos.push_back(up < 0 ? cached : pos[static_cast<std::size_t>(up)] + 1);
    status = m->verify(m->user, rows, token.data(), pos.data(), of_row,
                       reinterpret_cast<const std::uint64_t*>(bits.data()), logits.as<float>());
    if (status != ASSAY_OK) return status;

    const std::int64_t cu[2] = {0, n};
    const auto budget = static_cast<std::int32_t>(std::min<std::int64_t>(limit - length, INT_MAX));
    std::vector<std::int32_t> path(static_cast<std::size_t>(n) + 1);
    std::int32_t accepted = 0, bonus = -1;
    const float* root = logits.as<float>() + (fresh - 1) * V;
    status = dv_accept(ctx, 1, m->V, cu, parent.data(), token.data() + fresh, root, root + V,
                       &loop->eos, &budget, nullptr, path.data(), &accepted, &bonus);
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
    if (!more) break;
    status = m->commit(m->user, static_cast<std::int64_t>(keep.size()), keep.data());
    if (status != ASSAY_OK) return status;
  }
  std::fill_n(out, loop->max_new, -1);
  std::copy(text.begin() + loop->n_prompt, text.end(), out);
  *n_out = static_cast<std::int64_t>(text.size()) - loop->n_prompt;
  return ASSAY_OK;
}

}  // extern "C"

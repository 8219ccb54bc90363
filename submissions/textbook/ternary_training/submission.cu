// Sample entrant of assay, not a model's answer: what a careful textbook would print, in CUDA.
//
// The matrices of one input lie side by side in a blob (q, k, v; gate, up), so each such group is
// a single linear layer here. Row operations are fused: adding a branch with the norm after it,
// the norm of a head with its rotation, Adam's step with the rounding of its result. Attention
// never stores a probability; it keeps a logarithm for each query and computes the rest again.
// Every sum has a fixed order, so one seed gives one blob.
#include <cuda_fp16.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <new>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "abi.h"

namespace {

using Index = std::int64_t;

constexpr unsigned kLanes = 32;
constexpr unsigned kGroup = 256;       // threads of a block of the row kernels
constexpr unsigned kEveryLane = ~0u;   // the mask of a whole warp
constexpr Index kGroupWeights = 128;   // weights that share a scale
constexpr Index kGroupBytes = 34;      // of the scale and the codes
constexpr float kLargestHalf = 65504;  // the largest finite binary16

// --- Warps -------------------------------------------------------------------------------------

__device__ Index lane_id() { return threadIdx.x & (kLanes - 1); }

// Number of the warp in the whole grid: row kernels give it one row.
__device__ Index warp_id() { return (Index{blockIdx.x} * blockDim.x + threadIdx.x) / kLanes; }

template <class Number>
__device__ Number sum_over_warp(Number value) {
#pragma unroll
  for (unsigned step = 1; step < kLanes; step <<= 1) {
    value += __shfl_xor_sync(kEveryLane, value, step);
  }
  return value;
}

__device__ float max_over_warp(float value) {
#pragma unroll
  for (unsigned step = 1; step < kLanes; step <<= 1) {
    value = fmaxf(value, __shfl_xor_sync(kEveryLane, value, step));
  }
  return value;
}

__device__ float inner_product(const float* left, const float* right, Index length) {
  float result = 0;
  for (Index i = 0; i < length; ++i) result = fmaf(left[i], right[i], result);
  return result;
}

// --- Ternary weights ---------------------------------------------------------------------------

// A group of 128 weights as a warp holds it: the scale, and four codes of each lane.
struct TernaryGroup {
  __half scale;
  int code[4];

  // The mean rule: the scale is the mean magnitude, and what exceeds half of it keeps its sign.
  __device__ explicit TernaryGroup(const float (&weights)[4]) {
    double magnitude = 0;
    for (const float w : weights) magnitude += fabs(static_cast<double>(w));
    magnitude = sum_over_warp(magnitude) / static_cast<double>(kGroupWeights);
    scale = __double2half(fmin(magnitude, static_cast<double>(kLargestHalf)));
    const float threshold = 0.5f * __half2float(scale);
    for (int i = 0; i < 4; ++i) {
      const int sign = (weights[i] > threshold) - (weights[i] < -threshold);
      code[i] = threshold > 0 ? 1 + sign : 1;
    }
  }
};

// A warp a group. Lane i has the weights 4 i to 4 i + 3, whose codes are one byte.
__global__ void quantize_groups(Index groups, const float* weights, std::uint8_t* packed) {
  const Index group = warp_id(), lane = lane_id();
  if (group >= groups) return;
  weights += group * kGroupWeights + 4 * lane;
  packed += group * kGroupBytes;
  const float mine[4] = {weights[0], weights[1], weights[2], weights[3]};
  const TernaryGroup t(mine);
  const int byte = t.code[0] + 4 * t.code[1] + 16 * t.code[2] + 64 * t.code[3];
  packed[2 + lane] = static_cast<std::uint8_t>(byte);
  if (lane != 0) return;
  const unsigned scale = __half_as_ushort(t.scale);
  packed[0] = static_cast<std::uint8_t>(scale & 255);
  packed[1] = static_cast<std::uint8_t>(scale >> 8);
}

// A warp a group. Neighbouring lanes write neighbouring weights.
__global__ void dequantize_groups(Index groups, const std::uint8_t* packed, float* weights) {
  const Index group = warp_id();
  if (group >= groups) return;
  packed += group * kGroupBytes;
  weights += group * kGroupWeights;
  const unsigned scale_bits = packed[0] + 256u * packed[1];
  const float scale = __half2float(__ushort_as_half(static_cast<unsigned short>(scale_bits)));
  for (Index i = lane_id(); i < kGroupWeights; i += kLanes) {
    const int code = packed[2 + i / 4] >> (2 * (i % 4)) & 3;
    weights[i] = static_cast<float>(code - 1) * scale;
  }
}

__device__ void store_rounded(const float (&weights)[4], float* rounded) {
  const TernaryGroup t(weights);
  const float scale = __half2float(t.scale);
  *reinterpret_cast<float4*>(rounded) = make_float4(
      static_cast<float>(t.code[0] - 1) * scale, static_cast<float>(t.code[1] - 1) * scale,
      static_cast<float>(t.code[2] - 1) * scale, static_cast<float>(t.code[3] - 1) * scale);
}

// A warp a group: what the latent weights mean after quantizing.
__global__ void round_groups(Index groups, const float* latent, float* rounded) {
  if (warp_id() >= groups) return;
  const Index first = warp_id() * kGroupWeights + 4 * lane_id();
  const float4 w = *reinterpret_cast<const float4*>(latent + first);
  store_rounded({w.x, w.y, w.z, w.w}, rounded + first);
}

// --- Matrix products ---------------------------------------------------------------------------

// A block computes a tile of 64 x 64 results, each of its 128 threads 8 rows by 4 columns. Slices
// of both factors, 16 deep, pass through shared memory with the depth as their first index.
constexpr int kTile = 64, kSlice = 16, kTileRows = 8, kTileColumns = 4;
constexpr int kAcross = kTile / kTileColumns;  // threads side by side
constexpr int kTileThreads = kAcross * kTile / kTileRows;
constexpr int kTilePitch = kTile + 4;  // keeps rows aligned for float4

// Which index of a factor is contiguous: the one that is summed over, or the one that stays.
enum class Contiguous { summed, kept };

struct Factor {
  const float* data;
  Index pitch;  // from one row in memory to the next
};

template <Contiguous kOrder>
__device__ void load_slice(Factor f, Index kept_from, Index kept_end, Index depth_from,
                           Index depth_end, float (*slice)[kTilePitch]) {
#pragma unroll
  for (int step = 0; step < kTile * kSlice / kTileThreads; ++step) {
    const int at = step * kTileThreads + static_cast<int>(threadIdx.x);
    const int depth = kOrder == Contiguous::summed ? at % kSlice : at / kTile;
    const int kept = kOrder == Contiguous::summed ? at / kSlice : at % kTile;
    const Index k = depth_from + depth, i = kept_from + kept;
    float value = 0;
    if (k < depth_end && i < kept_end) {
      value = f.data[kOrder == Contiguous::summed ? i * f.pitch + k : k * f.pitch + i];
    }
    slice[depth][kept] = value;
  }
}

// result [rows, columns] = the sum over the depth of left times right.
template <Contiguous kLeft, Contiguous kRight>
__global__ void __launch_bounds__(kTileThreads)
    multiply_tiles(Index rows, Index columns, Index depth, Factor left, Factor right,
                   float* result) {
  __shared__ __align__(16) float left_slice[kSlice][kTilePitch];
  __shared__ __align__(16) float right_slice[kSlice][kTilePitch];
  const Index top = Index{blockIdx.y} * kTile, start = Index{blockIdx.x} * kTile;
  const int my_row = static_cast<int>(threadIdx.x) / kAcross * kTileRows;
  const int my_column = static_cast<int>(threadIdx.x) % kAcross * kTileColumns;

  float total[kTileRows][kTileColumns] = {};
  for (Index from = 0; from < depth; from += kSlice) {
    load_slice<kLeft>(left, top, rows, from, depth, left_slice);
    load_slice<kRight>(right, start, columns, from, depth, right_slice);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kSlice; ++k) {
      const float4 upper = *reinterpret_cast<const float4*>(&left_slice[k][my_row]);
      const float4 lower = *reinterpret_cast<const float4*>(&left_slice[k][my_row + 4]);
      const float4 beside = *reinterpret_cast<const float4*>(&right_slice[k][my_column]);
      const float l[kTileRows] = {upper.x, upper.y, upper.z, upper.w,
                                  lower.x, lower.y, lower.z, lower.w};
      const float r[kTileColumns] = {beside.x, beside.y, beside.z, beside.w};
      for (int i = 0; i < kTileRows; ++i) {
        for (int j = 0; j < kTileColumns; ++j) total[i][j] = fmaf(l[i], r[j], total[i][j]);
      }
    }
    __syncthreads();
  }

  const Index row = top + my_row, column = start + my_column;
  for (int i = 0; i < kTileRows; ++i) {
    for (int j = 0; j < kTileColumns; ++j) {
      if (row + i < rows && column + j < columns) {
        result[(row + i) * columns + column + j] = total[i][j];
      }
    }
  }
}

// --- Rows: embedding, norms, feed-forward, loss ------------------------------------------------

// A warp a token.
__global__ void look_up(Index tokens, Index d, const std::int32_t* ids, const float* table,
                        float* out) {
  const Index token = warp_id();
  if (token >= tokens) return;
  const float* entry = table + ids[token] * d;
  for (Index i = lane_id(); i < d; i += kLanes) out[token * d + i] = entry[i];
}

// A block an entry of the table. The positions of entry e are places[first[e]] to
// places[first[e + 1] - 1]. A tied table already holds the gradient of its use as the head.
__global__ void look_up_gradient(Index d, const std::int32_t* first, const std::int32_t* places,
                                 const float* d_out, bool tied, float* d_table) {
  const Index entry = blockIdx.x;
  for (Index i = threadIdx.x; i < d; i += blockDim.x) {
    float sum = tied ? d_table[entry * d + i] : 0;
    for (int at = first[entry]; at < first[entry + 1]; ++at) sum += d_out[places[at] * d + i];
    d_table[entry * d + i] = sum;
  }
}

// A warp a row: stream = before + branch, out = rms(stream, gain). The first row operation of a
// model has nothing before it. factor keeps the reciprocal root mean square.
__global__ void add_and_norm(Index rows, Index d, float eps, const float* before,
                             const float* branch, const float* gain, float* stream, float* out,
                             float* factor) {
  const Index row = warp_id(), offset = row * d;
  if (row >= rows) return;
  float power = 0;
  for (Index i = lane_id(); i < d; i += kLanes) {
    const float value = branch[offset + i] + (before != nullptr ? before[offset + i] : 0);
    stream[offset + i] = value;
    power = fmaf(value, value, power);
  }
  const float scale = 1 / sqrtf(sum_over_warp(power) / static_cast<float>(d) + eps);
  for (Index i = lane_id(); i < d; i += kLanes) {
    out[offset + i] = stream[offset + i] * scale * gain[i];
  }
  if (lane_id() == 0) factor[row] = scale;
}

// A warp a row: d_stream, which came past the norm, takes up what comes through it.
__global__ void norm_gradient(Index rows, Index d, const float* stream, const float* gain,
                              const float* factor, const float* d_out, float* d_stream) {
  const Index row = warp_id(), offset = row * d;
  if (row >= rows) return;
  float along = 0;
  for (Index i = lane_id(); i < d; i += kLanes) {
    along = fmaf(d_out[offset + i] * gain[i], stream[offset + i], along);
  }
  const float scale = factor[row];
  along = sum_over_warp(along) * scale * scale / static_cast<float>(d);
  for (Index i = lane_id(); i < d; i += kLanes) {
    const float through = d_out[offset + i] * gain[i] - along * stream[offset + i];
    d_stream[offset + i] = fmaf(scale, through, d_stream[offset + i]);
  }
}

// Rows that a gain applies to: `heads` of them in each token, `width` long.
struct NormedRows {
  Index tokens, heads, width;
  const float* input;
  Index input_pitch;  // from token to token, as in the next two
  const float* factor;
  Index factor_pitch;
  const float* d_output;
  Index d_output_pitch;
};

// A block of 32 x 16 threads for 32 elements of the gain: each thread adds every 16th row, and the
// first 32 threads add their sums.
constexpr unsigned kStrips = 16;
__global__ void gain_gradient(NormedRows r, float* d_gain) {
  __shared__ float strip_sum[kStrips][kLanes];
  const Index i = Index{blockIdx.x} * kLanes + threadIdx.x;
  float sum = 0;
  if (i < r.width) {
    for (Index row = threadIdx.y; row < r.tokens * r.heads; row += kStrips) {
      const Index token = row / r.heads, head = row % r.heads, at = head * r.width + i;
      sum += r.d_output[token * r.d_output_pitch + at] * r.input[token * r.input_pitch + at] *
             r.factor[token * r.factor_pitch + head];
    }
  }
  strip_sum[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || i >= r.width) return;
  for (unsigned strip = 1; strip < kStrips; ++strip) sum += strip_sum[strip][threadIdx.x];
  d_gain[i] = sum;
}

// both [rows, 2 ff]: the gate, then what it gates. A thread an element of out [rows, ff].
__global__ void swiglu(Index count, Index ff, const float* both, float* out) {
  const Index at = Index{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at >= count) return;
  const Index place = at + at / ff * ff;
  const float gate = both[place];
  out[at] = both[place + ff] * gate / (1 + expf(-gate));
}

__global__ void swiglu_gradient(Index count, Index ff, const float* both, const float* d_out,
                                float* d_both) {
  const Index at = Index{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at >= count) return;
  const Index place = at + at / ff * ff;
  const float gate = both[place], up = both[place + ff];
  const float opened = 1 / (1 + expf(-gate)), silu = gate * opened;
  d_both[place] = d_out[at] * up * (opened + silu * (1 - opened));
  d_both[place + ff] = d_out[at] * silu;
}

// A warp a token: logits turn into `share` times the gradient of its cross-entropy. Where there is
// nothing to predict, the target is negative and the gradient zero.
__global__ void cross_entropy_gradient(Index tokens, Index V, float share,
                                       const std::int32_t* targets, float* logits) {
  if (warp_id() >= tokens) return;
  float* row = logits + warp_id() * V;
  const Index target = targets[warp_id()];
  float peak = -INFINITY;
  for (Index v = lane_id(); v < V; v += kLanes) peak = fmaxf(peak, row[v]);
  peak = max_over_warp(peak);
  float mass = 0;
  for (Index v = lane_id(); v < V; v += kLanes) {
    row[v] = expf(row[v] - peak);
    mass += row[v];
  }
  const float norm = target < 0 ? 0 : share / sum_over_warp(mass);
  if (target < 0) share = 0;
  for (Index v = lane_id(); v < V; v += kLanes) {
    row[v] = row[v] * norm - (v == target ? share : 0);
  }
}

// --- Attention ---------------------------------------------------------------------------------

// Where heads stand. projected [tokens, Hq + 2 Hkv, hd] has the queries, keys and values of a
// token; turned [tokens, Hq + Hkv, hd] its queries and keys, normed and rotated; mixed
// [tokens, Hq, hd] the results. Gradients stand as what they belong to.
struct HeadGrid {
  Index docs, T, Hq, Hkv, hd;
  float sharpness;  // 1 / sqrt(hd)

  __host__ __device__ Index tokens() const { return docs * T; }
  __host__ __device__ Index turned_heads() const { return Hq + Hkv; }
  __host__ __device__ Index turned_pitch() const { return (Hq + Hkv) * hd; }
  __host__ __device__ Index projected_pitch() const { return (Hq + 2 * Hkv) * hd; }

  __device__ Index query(Index token, Index head) const {
    return token * turned_pitch() + head * hd;
  }
  __device__ Index key(Index token, Index kv) const {
    return token * turned_pitch() + (Hq + kv) * hd;
  }
  __device__ Index value(Index token, Index kv) const {
    return token * projected_pitch() + (Hq + Hkv + kv) * hd;
  }
  __device__ Index mix(Index token, Index head) const { return (token * Hq + head) * hd; }
};

// A warp a query or key: norm, then rotation. gains [2, hd] are those of queries and of keys, and
// turns [T, hd / 2] the cosines and sines.
__global__ void turn_heads(HeadGrid grid, float eps, const float* projected, const float* gains,
                           const float2* turns, float* turned, float* factor) {
  const Index row = warp_id(), half = grid.hd / 2;
  if (row >= grid.tokens() * grid.turned_heads()) return;
  const Index token = row / grid.turned_heads(), head = row % grid.turned_heads();
  const float* in = projected + token * grid.projected_pitch() + head * grid.hd;
  if (head >= grid.Hq) gains += grid.hd;
  turns += token % grid.T * half;
  turned += row * grid.hd;

  float power = 0;
  for (Index i = lane_id(); i < grid.hd; i += kLanes) power = fmaf(in[i], in[i], power);
  const float scale = 1 / sqrtf(sum_over_warp(power) / static_cast<float>(grid.hd) + eps);
  for (Index i = lane_id(); i < half; i += kLanes) {
    const float real = in[i] * scale * gains[i];
    const float imaginary = in[i + half] * scale * gains[i + half];
    turned[i] = real * turns[i].x - imaginary * turns[i].y;
    turned[i + half] = real * turns[i].y + imaginary * turns[i].x;
  }
  if (lane_id() == 0) factor[row] = scale;
}

// A warp a query or key. d_turned is rotated back in place, as the gains' gradients need it.
__global__ void turn_heads_gradient(HeadGrid grid, const float* projected, const float* gains,
                                    const float2* turns, const float* factor, float* d_turned,
                                    float* d_projected) {
  const Index row = warp_id(), half = grid.hd / 2;
  if (row >= grid.tokens() * grid.turned_heads()) return;
  const Index token = row / grid.turned_heads(), head = row % grid.turned_heads();
  const Index place = token * grid.projected_pitch() + head * grid.hd;
  const float* in = projected + place;
  if (head >= grid.Hq) gains += grid.hd;
  turns += token % grid.T * half;
  d_turned += row * grid.hd;
  d_projected += place;

  // A lane meets the elements i and i + half only, in both loops.
  float along = 0;
  for (Index i = lane_id(); i < half; i += kLanes) {
    const float real = d_turned[i], imaginary = d_turned[i + half];
    d_turned[i] = real * turns[i].x + imaginary * turns[i].y;
    d_turned[i + half] = imaginary * turns[i].x - real * turns[i].y;
    along += d_turned[i] * gains[i] * in[i] + d_turned[i + half] * gains[i + half] * in[i + half];
  }
  const float scale = factor[row];
  along = sum_over_warp(along) * scale * scale / static_cast<float>(grid.hd);
  for (Index i = lane_id(); i < half; i += kLanes) {
    for (const Index j : {i, i + half}) {
      d_projected[j] = scale * (d_turned[j] * gains[j] - along * in[j]);
    }
  }
}

// The lanes' coefficients times `count` rows, each `pitch` after the one before, are added to
// target [hd] after that is scaled. A lane adds to the elements lane, lane + 32 and so on.
__device__ void add_rows(float coefficient, const float* rows, Index count, Index pitch, Index hd,
                         float scale, float* target) {
  for (Index base = 0; base < hd; base += kLanes) {
    const Index i = base + lane_id();
    float sum = i < hd ? scale * target[i] : 0;
    for (int row = 0; row < count; ++row) {
      const float c = __shfl_sync(kEveryLane, coefficient, row);
      if (i < hd) sum = fmaf(c, rows[row * pitch + i], sum);
    }
    if (i < hd) target[i] = sum;
  }
}

__device__ void clear_row(float* row, Index length) {
  for (Index i = lane_id(); i < length; i += kLanes) row[i] = 0;
}

// A warp a query, its keys in chunks of 32, a lane a key: softmax with a running maximum. The row
// of the result is the accumulator, so a head may have any size. log_mass keeps the logarithm of
// the sum of exponentials.
__global__ void attention(HeadGrid grid, const float* turned, const float* projected, float* mixed,
                          float* log_mass) {
  const Index row = warp_id();
  if (row >= grid.tokens() * grid.Hq) return;
  const Index token = row / grid.Hq, head = row % grid.Hq, kv = head / (grid.Hq / grid.Hkv);
  const Index start = token - token % grid.T;  // of the document
  const float* q = turned + grid.query(token, head);
  float* out = mixed + grid.mix(token, head);
  clear_row(out, grid.hd);
  float peak = -INFINITY, mass = 0;
  for (Index chunk = start; chunk <= token; chunk += kLanes) {
    const Index other = chunk + lane_id();
    float score = -INFINITY;
    if (other <= token) {
      score = grid.sharpness * inner_product(q, turned + grid.key(other, kv), grid.hd);
    }
    const float higher = fmaxf(peak, max_over_warp(score));
    const float weight = expf(score - higher), shrink = expf(peak - higher);
    peak = higher;
    mass = mass * shrink + sum_over_warp(weight);
    const Index count = min(Index{kLanes}, token + 1 - chunk);
    add_rows(weight, projected + grid.value(chunk, kv), count, grid.projected_pitch(), grid.hd,
             shrink, out);
  }
  for (Index i = lane_id(); i < grid.hd; i += kLanes) out[i] /= mass;
  if (lane_id() == 0) log_mass[row] = peak + logf(mass);
}

// What the gradients of queries and keys need of a forward pass.
struct AttentionRecord {
  const float *turned, *projected, *mixed, *log_mass, *d_mixed;
};

// The probability with which a query sees a key, and the gradient of their product.
struct Pair {
  float probability, d_product;
  __device__ Pair(const HeadGrid& grid, const AttentionRecord& a, Index token, Index head,
                  Index other, Index kv, float d_mean) {
    const float* q = a.turned + grid.query(token, head);
    const float* d_out = a.d_mixed + grid.mix(token, head);
    const float product = inner_product(q, a.turned + grid.key(other, kv), grid.hd);
    probability = expf(grid.sharpness * product - a.log_mass[token * grid.Hq + head]);
    const float d_weight = inner_product(d_out, a.projected + grid.value(other, kv), grid.hd);
    d_product = grid.sharpness * probability * (d_weight - d_mean);
  }
};

// A warp a query. d_mean keeps, for the keys, the mean of the probabilities' gradients, which is
// the product of the result and its gradient.
__global__ void attention_query_gradient(HeadGrid grid, AttentionRecord a, float* d_turned,
                                         float* d_mean) {
  const Index row = warp_id();
  if (row >= grid.tokens() * grid.Hq) return;
  const Index token = row / grid.Hq, head = row % grid.Hq, kv = head / (grid.Hq / grid.Hkv);
  const Index start = token - token % grid.T;
  float mean = 0;
  for (Index i = lane_id(); i < grid.hd; i += kLanes) {
    mean = fmaf(a.mixed[row * grid.hd + i], a.d_mixed[row * grid.hd + i], mean);
  }
  mean = sum_over_warp(mean);
  if (lane_id() == 0) d_mean[row] = mean;

  float* dq = d_turned + grid.query(token, head);
  clear_row(dq, grid.hd);
  for (Index chunk = start; chunk <= token; chunk += kLanes) {
    const Index other = chunk + lane_id();
    float d_product = 0;
    if (other <= token) d_product = Pair(grid, a, token, head, other, kv, mean).d_product;
    const Index count = min(Index{kLanes}, token + 1 - chunk);
    add_rows(d_product, a.turned + grid.key(chunk, kv), count, grid.turned_pitch(), grid.hd, 1, dq);
  }
}

// A warp a key and its value, in chunks of 32 of the queries that see it, a lane a query.
__global__ void attention_key_gradient(HeadGrid grid, AttentionRecord a, const float* d_mean,
                                       float* d_turned, float* d_projected) {
  const Index row = warp_id();
  if (row >= grid.tokens() * grid.Hkv) return;
  const Index other = row / grid.Hkv, kv = row % grid.Hkv, sharing = grid.Hq / grid.Hkv;
  const Index end = other - other % grid.T + grid.T;  // of the document
  float *dk = d_turned + grid.key(other, kv), *dv = d_projected + grid.value(other, kv);
  clear_row(dk, grid.hd);
  clear_row(dv, grid.hd);
  for (Index head = kv * sharing; head < (kv + 1) * sharing; ++head) {
    for (Index chunk = other; chunk < end; chunk += kLanes) {
      const Index token = chunk + lane_id(), count = min(Index{kLanes}, end - chunk);
      float probability = 0, d_product = 0;
      if (token < end) {
        const Pair pair(grid, a, token, head, other, kv, d_mean[token * grid.Hq + head]);
        probability = pair.probability;
        d_product = pair.d_product;
      }
      add_rows(d_product, a.turned + grid.query(chunk, head), count, grid.turned_pitch(), grid.hd,
               1, dk);
      add_rows(probability, a.d_mixed + grid.mix(chunk, head), count, grid.Hq * grid.hd, grid.hd, 1,
               dv);
    }
  }
}

// --- Adam --------------------------------------------------------------------------------------

struct AdamStep {
  static constexpr float kMemory1 = 0.9f, kMemory2 = 0.98f;
  float rate, unbias1, unbias2;

  __device__ float operator()(float value, float gradient, float& mean, float& square) const {
    mean += (1 - kMemory1) * (gradient - mean);
    square += (1 - kMemory2) * (gradient * gradient - square);
    return value - rate * (mean * unbias1) / (sqrtf(square * unbias2) + 1e-8f);
  }
};

constexpr unsigned kSquareBlocks = 32;
constexpr unsigned kSquareWarps = kSquareBlocks * kGroup / kLanes;

// sums [kSquareWarps]: a warp's share of the gradient's squares.
__global__ void sum_squares(Index count, const float* gradient, float* sums) {
  float sum = 0;
  for (Index i = Index{blockIdx.x} * kGroup + threadIdx.x; i < count;
       i += Index{kSquareBlocks} * kGroup) {
    sum = fmaf(gradient[i], gradient[i], sum);
  }
  sum = sum_over_warp(sum);
  if (lane_id() == 0) sums[warp_id()] = sum;
}

// One warp: the factor that cuts the gradient to a norm of 1 where it is longer.
__global__ void clip_to_one(const float* sums, float* clip) {
  float sum = 0;
  for (Index i = lane_id(); i < kSquareWarps; i += kLanes) sum += sums[i];
  sum = sum_over_warp(sum);
  if (lane_id() == 0) *clip = 1 / fmaxf(1, sqrtf(sum));
}

// A warp a group: steps its latent weights and rounds them for the next forward pass.
__global__ void step_matrices(Index groups, AdamStep adam, const float* clip, const float* gradient,
                              float* latent, float* mean, float* square, float* rounded) {
  if (warp_id() >= groups) return;
  const Index first = warp_id() * kGroupWeights + 4 * lane_id();
  const float4 g = *reinterpret_cast<const float4*>(gradient + first);
  float4& w = *reinterpret_cast<float4*>(latent + first);
  float4 m = *reinterpret_cast<const float4*>(mean + first);
  float4 s = *reinterpret_cast<const float4*>(square + first);
  const float cut = *clip;
  const float next[4] = {adam(w.x, g.x * cut, m.x, s.x), adam(w.y, g.y * cut, m.y, s.y),
                         adam(w.z, g.z * cut, m.z, s.z), adam(w.w, g.w * cut, m.w, s.w)};
  w = make_float4(next[0], next[1], next[2], next[3]);
  *reinterpret_cast<float4*>(mean + first) = m;
  *reinterpret_cast<float4*>(square + first) = s;
  store_rounded(next, rounded + first);
}

__global__ void step_gains(Index count, AdamStep adam, const float* clip, const float* gradient,
                           float* gains, float* mean, float* square) {
  const Index i = Index{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) gains[i] = adam(gains[i], gradient[i] * *clip, mean[i], square[i]);
}

// --- Host: memory and launches -----------------------------------------------------------------

unsigned divide_up(Index count, Index part) {
  return static_cast<unsigned>((count + part - 1) / part);
}
unsigned grid_of_threads(Index count) { return divide_up(count, kGroup); }
unsigned grid_of_warps(Index count) { return divide_up(count * kLanes, kGroup); }

// The device of a call: where its memory comes from and where its kernels go.
struct Device {
  assay_ctx* ctx;

  cudaStream_t stream() const { return static_cast<cudaStream_t>(ctx->stream); }
  int result() const { return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL; }
};

// An array on the device. Its owner frees it. Throws bad_alloc.
template <class Element>
class DeviceArray {
 public:
  DeviceArray() = default;
  DeviceArray(Device device, Index count) : device_(device), count_(count) {
    if (count == 0) return;
    data_ = static_cast<Element*>(device.ctx->alloc(device.ctx, bytes(), 256, 1));
    if (data_ == nullptr) throw std::bad_alloc();
  }
  DeviceArray(DeviceArray&& other) noexcept { swap(other); }
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    swap(other);
    return *this;
  }
  ~DeviceArray() {
    if (data_ != nullptr) device_.ctx->free(device_.ctx, data_);
  }

  operator Element*() const { return data_; }

  void clear() { cudaMemsetAsync(data_, 0, bytes(), device_.stream()); }

  // Waits for the copy, so that the source may change afterwards.
  void upload(const std::vector<Element>& source) {
    cudaMemcpyAsync(data_, source.data(), source.size() * sizeof(Element), cudaMemcpyHostToDevice,
                    device_.stream());
    cudaStreamSynchronize(device_.stream());
  }

 private:
  std::size_t bytes() const { return static_cast<std::size_t>(count_) * sizeof(Element); }
  void swap(DeviceArray& other) {
    std::swap(device_, other.device_);
    std::swap(count_, other.count_);
    std::swap(data_, other.data_);
  }

  Device device_{};
  Index count_ = 0;
  Element* data_ = nullptr;
};

using Floats = DeviceArray<float>;

void copy_floats(Device device, void* to, const void* from, Index count) {
  cudaMemcpyAsync(to, from, static_cast<std::size_t>(count) * sizeof(float),
                  cudaMemcpyDeviceToDevice, device.stream());
}

template <Contiguous kLeft, Contiguous kRight>
void multiply_matrices(Device device, Index rows, Index columns, Index depth, Factor left,
                       Factor right, float* result) {
  if (rows == 0 || columns == 0) return;
  const dim3 tiles(divide_up(columns, kTile), divide_up(rows, kTile));
  multiply_tiles<kLeft, kRight>
      <<<tiles, kTileThreads, 0, device.stream()>>>(rows, columns, depth, left, right, result);
}

// --- Host: layers ------------------------------------------------------------------------------

// A part of the model's weights, and its gradient where there is training.
struct Parameter {
  float *value = nullptr, *gradient = nullptr;
};

// weight [outputs, inputs].
struct LinearLayer {
  Index outputs = 0, inputs = 0;
  Parameter weight;

  void forward(Device device, Index n, const float* x, float* y) const {
    multiply_matrices<Contiguous::summed, Contiguous::summed>(
        device, n, outputs, inputs, {x, inputs}, {weight.value, inputs}, y);
  }
  void backward(Device device, Index n, const float* x, const float* dy, float* dx) const {
    multiply_matrices<Contiguous::summed, Contiguous::kept>(
        device, n, inputs, outputs, {dy, outputs}, {weight.value, inputs}, dx);
    multiply_matrices<Contiguous::kept, Contiguous::kept>(device, outputs, inputs, n, {dy, outputs},
                                                          {x, inputs}, weight.gradient);
  }
};

// The residual stream: a sum, and the latest branch that has not been added to it.
struct Stream {
  const float *sum, *branch;
};

// The norm at the start of a branch, and what it keeps of a forward pass.
struct BranchNorm {
  BranchNorm(Device device, Index tokens, Index d)
      : stream(device, tokens * d), output(device, tokens * d), factor(device, tokens) {}

  void forward(Device device, Index n, Index d, float eps, Stream in, Parameter gain) {
    add_and_norm<<<grid_of_warps(n), kGroup, 0, device.stream()>>>(
        n, d, eps, in.sum, in.branch, gain.value, stream, output, factor);
  }
  void backward(Device device, Index n, Index d, Parameter gain, const float* d_output,
                float* d_stream) const {
    norm_gradient<<<grid_of_warps(n), kGroup, 0, device.stream()>>>(n, d, stream, gain.value,
                                                                    factor, d_output, d_stream);
    const NormedRows rows{n, 1, d, stream, d, factor, 1, d_output, d};
    gain_gradient<<<divide_up(d, kLanes), dim3(kLanes, kStrips), 0, device.stream()>>>(
        rows, gain.gradient);
  }

  Floats stream, output, factor;
};

struct Sizes {
  explicit Sizes(const tt_config& c)
      : V(c.V),
        d(c.d),
        L(c.L),
        ff(c.ff),
        T(c.T),
        hd(c.hd),
        Hq(c.Hq),
        Hkv(c.Hkv),
        tables(c.tied != 0 ? 1 : 2),
        mixed(Hq * hd),
        turned((Hq + Hkv) * hd),
        projected((Hq + 2 * Hkv) * hd) {}

  Index table_weights() const { return tables * V * d; }  // of embedding and head
  Index matrix_weights() const { return table_weights() + L * d * (projected + mixed + 3 * ff); }
  Index layer_gains() const { return 2 * (d + hd); }
  Index gains() const { return L * layer_gains() + d; }
  Index groups() const { return matrix_weights() / kGroupWeights; }
  Index matrix_bytes() const { return groups() * kGroupBytes; }

  Index V, d, L, ff, T, hd, Hq, Hkv, tables;
  Index mixed, turned, projected;  // numbers a token
};

// Gradients of activations; every layer uses them again.
struct BackwardSpace {
  BackwardSpace(Device device, Index tokens, const Sizes& s)
      : stream(device, tokens * s.d),
        normed(device, tokens * s.d),
        inner(device, tokens * std::max(s.mixed, s.ff)),
        outer(device, tokens * std::max(s.projected, 2 * s.ff)),
        turned(device, tokens * s.turned),
        mean(device, tokens * s.Hq) {}

  Floats stream, normed;  // of the residual stream and of a norm's output
  Floats inner, outer;    // before a branch's last matrix and after its first
  Floats turned, mean;    // of attention alone
};

struct AttentionLayer {
  struct Record {
    Record(Device device, Index tokens, const Sizes& s)
        : norm(device, tokens, s.d),
          projected(device, tokens * s.projected),
          turned(device, tokens * s.turned),
          mixed(device, tokens * s.mixed),
          head_factor(device, tokens * (s.Hq + s.Hkv)),
          log_mass(device, tokens * s.Hq) {}
    BranchNorm norm;
    Floats projected, turned, mixed, head_factor, log_mass;
  };

  LinearLayer project, collect;
  Parameter norm_gain, head_gains;  // head_gains: queries', then keys'

  // Leaves the new branch in `branch`, which may be the old one.
  void forward(Device device, const HeadGrid& grid, Index d, float eps, const float2* turns,
               Stream in, Record& r, float* branch) const {
    const Index n = grid.tokens();
    r.norm.forward(device, n, d, eps, in, norm_gain);
    project.forward(device, n, r.norm.output, r.projected);
    turn_heads<<<grid_of_warps(n * grid.turned_heads()), kGroup, 0, device.stream()>>>(
        grid, eps, r.projected, head_gains.value, turns, r.turned, r.head_factor);
    attention<<<grid_of_warps(n * grid.Hq), kGroup, 0, device.stream()>>>(
        grid, r.turned, r.projected, r.mixed, r.log_mass);
    collect.forward(device, n, r.mixed, branch);
  }

  void backward(Device device, const HeadGrid& grid, Index d, const float2* turns, const Record& r,
                BackwardSpace& g) const {
    const Index n = grid.tokens(), hd = grid.hd, keys = grid.Hq * hd;
    collect.backward(device, n, r.mixed, g.stream, g.inner);
    const AttentionRecord record{r.turned, r.projected, r.mixed, r.log_mass, g.inner};
    attention_query_gradient<<<grid_of_warps(n * grid.Hq), kGroup, 0, device.stream()>>>(
        grid, record, g.turned, g.mean);
    attention_key_gradient<<<grid_of_warps(n * grid.Hkv), kGroup, 0, device.stream()>>>(
        grid, record, g.mean, g.turned, g.outer);
    turn_heads_gradient<<<grid_of_warps(n * grid.turned_heads()), kGroup, 0, device.stream()>>>(
        grid, r.projected, head_gains.value, turns, r.head_factor, g.turned, g.outer);
    const NormedRows query_rows{n,
                                grid.Hq,
                                hd,
                                r.projected,
                                grid.projected_pitch(),
                                r.head_factor,
                                grid.turned_heads(),
                                g.turned,
                                grid.turned_pitch()};
    NormedRows key_rows = query_rows;
    key_rows.heads = grid.Hkv;
    key_rows.input += keys;
    key_rows.factor += grid.Hq;
    key_rows.d_output += keys;
    const dim3 threads(kLanes, kStrips);
    gain_gradient<<<divide_up(hd, kLanes), threads, 0, device.stream()>>>(query_rows,
                                                                          head_gains.gradient);
    gain_gradient<<<divide_up(hd, kLanes), threads, 0, device.stream()>>>(key_rows,
                                                                          head_gains.gradient + hd);
    project.backward(device, n, r.norm.output, g.outer, g.normed);
    r.norm.backward(device, n, d, norm_gain, g.normed, g.stream);
  }
};

struct FeedForwardLayer {
  struct Record {
    Record(Device device, Index tokens, const Sizes& s)
        : norm(device, tokens, s.d),
          both(device, tokens * 2 * s.ff),
          gated(device, tokens * s.ff) {}
    BranchNorm norm;
    Floats both, gated;
  };

  LinearLayer widen, narrow;
  Parameter norm_gain;

  void forward(Device device, Index n, float eps, Stream in, Record& r, float* branch) const {
    const Index d = widen.inputs, ff = narrow.inputs;
    r.norm.forward(device, n, d, eps, in, norm_gain);
    widen.forward(device, n, r.norm.output, r.both);
    swiglu<<<grid_of_threads(n * ff), kGroup, 0, device.stream()>>>(n * ff, ff, r.both, r.gated);
    narrow.forward(device, n, r.gated, branch);
  }

  void backward(Device device, Index n, const Record& r, BackwardSpace& g) const {
    const Index d = widen.inputs, ff = narrow.inputs;
    narrow.backward(device, n, r.gated, g.stream, g.inner);
    swiglu_gradient<<<grid_of_threads(n * ff), kGroup, 0, device.stream()>>>(n * ff, ff, r.both,
                                                                             g.inner, g.outer);
    widen.backward(device, n, r.norm.output, g.outer, g.normed);
    r.norm.backward(device, n, d, norm_gain, g.normed, g.stream);
  }
};

// --- Host: the model ---------------------------------------------------------------------------

enum class Purpose { training, inference };

// Documents on their way to the device: tokens [n], the tokens after them [n] or -1, and the
// positions of each token of the vocabulary, as look_up_gradient reads them.
class Batch {
 public:
  Batch(Device device, Index most_tokens, Index V)
      : V_(V), most_(most_tokens), device_ids_(device, 3 * most_tokens + V + 1) {}

  // Document i is documents[i], T tokens long.
  void set(const std::vector<const std::uint16_t*>& documents, Index T) {
    docs_ = static_cast<Index>(documents.size());
    std::vector<std::int32_t> ids(static_cast<std::size_t>(3 * most_ + V_ + 1));
    const auto tokens = ids.begin(), targets = tokens + most_, places = targets + most_;
    const auto first = places + most_;
    for (Index i = 0; i < docs_; ++i) {
      const std::uint16_t* document = documents[static_cast<std::size_t>(i)];
      std::copy(document, document + T, tokens + i * T);
      std::copy(document + 1, document + T, targets + i * T);
      targets[(i + 1) * T - 1] = -1;
    }
    const Index n = docs_ * T;
    std::iota(places, places + n, 0);
    std::stable_sort(places, places + n, [&](int a, int b) { return tokens[a] < tokens[b]; });
    for (Index i = 0; i < n; ++i) ++first[tokens[i] + 1];
    std::partial_sum(first, first + V_ + 1, first);
    device_ids_.upload(ids);
  }

  Index docs() const { return docs_; }
  const std::int32_t* tokens() const { return device_ids_; }
  const std::int32_t* targets() const { return tokens() + most_; }
  const std::int32_t* places() const { return targets() + most_; }
  const std::int32_t* first_places() const { return places() + most_; }

 private:
  Index V_, most_, docs_ = 0;
  DeviceArray<std::int32_t> device_ids_;
};

class Transformer {
 public:
  // For at most `docs` documents at a time.
  Transformer(Device device, const tt_config& c, Index docs, Purpose purpose)
      : device_(device),
        sizes_(c),
        eps_(c.eps),
        training_(purpose == Purpose::training),
        values_(device, sizes_.matrix_weights() + sizes_.gains()),
        gradients_(device, training_ ? sizes_.matrix_weights() + sizes_.gains() : 0),
        turns_(device, sizes_.T * sizes_.hd / 2),
        batch_(device, docs * sizes_.T, sizes_.V),
        branch_(device, docs * sizes_.T * sizes_.d),
        last_(device, docs * sizes_.T, sizes_.d) {
    const Index tokens = docs * sizes_.T;
    attention_.resize(static_cast<std::size_t>(sizes_.L));
    feed_forward_.resize(attention_.size());
    assign_parameters();
    compute_turns(static_cast<double>(c.theta));
    // Without a backward pass, one record serves all layers in turn.
    for (Index l = 0; l < (training_ ? sizes_.L : 1); ++l) {
      attention_records_.emplace_back(device, tokens, sizes_);
      feed_forward_records_.emplace_back(device, tokens, sizes_);
    }
    if (!training_) return;
    logits_ = Floats(device, tokens * sizes_.V);
    space_.emplace_back(device, tokens, sizes_);
  }

  const Sizes& sizes() const { return sizes_; }
  Batch& batch() { return batch_; }
  float* values() const { return values_; }  // rounded matrices, then gains
  float* gains() const { return values_ + sizes_.matrix_weights(); }
  const float* gradients() const { return gradients_; }

  void load(const std::uint8_t* blob) {
    const Index groups = sizes_.groups();
    dequantize_groups<<<grid_of_warps(groups), kGroup, 0, device_.stream()>>>(groups, blob,
                                                                              values_);
    copy_floats(device_, gains(), blob + sizes_.matrix_bytes(), sizes_.gains());
  }

  // logits [docs, T, V] of the batch.
  void forward(float* logits) {
    const HeadGrid grid = head_grid();
    const Index n = grid.tokens(), d = sizes_.d;
    look_up<<<grid_of_warps(n), kGroup, 0, device_.stream()>>>(n, d, batch_.tokens(),
                                                               embedding_.weight.value, branch_);
    Stream stream{nullptr, branch_};
    for (std::size_t l = 0; l < attention_.size(); ++l) {
      auto& first = attention_records_[training_ ? l : 0];
      attention_[l].forward(device_, grid, d, eps_, turns_, stream, first, branch_);
      stream.sum = first.norm.stream;
      auto& second = feed_forward_records_[training_ ? l : 0];
      feed_forward_[l].forward(device_, n, eps_, stream, second, branch_);
      stream.sum = second.norm.stream;
    }
    last_.forward(device_, n, d, eps_, stream, last_gain_);
    head_.forward(device_, n, last_.output, logits);
  }

  // The gradients of the batch's mean loss.
  void compute_gradients() {
    const HeadGrid grid = head_grid();
    const Index n = grid.tokens(), d = sizes_.d;
    BackwardSpace& g = space_.front();
    forward(logits_);
    const float share = 1 / static_cast<float>(grid.docs * (sizes_.T - 1));
    cross_entropy_gradient<<<grid_of_warps(n), kGroup, 0, device_.stream()>>>(
        n, sizes_.V, share, batch_.targets(), logits_);
    head_.backward(device_, n, last_.output, logits_, g.normed);
    g.stream.clear();
    last_.backward(device_, n, d, last_gain_, g.normed, g.stream);
    for (std::size_t l = attention_.size(); l-- > 0;) {
      feed_forward_[l].backward(device_, n, feed_forward_records_[l], g);
      attention_[l].backward(device_, grid, d, turns_, attention_records_[l], g);
    }
    look_up_gradient<<<static_cast<unsigned>(sizes_.V), kTileThreads, 0, device_.stream()>>>(
        d, batch_.first_places(), batch_.places(), g.stream, sizes_.tables == 1,
        embedding_.weight.gradient);
  }

 private:
  // In the order of a blob.
  void assign_parameters() {
    Index used = 0;
    const auto next = [&](Index count) {
      const Parameter p{values_ + used, training_ ? gradients_ + used : nullptr};
      used += count;
      return p;
    };
    const auto next_layer = [&](Index outputs, Index inputs) {
      return LinearLayer{outputs, inputs, next(outputs * inputs)};
    };
    const Index d = sizes_.d, ff = sizes_.ff;
    embedding_ = next_layer(sizes_.V, d);
    head_ = sizes_.tables == 1 ? embedding_ : next_layer(sizes_.V, d);
    for (std::size_t l = 0; l < attention_.size(); ++l) {
      attention_[l].project = next_layer(sizes_.projected, d);
      attention_[l].collect = next_layer(d, sizes_.mixed);
      feed_forward_[l].widen = next_layer(2 * ff, d);
      feed_forward_[l].narrow = next_layer(d, ff);
    }
    for (std::size_t l = 0; l < attention_.size(); ++l) {
      attention_[l].norm_gain = next(d);
      attention_[l].head_gains = next(2 * sizes_.hd);
      feed_forward_[l].norm_gain = next(d);
    }
    last_gain_ = next(d);
  }

  void compute_turns(double theta) {
    std::vector<float2> turns;
    for (Index position = 0; position < sizes_.T; ++position) {
      for (Index i = 0; i < sizes_.hd; i += 2) {
        const double exponent = -static_cast<double>(i) / static_cast<double>(sizes_.hd);
        const double angle = static_cast<double>(position) * std::pow(theta, exponent);
        turns.push_back(
            make_float2(static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))));
      }
    }
    turns_.upload(turns);
  }

  HeadGrid head_grid() const {
    return {batch_.docs(), sizes_.T,  sizes_.Hq,
            sizes_.Hkv,    sizes_.hd, 1 / std::sqrt(static_cast<float>(sizes_.hd))};
  }

  Device device_;
  Sizes sizes_;
  float eps_;
  bool training_;
  Floats values_, gradients_;
  DeviceArray<float2> turns_;
  Batch batch_;
  LinearLayer embedding_, head_;
  Parameter last_gain_;
  std::vector<AttentionLayer> attention_;
  std::vector<FeedForwardLayer> feed_forward_;
  Floats branch_;
  BranchNorm last_;
  std::vector<AttentionLayer::Record> attention_records_;
  std::vector<FeedForwardLayer::Record> feed_forward_records_;
  Floats logits_;
  std::vector<BackwardSpace> space_;  // one in training
};

// --- Host: training ----------------------------------------------------------------------------

// How far a training is, by its tokens or by its clock, whichever is further.
class Progress {
 public:
  Progress(const tt_budget& budget, double tokens, double tokens_a_step)
      : seconds_(kUsable * budget.seconds), tokens_(tokens), step_(tokens_a_step) {}

  // Is there room for another step? To be asked when the steps so far have ended: the longest of
  // them, twice, must fit into what is left.
  bool next_step() {
    const double now = std::chrono::duration<double>(Clock::now() - begin_).count();
    longest_ = std::max(longest_, now - elapsed_);
    elapsed_ = now;
    return step_ * (steps_++ + 1) <= tokens_ && elapsed_ + 2 * longest_ <= seconds_;
  }

  double steps() const { return steps_; }  // the present one included

  // From near 0 up to 1 in the first twentieth, then down to 0 at the end.
  double rate() const {
    constexpr double kRise = 0.05, kLeast = 0.02;
    const double done = std::max(step_ * (steps_ - 0.5) / tokens_, elapsed_ / seconds_);
    return std::min(kLeast + done / kRise, (1 - done) / (1 - kRise));
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double kUsable = 0.95;

  double seconds_, tokens_, step_;
  double steps_ = 0, elapsed_ = 0, longest_ = 0;
  Clock::time_point begin_ = Clock::now();
};

class Training {
 public:
  Training(Device device, const tt_config& c, const tt_budget& budget)
      : device_(device),
        budget_(budget),
        model_(device, c, kDocuments, Purpose::training),
        latent_(device, model_.sizes().matrix_weights()),
        mean_(device, parameters()),
        square_(device, parameters()),
        square_sums_(device, kSquareWarps),
        clip_(device, 1) {
    mean_.clear();
    square_.clear();
    draw_weights();
  }

  void run(const std::uint16_t* docs, Index n_docs) {
    if (n_docs == 0) return;
    const Index T = model_.sizes().T;
    const double once = static_cast<double>(n_docs * T);
    const double tokens = std::min(static_cast<double>(budget_.max_tokens), kMostPasses * once);
    Progress progress(budget_, tokens, static_cast<double>(kDocuments * T));
    std::vector<const std::uint16_t*> documents(kDocuments);
    Index next = 0;
    while (cudaStreamSynchronize(device_.stream()) == cudaSuccess && progress.next_step()) {
      for (auto& document : documents) document = docs + next++ % n_docs * T;
      model_.batch().set(documents, T);
      model_.compute_gradients();
      step(progress);
    }
  }

  void write(std::uint8_t* blob) const {
    const Sizes& s = model_.sizes();
    quantize_groups<<<grid_of_warps(s.groups()), kGroup, 0, device_.stream()>>>(s.groups(), latent_,
                                                                                blob);
    copy_floats(device_, blob + s.matrix_bytes(), model_.gains(), s.gains());
  }

 private:
  static constexpr Index kDocuments = 4;    // a batch
  static constexpr double kMostPasses = 8;  // after more, few documents are known by heart
  static constexpr double kMatrixRate = 2e-3, kGainRate = 1e-2;
  static constexpr float kSpread = 0.1f;

  Index parameters() const { return model_.sizes().matrix_weights() + model_.sizes().gains(); }

  // Normal latent weights, those of embedding and head smaller; gains of 1.
  void draw_weights() {
    const Sizes& s = model_.sizes();
    std::mt19937 generator(static_cast<unsigned>(budget_.seed ^ budget_.seed >> 32));
    std::normal_distribution<float> normal(0, kSpread);
    std::vector<float> start(static_cast<std::size_t>(s.matrix_weights()));
    for (float& weight : start) weight = normal(generator);
    for (Index i = 0; i < s.table_weights(); ++i) start[static_cast<std::size_t>(i)] /= 2;
    latent_.upload(start);
    round_groups<<<grid_of_warps(s.groups()), kGroup, 0, device_.stream()>>>(s.groups(), latent_,
                                                                             model_.values());
    const std::vector<float> ones(static_cast<std::size_t>(s.gains()), 1.0f);
    cudaMemcpyAsync(model_.gains(), ones.data(), ones.size() * sizeof(float),
                    cudaMemcpyHostToDevice, device_.stream());
    cudaStreamSynchronize(device_.stream());
  }

  void step(const Progress& progress) {
    const Sizes& s = model_.sizes();
    const Index matrices = s.matrix_weights();
    const float* gradient = model_.gradients();
    sum_squares<<<kSquareBlocks, kGroup, 0, device_.stream()>>>(parameters(), gradient,
                                                                square_sums_);
    clip_to_one<<<1, kLanes, 0, device_.stream()>>>(square_sums_, clip_);
    const auto unbias = [&](double memory) {
      return static_cast<float>(1 / (1 - std::pow(memory, progress.steps())));
    };
    AdamStep adam{0, unbias(AdamStep::kMemory1), unbias(AdamStep::kMemory2)};
    adam.rate = static_cast<float>(kMatrixRate * progress.rate());
    step_matrices<<<grid_of_warps(s.groups()), kGroup, 0, device_.stream()>>>(
        s.groups(), adam, clip_, gradient, latent_, mean_, square_, model_.values());
    adam.rate = static_cast<float>(kGainRate * progress.rate());
    step_gains<<<grid_of_threads(s.gains()), kGroup, 0, device_.stream()>>>(
        s.gains(), adam, clip_, gradient + matrices, model_.gains(), mean_ + matrices,
        square_ + matrices);
  }

  Device device_;
  tt_budget budget_;
  Transformer model_;
  Floats latent_, mean_, square_, square_sums_, clip_;
};

// --- Host: checks of arguments -----------------------------------------------------------------

bool is_valid(const tt_config* c) {
  if (c == nullptr) return false;
  for (const int size : {c->V, c->d, c->L, c->Hq, c->Hkv, c->hd, c->ff}) {
    if (size < 1) return false;
  }
  const auto whole_groups = [](Index columns) { return columns % kGroupWeights == 0; };
  return c->V <= 65536 && c->T >= 2 && c->hd % 2 == 0 && c->Hq % c->Hkv == 0 &&
         whole_groups(c->d) && whole_groups(c->ff) && whole_groups(Index{c->Hq} * c->hd) &&
         (c->tied == 0 || c->tied == 1);
}

bool is_valid(Index rows, Index cols) {
  return rows >= 0 && cols >= 0 && cols % kGroupWeights == 0;
}

// NULL is allowed where there is nothing to point to.
bool is_there(const void* array, Index count) { return array != nullptr || count == 0; }

template <class Work>
int out_of_memory_is_a_status(Work work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return ASSAY_ENOMEM;
  }
}

}  // namespace

extern "C" {

size_t tt_blob_bytes(const tt_config* config) {
  if (!is_valid(config)) return 0;
  const Sizes sizes(*config);
  return static_cast<size_t>(sizes.matrix_bytes()) + static_cast<size_t>(sizes.gains()) * 4;
}

int tt_quantize(assay_ctx* ctx, int64_t rows, int64_t cols, const float* w, uint8_t* blocks) {
  if (!is_valid(rows, cols)) return ASSAY_EINVAL;
  const Index groups = rows * cols / kGroupWeights;
  if (!is_there(w, groups) || !is_there(blocks, groups)) return ASSAY_EINVAL;
  const Device device{ctx};
  if (groups > 0) {
    quantize_groups<<<grid_of_warps(groups), kGroup, 0, device.stream()>>>(groups, w, blocks);
  }
  return device.result();
}

int tt_dequantize(assay_ctx* ctx, int64_t rows, int64_t cols, const uint8_t* blocks, float* w) {
  if (!is_valid(rows, cols)) return ASSAY_EINVAL;
  const Index groups = rows * cols / kGroupWeights;
  if (!is_there(w, groups) || !is_there(blocks, groups)) return ASSAY_EINVAL;
  const Device device{ctx};
  if (groups > 0) {
    dequantize_groups<<<grid_of_warps(groups), kGroup, 0, device.stream()>>>(groups, blocks, w);
  }
  return device.result();
}

int tt_linear(assay_ctx* ctx, int64_t M, int64_t rows, int64_t cols, const float* x,
              const uint8_t* blocks, const float* dy, float* y, float* dx, float* dw_latent) {
  if (M < 0 || !is_valid(rows, cols)) return ASSAY_EINVAL;
  if (!is_there(blocks, rows * cols) || !is_there(dw_latent, rows * cols)) return ASSAY_EINVAL;
  if (!is_there(x, M * cols) || !is_there(dx, M * cols)) return ASSAY_EINVAL;
  if (!is_there(dy, M * rows) || !is_there(y, M * rows)) return ASSAY_EINVAL;
  return out_of_memory_is_a_status([&] {
    const Device device{ctx};
    const Floats weights(device, rows * cols);
    if (const int status = tt_dequantize(ctx, rows, cols, blocks, weights); status != ASSAY_OK) {
      return status;
    }
    const LinearLayer layer{rows, cols, {weights, dw_latent}};
    layer.forward(device, M, x, y);
    layer.backward(device, M, x, dy, dx);
    return device.result();
  });
}

int tt_logits(assay_ctx* ctx, const tt_config* config, const void* blob, const uint16_t* docs,
              int64_t n_docs, float* logits) {
  if (!is_valid(config) || n_docs < 0 || blob == nullptr) return ASSAY_EINVAL;
  if (!is_there(docs, n_docs) || !is_there(logits, n_docs)) return ASSAY_EINVAL;
  if (n_docs == 0) return ASSAY_OK;
  return out_of_memory_is_a_status([&] {
    constexpr Index kAtATime = 4;
    const Device device{ctx};
    const Index T = config->T;
    Transformer model(device, *config, std::min(n_docs, kAtATime), Purpose::inference);
    model.load(static_cast<const std::uint8_t*>(blob));
    for (Index from = 0; from < n_docs; from += kAtATime) {
      std::vector<const std::uint16_t*> documents;
      for (Index i = from; i < std::min(n_docs, from + kAtATime); ++i) {
        documents.push_back(docs + i * T);
      }
      model.batch().set(documents, T);
      model.forward(logits + from * T * config->V);
    }
    return device.result();
  });
}

int tt_train(assay_ctx* ctx, const tt_config* config, const uint16_t* docs, int64_t n_docs,
             const tt_budget* budget, void* blob) {
  if (!is_valid(config) || n_docs < 0 || budget == nullptr || blob == nullptr) return ASSAY_EINVAL;
  if (!is_there(docs, n_docs)) return ASSAY_EINVAL;
  return out_of_memory_is_a_status([&] {
    const Device device{ctx};
    Training training(device, *config, *budget);
    training.run(docs, n_docs);
    training.write(static_cast<std::uint8_t*>(blob));
    return device.result();
  });
}

}  // extern "C"

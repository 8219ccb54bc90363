// The plain CUDA implementation: a thread for each node of a mask, each node and head of the
// attention, each item of the acceptance and each byte of a cache's rows. fp32 and greedy only.
#include <algorithm>
#include <climits>
#include <cstdint>
#include <vector>

#include "abi.h"

namespace {

constexpr int kThreads = 64, kMaxD = 128;

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

unsigned blocks(std::int64_t threads) {
  return static_cast<unsigned>((threads + kThreads - 1) / kThreads);
}

__device__ std::int64_t thread_index() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

// A block for each item, a thread for each node.
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
    depth[first + i] = levels;
    pos[first + i] = P[blockIdx.x] + levels - 1;
  }
}

// A thread for each row.
__global__ void full_mask(std::int64_t P, std::int64_t n, const std::int32_t* parent,
                          std::uint8_t* M) {
  const std::int64_t i = thread_index();
  if (i >= P + n) return;
  std::uint8_t* row = M + i * (P + n);
  for (std::int64_t j = 0; j < P + n; ++j) row[j] = j < P && j <= i;
  for (std::int64_t a = i - P; a >= 0; a = parent[a]) row[P + a] = 1;
}

struct Batch {
  std::int64_t Hq, Hkv, D;
  float scale;
  const std::int64_t *P, *cu;
  const std::int32_t* parent;
  const float *q, *const *kc, *const *vc;
};

// A block for each item, a thread for each node and head, two passes over what the node sees.
__global__ void tree_attention(Batch batch, float* o, float* lse) {
  const std::int64_t b = blockIdx.x, first = batch.cu[b], n = batch.cu[b + 1] - first;
  const std::int64_t P = batch.P[b], D = batch.D, step = batch.Hkv * D;
  const std::int32_t* parent = batch.parent + first;
  for (std::int64_t at = threadIdx.x; at < n * batch.Hq; at += blockDim.x) {
    const std::int64_t node = at / batch.Hq, head = at % batch.Hq / (batch.Hq / batch.Hkv) * D;
    const float* q = batch.q + (first * batch.Hq + at) * D;
    const float* k = batch.kc[b] + head;
    const float* v = batch.vc[b] + head;
    // The rows of the caches that the node sees, from the last to the first: itself, its ancestors,
    // the prefix.
    const auto next = [&](std::int64_t j) {
      if (j < P) return j - 1;
      return parent[j - P] >= 0 ? P + parent[j - P] : P - 1;
    };
    const auto score = [&](std::int64_t j) {
      float dot = 0;
      for (std::int64_t d = 0; d < D; ++d) dot += q[d] * k[j * step + d];
      return dot * batch.scale;
    };
    float max = -INFINITY, sum = 0, output[kMaxD];
    for (std::int64_t j = P + node; j >= 0; j = next(j)) max = fmaxf(max, score(j));
    for (std::int64_t d = 0; d < D; ++d) output[d] = 0;
    for (std::int64_t j = P + node; j >= 0; j = next(j)) {
      const float weight = expf(score(j) - max);
      sum += weight;
      for (std::int64_t d = 0; d < D; ++d) output[d] += weight * v[j * step + d];
    }
    for (std::int64_t d = 0; d < D; ++d) o[(first * batch.Hq + at) * D + d] = output[d] / sum;
    if (lse != nullptr) lse[first * batch.Hq + at] = max + logf(sum);
  }
}

struct Accepted {
  std::int32_t *path, *count, *bonus, *nan;
};

// A thread walks down the tree of an item. eos and budget may be null.
__global__ void accept(std::int32_t B, std::int32_t V, const std::int64_t* cu,
                       const std::int32_t* parent, const std::int32_t* token,
                       const float* root_logits, const float* node_logits, const std::int32_t* eos,
                       const std::int32_t* budget, Accepted out) {
  const std::int64_t b = thread_index();
  if (b >= B) return;
  const std::int64_t first = cu[b], n = cu[b + 1] - first;
  const std::int32_t limit = budget != nullptr ? budget[b] : INT_MAX;
  std::int64_t current = -1;
  std::int32_t count = 0, bonus = -1;
  bool nan = false;
  while (count < limit) {
    // A node's logits verify its children.
    const float* x = current < 0 ? root_logits + b * V : node_logits + (first + current) * V;
    std::int32_t wanted = 0;
    for (std::int32_t v = 0; v < V; ++v) {
      nan = nan || isnan(x[v]);
      if (x[v] > x[wanted]) wanted = v;
    }
    if (nan) break;
    std::int64_t child = current + 1;
    while (child < n && (parent[first + child] != current || token[first + child] != wanted))
      ++child;
    if (child == n) {
      bonus = wanted;
      break;
    }
    out.path[first + count++] = static_cast<std::int32_t>(child);
    current = child;
    if (eos != nullptr && eos[b] >= 0 && wanted == eos[b]) break;
  }
  for (std::int64_t i = count; i < n; ++i) out.path[first + i] = -1;
  out.count[b] = count;
  out.bonus[b] = bonus;
  out.nan[b] = nan;
}

// A block for each cache. A thread has bytes of a row to itself and moves them row by row, in
// ascending order: what it overwrites has been moved already or is not wanted.
__global__ void compact(std::int32_t caches, std::int64_t row_bytes, const std::int64_t* P,
                        const std::int64_t* cu, const std::int32_t* path, const std::int32_t* count,
                        void* const* kv) {
  const std::int64_t b = blockIdx.x / caches;
  auto* rows = static_cast<unsigned char*>(kv[blockIdx.x]) + P[b] * row_bytes;
  for (std::int64_t at = threadIdx.x; at < row_bytes; at += blockDim.x) {
    for (std::int32_t j = 0; j < count[b]; ++j) {
      rows[j * row_bytes + at] = rows[path[cu[b] + j] * row_bytes + at];
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
  ancestor_bits<<<static_cast<unsigned>(B), kThreads, 0, stream_of(ctx)>>>(
      prefixes.data(), offsets.data(), parents.data(), ldm, bits, depth, pos);
  return launch_status();
}

int dv_full_mask(assay_ctx* ctx, int64_t P, int64_t n, const int32_t* parent, uint8_t* M) {
  if (P < 1 || n < 0 || !good_tree(n, parent) || M == nullptr) return ASSAY_EINVAL;
  const DeviceArray<std::int32_t> parents(ctx, n, parent);
  if (!parents) return ASSAY_ENOMEM;
  full_mask<<<blocks(P + n), kThreads, 0, stream_of(ctx)>>>(P, n, parents.data(), M);
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
  if (p->Dv != p->D || p->D > kMaxD) return ASSAY_ENOTSUP;
  if (p->dtype != ASSAY_F32) return ASSAY_ENOTSUP;
  const DeviceArray<std::int64_t> prefixes(ctx, B, P), offsets(ctx, B + 1, cu);
  const DeviceArray<std::int32_t> parents(ctx, cu[B], parent);
  const DeviceArray<const void*> keys(ctx, B, kc), values(ctx, B, vc);
  if (!prefixes || !offsets || !parents || !keys || !values) return ASSAY_ENOMEM;
  const Batch batch{p->Hq,
                    p->Hkv,
                    p->D,
                    p->scale,
                    prefixes.data(),
                    offsets.data(),
                    parents.data(),
                    static_cast<const float*>(q),
                    reinterpret_cast<const float* const*>(keys.data()),
                    reinterpret_cast<const float* const*>(values.data())};
  tree_attention<<<static_cast<unsigned>(B), kThreads, 0, stream_of(ctx)>>>(
      batch, static_cast<float*>(o), lse);
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
  accept<<<blocks(B), kThreads, 0, stream_of(ctx)>>>(
      B, V, offsets.data(), parents.data(), tokens.data(), root_logits, node_logits,
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
  for (std::int64_t c = 0; c < all; ++c) {
    if (kv == nullptr || kv[c] == nullptr) return ASSAY_EINVAL;
  }
  if (all == 0 || cu[B] == 0) return ASSAY_OK;
  const DeviceArray<std::int64_t> prefixes(ctx, B, P), offsets(ctx, B + 1, cu);
  const DeviceArray<std::int32_t> path(ctx, cu[B], acc_node), counts(ctx, B, n_acc);
  const DeviceArray<void*> rows(ctx, all, kv);
  if (!prefixes || !offsets || !path || !counts || !rows) return ASSAY_ENOMEM;
  compact<<<static_cast<unsigned>(all), kThreads, 0, stream_of(ctx)>>>(
      caches, row_bytes, prefixes.data(), offsets.data(), path.data(), counts.data(), rows.data());
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

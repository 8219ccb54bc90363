// The model on a device: its memory, and the kernels in the order in which a document needs them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <new>
#include <vector>

#include "abi.h"
#include "kernels.cuh"

namespace {

unsigned blocks_for(std::int64_t n, std::int64_t each) {
  return static_cast<unsigned>((n + each - 1) / each);
}
unsigned threads(std::int64_t n) { return blocks_for(n, kThreads); }

int launch_status() { return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL; }

// Device memory that goes back all at once. Throws bad_alloc.
class Arena {
 public:
  explicit Arena(assay_ctx* ctx) : ctx_(ctx) {}
  ~Arena() {
    for (void* p : taken_) ctx_->free(ctx_, p);
  }
  Arena(const Arena&) = delete;

  template <class T = float>
  T* take(std::int64_t n) {
    void* p = ctx_->alloc(ctx_, static_cast<std::size_t>(n) * sizeof(T), 256, 1);
    if (p == nullptr) throw std::bad_alloc();
    taken_.push_back(p);
    return static_cast<T*>(p);
  }
  template <class T = float>
  T* zeros(std::int64_t n) {
    T* p = take<T>(n);
    cudaMemsetAsync(p, 0, static_cast<std::size_t>(n) * sizeof(T), stream());
    return p;
  }
  template <class T>
  void copy(T* to, const T* from, std::int64_t n) {
    cudaMemcpyAsync(to, from, static_cast<std::size_t>(n) * sizeof(T), cudaMemcpyDefault, stream());
  }
  cudaStream_t stream() const { return static_cast<cudaStream_t>(ctx_->stream); }

 private:
  assay_ctx* ctx_;
  std::vector<void*> taken_;
};

void multiply(cudaStream_t stream, std::int64_t M, std::int64_t N, std::int64_t K, View a, View b,
              float* c, bool add) {
  if (M * N == 0) return;
  product<<<threads(M * N), kThreads, 0, stream>>>(M, N, K, a, b, c, add);
}

// y [M, rows] = x [M, cols] w^T, and the two gradients of it. w [rows, cols].
struct Linear {
  std::int64_t rows, cols;
  const float* w;
  float* gradient;

  void forward(cudaStream_t stream, std::int64_t M, const float* x, float* y, bool add) const {
    multiply(stream, M, rows, cols, {x, cols, 1}, {w, 1, cols}, y, add);
  }
  void input_back(cudaStream_t stream, std::int64_t M, const float* dy, float* dx, bool add) const {
    multiply(stream, M, cols, rows, {dy, rows, 1}, {w, cols, 1}, dx, add);
  }
  void weight_back(cudaStream_t stream, std::int64_t M, const float* x, const float* dy,
                   bool add) const {
    multiply(stream, rows, cols, M, {dy, 1, rows}, {x, cols, 1}, gradient, add);
  }
};

struct Norm {
  const float* w;
  float* gradient;
};

struct Layer {
  Linear q, k, v, o, gate, up, down;
  Norm attention, query, key, ff;
  // Of the latest forward pass.
  float *x1, *h1, *raw_q, *raw_k, *value, *turned_q, *turned_k, *p, *a, *x2, *h2, *g, *u, *s;
  float *roots1, *roots_q, *roots_k, *roots2;
};

// The sizes of a blob's parts, in weights: all matrices, then all norms, in its order.
struct Layout {
  explicit Layout(const tt_config& c)
      : wide(std::int64_t{c.Hq} * c.hd), narrow(std::int64_t{c.Hkv} * c.hd) {
    const std::int64_t layer = 2 * wide * c.d + 2 * narrow * c.d + 3 * std::int64_t{c.ff} * c.d;
    matrices = (2 - c.tied) * std::int64_t{c.V} * c.d + c.L * layer;
    norms = c.L * (2 * std::int64_t{c.d} + 2 * c.hd) + c.d;
  }
  std::int64_t wide, narrow, matrices, norms;
};

class Model {
 public:
  // For up to `docs` documents at a time. Without gradients it can only give logits.
  Model(assay_ctx* ctx, const tt_config& c, std::int64_t docs, bool gradients)
      : c_(c), layout_(c), arena_(ctx), stream_(arena_.stream()), docs_(docs), n_(docs * c.T) {
    const std::int64_t all = layout_.matrices + layout_.norms;
    used_ = arena_.take(all);  // rounded matrices, then norms
    gradient_ = gradients ? arena_.zeros(all) : nullptr;
    float *w = used_, *g = gradient_;
    const auto part = [&](std::int64_t n) {
      const Norm here{w, g};
      w += n;
      g += g != nullptr ? n : 0;
      return here;
    };
    const auto matrix = [&](std::int64_t rows, std::int64_t cols) {
      const Norm here = part(rows * cols);
      return Linear{rows, cols, here.w, here.gradient};
    };
    embedding_ = matrix(c.V, c.d);
    layers_.resize(static_cast<std::size_t>(c.L));
    for (Layer& l : layers_) {
      l.q = matrix(layout_.wide, c.d), l.k = matrix(layout_.narrow, c.d);
      l.v = matrix(layout_.narrow, c.d), l.o = matrix(c.d, layout_.wide);
      l.gate = matrix(c.ff, c.d), l.up = matrix(c.ff, c.d), l.down = matrix(c.d, c.ff);
    }
    for (Layer& l : layers_) {
      l.attention = part(c.d), l.query = part(c.hd), l.key = part(c.hd), l.ff = part(c.d);
    }
    final_ = part(c.d);
    allocate(gradients);
    make_turns();
  }

  void load(const std::uint8_t* blob) {
    unpack<<<threads(layout_.matrices), kThreads, 0, stream_>>>(layout_.matrices, blob, used_);
    // Norms stand at any byte of the blob.
    cudaMemcpyAsync(used_ + layout_.matrices, blob + layout_.matrices / kBlock * kBytes,
                    static_cast<std::size_t>(layout_.norms) * 4, cudaMemcpyDeviceToDevice, stream_);
  }

  // Documents of the host, one after the other.
  void set_documents(const std::vector<std::int32_t>& tokens) {
    docs_ = static_cast<std::int64_t>(tokens.size()) / c_.T;
    n_ = docs_ * c_.T;
    arena_.copy(tokens_, tokens.data(), n_);
  }

  void logits(float* out) {
    embed<<<threads(n_ * c_.d), kThreads, 0, stream_>>>(n_, c_.d, tokens_, embedding_.w,
                                                        layers_.front().x1);
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      forward(layers_[l], l + 1 < layers_.size() ? layers_[l + 1].x1 : last_x_);
    }
    normalise(n_, c_.d, last_x_, final_, last_h_, last_roots_);
    embedding_.forward(stream_, n_, last_h_, out, false);
  }

  // Adds the gradients of the documents' mean losses.
  void learn() {
    logits(logits_);
    loss_back<<<threads(n_), kThreads, 0, stream_>>>(n_, c_.T, c_.V, tokens_, logits_);
    embedding_.input_back(stream_, n_, logits_, dh_, false);
    embedding_.weight_back(stream_, n_, last_h_, logits_, true);
    clear(dx_, n_ * c_.d);
    normalise_back(n_, c_.d, last_x_, final_, last_roots_, dh_, dx_);
    for (std::size_t l = layers_.size(); l-- > 0;) backward(layers_[l]);
    embed_back<<<threads(std::int64_t{c_.V} * c_.d), kThreads, 0, stream_>>>(
        n_, c_.V, c_.d, tokens_, dx_, embedding_.gradient);
  }

  const Layout& layout() const { return layout_; }
  Arena& arena() { return arena_; }
  float* used() { return used_; }
  float* gradient() { return gradient_; }

 private:
  void allocate(bool gradients) {
    const std::int64_t d = c_.d, wide = layout_.wide, narrow = layout_.narrow, ff = c_.ff;
    const std::int64_t pairs = docs_ * c_.Hq * c_.T * c_.T;
    const auto take = [&](std::int64_t each) { return arena_.take(n_ * each); };
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      Layer& l = layers_[i];
      if (i > 0 && !gradients) {  // nothing needs to be remembered
        const Layer& first = layers_.front();
        l.x1 = first.x1, l.h1 = first.h1, l.raw_q = first.raw_q, l.raw_k = first.raw_k;
        l.value = first.value, l.turned_q = first.turned_q, l.turned_k = first.turned_k;
        l.p = first.p, l.a = first.a, l.x2 = first.x2, l.h2 = first.h2, l.g = first.g;
        l.u = first.u, l.s = first.s, l.roots1 = first.roots1, l.roots_q = first.roots_q;
        l.roots_k = first.roots_k, l.roots2 = first.roots2;
        continue;
      }
      l.x1 = take(d), l.h1 = take(d), l.raw_q = take(wide), l.raw_k = take(narrow);
      l.value = take(narrow), l.turned_q = take(wide), l.turned_k = take(narrow);
      l.p = arena_.take(pairs), l.a = take(wide), l.x2 = take(d), l.h2 = take(d), l.g = take(ff);
      l.u = take(ff), l.s = take(ff), l.roots1 = take(1), l.roots_q = take(c_.Hq);
      l.roots_k = take(c_.Hkv), l.roots2 = take(1);
    }
    last_x_ = take(d), last_h_ = take(d), last_roots_ = take(1);
    tokens_ = arena_.take<std::int32_t>(n_);
    if (!gradients) return;
    logits_ = take(c_.V), dx_ = take(d), dh_ = take(d), da_ = take(wide), dq_ = take(wide);
    dk_ = take(narrow), dv_ = take(narrow), draw_q_ = take(wide), draw_k_ = take(narrow);
    dscore_ = arena_.take(pairs), ds_ = take(ff), dg_ = take(ff), du_ = take(ff);
  }

  void make_turns() {
    const std::int64_t half = c_.hd / 2;
    std::vector<float2> turns;
    for (std::int64_t t = 0; t < c_.T; ++t) {
      for (std::int64_t i = 0; i < half; ++i) {
        const double angle =
            static_cast<double>(t) *
            std::pow(static_cast<double>(c_.theta), -2.0 * static_cast<double>(i) / c_.hd);
        turns.push_back({static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))});
      }
    }
    turns_ = arena_.take<float2>(c_.T * half);
    arena_.copy(turns_, turns.data(), c_.T * half);
  }

  Heads heads() const {
    return {docs_, c_.T, c_.Hq, c_.Hkv, c_.hd, 1 / std::sqrt(static_cast<float>(c_.hd))};
  }
  void clear(float* x, std::int64_t n) {
    cudaMemsetAsync(x, 0, static_cast<std::size_t>(n) * sizeof(float), stream_);
  }
  void normalise(std::int64_t rows, std::int64_t n, const float* x, const Norm& w, float* y,
                 float* roots) {
    norm<<<threads(rows), kThreads, 0, stream_>>>(rows, n, c_.eps, x, w.w, y, roots);
  }
  void normalise_back(std::int64_t rows, std::int64_t n, const float* x, const Norm& w,
                      const float* roots, const float* dy, float* dx) {
    norm_back<<<threads(rows), kThreads, 0, stream_>>>(rows, n, x, w.w, roots, dy, dx);
    norm_weight_back<<<threads(n), kThreads, 0, stream_>>>(rows, n, x, roots, dy, w.gradient);
  }
  void turn(std::int64_t heads, float direction, float* x) {
    rotate<<<threads(n_ * heads * c_.hd / 2), kThreads, 0, stream_>>>(n_, c_.T, heads, c_.hd,
                                                                      turns_, direction, x);
  }

  void forward(const Layer& l, float* out) {
    normalise(n_, c_.d, l.x1, l.attention, l.h1, l.roots1);
    l.q.forward(stream_, n_, l.h1, l.raw_q, false);
    l.k.forward(stream_, n_, l.h1, l.raw_k, false);
    l.v.forward(stream_, n_, l.h1, l.value, false);
    normalise(n_ * c_.Hq, c_.hd, l.raw_q, l.query, l.turned_q, l.roots_q);
    normalise(n_ * c_.Hkv, c_.hd, l.raw_k, l.key, l.turned_k, l.roots_k);
    turn(c_.Hq, 1, l.turned_q);
    turn(c_.Hkv, 1, l.turned_k);
    attend<<<threads(n_ * c_.Hq), kThreads, 0, stream_>>>(heads(), l.turned_q, l.turned_k, l.value,
                                                          l.p, l.a);
    arena_.copy(l.x2, l.x1, n_ * c_.d);
    l.o.forward(stream_, n_, l.a, l.x2, true);
    normalise(n_, c_.d, l.x2, l.ff, l.h2, l.roots2);
    l.gate.forward(stream_, n_, l.h2, l.g, false);
    l.up.forward(stream_, n_, l.h2, l.u, false);
    gate_up<<<threads(n_ * c_.ff), kThreads, 0, stream_>>>(n_ * c_.ff, l.g, l.u, l.s);
    arena_.copy(out, l.x2, n_ * c_.d);
    l.down.forward(stream_, n_, l.s, out, true);
  }

  // dx_: the gradient of the layer's output, then of its input.
  void backward(const Layer& l) {
    l.down.input_back(stream_, n_, dx_, ds_, false);
    l.down.weight_back(stream_, n_, l.s, dx_, true);
    gate_up_back<<<threads(n_ * c_.ff), kThreads, 0, stream_>>>(n_ * c_.ff, l.g, l.u, ds_, dg_,
                                                                du_);
    l.gate.input_back(stream_, n_, dg_, dh_, false);
    l.up.input_back(stream_, n_, du_, dh_, true);
    l.gate.weight_back(stream_, n_, l.h2, dg_, true);
    l.up.weight_back(stream_, n_, l.h2, du_, true);
    normalise_back(n_, c_.d, l.x2, l.ff, l.roots2, dh_, dx_);

    l.o.input_back(stream_, n_, dx_, da_, false);
    l.o.weight_back(stream_, n_, l.a, dx_, true);
    attend_back_queries<<<threads(n_ * c_.Hq), kThreads, 0, stream_>>>(heads(), l.turned_k, l.value,
                                                                       l.p, da_, dscore_, dq_);
    attend_back_keys<<<threads(n_ * layout_.narrow), kThreads, 0, stream_>>>(
        heads(), l.turned_q, l.p, dscore_, da_, dk_, dv_);
    turn(c_.Hq, -1, dq_);
    turn(c_.Hkv, -1, dk_);
    clear(draw_q_, n_ * layout_.wide);
    clear(draw_k_, n_ * layout_.narrow);
    normalise_back(n_ * c_.Hq, c_.hd, l.raw_q, l.query, l.roots_q, dq_, draw_q_);
    normalise_back(n_ * c_.Hkv, c_.hd, l.raw_k, l.key, l.roots_k, dk_, draw_k_);
    l.q.input_back(stream_, n_, draw_q_, dh_, false);
    l.k.input_back(stream_, n_, draw_k_, dh_, true);
    l.v.input_back(stream_, n_, dv_, dh_, true);
    l.q.weight_back(stream_, n_, l.h1, draw_q_, true);
    l.k.weight_back(stream_, n_, l.h1, draw_k_, true);
    l.v.weight_back(stream_, n_, l.h1, dv_, true);
    normalise_back(n_, c_.d, l.x1, l.attention, l.roots1, dh_, dx_);
  }

  tt_config c_;
  Layout layout_;
  Arena arena_;
  cudaStream_t stream_;
  std::int64_t docs_, n_;  // of the batch; at first the most
  float *used_, *gradient_;
  Linear embedding_;
  Norm final_;
  std::vector<Layer> layers_;
  float2* turns_;
  std::int32_t* tokens_;
  float *last_x_, *last_h_, *last_roots_, *logits_, *dx_, *dh_, *da_, *dq_, *dk_, *dv_, *draw_q_,
      *draw_k_, *dscore_, *ds_, *dg_, *du_;
};

}  // namespace

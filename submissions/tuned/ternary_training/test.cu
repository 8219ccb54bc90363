// The entrant's own tests on a device: blocks against the format's description, the linear layer
// and the logits of small models against sums in double. Training is left to others. Returns 0 if
// the implementation linked with it is accepted.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "abi.h"

namespace {

using Bytes = std::vector<std::uint8_t>;
using Floats = std::vector<float>;
using Doubles = std::vector<double>;

// Device memory that goes back at the end of its scope.
template <class T>
class Memory {
 public:
  explicit Memory(const std::vector<T>& contents) : size_(contents.size()) {
    cudaMalloc(&data_, (size_ + 1) * sizeof(T));
    cudaMemcpy(data_, contents.data(), size_ * sizeof(T), cudaMemcpyHostToDevice);
  }
  Memory(const Memory&) = delete;
  ~Memory() { cudaFree(data_); }
  T* get() const { return data_; }
  std::vector<T> read() const {
    std::vector<T> host(size_);
    cudaMemcpy(host.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost);
    return host;
  }

 private:
  T* data_ = nullptr;
  std::size_t size_;
};

Floats unwritten(std::size_t n) { return Floats(n, NAN); }

// Whether the call succeeded, and the device with it.
bool done(assay_ctx* ctx, int status) {
  return status == ASSAY_OK &&
         cudaStreamSynchronize(static_cast<cudaStream_t>(ctx->stream)) == cudaSuccess;
}

// --- blocks ---

double scale_of(const std::uint8_t* block) {
  const int exponent = block[1] >> 2, fraction = (block[1] & 3) * 256 + block[0];
  return exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
}

int code_of(const std::uint8_t* block, int j) { return block[2 + j / 4] >> (j % 4 * 2) & 3; }

// All weights of blocks that lie one after the other.
Floats weights_of(const Bytes& blocks, std::size_t first, std::size_t n) {
  Floats w;
  for (std::size_t b = 0; b < n / 128; ++b) {
    const std::uint8_t* const block = &blocks[(first / 128 + b) * 34];
    for (int j = 0; j < 128; ++j)
      w.push_back(static_cast<float>((code_of(block, j) - 1) * scale_of(block)));
  }
  return w;
}

// The scale must be a nearest one, the codes those of the scale.
bool good_block(const std::uint8_t* block, const float* w) {
  double mean = 0;
  for (int j = 0; j < 128; ++j) mean += std::abs(static_cast<double>(w[j])) / 128;
  mean = std::min(mean, 65504.0);
  const double s = scale_of(block);
  const unsigned bits = block[0] + 256u * block[1];
  if (bits > 0x7bff) return false;
  for (const unsigned other : {bits - 1, bits + 1}) {
    if (other > 0x7bff) continue;
    const std::uint8_t neighbour[2] = {static_cast<std::uint8_t>(other),
                                       static_cast<std::uint8_t>(other >> 8)};
    const double distance = std::abs(scale_of(neighbour) - mean), own = std::abs(s - mean);
    if (distance < own || (distance == own && bits % 2 == 1)) return false;
  }
  for (int j = 0; j < 128; ++j) {
    const int code = s > 0 && std::abs(static_cast<double>(w[j])) > s / 2 ? (w[j] > 0 ? 2 : 0) : 1;
    if (code_of(block, j) != code) return false;
  }
  return true;
}

bool quantizes(assay_ctx* ctx, const Floats& w, std::int64_t rows, std::int64_t cols) {
  const Memory on_w(w), back(unwritten(w.size()));
  const Memory on_blocks(Bytes(w.size() / 128 * 34, 255));
  if (!done(ctx, tt_quantize(ctx, rows, cols, on_w.get(), on_blocks.get())) ||
      !done(ctx, tt_dequantize(ctx, rows, cols, on_blocks.get(), back.get()))) {
    return false;
  }
  const Bytes blocks = on_blocks.read();
  for (std::size_t b = 0; b < w.size() / 128; ++b) {
    if (!good_block(&blocks[b * 34], &w[b * 128])) return false;
  }
  return back.read() == weights_of(blocks, 0, w.size());
}

bool blocks_are_right(assay_ctx* ctx) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (const float sigma : {1.0f, 1e-9f, 4e-6f, 0.0f, 1e6f, 1e-3f}) {
    Floats w(3 * 256);
    for (std::size_t i = 0; i < w.size(); ++i)
      w[i] = normal(random) * sigma * std::exp2(static_cast<float>(i / 128));
    if (!quantizes(ctx, w, 3, 256)) return false;
  }
  Floats ties(256), outlier(128, 1.0f), rounded(128);
  for (std::size_t i = 0; i < ties.size(); ++i)
    ties[i] = (i % 2 == 0 ? 0.5f : 1.5f) * (i % 3 == 0 ? -1.0f : 1.0f);
  outlier[7] = 50;
  // A mean a little above a half-precision number, with weights between the two halves.
  for (std::size_t i = 0; i < 128; ++i)
    rounded[i] = i < 40 ? 0.50008f : static_cast<float>((128 * 1.0003 - 40 * 0.50008) / 88);
  // Means a little beside the middle of two such numbers, which fp32 takes for the middle.
  Floats above(128, 1.0f + 0x1p-11f), below(128, 1.0f + 3 * 0x1p-11f);
  above[0] += 0x1p-23f;
  below[0] -= 0x1p-23f;
  return quantizes(ctx, ties, 2, 128) && quantizes(ctx, outlier, 1, 128) &&
         quantizes(ctx, rounded, 1, 128) && quantizes(ctx, above, 1, 128) &&
         quantizes(ctx, below, 1, 128);
}

bool refuses(assay_ctx* ctx) {
  const Memory w(Floats(600));
  const Memory blocks(Bytes(400));
  const tt_config c{sizeof(tt_config), 64, 200, 1, 4, 2, 32, 128, 16, 1, 1e4f, 1e-6f};
  return tt_quantize(ctx, 3, 200, w.get(), blocks.get()) == ASSAY_EINVAL && tt_blob_bytes(&c) == 0;
}

// --- the linear layer ---

Floats normals(std::size_t n, std::mt19937& random) {
  std::normal_distribution<float> normal;
  Floats x(n);
  for (float& f : x) f = normal(random);
  return x;
}

// Blocks of scales between 2^-4 and 2^-3.
Bytes random_blocks(std::size_t weights, std::mt19937& random) {
  Bytes blocks;
  for (std::size_t b = 0; b < weights / 128; ++b) {
    blocks.push_back(static_cast<std::uint8_t>(random()));
    blocks.push_back(static_cast<std::uint8_t>(11 << 2 | (random() & 3)));
    for (int i = 0; i < 32; ++i) {
      unsigned codes = 0;
      for (int j = 0; j < 4; ++j) codes = codes << 2 | random() % 3;
      blocks.push_back(static_cast<std::uint8_t>(codes));
    }
  }
  return blocks;
}

// got [M, N] = a [M, K] b [K, N], of which element (r, c) is at r * row + c * column.
struct View {
  const Floats& data;
  std::size_t row, column;
  double at(std::size_t r, std::size_t c) const {
    return static_cast<double>(data[r * row + c * column]);
  }
};

bool is_product(const Floats& got, std::size_t M, std::size_t N, std::size_t K, const View& a,
                const View& b) {
  for (std::size_t m = 0; m < M; ++m) {
    for (std::size_t n = 0; n < N; ++n) {
      double sum = 0, size = 1e-6;
      for (std::size_t k = 0; k < K; ++k) {
        sum += a.at(m, k) * b.at(k, n);
        size += std::abs(a.at(m, k) * b.at(k, n));
      }
      if (!(std::abs(got[m * N + n] - sum) <= 2e-6 * size)) return false;
    }
  }
  return true;
}

bool linear_is_right(assay_ctx* ctx, std::size_t M, std::size_t N, std::size_t K) {
  std::mt19937 random(static_cast<unsigned>(M + N));
  const Floats x = normals(M * K, random), dy = normals(M * N, random);
  const Bytes blocks = random_blocks(N * K, random);
  const Floats w = weights_of(blocks, 0, N * K);
  const Memory on_x(x), on_dy(dy), y(unwritten(M * N)), dx(unwritten(M * K)), dw(unwritten(N * K));
  const Memory on_blocks(blocks);
  if (!done(ctx, tt_linear(ctx, static_cast<std::int64_t>(M), static_cast<std::int64_t>(N),
                           static_cast<std::int64_t>(K), on_x.get(), on_blocks.get(), on_dy.get(),
                           y.get(), dx.get(), dw.get()))) {
    return false;
  }
  return is_product(y.read(), M, N, K, {x, K, 1}, {w, 1, K}) &&
         is_product(dx.read(), M, K, N, {dy, N, 1}, {w, K, 1}) &&
         is_product(dw.read(), N, K, M, {dy, 1, N}, {x, K, 1});
}

// --- logits ---

struct Model {
  tt_config c;
  Bytes blob;
  Floats embedding;  // the head too
  struct Layer {
    Floats q, k, v, o, gate, up, down, attention, query, key, ff;
  };
  std::vector<Layer> layers;
  Floats final_norm;

  Model(const tt_config& config, std::mt19937& random) : c(config) {
    const auto V = index(c.V), d = index(c.d), ff = index(c.ff), hd = index(c.hd),
               wide = index(c.Hq) * hd, narrow = index(c.Hkv) * hd, L = index(c.L);
    const std::size_t matrices = V * d + L * (2 * wide * d + 2 * narrow * d + 3 * ff * d);
    blob = random_blocks(matrices, random);
    std::size_t at = 0;
    const auto matrix = [&](std::size_t n) {
      const std::size_t first = at;
      at += n;
      return weights_of(blob, first, n);
    };
    embedding = matrix(V * d);
    layers.resize(L);
    for (Layer& l : layers) {
      l.q = matrix(wide * d), l.k = matrix(narrow * d), l.v = matrix(narrow * d);
      l.o = matrix(wide * d), l.gate = matrix(ff * d), l.up = matrix(ff * d);
      l.down = matrix(ff * d);
    }
    const auto norm = [&](std::size_t n) {
      Floats w = normals(n, random);
      for (float& x : w) x = 1 + 0.2f * x;
      const auto* const bytes = reinterpret_cast<const std::uint8_t*>(w.data());
      blob.insert(blob.end(), bytes, bytes + n * sizeof(float));
      return w;
    };
    for (Layer& l : layers) {
      l.attention = norm(d), l.query = norm(hd), l.key = norm(hd), l.ff = norm(d);
    }
    final_norm = norm(d);
  }

  static std::size_t index(std::int32_t n) { return static_cast<std::size_t>(n); }

  // Rows of `n` values each become the products with w [rows, n].
  static Doubles times(const Doubles& x, const Floats& w, std::size_t n) {
    const std::size_t rows = w.size() / n;
    Doubles y;
    for (std::size_t t = 0; t < x.size() / n; ++t) {
      for (std::size_t r = 0; r < rows; ++r) {
        double sum = 0;
        for (std::size_t i = 0; i < n; ++i) sum += x[t * n + i] * w[r * n + i];
        y.push_back(sum);
      }
    }
    return y;
  }
  Doubles rms(Doubles x, const Floats& w) const {
    const std::size_t n = w.size();
    for (std::size_t t = 0; t < x.size() / n; ++t) {
      double squares = 0;
      for (std::size_t i = 0; i < n; ++i) squares += x[t * n + i] * x[t * n + i];
      const double root = std::sqrt(squares / static_cast<double>(n) + c.eps);
      for (std::size_t i = 0; i < n; ++i) x[t * n + i] *= w[i] / root;
    }
    return x;
  }
  Doubles turned(Doubles x, std::size_t heads) const {
    const std::size_t hd = index(c.hd), half = hd / 2;
    for (std::size_t row = 0; row < x.size() / hd; ++row) {
      const auto position = static_cast<double>(row / heads);
      for (std::size_t i = 0; i < half; ++i) {
        const double angle =
            position * std::pow(static_cast<double>(c.theta), -2.0 * static_cast<double>(i) / c.hd);
        double &a = x[row * hd + i], &b = x[row * hd + half + i];
        const double old = a;
        a = old * std::cos(angle) - b * std::sin(angle);
        b = old * std::sin(angle) + b * std::cos(angle);
      }
    }
    return x;
  }
  Doubles attention(const Doubles& q, const Doubles& k, const Doubles& v) const {
    const std::size_t hd = index(c.hd), Hq = index(c.Hq), Hkv = index(c.Hkv);
    Doubles out(q.size());
    for (std::size_t row = 0; row < q.size() / hd; ++row) {
      const std::size_t t = row / Hq, head = row % Hq / (Hq / Hkv);
      Doubles weights;
      double sum = 0;
      for (std::size_t u = 0; u <= t; ++u) {
        double score = 0;
        for (std::size_t i = 0; i < hd; ++i)
          score += q[row * hd + i] * k[(u * Hkv + head) * hd + i];
        weights.push_back(std::exp(score / std::sqrt(static_cast<double>(hd))));
        sum += weights.back();
      }
      for (std::size_t u = 0; u <= t; ++u) {
        for (std::size_t i = 0; i < hd; ++i)
          out[row * hd + i] += weights[u] / sum * v[(u * Hkv + head) * hd + i];
      }
    }
    return out;
  }

  // Of one document: [T, V].
  Doubles logits(const std::uint16_t* doc) const {
    const std::size_t d = index(c.d), wide = index(c.Hq) * index(c.hd);
    Doubles x;
    const auto add = [&x](const Doubles& y) {
      for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
    };
    for (std::int32_t t = 0; t < c.T; ++t) {
      const auto row = embedding.begin() + static_cast<std::ptrdiff_t>(doc[t] * d);
      x.insert(x.end(), row, row + static_cast<std::ptrdiff_t>(d));
    }
    for (const Layer& l : layers) {
      Doubles h = rms(x, l.attention);
      const Doubles q = turned(rms(times(h, l.q, d), l.query), index(c.Hq)),
                    k = turned(rms(times(h, l.k, d), l.key), index(c.Hkv));
      add(times(attention(q, k, times(h, l.v, d)), l.o, wide));
      h = rms(x, l.ff);
      Doubles gate = times(h, l.gate, d);
      const Doubles up = times(h, l.up, d);
      for (std::size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i] / (1 + std::exp(-gate[i]));
      add(times(gate, l.down, index(c.ff)));
    }
    return times(rms(x, final_norm), embedding, d);
  }
};

bool logits_are_right(assay_ctx* ctx, const tt_config& c, std::size_t n_docs,
                      std::uint32_t first_token) {
  std::mt19937 random(8);
  const Model model(c, random);
  if (tt_blob_bytes(&c) != model.blob.size()) return false;
  const auto T = static_cast<std::size_t>(c.T), V = static_cast<std::size_t>(c.V);
  std::vector<std::uint16_t> docs(n_docs * T);
  for (std::uint16_t& token : docs)
    token = static_cast<std::uint16_t>(first_token + random() % (V - first_token));
  const Memory blob(model.blob);
  const Memory on_device(unwritten(n_docs * T * V));
  if (!done(ctx, tt_logits(ctx, &c, blob.get(), docs.data(), static_cast<std::int64_t>(n_docs),
                           on_device.get()))) {
    return false;
  }
  const Floats got = on_device.read();
  for (std::size_t n = 0; n < n_docs; ++n) {
    const Doubles want = model.logits(&docs[n * T]);
    for (std::size_t i = 0; i < want.size(); ++i) {
      if (!(std::abs(got[n * T * V + i] - want[i]) <= 3e-4 * (1 + std::abs(want[i])))) return false;
    }
  }
  return true;
}

}  // namespace

extern "C" int assay_self_test(assay_ctx* ctx) {
  const tt_config small{sizeof(tt_config), 40, 128, 1, 4, 2, 32, 128, 11, 1, 500.0f, 0.02f},
      words{sizeof(tt_config), 33000, 128, 1, 1, 1, 128, 128, 2, 1, 1e4f, 1e-6f};
  const bool right = refuses(ctx) && blocks_are_right(ctx) && linear_is_right(ctx, 9, 5, 256) &&
                     linear_is_right(ctx, 1, 1, 128) && linear_is_right(ctx, 33, 67, 128) &&
                     logits_are_right(ctx, small, 5, 0) && logits_are_right(ctx, words, 1, 32800);
  return right ? 0 : 1;
}

// The plain CUDA implementation: a thread for each row that the model returned finds its K best
// continuations, one pass for each. The host merges the rows of an item with its finished beams.
// Required features only.
#include <algorithm>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <vector>

#include "abi.h"

namespace {

// What a step asks of the rows.
struct Rows {
  std::int32_t V, K;
  bool logits;
  double divisor;  // acc / divisor is the score
};

// A continuation of a row; token -1: there is none.
struct Extension {
  double acc;
  std::int32_t token;
};

constexpr int kThreads = 64;

// The K best continuations of each row, best first: [rows, K]. acc [rows] is what the rows start
// from.
__global__ void best_of_row(std::int32_t n, Rows rows, const float* values, const double* acc,
                            Extension* out) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= n) return;
  const float* x = values + row * rows.V;
  out += row * rows.K;
  double shift = 0;
  if (rows.logits) {
    double max = -INFINITY, sum = 0;
    for (std::int32_t v = 0; v < rows.V; ++v) max = fmax(max, static_cast<double>(x[v]));
    for (std::int32_t v = 0; v < rows.V && max > -INFINITY; ++v) sum += exp(x[v] - max);
    shift = max + log(sum);
  }
  double previous_key = INFINITY;
  std::int32_t previous = -1;
  for (std::int32_t k = 0; k < rows.K; ++k) {
    double best_key = 0;
    Extension best{0, -1};
    for (std::int32_t v = 0; v < rows.V; ++v) {
      if (x[v] == -INFINITY) continue;
      const double sum = acc[row] + (static_cast<double>(x[v]) - shift);
      const double key = sum / rows.divisor;
      const bool later = key < previous_key || (key == previous_key && v > previous);
      if (sum > -INFINITY && later && (best.token < 0 || key > best_key)) {
        best_key = key;
        best = {sum, v};
      }
    }
    out[k] = best;
    previous_key = best.token < 0 ? -INFINITY : best_key;
    previous = best.token < 0 ? INT_MAX : best.token;
  }
}

constexpr double kInf = std::numeric_limits<double>::infinity();

// Lets standard containers take their memory from the context.
template <class T>
struct FromContext {
  using value_type = T;
  assay_ctx* ctx;

  explicit FromContext(assay_ctx* c) : ctx(c) {}
  template <class U>
  FromContext(const FromContext<U>& other) : ctx(other.ctx) {}

  T* allocate(std::size_t n) {
    void* p = ctx->alloc(ctx, n * sizeof(T), alignof(std::max_align_t), 0);
    if (p == nullptr) throw std::bad_alloc();
    return static_cast<T*>(p);
  }
  void deallocate(T* p, std::size_t) { ctx->free(ctx, p); }
  template <class U>
  bool operator==(const FromContext<U>& other) const {
    return ctx == other.ctx;
  }
};

template <class T>
using Array = std::vector<T, FromContext<T>>;

// An array on the device.
template <class T>
class DeviceArray {
 public:
  DeviceArray(assay_ctx* ctx, std::size_t n)
      : ctx_(ctx), data_(static_cast<T*>(ctx->alloc(ctx, n * sizeof(T), 256, 1))) {
    if (data_ == nullptr) throw std::bad_alloc();
  }
  ~DeviceArray() { ctx_->free(ctx_, data_); }
  DeviceArray(const DeviceArray&) = delete;
  T* data() { return data_; }

 private:
  assay_ctx* ctx_;
  T* data_;
};

struct Beam {
  double acc, score;
  std::int64_t state;
  std::int32_t len, token, finish_order;
  bool finished;
};

struct Candidate {
  double acc, score;
  std::int32_t parent, token;  // token -1: a finished beam as it is

  bool before(const Candidate& c) const {
    if (score != c.score) return score > c.score;
    if ((token < 0) != (c.token < 0)) return token < 0;
    return parent != c.parent ? parent < c.parent : token < c.token;
  }
};

struct Item {
  explicit Item(assay_ctx* ctx)
      : beams(FromContext<Beam>(ctx)), texts(FromContext<std::int32_t>(ctx)) {}
  Array<Beam> beams;
  Array<std::int32_t> texts;  // [K, max_new]
  std::int32_t finished = 0;
};

class BeamSearch {
 public:
  BeamSearch(assay_ctx* ctx, const bs_params& p, const assay_lm& lm)
      : ctx_(ctx),
        p_(p),
        lm_(lm),
        K_(static_cast<std::size_t>(p.K)),
        T_(static_cast<std::size_t>(p.max_new)),
        each_(static_cast<std::size_t>(std::min(p.K, lm.V))),
        items_(FromContext<Item>(ctx)),
        pool_(FromContext<Candidate>(ctx)),
        new_texts_(FromContext<std::int32_t>(ctx)) {
    for (std::int32_t b = 0; b < p.B; ++b) {
      items_.emplace_back(ctx);
      items_.back().beams.push_back({0, 0, -1, 0, 0, 0, false});
      items_.back().texts.resize(K_ * T_);
    }
    new_texts_.resize(K_ * T_);
  }

  int run() {
    if (p_.max_new == 0) return ASSAY_OK;
    const std::size_t most = items_.size() * K_;
    DeviceArray<float> values(ctx_, most * static_cast<std::size_t>(lm_.V));
    DeviceArray<double> device_acc(ctx_, most);
    DeviceArray<Extension> device_best(ctx_, most * each_);
    Array<std::int32_t> item{FromContext<std::int32_t>(ctx_)}, token(item);
    Array<std::int64_t> parent{FromContext<std::int64_t>(ctx_)}, state(parent);
    Array<double> acc{FromContext<double>(ctx_)};
    Array<Extension> best{FromContext<Extension>(ctx_)};
    state.resize(most);
    for (std::int32_t step = 1; step <= p_.max_new; ++step) {
      item.clear(), token.clear(), parent.clear(), acc.clear();
      for (std::int32_t b = 0; b < p_.B; ++b) {
        for (const Beam& beam : items_[static_cast<std::size_t>(b)].beams) {
          if (beam.finished) continue;
          item.push_back(b);
          parent.push_back(beam.state);
          token.push_back(beam.token);
          acc.push_back(beam.acc);
        }
      }
      if (item.empty()) break;
      const auto n = static_cast<std::int32_t>(item.size());
      int status = lm_.step(lm_.user, ctx_, n, item.data(), parent.data(), token.data(),
                            values.data(), state.data());
      if (status != ASSAY_OK) return status;
      best.resize(item.size() * each_);
      status = extend(step, n, values.data(), acc, device_acc.data(), device_best.data(), best);
      if (status != ASSAY_OK) return status;
      const Extension* extensions = best.data();
      const std::int64_t* next_state = state.data();
      for (Item& it : items_) advance(it, step, extensions, next_state);
    }
    return ASSAY_OK;
  }

  void write(std::int32_t* seq, std::int32_t* len, double* acc, double* score,
             std::int32_t* finished, std::int32_t* n_out) {
    // All memory before the first output is written.
    Array<std::size_t> order{FromContext<std::size_t>(ctx_)};
    order.reserve(K_);
    if (T_ > 0) std::fill_n(seq, items_.size() * K_ * T_, -1);
    for (std::size_t b = 0; b < items_.size(); ++b) {
      const Array<Beam>& beams = items_[b].beams;
      order.clear();
      for (std::size_t i = 0; i < beams.size(); ++i) order.push_back(i);
      std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
        if (beams[i].score != beams[j].score) return beams[i].score > beams[j].score;
        if (beams[i].finished != beams[j].finished) return beams[i].finished;
        if (beams[i].finished && beams[i].finish_order != beams[j].finish_order) {
          return beams[i].finish_order < beams[j].finish_order;
        }
        return i < j;
      });
      n_out[b] = static_cast<std::int32_t>(beams.size());
      for (std::size_t k = 0; k < order.size(); ++k) {
        const Beam& beam = beams[order[k]];
        if (beam.len > 0) {
          std::copy_n(items_[b].texts.data() + order[k] * T_, beam.len, seq + (b * K_ + k) * T_);
        }
        len[b * K_ + k] = beam.len;
        acc[b * K_ + k] = beam.acc;
        score[b * K_ + k] = beam.score;
        finished[b * K_ + k] = beam.finished ? 1 : 0;
      }
    }
  }

 private:
  double penalty(std::int32_t len) const { return std::pow(static_cast<double>(len), p_.alpha); }

  // The best continuations of the n rows that the model returned: best [n, each_].
  int extend(std::int32_t step, std::int32_t n, const float* values, const Array<double>& acc,
             double* device_acc, Extension* device_best, Array<Extension>& best) {
    const auto stream = static_cast<cudaStream_t>(ctx_->stream);
    const Rows rows{lm_.V, static_cast<std::int32_t>(each_), lm_.kind == BS_LOGITS, penalty(step)};
    cudaMemcpyAsync(device_acc, acc.data(), acc.size() * sizeof(double), cudaMemcpyHostToDevice,
                    stream);
    best_of_row<<<static_cast<unsigned>((n + kThreads - 1) / kThreads), kThreads, 0, stream>>>(
        n, rows, values, device_acc, device_best);
    cudaMemcpyAsync(best.data(), device_best, best.size() * sizeof(Extension),
                    cudaMemcpyDeviceToHost, stream);
    return cudaStreamSynchronize(stream) == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL;
  }

  void advance(Item& it, std::int32_t step, const Extension*& extensions,
               const std::int64_t*& state) {
    const double divisor = penalty(step);
    bool active = false;
    pool_.clear();
    for (std::size_t i = 0; i < it.beams.size(); ++i) {
      Beam& beam = it.beams[i];
      const auto place = static_cast<std::int32_t>(i);
      if (beam.finished) {
        pool_.push_back({beam.acc, beam.score, place, -1});
        continue;
      }
      active = true;
      for (std::size_t k = 0; k < each_ && extensions[k].token >= 0; ++k) {
        const double acc = extensions[k].acc, score = acc / divisor;
        pool_.push_back({acc, score, place, extensions[k].token});
      }
      extensions += each_;
      beam.state = *state++;
    }
    if (!active) return;
    const std::size_t n = std::min(K_, pool_.size());
    std::partial_sort(pool_.begin(), pool_.begin() + static_cast<std::ptrdiff_t>(n), pool_.end(),
                      [](const Candidate& a, const Candidate& b) { return a.before(b); });
    Array<Beam> next{FromContext<Beam>(ctx_)};
    for (std::size_t k = 0; k < n; ++k) {
      const Candidate& c = pool_[k];
      const auto parent = static_cast<std::size_t>(c.parent);
      Beam beam = it.beams[parent];
      std::copy_n(it.texts.data() + parent * T_, beam.len, new_texts_.data() + k * T_);
      if (c.token >= 0) {
        new_texts_[k * T_ + static_cast<std::size_t>(beam.len)] = c.token;
        beam = {c.acc, c.score, beam.state, step, c.token, 0, c.token == p_.eos};
        if (beam.finished) beam.finish_order = it.finished++;
      }
      next.push_back(beam);
    }
    it.beams.swap(next);
    it.texts.swap(new_texts_);
  }

  assay_ctx* ctx_;
  const bs_params& p_;
  const assay_lm& lm_;
  std::size_t K_, T_, each_;  // each_: continuations of a row
  Array<Item> items_;
  Array<Candidate> pool_;
  Array<std::int32_t> new_texts_;
};

bool in_range(const bs_params& p, const assay_lm& lm) {
  if (p.B < 0 || p.K < 1 || p.max_new < 0 || p.min_new < 0 || lm.V < 1 || lm.step == nullptr)
    return false;
  if (p.eos < -1 || p.eos >= lm.V || !(std::abs(p.alpha) < kInf)) return false;
  const auto flag = [](std::int32_t x) { return x == 0 || x == 1; };
  return flag(p.rank_mode) && flag(p.keep_finished) && flag(p.penalty) && flag(lm.kind);
}

}  // namespace

extern "C" int beam_search(assay_ctx* ctx, const bs_params* p, const assay_lm* lm, int32_t* seq,
                           int32_t* len, double* acc, double* score, int32_t* finished,
                           int32_t* n_out) {
  if (p == nullptr || lm == nullptr || p->size != sizeof(bs_params) || lm->size != sizeof(assay_lm))
    return ASSAY_EINVAL;
  if (!in_range(*p, *lm)) return ASSAY_EINVAL;
  if (p->B == 0) return ASSAY_OK;
  if (p->prompt_len == nullptr || p->prompt == nullptr || (seq == nullptr && p->max_new > 0))
    return ASSAY_EINVAL;
  if (len == nullptr || acc == nullptr || score == nullptr || finished == nullptr ||
      n_out == nullptr)
    return ASSAY_EINVAL;
  for (std::int32_t b = 0; b < p->B; ++b) {
    if (p->prompt_len[b] < 0) return ASSAY_EINVAL;
  }
  if (p->keep_finished != 0 || p->rank_mode != 0 || p->penalty != 0 || p->min_new != 0)
    return ASSAY_ENOTSUP;
  try {
    BeamSearch search(ctx, *p, *lm);
    const int status = search.run();
    if (status == ASSAY_OK) search.write(seq, len, acc, score, finished, n_out);
    return status;
  } catch (const std::bad_alloc&) {
    return ASSAY_ENOMEM;
  }
}

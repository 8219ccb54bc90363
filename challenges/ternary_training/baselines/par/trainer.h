// Training: each thread takes documents of a step; then all share out the update of the weights.
#pragma once

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "blocks.h"
#include "memory.h"
#include "pass.h"

namespace {

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

}  // namespace

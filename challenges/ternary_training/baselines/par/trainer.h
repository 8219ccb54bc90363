// Training: each thread takes documents of a step; then each computes the gradients of its share of
// the weights' rows, over all documents, and changes, rounds and packs these rows.
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
        gradients_(ctx, at_.size),
        each_(std::max(kLanes * at_.most_cols, kDepth * (at_.most_rows + kPanel))),
        space_(ctx, each_ * threads_),
        squares_(static_cast<std::size_t>(threads_)) {
    for (Index i = 0; i < kRecipe.batch; ++i) passes_.push_back(std::make_unique<Pass>(ctx, at_));
    if (!ready()) return;
    Generator random{seed};
    for (Index i = 0; i < at_.matrices; ++i) {
      latent_[i] = (i < at_.embedding.rows * at_.d ? kRecipe.embedding_init : kRecipe.init) *
                   random.normal();
    }
    const Index padded = rounded(at_.size);
    std::fill(latent_ + at_.matrices, latent_ + padded, 1.0f);
    for (float* const zeros : {+first_, +second_, +gradients_}) std::fill_n(zeros, padded, 0.0f);
  }
  bool ready() const {
    for (const Buffer* b : {&latent_, &plain_, &packed_, &first_, &second_, &gradients_, &space_}) {
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
      own_rows(thread, [&](const MatrixAt& m, Index r, Index n) { publish(thread, m, r, n); });
      if (thread == 0) publish_norms();
      barrier_.arrive_and_wait();
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
  void save_state(std::uint8_t* state) const {
    std::memcpy(state, &steps_, sizeof steps_);
    state += sizeof steps_;
    for (const Buffer* part : {&latent_, &first_, &second_}) {
      std::memcpy(state, *part, static_cast<std::size_t>(at_.size) * 4);
      state += at_.size * 4;
    }
  }
  void load_state(const std::uint8_t* state) {
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
    for (Index i = thread; i < kRecipe.batch; i += threads_)
      passes_[static_cast<std::size_t>(i)]->train({plain_, packed_}, document(i));
    barrier_.arrive_and_wait();
    squares_[static_cast<std::size_t>(thread)] = sum_gradients(thread);
    barrier_.arrive_and_wait();
    adam(thread);
    barrier_.arrive_and_wait();
  }

  const std::uint16_t* document(Index i) const {
    return docs_ + (steps_ * kRecipe.batch + i) % n_docs_ * at_.c.T;
  }

  // f(matrix, first row, count) for all rows of the thread, kLanes at a time.
  template <class F>
  void own_rows(Index thread, F f) const {
    const auto rows = [&](const MatrixAt& m) {
      const auto [begin, end] = share(m.rows, kLanes, thread, threads_);
      for (Index r = begin; r < end; r += kLanes) f(m, r, std::min<Index>(kLanes, end - r));
    };
    at_.each_matrix(rows);
    if (!at_.c.tied) rows(at_.embedding);
  }

  // The gradients of the thread's rows, and the sum of their squares.
  double sum_gradients(Index thread) {
    const Index T = at_.c.T;
    double total = 0;
    const auto add_squares = [&](Index offset, Index n) {
      const float* g = gradients_ + offset;
      for (Index i = 0; i < n; i += kBlock)
        total += static_cast<double>(dot(g + i, g + i, std::min(kBlock, n - i)));
    };
    std::size_t number = 0;
    at_.each_matrix([&](const MatrixAt& m) {
      const auto [begin, end] = share(m.rows, kLanes, thread, threads_);
      const std::size_t at = number++;
      const Index offset = m.offset + begin * m.cols;
      multiply_transposed(
          end - begin, m.cols, kRecipe.batch * T,
          [&, first = begin](Index k) { return operands(k / T, at).dy + k % T * m.rows + first; },
          [&](Index k) { return operands(k / T, at).x + k % T * m.cols; }, gradients_ + offset,
          m.cols, space_ + thread * each_);
      if (m.offset == at_.embedding.offset) add_embedded(begin, end);
      add_squares(offset, (end - begin) * m.cols);
    });
    if (!at_.c.tied) {
      const auto [begin, end] = share(at_.embedding.rows, kLanes, thread, threads_);
      const Index offset = at_.embedding.offset + begin * at_.d, n = (end - begin) * at_.d;
      std::fill_n(gradients_ + offset, n, 0.0f);
      add_embedded(begin, end);
      add_squares(offset, n);
    }
    if (thread == 0) {
      const Index n = at_.size - at_.matrices;
      std::copy_n(passes_[0]->norm_gradients(), n, gradients_ + at_.matrices);
      for (std::size_t i = 1; i < passes_.size(); ++i) {
        for (Index j = 0; j < n; ++j)
          gradients_[at_.matrices + j] += passes_[i]->norm_gradients()[j];
      }
      add_squares(at_.matrices, n);
    }
    return total;
  }

  Pass::Operands operands(Index document, std::size_t matrix) const {
    return passes_[static_cast<std::size_t>(document)]->operands()[matrix];
  }

  // The gradients of the tokens among the embedding's rows begin .. end - 1, where they were taken
  // in.
  void add_embedded(Index begin, Index end) {
    const Index T = at_.c.T, d = at_.d;
    for (Index i = 0; i < kRecipe.batch; ++i) {
      const std::uint16_t* tokens = document(i);
      const float* dx = passes_[static_cast<std::size_t>(i)]->embedded_gradient();
      for (Index t = 0; t < T; ++t, dx += d) {
        if (tokens[t] < begin || tokens[t] >= end) continue;
        float* row = gradients_ + at_.embedding.offset + tokens[t] * d;
        for (Index j = 0; j < d; ++j) row[j] += dx[j];
      }
    }
  }

  void adam(Index thread) {
    double total = 0;
    for (const double s : squares_) total += s;
    const double norm = std::sqrt(total) / static_cast<double>(kRecipe.batch);
    const auto factor =
        static_cast<float>(std::min(1.0, static_cast<double>(kRecipe.clip) / (norm + 1e-6)) /
                           static_cast<double>(kRecipe.batch));
    const auto n = static_cast<float>(steps_ + 1);
    const float correct1 = 1 / (1 - std::pow(kRecipe.beta1, n)),
                correct2 = 1 / (1 - std::pow(kRecipe.beta2, n));
    own_rows(thread, [&](const MatrixAt& m, Index r, Index count) {
      update(m.offset + r * m.cols, count * m.cols, rate_ * kRecipe.rate, factor, correct1,
             correct2);
      publish(thread, m, r, count);
    });
    if (thread == 0) {
      update(at_.matrices, at_.size - at_.matrices, rate_ * kRecipe.norm_rate, factor, correct1,
             correct2);
      publish_norms();
    }
  }

  // From a multiple of kLanes on, in whole vectors: the arrays are padded.
  void update(Index begin, Index count, float rate, float factor, float correct1, float correct2) {
    for (Index i = begin; i < begin + count; i += kLanes) {
      const Vec g = load(gradients_ + i) * factor;
      Vec m = load(first_ + i), v = load(second_ + i);
      m += (1 - kRecipe.beta1) * (g - m);
      v += (1 - kRecipe.beta2) * (g * g - v);
      store(first_ + i, m);
      store(second_ + i, v);
      store(latent_ + i,
            load(latent_ + i) - rate * correct1 * m * reciprocal_root(v * correct2 + 1e-16f));
    }
  }

  // Rounds rows for the next pass: the embedding's as they are, those that products need packed.
  void publish(Index thread, const MatrixAt& m, Index first, Index count) {
    const Index begin = m.offset + first * m.cols;
    const bool embedding = m.offset == at_.embedding.offset;
    float* out = embedding ? plain_ + begin : space_ + thread * each_;
    for (Index i = 0; i < count * m.cols; i += kBlock) round_block(latent_ + begin + i, out + i);
    if (embedding && !at_.c.tied) return;
    pack_both(out, first, count, m.rows, m.cols, packed_ + m.forward, packed_ + m.backward);
  }
  void publish_norms() {
    std::copy(latent_ + at_.matrices, latent_ + at_.size, plain_ + at_.matrices);
  }

  const Layout at_;
  const Index threads_;
  std::barrier<> barrier_;
  Buffer latent_, plain_, packed_, first_, second_, gradients_;
  const Index each_;  // floats of a thread's space
  Buffer space_;
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

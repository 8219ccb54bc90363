// Training: Adam on latent weights, steps of a few documents.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "blocks.h"
#include "pass.h"

namespace {

constexpr Index kBatch = 4;  // documents
constexpr float kLearningRate = 2e-3f, kNormRate = 1e-2f, kBeta1 = 0.9f, kBeta2 = 0.98f, kClip = 1;
constexpr float kInit = 0.1f, kEmbeddingInit = 0.05f;
constexpr double kWarmup = 0.05, kPasses = 8;

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

template <class ModelPass = Pass>
class Trainer {
 public:
  Trainer(assay_ctx* ctx, const tt_config& c, std::uint64_t seed)
      : at_(c),
        random_{seed},
        latent_(ctx, at_.size),
        used_(ctx, at_.size),
        gradient_(ctx, at_.size),
        first_(ctx, at_.size),
        second_(ctx, at_.size),
        pass_(ctx, at_) {
    if (!ready()) return;
    for (Index i = 0; i < at_.matrices; ++i) {
      latent_[i] = (i < at_.embeddings ? kEmbeddingInit : kInit) * random_.normal();
    }
    std::fill(latent_ + at_.matrices, latent_ + at_.size, 1.0f);
  }
  bool ready() const {
    return latent_.data && used_.data && gradient_.data && first_.data && second_.data &&
           pass_.ready();
  }

  virtual ~Trainer() = default;

  void run(const std::uint16_t* docs, Index n_docs, const tt_budget& budget) {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    const double tokens_per_step = static_cast<double>(kBatch) * at_.c.T,
                 most = most_tokens(n_docs, budget);
    Index steps = 0;
    double longest = 0, last = 0;
    while (n_docs > 0) {
      const double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
      longest = std::max(longest, elapsed - last);
      last = elapsed;
      // A step that does not fit any more is not begun.
      const double by_tokens = tokens_per_step * static_cast<double>(steps) / most;
      if (tokens_per_step * static_cast<double>(steps + 1) > most) break;
      if (elapsed + 1.5 * longest > deadline(budget)) break;
      // Early on the clock does not count: a stalled step would change a run that its tokens end.
      const double by_clock = elapsed / deadline(budget);
      step(docs, n_docs, ++steps, std::max(by_tokens, by_clock > 0.25 ? by_clock : 0));
    }
  }

  // As many steps as fit into `until` tokens, counted from the first step ever; the rate goes by
  // tokens alone.
  void run_part(const std::uint16_t* docs, Index n_docs, const tt_budget& budget, Index until) {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    const Index tokens = kBatch * at_.c.T;
    const double most = most_tokens(n_docs, budget);
    while (n_docs > 0 &&
           static_cast<double>((steps_ + 1) * tokens) <=
               std::min(static_cast<double>(until), most) &&
           std::chrono::duration<double>(Clock::now() - start).count() < deadline(budget)) {
      const double progress = static_cast<double>(tokens * steps_) / most;
      step(docs, n_docs, ++steps_, progress);
    }
  }

  // Everything that the next step depends on; the first weights are all that is random.
  virtual void save(std::uint8_t* state) const {
    const Index counters[2] = {steps_, next_};
    std::memcpy(state, counters, sizeof counters);
    state += sizeof counters;
    for (const Buffer* part : {&latent_, &first_, &second_}) {
      std::memcpy(state, part->data, static_cast<std::size_t>(at_.size) * 4);
      state += at_.size * 4;
    }
  }

  virtual void load(const std::uint8_t* state) {
    Index counters[2];
    std::memcpy(counters, state, sizeof counters);
    steps_ = counters[0];
    next_ = counters[1];
    state += sizeof counters;
    for (Buffer* part : {&latent_, &first_, &second_}) {
      std::memcpy(part->data, state, static_cast<std::size_t>(at_.size) * 4);
      state += at_.size * 4;
    }
  }

  virtual void write(std::uint8_t* blob) const {
    for (Index i = 0; i < at_.matrices / kBlock; ++i)
      quantize_block(latent_ + i * kBlock, blob + i * kBytes);
    std::memcpy(blob + at_.matrices / kBlock * kBytes, latent_ + at_.matrices,
                static_cast<std::size_t>(at_.size - at_.matrices) * 4);
  }

 protected:
  // What the model runs with: the latent weights as their blocks would say.
  virtual void round_weights() {
    std::uint8_t block[kBytes];
    for (Index i = 0; i < at_.matrices; i += kBlock) {
      quantize_block(latent_ + i, block);
      dequantize_block(block, used_ + i);
    }
    std::copy(latent_ + at_.matrices, latent_ + at_.size, used_ + at_.matrices);
  }

  // Documents in order: they are as random as any shuffle of them.
  virtual Index next_document(Index n_docs) { return next_++ % n_docs; }

  // Of few documents no more than kPasses over them: beyond that they are learned by heart, and
  // others are predicted worse.
  virtual double most_tokens(Index n_docs, const tt_budget& budget) const {
    return std::min(static_cast<double>(budget.max_tokens),
                    kPasses * static_cast<double>(n_docs) * at_.c.T);
  }

  // Seconds after which no step is begun that may not end in time.
  virtual double deadline(const tt_budget& budget) const { return 0.95 * budget.seconds; }

  const Layout at_;
  Generator random_;
  Buffer latent_, used_, gradient_, first_, second_;
  Index next_ = 0, steps_ = 0;

 private:
  void step(const std::uint16_t* docs, Index n_docs, Index number, double progress) {
    round_weights();
    std::fill_n(gradient_.data, at_.size, 0.0f);
    for (Index i = 0; i < kBatch; ++i) {
      pass_.train(used_, docs + next_document(n_docs) * at_.c.T, gradient_);
    }
    double norm = 0;
    for (Index i = 0; i < at_.size; ++i) norm += static_cast<double>(gradient_[i]) * gradient_[i];
    norm = std::sqrt(norm) / kBatch;
    const auto factor = static_cast<float>(std::min(1.0, kClip / (norm + 1e-6)) / kBatch);
    // Up over the warm-up, then down to nothing.
    const double rate =
        progress < kWarmup ? progress / kWarmup + 0.02 : (1 - progress) / (1 - kWarmup);
    adam(number, static_cast<float>(rate), factor);
  }

  void adam(Index number, float rate, float factor) {
    const auto n = static_cast<float>(number);
    const float correct1 = 1 / (1 - std::pow(kBeta1, n)), correct2 = 1 / (1 - std::pow(kBeta2, n));
    for (Index i = 0; i < at_.size; ++i) {
      const float g = gradient_[i] * factor,
                  lr = rate * (i < at_.matrices ? kLearningRate : kNormRate);
      first_[i] += (1 - kBeta1) * (g - first_[i]);
      second_[i] += (1 - kBeta2) * (g * g - second_[i]);
      latent_[i] -= lr * first_[i] * correct1 / (std::sqrt(second_[i] * correct2) + 1e-8f);
    }
  }

  ModelPass pass_;
};

template <class T>
int train_with(assay_ctx* ctx, const tt_config& c, const std::uint16_t* docs, Index n_docs,
               const tt_budget& budget, std::uint8_t* blob) {
  T trainer(ctx, c, budget.seed);
  if (!trainer.ready()) return ASSAY_ENOMEM;
  trainer.run(docs, n_docs, budget);
  trainer.write(blob);
  return ASSAY_OK;
}

template <class T>
int train_part_with(assay_ctx* ctx, const tt_config& c, const std::uint16_t* docs, Index n_docs,
                    const tt_budget& budget, bool resume, Index until, std::uint8_t* state,
                    std::uint8_t* blob) {
  T trainer(ctx, c, budget.seed);
  if (!trainer.ready()) return ASSAY_ENOMEM;
  if (resume) trainer.load(state);
  trainer.run_part(docs, n_docs, budget, until);
  trainer.save(state);
  if (blob != nullptr) trainer.write(blob);
  return ASSAY_OK;
}

}  // namespace

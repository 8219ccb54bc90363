// Training on a device: Adam with warm-up and linear decay on batches of four documents.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <vector>

#include "device_model.cuh"

namespace {

// The sum of twelve uniforms is close enough to a normal.
float normal(std::uint64_t& state) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    sum += static_cast<double>(state >> 11) * 0x1p-53;
  }
  return static_cast<float>(sum);
}

class Trainer {
 public:
  static constexpr std::int64_t kBatch = 4;
  static constexpr double kPasses = 8;  // over few documents: more learn them by heart

  Trainer(assay_ctx* ctx, const tt_config& c, std::uint64_t seed)
      : c_(c), model_(ctx, c, kBatch, true), layout_(model_.layout()), arena_(model_.arena()) {
    const std::int64_t all = layout_.matrices + layout_.norms;
    value_ = arena_.take(all);
    first_ = arena_.zeros(all);
    second_ = arena_.zeros(all);
    factor_ = arena_.take(1);
    std::vector<float> start(static_cast<std::size_t>(all), 1.0f);
    std::uint64_t state = seed + 0x9e3779b97f4a7c15ull;
    if (state == 0) state = 1;
    const std::int64_t outer = std::int64_t{c.V} * c.d;
    for (std::int64_t i = 0; i < layout_.matrices; ++i) {
      start[static_cast<std::size_t>(i)] = (i < outer ? 0.05f : 0.1f) * normal(state);
    }
    arena_.copy(value_, start.data(), all);
  }

  void run(const std::uint16_t* docs, std::int64_t n_docs, const tt_budget& budget) {
    const auto start = std::chrono::steady_clock::now();
    const double per_step = static_cast<double>(kBatch) * c_.T,
                 most = std::min(static_cast<double>(budget.max_tokens),
                                 kPasses * static_cast<double>(n_docs) * c_.T);
    double last = 0, longest = 0;
    for (std::int64_t step = 0; n_docs > 0 && per_step * static_cast<double>(step + 1) <= most;
         ++step) {
      cudaStreamSynchronize(arena_.stream());  // so that the clock tells what the steps take
      const double elapsed =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      longest = std::max(longest, elapsed - last);
      last = elapsed;
      if (elapsed + 2 * longest > 0.95 * budget.seconds) break;
      const double progress = std::max(per_step * (static_cast<double>(step) + 0.5) / most,
                                       elapsed / (0.95 * budget.seconds));
      learn(docs, n_docs, step, progress < 0.05 ? progress / 0.05 + 0.02 : (1 - progress) / 0.95);
    }
  }

  void write(std::uint8_t* blob) {
    const std::int64_t blocks = layout_.matrices / kBlock;
    pack<<<threads(blocks), kThreads, 0, arena_.stream()>>>(blocks, value_, blob);
    cudaMemcpyAsync(blob + blocks * kBytes, value_ + layout_.matrices,
                    static_cast<std::size_t>(layout_.norms) * 4, cudaMemcpyDeviceToDevice,
                    arena_.stream());
  }

 private:
  void learn(const std::uint16_t* docs, std::int64_t n_docs, std::int64_t step, double rate) {
    const cudaStream_t stream = arena_.stream();
    const std::int64_t blocks = layout_.matrices / kBlock, all = layout_.matrices + layout_.norms;
    std::vector<std::int32_t> tokens;
    for (std::int64_t i = 0; i < kBatch; ++i) {
      const std::uint16_t* doc = docs + (step * kBatch + i) % n_docs * c_.T;
      tokens.insert(tokens.end(), doc, doc + c_.T);
    }
    round_weights<<<threads(blocks), kThreads, 0, stream>>>(blocks, value_, model_.used());
    arena_.copy(model_.used() + layout_.matrices, value_ + layout_.matrices, layout_.norms);
    model_.set_documents(tokens);
    model_.learn();
    gradient_factor<<<1, 1, 0, stream>>>(all, static_cast<float>(kBatch), model_.gradient(),
                                         factor_);
    const double n = static_cast<double>(step + 1);
    const Schedule s{static_cast<float>(rate), static_cast<float>(1 - std::pow(0.9, n)),
                     static_cast<float>(1 - std::pow(0.98, n))};
    adam<<<threads(all), kThreads, 0, stream>>>(all, layout_.matrices, s, factor_, value_,
                                                model_.gradient(), first_, second_);
  }

  tt_config c_;
  Model model_;
  const Layout& layout_;
  Arena& arena_;
  float *value_, *first_, *second_, *factor_;
};

}  // namespace

// The walk down a tree, greedy or sampled.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "abi.h"
#include "common/sampling.h"
#include "vectors.h"

namespace {

// The lowest index of the largest logit, or kNotANumber: the maximum of each block of 2048 first,
// then the place in the first block that holds the largest.
std::int32_t argmax(const float* x, std::int32_t V) {
  constexpr std::int32_t kBlock = 2048;
  float best = -kInf;
  std::int32_t best_block = 0;
  for (std::int32_t begin = 0; begin < V; begin += kBlock) {
    const std::int32_t n = std::min(kBlock, V - begin);
    Vec m[4] = {splat(-kInf), splat(-kInf), splat(-kInf), splat(-kInf)};
    VecI nan{};
    std::int32_t j = 0;
    for (; j + 4 * kLanes <= n; j += 4 * kLanes) {
      for (int i = 0; i < 4; ++i) {
        const Vec v = load(x + begin + j + i * kLanes);
        nan |= v != v;
        m[i] = larger(v, m[i]);
      }
    }
    const Vec all = larger(larger(m[0], m[1]), larger(m[2], m[3]));
    float max = -kInf;
    bool bad = false;
    for (int i = 0; i < kLanes; ++i) {
      max = std::max(max, all[i]);
      bad |= nan[i] != 0;
    }
    for (; j < n; ++j) {
      bad |= std::isnan(x[begin + j]);
      max = x[begin + j] > max ? x[begin + j] : max;
    }
    if (bad) return kNotANumber;
    if (max > best) {
      best = max;
      best_block = begin;
    }
  }
  const float* block = x + best_block;
  return static_cast<std::int32_t>(std::find(block, x + V, best) - x);
}

// One item's way down its tree.
struct Walk {
  Tree tree;
  std::int32_t V, eos, budget, b;
  std::int64_t first;  // of the item's nodes
  const float *root_logits, *node_logits;
  const dv_sampling* sampling;  // null: greedy

  // False if logits that were needed hold a NaN. p, q: room for sampling.
  bool run(std::int32_t* path, std::int32_t& count, std::int32_t& bonus, double* p,
           double* q) const {
    std::fill(path, path + tree.n, -1);
    count = 0;
    bonus = -1;
    std::int32_t cur = -1;
    while (count < budget) {
      Step step;
      if (!decide(cur, count, p, q, step)) return false;
      if (step.child < 0) {
        bonus = step.token;
        return true;
      }
      path[count++] = step.child;
      if (eos >= 0 && step.token == eos) return true;
      cur = step.child;
    }
    return true;
  }

  bool decide(std::int32_t cur, std::int32_t count, double* p, double* q, Step& step) const {
    const std::int64_t row = (cur < 0 ? b : first + cur) * V;
    const float* logits = (cur < 0 ? root_logits : node_logits) + row;
    if (sampling == nullptr) {
      step.token = argmax(logits, V);
      if (step.token == kNotANumber) return false;
      step.child = tree.child_with(cur, step.token);
      return true;
    }
    const float* draft = cur < 0 ? sampling->root_q : sampling->node_q;
    const float* u = sampling->uniform + b * sampling->u_item + count * sampling->u_step;
    return sample(tree, cur, V, logits, draft == nullptr ? nullptr : draft + row, u, *sampling, p,
                  q, step);
  }
};

}  // namespace

// One step down a tree: draws, residuals, and which node has a token.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "abi.h"

namespace {

constexpr std::int32_t kNotANumber = -1;

// The lowest index of the largest logit, or kNotANumber: naive and par have each their own.
std::int32_t argmax(const float* x, std::int32_t V);

// What one step decides: an accepted child, or (child -1) the bonus token.
struct Step {
  std::int32_t child = -1, token = -1;
};

struct Tree {
  std::int64_t n;
  const std::int32_t *parent, *token;

  std::int32_t child_with(std::int32_t cur, std::int32_t wanted) const {
    for (std::int64_t i = cur + 1; i < n; ++i) {
      if (parent[i] == cur && token[i] == wanted) return static_cast<std::int32_t>(i);
    }
    return -1;
  }
};

// The lowest index at which the running sum of w exceeds u times its total.
std::int32_t draw(const double* w, std::int32_t V, double u) {
  double total = 0, sum = 0;
  for (std::int32_t j = 0; j < V; ++j) total += w[j];
  std::int32_t last = 0;
  for (std::int32_t j = 0; j < V; ++j) {
    sum += w[j];
    if (w[j] > 0) last = j;
    if (sum > u * total) return j;
  }
  return last;
}

// p = max(0, p - q), normalised; unchanged if nothing remains.
void subtract(double* p, const double* q, std::int32_t V) {
  double sum = 0;
  for (std::int32_t j = 0; j < V; ++j) sum += std::max(0.0, p[j] - q[j]);
  if (!(sum > 0)) return;
  for (std::int32_t j = 0; j < V; ++j) p[j] = std::max(0.0, p[j] - q[j]) / sum;
}

void remove_token(double* q, std::int32_t x, std::int32_t V) {
  q[x] = 0;
  double sum = 0;
  for (std::int32_t j = 0; j < V; ++j) sum += q[j];
  if (!(sum > 0)) return;
  for (std::int32_t j = 0; j < V; ++j) q[j] /= sum;
}

bool softmax(const float* x, std::int32_t V, float temperature, double* p) {
  if (argmax(x, V) == kNotANumber) return false;
  const double max = x[argmax(x, V)];
  double sum = 0;
  for (std::int32_t j = 0; j < V; ++j) sum += p[j] = std::exp((x[j] - max) / temperature);
  for (std::int32_t j = 0; j < V; ++j) p[j] /= sum;
  return true;
}

// One sampled step; false if the logits hold a NaN. p and q: room for V numbers each.
bool sample(const Tree& tree, std::int32_t cur, std::int32_t V, const float* logits,
            const float* q_row, const float* u, const dv_sampling& s, double* p, double* q,
            Step& step) {
  if (!softmax(logits, V, s.temperature, p)) return false;
  if (s.mode == DV_SAMPLE_TREE) {
    step.token = draw(p, V, u[0]);
    step.child = tree.child_with(cur, step.token);
    return true;
  }
  std::copy(q_row, q_row + V, q);
  for (std::int64_t i = cur + 1; i < tree.n; ++i) {
    if (tree.parent[i] != cur) continue;
    const std::int32_t x = tree.token[i];
    if (*u++ * q[x] < p[x]) {
      step = {static_cast<std::int32_t>(i), x};
      return true;
    }
    subtract(p, q, V);
    if (s.mode == DV_SAMPLE_NO_REPL) remove_token(q, x, V);
  }
  step = {-1, draw(p, V, *u)};
  return true;
}

bool valid_sampling(const dv_sampling& s, std::int64_t nodes) {
  if (s.size != sizeof(dv_sampling) || !(s.temperature > 0) || s.uniform == nullptr) return false;
  if (s.mode < DV_GREEDY || s.mode > DV_SAMPLE_NO_REPL) return false;
  return s.mode == DV_SAMPLE_TREE || (s.root_q != nullptr && (s.node_q != nullptr || nodes == 0));
}

}  // namespace

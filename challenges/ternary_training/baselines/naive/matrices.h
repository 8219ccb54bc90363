// Products of matrices, and root mean square norms.
#pragma once

#include <cmath>
#include <cstdint>

#include "blocks.h"

namespace {

// Sixteen sums side by side, so that the compiler can use vectors.
float dot(const float* a, const float* b, Index n) {
  float part[16] = {};
  Index i = 0;
  for (; i + 16 <= n; i += 16) {
    for (Index j = 0; j < 16; ++j) part[j] += a[i + j] * b[i + j];
  }
  float sum = 0;
  for (; i < n; ++i) sum += a[i] * b[i];
  for (const float p : part) sum += p;
  return sum;
}

void add_scaled(float* y, float a, const float* x, Index n) {
  for (Index i = 0; i < n; ++i) y[i] += a * x[i];
}

// y [M, N] = x [M, K] W [N, K]^T
void forward(Index M, Index N, Index K, const float* x, const float* w, float* y) {
  for (Index m = 0; m < M; ++m) {
    for (Index n = 0; n < N; ++n) y[m * N + n] = dot(x + m * K, w + n * K, K);
  }
}

// dx [M, K] += dy W
void backward_input(Index M, Index N, Index K, const float* dy, const float* w, float* dx) {
  for (Index m = 0; m < M; ++m) {
    for (Index n = 0; n < N; ++n) add_scaled(dx + m * K, dy[m * N + n], w + n * K, K);
  }
}

// dw [N, K] += dy^T x
void backward_weight(Index M, Index N, Index K, const float* dy, const float* x, float* dw) {
  for (Index m = 0; m < M; ++m) {
    for (Index n = 0; n < N; ++n) add_scaled(dw + n * K, dy[m * N + n], x + m * K, K);
  }
}

// y = x r w with r = 1 / sqrt(mean(x^2) + eps), for each row; r is kept.
void rms_forward(Index rows, Index n, float eps, const float* x, const float* w, float* y,
                 float* r) {
  for (Index i = 0; i < rows; ++i) {
    r[i] = 1 / std::sqrt(dot(x + i * n, x + i * n, n) / static_cast<float>(n) + eps);
    for (Index j = 0; j < n; ++j) y[i * n + j] = x[i * n + j] * r[i] * w[j];
  }
}

// dx += and dw += the gradients of the above.
void rms_backward(Index rows, Index n, const float* x, const float* w, const float* r,
                  const float* dy, float* dx, float* dw) {
  for (Index i = 0; i < rows; ++i) {
    float projection = 0;
    for (Index j = 0; j < n; ++j) projection += dy[i * n + j] * w[j] * x[i * n + j];
    projection *= r[i] * r[i] / static_cast<float>(n);
    for (Index j = 0; j < n; ++j) {
      dw[j] += dy[i * n + j] * x[i * n + j] * r[i];
      dx[i * n + j] += r[i] * (dy[i * n + j] * w[j] - x[i * n + j] * projection);
    }
  }
}

}  // namespace

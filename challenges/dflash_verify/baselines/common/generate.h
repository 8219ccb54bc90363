// The loop of speculative decoding, and the cache made dense after each step: what they cost is the
// model's part, so there is nothing that an expert would do otherwise.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "abi.h"
#include "common/trees.h"
#include "shared/baselines/scratch.h"

extern "C" {

int dv_compact(assay_ctx*, int32_t B, const int64_t* P, const int64_t* cu, const int32_t* acc_node,
               const int32_t* n_acc, int64_t row_bytes, int32_t caches, void* const* kv) {
  if (!valid_cu(B, cu) || !valid_prefixes(B, P) || row_bytes < 0 || caches < 0) return ASSAY_EINVAL;
  if (B == 0) return ASSAY_OK;
  if (n_acc == nullptr || (cu[B] > 0 && acc_node == nullptr)) return ASSAY_EINVAL;
  for (std::int32_t b = 0; b < B; ++b) {
    if (n_acc[b] < 0 || n_acc[b] > cu[b + 1] - cu[b]) return ASSAY_EINVAL;
    for (std::int32_t j = 0; j < n_acc[b]; ++j) {
      const std::int32_t node = acc_node[cu[b] + j];
      if (node <= (j == 0 ? -1 : acc_node[cu[b] + j - 1]) || node >= cu[b + 1] - cu[b])
        return ASSAY_EINVAL;
    }
  }
  if (row_bytes == 0 || caches == 0) return ASSAY_OK;
  if (has_null(std::int64_t{B} * caches, kv)) return ASSAY_EINVAL;
  for (std::int32_t b = 0; b < B; ++b) {
    for (std::int32_t c = 0; c < caches; ++c) {
      auto* rows = static_cast<char*>(kv[std::int64_t{b} * caches + c]) + P[b] * row_bytes;
      // Ascending: a row's source is never before its place, so it has not been overwritten yet.
      for (std::int32_t j = 0; j < n_acc[b]; ++j) {
        std::memmove(rows + j * row_bytes, rows + acc_node[cu[b] + j] * row_bytes,
                     static_cast<std::size_t>(row_bytes));
      }
    }
  }
  return ASSAY_OK;
}

int dv_generate(assay_ctx* ctx, const dv_loop* loop, const dv_model* model, int32_t* out,
                int64_t* n_out) {
  if (loop == nullptr || loop->size != sizeof(dv_loop) || model == nullptr || n_out == nullptr)
    return ASSAY_EINVAL;
  if (model->size != sizeof(dv_model) || model->V < 1 || model->max_nodes < 0) return ASSAY_EINVAL;
  if (loop->n_prompt < 1 || loop->prompt == nullptr || loop->max_new < 0) return ASSAY_EINVAL;
  if (loop->max_new > 0 && out == nullptr) return ASSAY_EINVAL;
  const std::int64_t most = loop->n_prompt + model->max_nodes + 1;  // rows of one verify
  const std::int64_t ldm = (most + 63) / 64;
  const Scratch<std::int32_t> text(ctx, loop->n_prompt + loop->max_new), token(ctx, most),
      parent(ctx, model->max_nodes), acc(ctx, model->max_nodes);
  const Scratch<std::int64_t> pos(ctx, most), keep(ctx, most);
  const Scratch<std::uint64_t> bits(ctx, most * ldm);
  const Scratch<float> logits(ctx, most * model->V);
  if (text.failed() || token.failed() || parent.failed() || acc.failed() || pos.failed() ||
      keep.failed() || bits.failed() || logits.failed()) {
    return ASSAY_ENOMEM;
  }
  std::copy(loop->prompt, loop->prompt + loop->n_prompt, text.data());
  std::int64_t length = loop->n_prompt;  // of the text
  std::int64_t cached = 0;               // rows that the model holds
  std::int64_t emitted = 0;
  bool ended = false;
  while (emitted < loop->max_new && !ended) {
    // Rows: what the model has not seen of the text (the prompt, later the bonus), then the tree.
    const std::int64_t pending = length - cached;
    std::copy(text.data() + cached, text.data() + length, token.data());
    std::int32_t n = 0;
    int status =
        model->draft(model->user, length, text.data(), &n, parent.data(), token.data() + pending);
    if (status != ASSAY_OK) return status;
    if (n < 0 || n > model->max_nodes || !valid_tree(n, parent.data())) return ASSAY_EINVAL;
    std::fill(bits.data(), bits.data() + (pending + n) * ldm, 0);
    for (std::int64_t r = 0; r < pending + n; ++r) {
      std::uint64_t* row = bits.data() + r * ldm;
      const auto see = [&](std::int64_t j) { row[j / 64] |= std::uint64_t{1} << (j % 64); };
      for (std::int64_t j = 0; j < std::min(r + 1, pending); ++j) see(j);
      pos[r] = cached + r;
      if (r < pending) continue;
      std::int64_t depth = 0;
      for (std::int64_t a = r - pending; a >= 0; a = parent[a], ++depth) see(pending + a);
      pos[r] = length + depth - 1;
    }
    status = model->verify(model->user, pending + n, token.data(), pos.data(), ldm, bits.data(),
                           logits.data());
    if (status != ASSAY_OK) return status;

    const std::int64_t cu[2] = {0, n};
    const auto budget =
        static_cast<std::int32_t>(std::min<std::int64_t>(loop->max_new - emitted, INT32_MAX));
    std::int32_t n_acc = 0, bonus = -1;
    status = dv_accept(ctx, 1, model->V, cu, parent.data(), token.data() + pending,
                       logits.data() + (pending - 1) * model->V, logits.data() + pending * model->V,
                       &loop->eos, &budget, nullptr, acc.data(), &n_acc, &bonus);
    if (status != ASSAY_OK) return status;

    for (std::int64_t j = 0; j < pending; ++j) keep[j] = j;
    for (std::int32_t j = 0; j < n_acc; ++j) {
      keep[pending + j] = pending + acc[j];
      text[length++] = token[pending + acc[j]];
    }
    cached = length;
    if (bonus >= 0) text[length++] = bonus;
    emitted = length - loop->n_prompt;
    ended = bonus < 0 || bonus == loop->eos;
    if (ended || emitted == loop->max_new) break;
    status = model->commit(model->user, pending + n_acc, keep.data());
    if (status != ASSAY_OK) return status;
  }
  std::copy(text.data() + loop->n_prompt, text.data() + length, out);
  std::fill(out + emitted, out + loop->max_new, -1);
  *n_out = emitted;
  return ASSAY_OK;
}

}  // extern "C"

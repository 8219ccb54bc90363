// Where the outputs go, and which arguments are legal.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "abi.h"

namespace {

struct Outputs {
  std::int32_t* seq;
  std::int32_t* len;
  double* acc;
  double* score;
  std::int32_t* finished;
  std::int32_t* n_out;
};

constexpr bs_options kNoOptions{sizeof(bs_options), ASSAY_F32, 0, 0, nullptr, nullptr, 1, 0, 0};

bool valid(const bs_params* p, const assay_lm* lm, const Outputs& to) {
  if (p == nullptr || p->size != sizeof(bs_params) || lm == nullptr || lm->size != sizeof(assay_lm))
    return false;
  if (p->B < 0 || p->K < 1 || p->max_new < 0 || p->min_new < 0 || lm->V < 1 || lm->step == nullptr)
    return false;
  if (p->eos < -1 || p->eos >= lm->V || !std::isfinite(p->alpha)) return false;
  if (p->rank_mode < 0 || p->rank_mode > 1 || p->penalty < 0 || p->penalty > 1) return false;
  if (p->keep_finished < 0 || p->keep_finished > 1 || lm->kind < 0 || lm->kind > 1) return false;
  if (p->B == 0) return true;
  if (p->prompt_len == nullptr || p->prompt == nullptr) return false;
  for (std::int32_t b = 0; b < p->B; ++b) {
    if (p->prompt_len[b] < 0) return false;
  }
  if (p->max_new > 0 && to.seq == nullptr) return false;
  return to.len != nullptr && to.acc != nullptr && to.score != nullptr && to.finished != nullptr &&
         to.n_out != nullptr;
}

bool valid_options(const bs_params& p, const bs_options* o, const assay_lm& lm) {
  if (o == nullptr || o->size != sizeof(bs_options)) return false;
  if (o->row_dtype < ASSAY_F32 || o->row_dtype > ASSAY_F16 || o->no_repeat_ngram < 0) return false;
  if (o->groups < 1 || p.K % o->groups != 0) return false;
  if (!(o->diversity >= 0) || !std::isfinite(o->diversity)) return false;
  if (!(o->patience >= 0) || !std::isfinite(o->patience)) return false;
  if (o->patience > 0 && p.keep_finished == 0) return false;
  if (o->n_bad < 0 || (o->n_bad > 0 && (o->bad_len == nullptr || o->bad == nullptr))) return false;
  for (std::int32_t i = 0; i < o->n_bad; ++i) {
    if (o->bad_len[i] < 1 || o->bad[i] == nullptr) return false;
    const auto outside = [&](std::int32_t token) { return token < 0 || token >= lm.V; };
    if (std::any_of(o->bad[i], o->bad[i] + o->bad_len[i], outside)) return false;
  }
  return true;
}

}  // namespace

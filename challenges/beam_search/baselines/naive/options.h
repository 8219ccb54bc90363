// The search with what the optional entry point adds to it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "abi.h"
#include "search.h"
#include "shared/baselines/scratch.h"

namespace {

// The value of a bf16 or f16 bit pattern: sign, exponent, fraction.
float half_value(std::uint16_t bits, bool bf16) {
  const int fraction_bits = bf16 ? 7 : 10, largest = bf16 ? 255 : 31, bias = bf16 ? 127 : 15;
  const int exponent = (bits & 0x7fff) >> fraction_bits;
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == largest)
    return fraction != 0 ? std::numeric_limits<float>::quiet_NaN()
                         : sign * static_cast<float>(kInf);
  if (exponent == 0)
    return sign * std::ldexp(static_cast<float>(fraction), 1 - bias - fraction_bits);
  return sign * std::ldexp(static_cast<float>(fraction + (1 << fraction_bits)),
                           exponent - bias - fraction_bits);
}

// What the options change. Lists, and with them groups, and patience are part of Search.
class OptionSearch : public Search {
 public:
  OptionSearch(assay_ctx* ctx, const bs_params& p, const assay_lm& lm, const bs_options& options)
      : Search(ctx, p, lm, options),
        wide_(ctx, options.row_dtype != ASSAY_F32 ? lm.V : 0),
        taken_(ctx, lm.V) {}

  bool failed() const override { return Search::failed() || wide_.failed() || taken_.failed(); }

 protected:
  // The values of a row as floats.
  const float* values(std::int64_t row) const override {
    if (o_.row_dtype == ASSAY_F32) return Search::values(row);
    const auto* halves = reinterpret_cast<const std::uint16_t*>(out_.data()) + row * lm_.V;
    for (std::int32_t v = 0; v < lm_.V; ++v) wide_[v] = half(halves[v]);
    return wide_.data();
  }

  virtual float half(std::uint16_t bits) const {
    return half_value(bits, o_.row_dtype == ASSAY_BF16);
  }

  bool allowed(std::int32_t token, const Beam& beam) const override {
    const std::int32_t* text = text_.data() + (&beam - list_.data()) * T_;
    return Search::allowed(token, beam) && !repeats(text, beam.len, token) &&
           !is_bad(text, beam.len, token);
  }

  // Whether the last n tokens of text + token stand in it already.
  virtual bool repeats(const std::int32_t* text, std::int64_t len, std::int32_t token) const {
    const std::int64_t n = o_.no_repeat_ngram;
    for (std::int64_t at = 0; n > 0 && at + n <= len; ++at) {
      if (text[at + n - 1] == token && std::equal(text + at, text + at + n - 1, text + len - n + 1))
        return true;
    }
    return false;
  }

  // Whether text + token ends with a banned sequence.
  virtual bool is_bad(const std::int32_t* text, std::int64_t len, std::int32_t token) const {
    for (std::int32_t i = 0; i < o_.n_bad; ++i) {
      const std::int64_t before = o_.bad_len[i] - 1;
      if (before <= len && o_.bad[i][before] == token &&
          std::equal(o_.bad[i], o_.bad[i] + before, text + len - before))
        return true;
    }
    return false;
  }

  std::int32_t advance(std::int32_t b, std::int32_t row) override {
    std::fill_n(taken_.data(), lm_.V, 0);
    return Search::advance(b, row);
  }

  std::int32_t advance_list(std::int32_t l, std::int32_t row) override {
    row = Search::advance_list(l, row);
    for (std::int64_t i = 0; i < size_[l]; ++i) {
      const Beam& beam = list_[l * W_ + i];
      if (beam.len == step_) ++taken_[beam.last];
    }
    return row;
  }

  // Tokens that the groups before took compete with less.
  double key(const Candidate& c) const override {
    if (c.token < 0 || taken_[c.token] == 0) return Search::key(c);
    const double acc = c.acc - o_.diversity * taken_[c.token];
    return p_.rank_mode == 0 ? score(acc, c.len) : acc;
  }

  Scratch<float> wide_;          // a row of halves
  Scratch<std::int32_t> taken_;  // how often the step appended each token of the item so far
};

}  // namespace

// The search, step by step. Its parts are virtual so that a variant can replace one of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "abi.h"
#include "common/arguments.h"
#include "shared/baselines/scratch.h"

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

struct Beam {
  double acc = 0, score = 0;
  std::int64_t state = -1;
  std::int64_t order = 0;  // of a finished beam among those of its item
  std::int32_t len = 0, finished = 0;
  std::int32_t last = 0;  // its last token
};

// An element of the pool: a finished beam of the list (token -1), or a beam and the token after it.
struct Candidate {
  double acc, score;
  std::int32_t parent, token, len;
};

// The list of group g of item b is list number b * G + g and has W places; without groups it is
// list b and has K.
class Search {
 public:
  Search(assay_ctx* ctx, const bs_params& p, const assay_lm& lm,
         const bs_options& options = kNoOptions)
      : p_(p),
        o_(options),
        lm_(lm),
        ctx_(ctx),
        K_(p.K),
        T_(p.max_new),
        G_(options.groups),
        W_(p.K / options.groups),
        out_(ctx, std::int64_t{p.B} * K_ * lm.V),
        states_(ctx, std::int64_t{p.B} * K_),
        parents_(ctx, std::int64_t{p.B} * K_),
        items_(ctx, std::int64_t{p.B} * K_),
        tokens_(ctx, std::int64_t{p.B} * K_),
        list_(ctx, std::int64_t{p.B} * K_),
        bank_(ctx, p.keep_finished != 0 ? std::int64_t{p.B} * K_ : 0),
        next_(ctx, K_),
        best_(ctx, K_),
        text_(ctx, std::int64_t{p.B} * K_ * T_),
        next_text_(ctx, K_ * T_),
        bank_text_(ctx, p.keep_finished != 0 ? std::int64_t{p.B} * K_ * T_ : 0),
        size_(ctx, p.B * G_),
        banked_(ctx, p.B),
        finished_(ctx, p.B),
        merged_(ctx, 2 * K_) {}
  virtual ~Search() = default;

  virtual bool failed() const {
    return out_.failed() || states_.failed() || parents_.failed() || items_.failed() ||
           tokens_.failed() || list_.failed() || bank_.failed() || next_.failed() ||
           best_.failed() || text_.failed() || next_text_.failed() || bank_text_.failed() ||
           size_.failed() || banked_.failed() || finished_.failed() || merged_.failed();
  }

  int run(const Outputs& to) {
    for (std::int32_t b = 0; b < p_.B; ++b) start(b);
    for (step_ = 1; step_ <= T_; ++step_) {
      const std::int32_t rows = gather();
      if (rows == 0) break;
      const int status = lm_.step(lm_.user, ctx_, rows, items_.data(), parents_.data(),
                                  tokens_.data(), out_.data(), states_.data());
      if (status != ASSAY_OK) return status;
      std::int32_t row = 0;
      for (std::int32_t b = 0; b < p_.B; ++b) {
        if (extends(b)) row = advance(b, row);
      }
    }
    for (std::int32_t b = 0; b < p_.B; ++b) write(b, to);
    return ASSAY_OK;
  }

 protected:
  virtual void start(std::int32_t b) {
    for (std::int64_t l = b * G_; l < (b + 1) * G_; ++l) {
      list_[l * W_] = Beam{};
      size_[l] = 1;
    }
    banked_[b] = finished_[b] = 0;
  }

  virtual double score(double acc, std::int32_t len) const {
    if (p_.penalty != 0) return acc / std::pow((5.0 + len) / 6.0, p_.alpha);
    return len == 0 ? 0 : acc / std::pow(static_cast<double>(len), p_.alpha);
  }

  // What pruning compares.
  virtual double key(const Candidate& c) const { return p_.rank_mode == 0 ? c.score : c.acc; }

  // The order of the pool.
  virtual bool before(const Candidate& a, const Candidate& b) const {
    if (key(a) != key(b)) return key(a) > key(b);
    if ((a.token < 0) != (b.token < 0)) return a.token < 0;
    if (a.parent != b.parent) return a.parent < b.parent;
    return a.token < b.token;
  }

  // Whether the item is not done yet.
  virtual bool extends(std::int32_t b) const {
    bool active = false;
    each_beam(b, [&](const Beam& beam) { active |= beam.finished == 0; });
    return active && !decided(b) && !patience_ends(b);
  }

  // Calls visit for every beam of an item's lists.
  template <class Visit>
  void each_beam(std::int32_t b, const Visit& visit) const {
    for (std::int64_t l = b * G_; l < (b + 1) * G_; ++l) {
      for (std::int64_t i = 0; i < size_[l]; ++i) visit(list_[l * W_ + i]);
    }
  }

  virtual bool patience_ends(std::int32_t b) const {
    return o_.patience > 0 && finished_[b] >= o_.patience * static_cast<double>(K_);
  }

  // The most that an active beam scores, as it is or with further tokens: the penalty makes the
  // score of one sum rise or fall with the length, so an end is the most.
  virtual double most_possible(const Beam& beam) const {
    return std::max({beam.score, score(beam.acc, beam.len + 1),
                     score(beam.acc, static_cast<std::int32_t>(T_))});
  }

  // With keep_finished: K finished beams are better than any active one is or can still become.
  bool decided(std::int32_t b) const {
    if (p_.keep_finished == 0) return false;
    double bound = -kInf;
    each_beam(b, [&](const Beam& beam) {
      if (beam.finished == 0) bound = std::max(bound, most_possible(beam));
    });
    std::int64_t better = 0;
    each_beam(
        b, [&](const Beam& beam) { better += beam.finished != 0 && beam.score > bound ? 1 : 0; });
    for (std::int64_t i = 0; i < banked_[b]; ++i) better += bank_[b * K_ + i].score > bound ? 1 : 0;
    return better >= K_;
  }

  // The rows of the next call.
  virtual std::int32_t gather() {
    std::int32_t n = 0;
    for (std::int32_t b = 0; b < p_.B; ++b) {
      if (!extends(b)) continue;
      each_beam(b, [&](const Beam& beam) {
        if (beam.finished != 0) return;
        items_[n] = b;
        parents_[n] = beam.state;
        tokens_[n++] = beam.last;
      });
    }
    return n;
  }

  // Subtracted from every value of a row.
  virtual double shift(const float* row) const {
    if (lm_.kind == BS_LOG_PROBS) return 0;
    const auto most = static_cast<double>(*std::max_element(row, row + lm_.V));
    double sum = 0;
    for (std::int32_t v = 0; most > -kInf && v < lm_.V; ++v)
      sum += std::exp(static_cast<double>(row[v]) - most);
    return most > -kInf ? most + std::log(sum) : 0;
  }

  virtual Candidate extended(const Beam& beam, std::int32_t parent, std::int32_t token,
                             double logp) const {
    const double acc = beam.acc + logp;
    return {acc, score(acc, beam.len + 1), parent, token, beam.len + 1};
  }

  virtual Candidate frozen(const Beam& beam, std::int32_t parent) const {
    return {beam.acc, beam.score, parent, -1, beam.len};
  }

  // Puts a candidate into its place among the best so far.
  virtual void consider(const Candidate& c, std::int64_t& n) {
    if (n == W_ && !before(c, best_[W_ - 1])) return;
    std::int64_t at = n < W_ ? n++ : W_ - 1;
    for (; at > 0 && before(c, best_[at - 1]); --at) best_[at] = best_[at - 1];
    best_[at] = c;
  }

  virtual bool allowed(std::int32_t token, const Beam& beam) const {
    return token != p_.eos || beam.len + 1 >= p_.min_new;
  }

  virtual const float* values(std::int64_t row) const { return out_.data() + row * lm_.V; }

  // One step of one item, whose rows start at `row`; returns the row behind them.
  virtual std::int32_t advance(std::int32_t b, std::int32_t row) {
    for (std::int64_t g = 0; g < G_; ++g)
      row = advance_list(static_cast<std::int32_t>(b * G_ + g), row);
    return row;
  }

  virtual std::int32_t advance_list(std::int32_t l, std::int32_t row) {
    Beam* list = list_.data() + l * W_;
    std::int64_t n = 0;
    for (std::int32_t i = 0; i < size_[l]; ++i) {
      if (list[i].finished != 0) {
        consider(frozen(list[i], i), n);
        continue;
      }
      const float* out = values(row);
      const double minus = shift(out);
      for (std::int32_t v = 0; v < lm_.V; ++v) {
        const auto x = static_cast<double>(out[v]);
        if (x > -kInf && allowed(v, list[i])) consider(extended(list[i], i, v, x - minus), n);
      }
      list[i].state = states_[row++];
    }
    replace(l, n);
    return row;
  }

  // The best candidates become the list.
  virtual void replace(std::int32_t l, std::int64_t n) {
    const auto b = static_cast<std::int32_t>(l / G_);
    Beam* list = list_.data() + l * W_;
    std::int32_t* text = text_.data() + l * W_ * T_;
    for (std::int64_t j = 0; j < n; ++j) {
      const Candidate& c = best_[j];
      const Beam& parent = list[c.parent];
      std::copy_n(text + c.parent * T_, parent.len, next_text_.data() + j * T_);
      next_[j] = parent;
      next_[j].acc = c.acc;
      next_[j].score = c.score;
      if (c.token < 0) continue;
      next_text_[j * T_ + parent.len] = c.token;
      next_[j].last = c.token;
      next_[j].len = c.len;
      next_[j].finished = c.token == p_.eos ? 1 : 0;
      if (next_[j].finished != 0) next_[j].order = finished_[b]++;
    }
    if (p_.keep_finished != 0) save_dropped(l, n);
    std::copy_n(next_.data(), n, list);
    std::copy_n(next_text_.data(), n * T_, text);
    size_[l] = static_cast<std::int32_t>(n);
  }

  void save_dropped(std::int32_t l, std::int64_t n) {
    const auto b = static_cast<std::int32_t>(l / G_);
    for (std::int32_t i = 0; i < size_[l]; ++i) {
      bool stays = list_[l * W_ + i].finished == 0;
      for (std::int64_t j = 0; j < n; ++j) stays |= best_[j].token < 0 && best_[j].parent == i;
      if (!stays) save(b, list_[l * W_ + i], text_.data() + (l * W_ + i) * T_);
    }
  }

  // Keeps the best K of the dropped beams, in the order of the answer.
  void save(std::int32_t b, const Beam& beam, const std::int32_t* text) {
    Beam* bank = bank_.data() + b * K_;
    std::int32_t* texts = bank_text_.data() + b * K_ * T_;
    if (banked_[b] == K_ && !ahead(beam, bank[K_ - 1])) return;
    std::int64_t at = banked_[b] < K_ ? banked_[b]++ : K_ - 1;
    for (; at > 0 && ahead(beam, bank[at - 1]); --at) {
      bank[at] = bank[at - 1];
      std::copy_n(texts + (at - 1) * T_, T_, texts + at * T_);
    }
    bank[at] = beam;
    std::copy_n(text, beam.len, texts + at * T_);
  }

  // The order of the answer; what it leaves equal stays in the order of the list.
  virtual bool ahead(const Beam& a, const Beam& b) const {
    if (a.score != b.score) return a.score > b.score;
    if (a.finished != b.finished) return a.finished != 0;
    return a.finished != 0 && a.order < b.order;
  }

  // Patience that ended the search lets no active beam into the answer.
  virtual bool takes_part(std::int32_t b, const Beam& beam) const {
    return beam.finished != 0 || !patience_ends(b);
  }

  virtual void write(std::int32_t b, const Outputs& to) {
    std::int64_t n = 0;
    const auto insert = [&](std::int64_t index) {
      std::int64_t at = n++;
      for (; at > 0 && ahead(entry(b, index), entry(b, merged_[at - 1])); --at)
        merged_[at] = merged_[at - 1];
      merged_[at] = index;
    };
    for (std::int64_t g = 0; g < G_; ++g) {
      for (std::int64_t i = 0; i < size_[b * G_ + g]; ++i) {
        if (takes_part(b, list_[b * K_ + g * W_ + i])) insert(g * W_ + i);
      }
    }
    for (std::int64_t i = 0; i < banked_[b]; ++i) insert(K_ + i);
    to.n_out[b] = static_cast<std::int32_t>(std::min<std::int64_t>(n, K_));
    for (std::int64_t k = 0; k < K_; ++k) {
      const std::int64_t at = b * K_ + k;
      std::int32_t* seq = to.seq + at * T_;
      std::fill_n(seq, T_, -1);
      if (k >= n) continue;
      const Beam& beam = entry(b, merged_[k]);
      const std::int64_t i = merged_[k];
      std::copy_n(
          i < K_ ? text_.data() + (b * K_ + i) * T_ : bank_text_.data() + (b * K_ + i - K_) * T_,
          beam.len, seq);
      to.len[at] = beam.len;
      to.acc[at] = beam.acc;
      to.score[at] = beam.score;
      to.finished[at] = beam.finished;
    }
  }

  // Beam i of the lists, or i - K of the dropped ones.
  const Beam& entry(std::int32_t b, std::int64_t i) const {
    return i < K_ ? list_[b * K_ + i] : bank_[b * K_ + i - K_];
  }

  const bs_params& p_;
  const bs_options& o_;
  const assay_lm& lm_;
  assay_ctx* ctx_;
  std::int64_t K_, T_, G_, W_, step_ = 0;
  Scratch<float> out_;
  Scratch<std::int64_t> states_, parents_;
  Scratch<std::int32_t> items_, tokens_;
  Scratch<Beam> list_, bank_, next_;
  Scratch<Candidate> best_;
  Scratch<std::int32_t> text_, next_text_, bank_text_;
  Scratch<std::int32_t> size_, banked_, finished_;
  Scratch<std::int64_t> merged_;
};

}  // namespace

// Sample entrant of assay, not a model's answer: fast and correct, by plain loops that the compiler
// vectorises. A row's blocks are compared with the sum that a candidate must reach; what passes
// goes to a buffer that is cut back to the best K when it is full. Texts are back-pointers. One
// thread, since a scan is bound by the memory; all options, and early stopping with keep_finished.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "abi.h"

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr std::int32_t kBlock = 512;

struct Candidate {
  double acc;
  std::int32_t parent, token;

  bool operator<(const Candidate& c) const {  // better first
    if (acc != c.acc) return acc > c.acc;
    return parent != c.parent ? parent < c.parent : token < c.token;
  }
};

struct Beam {
  double acc, score;
  std::int64_t state;
  std::int32_t link;                // the last token's place in the item's links, -1: none
  std::int32_t len, token, serial;  // serial: of finished beams, from 0; -1: active

  bool done() const { return serial >= 0; }
  // The order of the answer.
  bool ahead(const Beam& b) const {
    if (score != b.score) return score > b.score;
    if (done() != b.done()) return done();
    return done() && serial < b.serial;
  }
};

struct Link {
  std::int32_t before, token;
};

struct Item {
  Beam *list, *next, *bank;
  Link* links;
  std::int32_t size, banked, serials, n_links;
};

class Memory {
 public:
  explicit Memory(assay_ctx* ctx) : ctx_(ctx) {}
  ~Memory() {
    for (int i = 0; i < n_; ++i) ctx_->free(ctx_, blocks_[i]);
  }
  Memory(const Memory&) = delete;
  template <class T>
  bool get(T*& p, std::int64_t n) {
    p = static_cast<T*>(ctx_->alloc(
        ctx_, static_cast<std::size_t>(std::max<std::int64_t>(n, 1)) * sizeof(T), 64, 0));
    if (p != nullptr) blocks_[n_++] = p;
    return p != nullptr;
  }

 private:
  assay_ctx* ctx_;
  void* blocks_[16];
  int n_ = 0;
};

struct Results {
  std::int32_t* seq;
  std::int32_t* len;
  double *acc, *score;
  std::int32_t *finished, *n_out;
};

class Searcher {
 public:
  Searcher(assay_ctx* ctx, const bs_params& p, const assay_lm& lm)
      : ctx_(ctx), p_(p), lm_(lm), memory_(ctx), K_(p.K) {}

  bool allocate() {
    const std::int64_t n = std::int64_t{p_.B} * K_;
    Beam* beams;
    Link* links;
    capacity_ = 3 * K_ + kBlock;
    if (!memory_.get(out_, n * lm_.V) || !memory_.get(state_, n) || !memory_.get(parent_, n) ||
        !memory_.get(item_, n) || !memory_.get(token_, n) || !memory_.get(beams, 3 * n) ||
        !memory_.get(links, n * p_.max_new) || !memory_.get(items_, p_.B) ||
        !memory_.get(pool_, capacity_)) {
      return false;
    }
    for (std::int64_t b = 0; b < p_.B; ++b) {
      Beam* mine = beams + 3 * K_ * b;
      items_[b] = {mine, mine + K_, mine + 2 * K_, links + b * K_ * p_.max_new, 1, 0, 0, 0};
      mine[0] = {0, 0, -1, -1, 0, 0, -1};
    }
    return true;
  }

  int run() {
    for (step_ = 1; step_ <= p_.max_new; ++step_) {
      divisor_ = divisor(step_);
      std::int32_t rows = 0;
      for (std::int32_t b = 0; b < p_.B; ++b) {
        if (settled(items_[b])) continue;
        for (std::int32_t i = 0; i < items_[b].size; ++i) {
          const Beam& beam = items_[b].list[i];
          if (beam.done()) continue;
          item_[rows] = b;
          parent_[rows] = beam.state;
          token_[rows++] = beam.token;
        }
      }
      if (rows == 0) break;
      const int status = lm_.step(lm_.user, ctx_, rows, item_, parent_, token_, out_, state_);
      if (status != ASSAY_OK) return status;
      for (std::int32_t row = 0; row < rows;) {
        Item& it = items_[item_[row]];
        row = collect(it, row);
        rebuild(it);
      }
    }
    return ASSAY_OK;
  }

  void write(const Results& to) {
    for (std::int32_t b = 0; b < p_.B; ++b) {
      Item& it = items_[b];
      // An item with shorter active beams stopped early: finished beams alone are its answer.
      const auto cut_short = [this](const Beam& x) { return !x.done() && x.len < p_.max_new; };
      it.size = static_cast<std::int32_t>(std::remove_if(it.list, it.list + it.size, cut_short) -
                                          it.list);
      std::stable_sort(it.list, it.list + it.size,
                       [](const Beam& x, const Beam& y) { return x.ahead(y); });
      std::int32_t i = 0, j = 0, k = 0;
      for (; k < K_ && (i < it.size || j < it.banked); ++k) {
        const bool dropped = i == it.size || (j < it.banked && it.bank[j].ahead(it.list[i]));
        write_beam(it, dropped ? it.bank[j++] : it.list[i++], std::int64_t{b} * K_ + k, to);
      }
      to.n_out[b] = k;
      std::fill_n(to.seq + (std::int64_t{b} * K_ + k) * p_.max_new,
                  std::int64_t{K_ - k} * p_.max_new, -1);
    }
  }

 private:
  void write_beam(const Item& it, const Beam& beam, std::int64_t at, const Results& to) {
    std::int32_t* seq = to.seq + at * p_.max_new;
    std::fill_n(seq + beam.len, p_.max_new - beam.len, -1);
    std::int32_t link = beam.link;
    for (std::int32_t t = beam.len; t-- > 0; link = it.links[link].before)
      seq[t] = it.links[link].token;
    to.len[at] = beam.len;
    to.acc[at] = beam.acc;
    to.score[at] = beam.score;
    to.finished[at] = beam.done() ? 1 : 0;
  }

  double divisor(std::int32_t len) const {
    return std::pow(p_.penalty == 0 ? static_cast<double>(len) : (5.0 + len) / 6.0, p_.alpha);
  }

  bool settled(const Item& it) const {
    double most = -kInf;
    std::int32_t active = 0;
    for (std::int32_t i = 0; i < it.size; ++i) {
      if (it.list[i].done()) continue;
      ++active;
      most = std::max(most, it.list[i].acc);
    }
    if (active == 0) return true;
    if (p_.keep_finished == 0) return false;
    const double bound = std::max(most / divisor_, most / divisor(p_.max_new));
    const auto beats = [&](const Beam& b) { return b.done() && b.score > bound; };
    return std::count_if(it.list, it.list + it.size, beats) +
               std::count_if(it.bank, it.bank + it.banked, beats) >=
           K_;
  }

  // Fills pool_ with the best continuations of an item, in order; returns the row behind its last.
  std::int32_t collect(Item& it, std::int32_t row) {
    n_ = 0;
    least_ = -kInf;
    for (std::int32_t i = 0; i < it.size; ++i) {
      if (it.list[i].done()) continue;
      it.list[i].state = state_[row];
      collect_row(out_ + std::int64_t{row++} * lm_.V, i, it.list[i].acc);
    }
    cut();
    std::sort(pool_, pool_ + n_);
    return row;
  }

  void collect_row(const float* x, std::int32_t parent, double base) {
    if (lm_.kind == BS_LOGITS) base -= log_sum_exp(x);
    for (std::int32_t begin = 0; begin < lm_.V; begin += kBlock) {
      const std::int32_t end = std::min(begin + kBlock, lm_.V);
      const float limit = below(least_ - base);
      std::int32_t any = 0;
      for (std::int32_t v = begin; v < end; ++v) any |= x[v] > limit ? 1 : 0;
      if (any == 0) continue;
      for (std::int32_t v = begin; v < end; ++v) {
        if (!(x[v] > limit) || (v == p_.eos && step_ < p_.min_new)) continue;
        pool_[n_++] = {base + static_cast<double>(x[v]), parent, v};
      }
      if (n_ + kBlock > capacity_ || least_ == -kInf) cut();
    }
  }

  // The largest float that is surely below x, which is itself rounded.
  static float below(double x) {
    if (x == -kInf) return -std::numeric_limits<float>::infinity();
    const double safe = x - 1e-12 * (1 + std::abs(x));
    const auto f = static_cast<float>(safe);
    return static_cast<double>(f) > safe
               ? std::nextafterf(f, -std::numeric_limits<float>::infinity())
               : f;
  }

  void cut() {
    if (n_ < K_) return;
    std::nth_element(pool_, pool_ + K_ - 1, pool_ + n_);
    n_ = K_;
    least_ = pool_[K_ - 1].acc;
  }

  double log_sum_exp(const float* x) const {
    const float most = *std::max_element(x, x + lm_.V);
    if (!(most > -std::numeric_limits<float>::infinity())) return 0;
    double sum = 0;
    for (std::int32_t v = 0; v < lm_.V; ++v) sum += std::exp(static_cast<double>(x[v] - most));
    return static_cast<double>(most) + std::log(sum);
  }

  // Merges the finished beams of the list with the pool.
  void rebuild(Item& it) {
    std::int32_t n = 0, old = 0;
    std::int64_t fresh = 0;
    for (; n < K_; ++n) {
      while (old < it.size && !it.list[old].done()) ++old;
      const bool has_old = old < it.size, has_fresh = fresh < n_;
      if (!has_old && !has_fresh) break;
      const double score = has_fresh ? pool_[fresh].acc / divisor_ : 0;
      const bool takes_old =
          has_old && (!has_fresh || (p_.rank_mode == 0 ? it.list[old].score >= score
                                                       : it.list[old].acc >= pool_[fresh].acc));
      it.next[n] = takes_old ? it.list[old++] : extended(it, pool_[fresh++], score);
    }
    for (; p_.keep_finished != 0 && old < it.size;
         ++old) {  // the finished beams that found no place
      if (it.list[old].done()) bank(it, it.list[old]);
    }
    std::swap(it.list, it.next);
    it.size = n;
  }

  Beam extended(Item& it, const Candidate& c, double score) {
    const Beam& parent = it.list[c.parent];
    it.links[it.n_links] = {parent.link, c.token};
    const std::int32_t serial = c.token == p_.eos ? it.serials++ : -1;
    return {c.acc, score, parent.state, it.n_links++, step_, c.token, serial};
  }

  void bank(Item& it, const Beam& beam) {
    std::int32_t at = it.banked;
    while (at > 0 && beam.ahead(it.bank[at - 1])) --at;
    if (at == K_) return;
    if (it.banked < K_) ++it.banked;
    std::copy_backward(it.bank + at, it.bank + it.banked - 1, it.bank + it.banked);
    it.bank[at] = beam;
  }

  assay_ctx* ctx_;
  const bs_params& p_;
  const assay_lm& lm_;
  Memory memory_;
  std::int32_t K_, step_ = 0;
  std::int64_t capacity_ = 0, n_ = 0;
  double divisor_ = 1, least_ = -kInf;
  float* out_ = nullptr;
  std::int64_t *state_ = nullptr, *parent_ = nullptr;
  std::int32_t *item_ = nullptr, *token_ = nullptr;
  Item* items_ = nullptr;
  Candidate* pool_ = nullptr;
};

bool wrong(const bs_params* p, const assay_lm* lm, const Results& to) {
  if (p == nullptr || lm == nullptr || p->size != sizeof(bs_params) || lm->size != sizeof(assay_lm))
    return true;
  if (lm->step == nullptr || lm->V < 1 || (lm->kind | 1) != 1) return true;
  if (p->B < 0 || p->K < 1 || p->max_new < 0 || p->min_new < 0 || p->eos < -1 || p->eos >= lm->V)
    return true;
  if (!std::isfinite(p->alpha) || (p->rank_mode | 1) != 1 || (p->keep_finished | 1) != 1 ||
      (p->penalty | 1) != 1)
    return true;
  if (p->B == 0) return false;
  if (p->prompt_len == nullptr || p->prompt == nullptr || (p->max_new > 0 && to.seq == nullptr))
    return true;
  for (std::int32_t b = 0; b < p->B; ++b) {
    if (p->prompt_len[b] < 0) return true;
  }
  return to.len == nullptr || to.acc == nullptr || to.score == nullptr || to.finished == nullptr ||
         to.n_out == nullptr;
}

}  // namespace

extern "C" int beam_search(assay_ctx* ctx, const bs_params* p, const assay_lm* lm, int32_t* seq,
                           int32_t* len, double* acc, double* score, int32_t* finished,
                           int32_t* n_out) {
  const Results to{seq, len, acc, score, finished, n_out};
  if (wrong(p, lm, to)) return ASSAY_EINVAL;
  Searcher search(ctx, *p, *lm);
  if (!search.allocate()) return ASSAY_ENOMEM;
  const int status = search.run();
  if (status == ASSAY_OK) search.write(to);
  return status;
}

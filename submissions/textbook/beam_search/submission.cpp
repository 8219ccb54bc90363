// Sample entrant of assay, not a model's answer: beam search as a textbook would print it. One thread;
// a bounded heap per item; texts are copied from step to step. Leaves keep_finished out.
#include "abi.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <vector>

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// Lets standard containers take their memory from the context.
template <class T>
struct FromContext {
  using value_type = T;
  assay_ctx* ctx;

  explicit FromContext(assay_ctx* c) : ctx(c) {}
  template <class U>
  FromContext(const FromContext<U>& other) : ctx(other.ctx) {}

  T* allocate(std::size_t n) {
    void* p = ctx->alloc(ctx, n * sizeof(T), alignof(std::max_align_t), 0);
    if (p == nullptr) throw std::bad_alloc();
    return static_cast<T*>(p);
  }
  void deallocate(T* p, std::size_t) { ctx->free(ctx, p); }
  template <class U>
  bool operator==(const FromContext<U>& other) const { return ctx == other.ctx; }
};

template <class T>
using Array = std::vector<T, FromContext<T>>;

struct Beam {
  double acc, score;
  std::int64_t state;
  std::int32_t len, token, finish_order;
  bool finished;
};

struct Candidate {
  double key, acc, score;
  std::int32_t parent, token;  // token -1: a finished beam as it is

  bool before(const Candidate& c) const {
    if (key != c.key) return key > c.key;
    if ((token < 0) != (c.token < 0)) return token < 0;
    return parent != c.parent ? parent < c.parent : token < c.token;
  }
};

struct Item {
  explicit Item(assay_ctx* ctx) : beams(FromContext<Beam>(ctx)), texts(FromContext<std::int32_t>(ctx)) {}
  Array<Beam> beams;
  Array<std::int32_t> texts;  // [K, max_new]
  std::int32_t finished = 0;

  bool active() const {
    return std::any_of(beams.begin(), beams.end(), [](const Beam& b) { return !b.finished; });
  }
};

class BeamSearch {
 public:
  BeamSearch(assay_ctx* ctx, const bs_params& p, const assay_lm& lm)
      : ctx_(ctx), p_(p), lm_(lm), K_(static_cast<std::size_t>(p.K)), T_(static_cast<std::size_t>(p.max_new)),
        items_(FromContext<Item>(ctx)), heap_(FromContext<Candidate>(ctx)), new_texts_(FromContext<std::int32_t>(ctx)) {
    for (std::int32_t b = 0; b < p.B; ++b) {
      items_.emplace_back(ctx);
      items_.back().beams.push_back({0, 0, -1, 0, 0, 0, false});
      items_.back().texts.resize(K_ * T_);
    }
    new_texts_.resize(K_ * T_);
  }

  int run() {
    const std::size_t most = items_.size() * K_;
    Array<std::int32_t> item{FromContext<std::int32_t>(ctx_)}, token(item);
    Array<std::int64_t> parent{FromContext<std::int64_t>(ctx_)}, state(parent);
    Array<float> out{FromContext<float>(ctx_)};
    out.resize(most * static_cast<std::size_t>(lm_.V));
    state.resize(most);
    for (std::int32_t step = 1; step <= p_.max_new; ++step) {
      item.clear(), token.clear(), parent.clear();
      for (std::int32_t b = 0; b < p_.B; ++b) {
        for (const Beam& beam : items_[static_cast<std::size_t>(b)].beams) {
          if (beam.finished) continue;
          item.push_back(b);
          parent.push_back(beam.state);
          token.push_back(beam.token);
        }
      }
      if (item.empty()) break;
      const int status = lm_.step(lm_.user, ctx_, static_cast<std::int32_t>(item.size()), item.data(), parent.data(),
                                  token.data(), out.data(), state.data());
      if (status != ASSAY_OK) return status;
      const float* row = out.data();
      const std::int64_t* next_state = state.data();
      for (Item& it : items_) {
        if (it.active()) advance(it, step, row, next_state);
      }
    }
    return ASSAY_OK;
  }

  void write(std::int32_t* seq, std::int32_t* len, double* acc, double* score, std::int32_t* finished,
             std::int32_t* n_out) {
    std::fill_n(seq, items_.size() * K_ * T_, -1);
    for (std::size_t b = 0; b < items_.size(); ++b) {
      const Array<Beam>& beams = items_[b].beams;
      Array<std::size_t> order{FromContext<std::size_t>(ctx_)};
      for (std::size_t i = 0; i < beams.size(); ++i) order.push_back(i);
      std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
        if (beams[i].score != beams[j].score) return beams[i].score > beams[j].score;
        if (beams[i].finished != beams[j].finished) return beams[i].finished;
        if (beams[i].finished && beams[i].finish_order != beams[j].finish_order) {
          return beams[i].finish_order < beams[j].finish_order;
        }
        return i < j;
      });
      n_out[b] = static_cast<std::int32_t>(beams.size());
      for (std::size_t k = 0; k < order.size(); ++k) {
        const Beam& beam = beams[order[k]];
        std::copy_n(items_[b].texts.data() + order[k] * T_, beam.len, seq + (b * K_ + k) * T_);
        len[b * K_ + k] = beam.len;
        acc[b * K_ + k] = beam.acc;
        score[b * K_ + k] = beam.score;
        finished[b * K_ + k] = beam.finished ? 1 : 0;
      }
    }
  }

 private:
  double penalty(std::int32_t len) const {
    return std::pow(p_.penalty != 0 ? (5.0 + len) / 6.0 : static_cast<double>(len), p_.alpha);
  }

  // heap_ holds the best K so far, the worst of them on top.
  void offer(const Candidate& c) {
    const auto before = [](const Candidate& a, const Candidate& b) { return a.before(b); };
    if (heap_.size() == K_) {
      if (!c.before(heap_.front())) return;
      std::pop_heap(heap_.begin(), heap_.end(), before);
      heap_.back() = c;
    } else {
      heap_.push_back(c);
    }
    std::push_heap(heap_.begin(), heap_.end(), before);
  }

  void expand(const Beam& beam, std::int32_t place, std::int32_t step, const float* row) {
    double shift = 0;
    if (lm_.kind == BS_LOGITS) {
      const auto most = static_cast<double>(*std::max_element(row, row + lm_.V));
      if (most == -kInf) return;
      for (std::int32_t v = 0; v < lm_.V; ++v) shift += std::exp(static_cast<double>(row[v]) - most);
      shift = most + std::log(shift);
    }
    const double divisor = penalty(step);
    for (std::int32_t v = 0; v < lm_.V; ++v) {
      if (v == p_.eos && step < p_.min_new) continue;
      const double acc = beam.acc + (static_cast<double>(row[v]) - shift);
      if (acc == -kInf) continue;
      // Within a step the sum alone tells that a candidate is worse than the worst that is kept.
      if (heap_.size() == K_ && heap_.front().token >= 0 && acc < heap_.front().acc) continue;
      const double score = acc / divisor;
      offer({p_.rank_mode == 0 ? score : acc, acc, score, place, v});
    }
  }

  void advance(Item& it, std::int32_t step, const float*& row, const std::int64_t*& state) {
    heap_.clear();
    for (std::size_t i = 0; i < it.beams.size(); ++i) {
      Beam& beam = it.beams[i];
      const auto place = static_cast<std::int32_t>(i);
      if (beam.finished) {
        offer({p_.rank_mode == 0 ? beam.score : beam.acc, beam.acc, beam.score, place, -1});
        continue;
      }
      expand(beam, place, step, row);
      row += lm_.V;
      beam.state = *state++;
    }
    std::sort(heap_.begin(), heap_.end(), [](const Candidate& a, const Candidate& b) { return a.before(b); });
    Array<Beam> next{FromContext<Beam>(ctx_)};
    for (std::size_t k = 0; k < heap_.size(); ++k) {
      const Candidate& c = heap_[k];
      const auto parent = static_cast<std::size_t>(c.parent);
      Beam beam = it.beams[parent];
      std::copy_n(it.texts.data() + parent * T_, beam.len, new_texts_.data() + k * T_);
      if (c.token >= 0) {
        new_texts_[k * T_ + static_cast<std::size_t>(beam.len)] = c.token;
        beam = {c.acc, c.score, beam.state, step, c.token, 0, c.token == p_.eos};
        if (beam.finished) beam.finish_order = it.finished++;
      }
      next.push_back(beam);
    }
    it.beams.swap(next);
    it.texts.swap(new_texts_);
  }

  assay_ctx* ctx_;
  const bs_params& p_;
  const assay_lm& lm_;
  std::size_t K_, T_;
  Array<Item> items_;
  Array<Candidate> heap_;
  Array<std::int32_t> new_texts_;
};

bool in_range(const bs_params& p, const assay_lm& lm) {
  if (p.B < 0 || p.K < 1 || p.max_new < 0 || p.min_new < 0 || lm.V < 1 || lm.step == nullptr) return false;
  if (p.eos < -1 || p.eos >= lm.V || !std::isfinite(p.alpha)) return false;
  const auto flag = [](std::int32_t x) { return x == 0 || x == 1; };
  return flag(p.rank_mode) && flag(p.keep_finished) && flag(p.penalty) && flag(lm.kind);
}

}  // namespace

extern "C" int beam_search(assay_ctx* ctx, const bs_params* p, const assay_lm* lm, int32_t* seq, int32_t* len,
                           double* acc, double* score, int32_t* finished, int32_t* n_out) {
  if (p == nullptr || lm == nullptr || p->size != sizeof(bs_params) || lm->size != sizeof(assay_lm)) return ASSAY_EINVAL;
  if (!in_range(*p, *lm)) return ASSAY_EINVAL;
  if (p->B == 0) return ASSAY_OK;
  if (p->prompt_len == nullptr || p->prompt == nullptr || (seq == nullptr && p->max_new > 0)) return ASSAY_EINVAL;
  if (len == nullptr || acc == nullptr || score == nullptr || finished == nullptr || n_out == nullptr) return ASSAY_EINVAL;
  if (p->keep_finished != 0) return ASSAY_ENOTSUP;
  try {
    BeamSearch search(ctx, *p, *lm);
    const int status = search.run();
    if (status == ASSAY_OK) search.write(seq, len, acc, score, finished, n_out);
    return status;
  } catch (const std::bad_alloc&) {
    return ASSAY_ENOMEM;
  }
}

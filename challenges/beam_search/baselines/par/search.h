// The search: steps over lists of beams, whose texts are a tree of tokens.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <vector>

#include "abi.h"
#include "common/arguments.h"
#include "rows.h"
#include "select.h"
#include "shared/baselines/scratch.h"
#include "shared/baselines/threads.h"

namespace {

struct Beam {
  double acc, score;
  std::int64_t state, node, order;
  std::int32_t len, finished, token;
};

// A token in the tree of all texts.
struct Node {
  std::int32_t parent, token;
};

class Search {
 public:
  Search(assay_ctx* ctx, const bs_params& p, const assay_lm& lm, const bs_options& options)
      : p_(p),
        o_(options),
        lm_(lm),
        ctx_(ctx),
        threads_(std::max(ctx->nthreads, 1)),
        K_(p.K),
        T_(p.max_new),
        all_(std::int64_t{p.B} * p.K),
        out_(ctx, options.row_dtype == ASSAY_F32 ? all_ * lm.V : (all_ * lm.V + 1) / 2),
        states_(ctx, all_),
        parents_(ctx, all_),
        items_(ctx, all_),
        tokens_(ctx, all_),
        places_(ctx, all_),
        list_(ctx, all_),
        next_(ctx, K_),
        bank_(ctx, p.keep_finished != 0 ? all_ : 0),
        nodes_(ctx, all_ * T_),
        found_(ctx, threads_ * all_),
        n_found_(ctx, threads_ * p.B),
        size_(ctx, p.B),
        banked_(ctx, p.B),
        finished_(ctx, p.B),
        most_banned_(1 + std::int64_t{options.n_bad} + (options.no_repeat_ngram > 0 ? T_ : 0)),
        banned_(ctx, threads_ * most_banned_),
        text_(ctx, reads_text() ? threads_ * T_ : 0) {}

  bool failed() const {
    return out_.failed() || states_.failed() || parents_.failed() || items_.failed() ||
           tokens_.failed() || places_.failed() || list_.failed() || next_.failed() ||
           bank_.failed() || nodes_.failed() || found_.failed() || n_found_.failed() ||
           size_.failed() || banked_.failed() || finished_.failed() || banned_.failed() ||
           text_.failed();
  }

  int run(const Outputs& to) {
    for (std::int32_t b = 0; b < p_.B; ++b) {
      list_[b * K_] = {0, 0, -1, -1, 0, 0, 0, 0};
      size_[b] = 1;
      banked_[b] = finished_[b] = 0;
    }
    for (step_ = 1; step_ <= T_; ++step_) {
      const std::int32_t rows = gather();
      if (rows == 0) break;
      const int status = lm_.step(lm_.user, ctx_, rows, items_.data(), parents_.data(),
                                  tokens_.data(), out_.data(), states_.data());
      if (status != ASSAY_OK) return status;
      select(rows);
      penalty_ = penalty(static_cast<std::int32_t>(step_));
      for (std::int32_t row = 0; row < rows;) row = advance(row, rows);
    }
    for (std::int32_t b = 0; b < p_.B; ++b) write(b, to);
    return ASSAY_OK;
  }

 private:
  double penalty(std::int32_t len) const {
    return std::pow(p_.penalty != 0 ? (5.0 + len) / 6.0 : static_cast<double>(len), p_.alpha);
  }

  bool reads_text() const { return o_.no_repeat_ngram > 0 || o_.n_bad > 0; }

  bool patience_ends(std::int32_t b) const {
    return o_.patience > 0 && finished_[b] >= o_.patience * static_cast<double>(K_);
  }

  // With keep_finished: K finished beams are better than any active one is or can still become.
  bool decided(std::int32_t b) const {
    if (p_.keep_finished == 0 || step_ == 1) return false;
    double most = -kInf;
    for (std::int64_t i = 0; i < size_[b]; ++i) {
      if (list_[b * K_ + i].finished == 0) most = std::max(most, list_[b * K_ + i].acc);
    }
    const double bound = std::max({most / penalty(static_cast<std::int32_t>(step_ - 1)),
                                   most / penalty(static_cast<std::int32_t>(step_)),
                                   most / penalty(static_cast<std::int32_t>(T_))});
    std::int64_t better = 0;
    for (std::int64_t i = 0; i < size_[b]; ++i)
      better += list_[b * K_ + i].finished != 0 && list_[b * K_ + i].score > bound;
    for (std::int64_t i = 0; i < banked_[b]; ++i) better += bank_[b * K_ + i].score > bound;
    return better >= K_;
  }

  // The rows of the next call, item by item.
  std::int32_t gather() {
    std::int32_t n = 0;
    for (std::int32_t b = 0; b < p_.B; ++b) {
      if (decided(b) || patience_ends(b)) continue;
      for (std::int32_t i = 0; i < size_[b]; ++i) {
        const Beam& beam = list_[b * K_ + i];
        if (beam.finished != 0) continue;
        items_[n] = b;
        places_[n] = i;
        parents_[n] = beam.state;
        tokens_[n++] = beam.token;
      }
    }
    return n;
  }

  // The best continuations of every item. Threads take rows in turn, in ascending order, so that
  // one that starts late does less.
  void select(std::int32_t rows) {
    constexpr std::int64_t kTurn = 1 << 15;  // values
    // A thread costs 50 us: a scan of 4 M values, the exponentials of 32 K.
    const std::int64_t worth_a_thread = lm_.kind == BS_LOGITS ? 1 << 15 : 1 << 22;
    parts_ = static_cast<int>(
        std::min<std::int64_t>({threads_, rows, 1 + rows * std::int64_t{lm_.V} / worth_a_thread}));
    const auto turn = static_cast<std::int32_t>(std::clamp<std::int64_t>(kTurn / lm_.V, 1, rows));
    std::fill_n(n_found_.data(), parts_ * p_.B, 0);
    std::atomic<std::int32_t> next{0};
    on_threads(parts_, [&](int t) {
      for (;;) {
        const std::int32_t begin = next.fetch_add(turn);
        if (begin >= rows) return;
        for (std::int32_t row = begin; row < std::min(begin + turn, rows); ++row)
          select_from(t, row);
      }
    });
  }

  void select_from(int t, std::int32_t row) {
    const std::int64_t at = std::int64_t{row} * lm_.V;
    const auto* halves = reinterpret_cast<const std::uint16_t*>(out_.data()) + at;
    if (o_.row_dtype == ASSAY_F32) return select_from(t, row, FloatRow{out_.data() + at});
    if (o_.row_dtype == ASSAY_BF16) return select_from(t, row, Bf16Row{halves});
    select_from(t, row, F16Row{halves});
  }

  template <class Row>
  void select_from(int t, std::int32_t row, const Row& values) {
    const std::int32_t b = items_[row];
    const double minus = lm_.kind == BS_LOGITS ? log_sum_exp(values, lm_.V) : 0;
    Beam& beam = list_[b * K_ + places_[row]];
    beam.state = states_[row];
    Best best(found_.data() + t * all_ + b * K_, K_, n_found_[std::int64_t{t} * p_.B + b]);
    select_row(values, lm_.V, banned_after(t, b, beam), beam.acc - minus, places_[row], best);
    n_found_[std::int64_t{t} * p_.B + b] = best.size();
  }

  Banned banned_after(int t, std::int32_t b, const Beam& beam) const {
    Banned banned{banned_.data() + t * most_banned_};
    if (step_ < p_.min_new && p_.eos >= 0) banned.add(p_.eos);
    if (!reads_text()) return banned;
    std::int32_t* text = text_.data() + t * T_;
    const std::int64_t len = beam.len;
    std::int64_t node = beam.node;
    for (std::int64_t i = len - 1; i >= 0; --i) {
      text[i] = nodes_[b * K_ * T_ + node].token;
      node = nodes_[b * K_ * T_ + node].parent;
    }
    const std::int64_t n = o_.no_repeat_ngram;
    for (std::int64_t end = n; n > 0 && end <= len; ++end) {
      if (std::equal(text + end - n, text + end - 1, text + len - n + 1)) banned.add(text[end - 1]);
    }
    for (std::int32_t i = 0; i < o_.n_bad; ++i) {
      const std::int64_t before = o_.bad_len[i] - 1;
      if (before <= len && std::equal(o_.bad[i], o_.bad[i] + before, text + len - before))
        banned.add(o_.bad[i][before]);
    }
    return banned;
  }

  // Merges the finished beams and the continuations of the item at `row`; returns its last row + 1.
  std::int32_t advance(std::int32_t row, std::int32_t rows) {
    const std::int32_t b = items_[row];
    std::int32_t end = row;
    while (end < rows && items_[end] == b) ++end;
    Beam* list = list_.data() + b * K_;
    std::int64_t taken = 0, old = 0;
    std::vector<std::int64_t>& at = cursors_;
    at.assign(static_cast<std::size_t>(parts_), 0);
    const auto skip_active = [&] {
      while (old < size_[b] && list[old].finished == 0) ++old;
    };
    for (skip_active(); taken < K_; ++taken) {
      int from = -1;
      Candidate most{-kInf, 0, 0};
      for (int t = 0; t < parts_; ++t) {
        const std::int64_t i = at[static_cast<std::size_t>(t)];
        if (i == n_found_[std::int64_t{t} * p_.B + b]) continue;
        const Candidate& c = found_[t * all_ + b * K_ + i];  // threads never share a parent
        if (from < 0 || c.acc > most.acc || (c.acc == most.acc && c.parent < most.parent))
          most = c, from = t;
      }
      const bool has_old = old < size_[b];
      if (from < 0 && !has_old) break;
      const double score = most.acc / penalty_;
      const bool takes_old =
          has_old &&
          (from < 0 || (p_.rank_mode == 0 ? list[old].score >= score : list[old].acc >= most.acc));
      if (takes_old) {
        next_[taken] = list[old];
        list[old++].len = -1;  // stays
        skip_active();
      } else {
        next_[taken] = extended(b, list, most, score, taken);
        ++at[static_cast<std::size_t>(from)];
      }
    }
    if (p_.keep_finished != 0) save_dropped(b);
    std::copy_n(next_.data(), taken, list);
    size_[b] = static_cast<std::int32_t>(taken);
    return end;
  }

  Beam extended(std::int32_t b, const Beam* list, const Candidate& c, double score,
                std::int64_t place) {
    const Beam& parent = list[c.parent];
    const std::int64_t node = (step_ - 1) * K_ + place;
    nodes_[b * K_ * T_ + node] = {static_cast<std::int32_t>(parent.node), c.token};
    Beam beam{c.acc,
              score,
              parent.state,
              node,
              0,
              static_cast<std::int32_t>(step_),
              c.token == p_.eos ? 1 : 0,
              c.token};
    if (beam.finished != 0) beam.order = finished_[b]++;
    return beam;
  }

  // The order of the answer; what it leaves equal stays in the order of the list.
  static bool ahead(const Beam& a, const Beam& b) {
    if (a.score != b.score) return a.score > b.score;
    if (a.finished != b.finished) return a.finished != 0;
    return a.finished != 0 && a.order < b.order;
  }

  // Keeps the best K finished beams that left the list.
  void save_dropped(std::int32_t b) {
    Beam* bank = bank_.data() + b * K_;
    for (std::int64_t i = 0; i < size_[b]; ++i) {
      const Beam& beam = list_[b * K_ + i];
      if (beam.finished == 0 || beam.len < 0) continue;
      if (banked_[b] == K_ && !ahead(beam, bank[K_ - 1])) continue;
      std::int64_t at = banked_[b] < K_ ? banked_[b]++ : K_ - 1;
      for (; at > 0 && ahead(beam, bank[at - 1]); --at) bank[at] = bank[at - 1];
      bank[at] = beam;
    }
  }

  void write(std::int32_t b, const Outputs& to) {
    Beam* list = list_.data() + b * K_;
    if (patience_ends(b)) {  // active beams are not part of the answer
      const auto active = [](const Beam& beam) { return beam.finished == 0; };
      size_[b] = static_cast<std::int32_t>(std::remove_if(list, list + size_[b], active) - list);
    }
    std::stable_sort(list, list + size_[b], ahead);
    std::int64_t i = 0, j = 0, k = 0;
    for (; k < K_ && (i < size_[b] || j < banked_[b]); ++k) {
      const Beam* bank = bank_.data() + b * K_;
      const bool dropped = i == size_[b] || (j < banked_[b] && ahead(bank[j], list[i]));
      const Beam& beam = dropped ? bank[j++] : list[i++];
      const std::int64_t at = b * K_ + k;
      std::int32_t* seq = to.seq + at * T_;
      std::int64_t node = beam.node;
      for (std::int32_t t = beam.len - 1; t >= 0; --t) {
        seq[t] = nodes_[b * K_ * T_ + node].token;
        node = nodes_[b * K_ * T_ + node].parent;
      }
      std::fill_n(seq + beam.len, T_ - beam.len, -1);
      to.len[at] = beam.len;
      to.acc[at] = beam.acc;
      to.score[at] = beam.score;
      to.finished[at] = beam.finished;
    }
    to.n_out[b] = static_cast<std::int32_t>(k);
    if (k < K_) std::fill_n(to.seq + (b * K_ + k) * T_, (K_ - k) * T_, -1);
  }

  const bs_params& p_;
  const bs_options& o_;
  const assay_lm& lm_;
  assay_ctx* ctx_;
  int threads_;
  std::int64_t K_, T_, all_, step_ = 0;
  int parts_ = 1;  // threads of the current step
  double penalty_ = 1;
  Scratch<float> out_;
  Scratch<std::int64_t> states_, parents_;
  Scratch<std::int32_t> items_, tokens_, places_;
  Scratch<Beam> list_, next_, bank_;
  Scratch<Node> nodes_;
  Scratch<Candidate> found_;
  Scratch<std::int64_t> n_found_;
  Scratch<std::int32_t> size_, banked_, finished_;
  std::int64_t most_banned_;
  Scratch<std::int32_t> banned_, text_;  // of each thread
  std::vector<std::int64_t> cursors_;
};

}  // namespace

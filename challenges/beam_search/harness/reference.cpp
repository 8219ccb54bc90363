// The search by its definition, in double. It also reports whether every decision was clear:
// neighbouring candidates in an order are either exactly equal, by construction of the model, or
// further apart than any rounding.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "assay/size.h"
#include "trusted.h"

namespace assay::beam_search {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

struct Beam {
  State state;
  std::vector<std::int32_t> tokens;
  double acc = 0, score = 0;
  bool finished = false;
  std::int64_t order = 0;  // finished beams: when and where
  std::int32_t len = 0;
};

// An element of the pool: a finished beam of the list (token -1), or a beam and its next token.
struct Candidate {
  std::int32_t parent = 0, token = -1, len = 0;
  double acc = 0, score = 0, logit = 0;
  double lowered = 0;  // penalty for what earlier groups took, for comparison only
};

class ItemSearch {
 public:
  ItemSearch(const Shape& s, const ItemModel& model, std::int32_t item) : s_(s), model_(model) {
    Beam start;
    start.state = model.start(item);
    lists_.assign(to_size(s.groups), {start});
    width_ = to_size(s.K / s.groups);
    for (std::int32_t len = 0; len <= s.max_new; ++len) divisors_.push_back(divisor(len));
  }

  void run() {
    while (steps_ < s_.max_new && active() > 0 && !patience_ends()) {
      rows_ += active();
      std::map<std::int32_t, int> taken;
      for (List& list : lists_) advance(list, taken);
      ++steps_;
      if (decided_after_ < 0 && decided()) decided_after_ = steps_;
    }
    if (decided_after_ < 0) decided_after_ = steps_;
  }

  std::vector<Answer> answer() {
    std::vector<Beam> all;
    for (const List& list : lists_) all.insert(all.end(), list.begin(), list.end());
    if (patience_ends()) std::erase_if(all, [](const Beam& b) { return !b.finished; });
    if (s_.keep_finished != 0) all.insert(all.end(), bank_.begin(), bank_.end());
    std::stable_sort(all.begin(), all.end(), [](const Beam& a, const Beam& b) {
      if (a.score != b.score) return a.score > b.score;
      if (a.finished != b.finished) return a.finished;
      return a.finished && a.order < b.order;
    });
    const std::size_t kept = std::min(all.size(), to_size(s_.K));
    for (std::size_t i = 0; i + 1 < all.size() && i < kept; ++i) {
      compare(all[i].score, all[i + 1].score,
              all[i].acc == all[i + 1].acc && all[i].len == all[i + 1].len,
              all[i].len == all[i + 1].len);
    }
    std::vector<Answer> result;
    for (std::size_t i = 0; i < kept; ++i) {
      result.push_back({all[i].tokens, all[i].acc, all[i].score, all[i].finished});
    }
    return result;
  }

  std::int64_t rows() const { return rows_; }
  std::int64_t steps() const { return steps_; }
  std::int64_t decided_after() const { return decided_after_; }
  bool clear() const { return clear_; }
  double largest_logit() const { return largest_logit_; }

 private:
  using List = std::vector<Beam>;

  std::int64_t active() const {
    std::int64_t n = 0;
    for (const List& list : lists_) {
      n += std::count_if(list.begin(), list.end(), [](const Beam& b) { return !b.finished; });
    }
    return n;
  }

  bool patience_ends() const {
    return s_.patience > 0 && static_cast<double>(finished_) >= s_.patience * s_.K;
  }

  double divisor(std::int32_t len) const {
    if (s_.penalty != 0) return std::pow((5.0 + len) / 6.0, s_.alpha);
    return len == 0 ? kInf : std::pow(static_cast<double>(len), s_.alpha);  // no token: score 0
  }

  double score(double acc, std::int32_t len) const { return acc / divisors_[to_size(len)]; }

  double key(const Candidate& c) const {
    if (s_.rank_mode != 0) return c.acc - c.lowered;
    return c.lowered == 0 ? c.score : score(c.acc - c.lowered, c.len);
  }

  // One step of one list. `taken` counts the tokens that this step has appended so far.
  void advance(List& list, std::map<std::int32_t, int>& taken) {
    std::vector<std::vector<Candidate>> found(list.size());
    parallel_for(static_cast<std::int64_t>(list.size()), std::max(1, 30000 / s_.V),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i)
                     found[to_size(i)] = continuations(list, static_cast<std::int32_t>(i), taken);
                 });
    std::vector<Candidate> pool;
    for (const auto& part : found) pool.insert(pool.end(), part.begin(), part.end());
    for (const Candidate& c : pool) largest_logit_ = std::max(largest_logit_, std::abs(c.logit));
    std::sort(pool.begin(), pool.end(), [&](const Candidate& a, const Candidate& b) {
      if (key(a) != key(b)) return key(a) > key(b);
      const bool a_old = a.token < 0, b_old = b.token < 0;
      if (a_old != b_old) return a_old;
      if (a.parent != b.parent) return a.parent < b.parent;
      return a.token < b.token;
    });
    const std::size_t kept = std::min(pool.size(), width_);
    for (std::size_t i = 0; i + 1 < pool.size() && i < kept; ++i) check_gap(pool[i], pool[i + 1]);
    replace(list, pool, kept);
    for (std::size_t i = 0; i < kept; ++i) {
      if (pool[i].token >= 0) ++taken[pool[i].token];
    }
  }

  // The candidates that beam i adds to the pool. A list cannot take more of one beam than it has
  // places, and it takes the best ones, apart from tokens that are lowered.
  std::vector<Candidate> continuations(const List& list, std::int32_t i,
                                       const std::map<std::int32_t, int>& taken) const {
    const Beam& beam = list[to_size(i)];
    if (beam.finished) return {{i, -1, beam.len, beam.acc, beam.score, 0, 0}};
    std::vector<float> row(to_size(s_.V));
    model_.row(beam.state, row.data());
    const double shift = s_.kind == BS_LOGITS ? log_sum_exp(row) : 0;
    if (s_.min_new > beam.len + 1 && s_.eos >= 0) row[to_size(s_.eos)] = kMinusInf;
    forbid_repetitions(beam.tokens, row);
    forbid_bad(beam.tokens, row);
    std::vector<Candidate> result;
    for (const std::int32_t token : best_tokens(row, width_ + 1 + taken.size())) {
      const double x = static_cast<double>(row[to_size(token)]), acc = beam.acc + (x - shift);
      const auto earlier = taken.find(token);
      result.push_back({.parent = i,
                        .token = token,
                        .len = beam.len + 1,
                        .acc = acc,
                        .score = score(acc, beam.len + 1),
                        .logit = x,
                        .lowered = earlier == taken.end() ? 0 : s_.diversity * earlier->second});
    }
    return result;
  }

  // Forbids every token that followed an earlier occurrence of the last n - 1 tokens.
  void forbid_repetitions(const std::vector<std::int32_t>& text, std::vector<float>& row) const {
    const auto n = to_size(s_.no_repeat_ngram);
    if (n == 0) return;
    for (std::size_t end = n; end <= text.size(); ++end) {
      const bool same = std::equal(text.end() - static_cast<std::ptrdiff_t>(n - 1), text.end(),
                                   text.begin() + static_cast<std::ptrdiff_t>(end - n));
      if (same) row[to_size(text[end - 1])] = kMinusInf;
    }
  }

  void forbid_bad(const std::vector<std::int32_t>& text, std::vector<float>& row) const {
    for (const std::vector<std::int32_t>& sequence : s_.bad) {
      const std::size_t before = sequence.size() - 1;
      if (before > text.size()) continue;
      const bool same = std::equal(sequence.begin(), sequence.end() - 1,
                                   text.end() - static_cast<std::ptrdiff_t>(before));
      if (same) row[to_size(sequence.back())] = kMinusInf;
    }
  }

  static double log_sum_exp(const std::vector<float>& row) {
    const auto most = static_cast<double>(*std::max_element(row.begin(), row.end()));
    if (most == -kInf) return 0;  // nothing can follow, whatever is subtracted
    double sum = 0;
    for (const float x : row) sum += std::exp(static_cast<double>(x) - most);
    return most + std::log(sum);
  }

  // The n largest above -inf; among equals the lower token comes first.
  static std::vector<std::int32_t> best_tokens(const std::vector<float>& row, std::size_t n) {
    std::vector<std::int32_t> tokens;
    const auto better = [&](std::int32_t a, std::int32_t b) {
      const float x = row[to_size(a)], y = row[to_size(b)];
      return x != y ? x > y : a < b;
    };
    const auto shrink = [&] {
      if (tokens.size() <= n) return;
      std::nth_element(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(n) - 1,
                       tokens.end(), better);
      tokens.resize(n);
    };
    constexpr std::size_t kBlock = 64;
    float least = kMinusInf;
    for (std::size_t begin = 0; begin < row.size(); begin += kBlock) {
      const std::size_t end = std::min(begin + kBlock, row.size());
      int any = 0;
      for (std::size_t v = begin; v < end; ++v) any |= row[v] > least ? 1 : 0;
      if (any == 0) continue;
      for (std::size_t v = begin; v < end; ++v) {
        if (row[v] > least) tokens.push_back(static_cast<std::int32_t>(v));
      }
      if (tokens.size() < 4 * n) continue;
      shrink();
      least = row[to_size(tokens[n - 1])];
    }
    shrink();
    return tokens;
  }

  void replace(List& list, const std::vector<Candidate>& pool, std::size_t kept) {
    std::vector<Beam> next;
    std::vector<char> stays(list.size(), 0);
    for (std::size_t i = 0; i < kept; ++i) {
      const Candidate& c = pool[i];
      const Beam& parent = list[to_size(c.parent)];
      if (c.token < 0) {
        stays[to_size(c.parent)] = 1;
        next.push_back(parent);
        continue;
      }
      Beam beam{{}, parent.tokens, c.acc, c.score, c.token == s_.eos, 0, c.len};
      beam.tokens.push_back(c.token);
      if (beam.finished) beam.order = finished_++;
      if (!beam.finished) beam.state = model_.extend(parent.state, c.token);
      next.push_back(std::move(beam));
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i].finished && stays[i] == 0) bank_.push_back(list[i]);
    }
    list = std::move(next);
  }

  // With keep_finished: K finished beams outrank anything an active beam can still become.
  bool decided() const {
    if (s_.keep_finished == 0) return false;
    double bound = -kInf;
    std::vector<Beam> all;
    for (const List& list : lists_) all.insert(all.end(), list.begin(), list.end());
    for (const Beam& b : all) {
      if (b.finished) continue;
      bound = std::max({bound, score(b.acc, s_.max_new),
                        score(b.acc, std::min(b.len + 1, s_.max_new)), b.score});
    }
    std::int64_t better = 0;
    for (const Beam& b : all) better += b.finished && b.score > bound ? 1 : 0;
    for (const Beam& b : bank_) better += b.score > bound ? 1 : 0;
    return better >= s_.K;
  }

  void check_gap(const Candidate& a, const Candidate& b) {
    const bool same_row = a.parent == b.parent && a.logit == b.logit && a.token >= 0 &&
                          b.token >= 0 && a.lowered == b.lowered;
    const bool equal =
        s_.kind == BS_LOGITS ? same_row : a.acc - a.lowered == b.acc - b.lowered && a.len == b.len;
    compare(key(a), key(b), equal, a.len == b.len);
  }

  // Two scores must be exactly equal in every implementation, or far enough apart. Exact sums of
  // the same length keep their order under any rounding of the penalty.
  void compare(double a, double b, bool equal, bool same_length) {
    if (equal) return;
    const bool safe = s_.exact_sums && s_.kind == BS_LOG_PROBS && a != b;
    if (safe && (same_length || s_.alpha == 0 || s_.rank_mode == 1)) return;
    if (s_.exact_sums && s_.kind == BS_LOG_PROBS && a == b && s_.alpha == 0) return;
    const double gap = s_.kind == BS_LOGITS ? 1e-4 : kClearGap * (1 + std::abs(a));
    if (!(std::abs(a - b) >= gap)) clear_ = false;
  }

  const Shape& s_;
  const ItemModel& model_;
  std::vector<List> lists_;  // one per group
  std::vector<Beam> bank_;
  std::size_t width_ = 0;         // the most beams of a list
  std::vector<double> divisors_;  // of scores, by length
  std::int64_t rows_ = 0, steps_ = 0, decided_after_ = -1, finished_ = 0;
  double largest_logit_ = 0;
  bool clear_ = true;
};

}  // namespace

std::unique_ptr<BeamReference> search(const Shape& s, const LanguageModel& model) {
  auto reference = std::make_unique<BeamReference>();
  for (std::int32_t b = 0; b < s.B; ++b) {
    ItemSearch item(s, model.items[to_size(b)], b);
    item.run();
    reference->items.push_back(item.answer());
    reference->rows += item.rows();
    reference->calls = std::max(reference->calls, item.steps());
    reference->early_calls = std::max(reference->early_calls, item.decided_after());
    reference->largest_logit = std::max(reference->largest_logit, item.largest_logit());
    reference->clear = reference->clear && item.clear();
  }
  return reference;
}

}  // namespace assay::beam_search

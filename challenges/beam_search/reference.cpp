// The search by its definition, in double. Besides the answer it tells whether every decision was
// clear: two candidates next to each other in an order are either exactly equal, by construction of
// the model, or further apart than any rounding.
#include <algorithm>
#include <cmath>
#include <limits>

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

// An element of the pool: a finished beam of the list (token -1), or a beam and the token after it.
struct Candidate {
  std::int32_t parent = 0, token = -1, len = 0;
  double acc = 0, score = 0, logit = 0;
};

class ItemSearch {
 public:
  ItemSearch(const Shape& s, const ItemModel& model, std::int32_t item) : s_(s), model_(model) {
    Beam start;
    start.state = model.start(item);
    list_.push_back(start);
  }

  void run() {
    while (steps_ < s_.max_new && active() > 0) {
      rows_ += active();
      advance();
      ++steps_;
      if (decided_after_ < 0 && decided()) decided_after_ = steps_;
    }
    if (decided_after_ < 0) decided_after_ = steps_;
  }

  std::vector<Answer> answer() {
    std::vector<Beam> all = list_;
    if (s_.keep_finished != 0) all.insert(all.end(), bank_.begin(), bank_.end());
    std::stable_sort(all.begin(), all.end(), [](const Beam& a, const Beam& b) {
      if (a.score != b.score) return a.score > b.score;
      if (a.finished != b.finished) return a.finished;
      return a.finished && a.order < b.order;
    });
    const std::size_t kept = std::min(all.size(), static_cast<std::size_t>(s_.K));
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
  std::int64_t active() const {
    return std::count_if(list_.begin(), list_.end(), [](const Beam& b) { return !b.finished; });
  }

  double score(double acc, std::int32_t len) const {
    if (s_.penalty != 0) return acc / std::pow((5.0 + len) / 6.0, s_.alpha);
    return len == 0 ? 0 : acc / std::pow(static_cast<double>(len), s_.alpha);
  }

  double key(const Candidate& c) const { return s_.rank_mode == 0 ? c.score : c.acc; }

  void advance() {
    std::vector<std::vector<Candidate>> found(list_.size());
    parallel_for(static_cast<std::int64_t>(list_.size()), std::max(1, 30000 / s_.V),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i)
                     found[static_cast<std::size_t>(i)] =
                         continuations(static_cast<std::int32_t>(i));
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
    const std::size_t kept = std::min(pool.size(), static_cast<std::size_t>(s_.K));
    for (std::size_t i = 0; i + 1 < pool.size() && i < kept; ++i) check_gap(pool[i], pool[i + 1]);
    replace_list(pool, kept);
  }

  // What beam i adds to the pool. A list of K can take at most K of one beam.
  std::vector<Candidate> continuations(std::int32_t i) const {
    const Beam& beam = list_[static_cast<std::size_t>(i)];
    if (beam.finished) return {{i, -1, beam.len, beam.acc, beam.score, 0}};
    std::vector<float> row(static_cast<std::size_t>(s_.V));
    model_.row(beam.state, row.data());
    const double shift = s_.kind == BS_LOGITS ? log_sum_exp(row) : 0;
    if (s_.min_new > beam.len + 1 && s_.eos >= 0) row[static_cast<std::size_t>(s_.eos)] = kMinusInf;
    std::vector<Candidate> result;
    for (const std::int32_t token : best_tokens(row, static_cast<std::size_t>(s_.K) + 1)) {
      const double x = static_cast<double>(row[static_cast<std::size_t>(token)]),
                   acc = beam.acc + (x - shift);
      result.push_back({i, token, beam.len + 1, acc, score(acc, beam.len + 1), x});
    }
    return result;
  }

  static double log_sum_exp(const std::vector<float>& row) {
    const auto most = static_cast<double>(*std::max_element(row.begin(), row.end()));
    if (most == -kInf) return 0;  // nothing can follow, whatever is subtracted
    double sum = 0;
    for (const float x : row) sum += std::exp(static_cast<double>(x) - most);
    return most + std::log(sum);
  }

  // The n largest above -inf, lower tokens first among equals.
  static std::vector<std::int32_t> best_tokens(const std::vector<float>& row, std::size_t n) {
    std::vector<std::int32_t> tokens;
    const auto better = [&](std::int32_t a, std::int32_t b) {
      const float x = row[static_cast<std::size_t>(a)], y = row[static_cast<std::size_t>(b)];
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
      least = row[static_cast<std::size_t>(tokens[n - 1])];
    }
    shrink();
    return tokens;
  }

  void replace_list(const std::vector<Candidate>& pool, std::size_t kept) {
    std::vector<Beam> next;
    std::vector<char> stays(list_.size(), 0);
    for (std::size_t i = 0; i < kept; ++i) {
      const Candidate& c = pool[i];
      const Beam& parent = list_[static_cast<std::size_t>(c.parent)];
      if (c.token < 0) {
        stays[static_cast<std::size_t>(c.parent)] = 1;
        next.push_back(parent);
        continue;
      }
      Beam beam{{}, parent.tokens, c.acc, c.score, c.token == s_.eos, 0, c.len};
      beam.tokens.push_back(c.token);
      if (beam.finished) beam.order = finished_++;
      if (!beam.finished) beam.state = model_.extend(parent.state, c.token);
      next.push_back(std::move(beam));
    }
    for (std::size_t i = 0; i < list_.size(); ++i) {
      if (list_[i].finished && stays[i] == 0) bank_.push_back(list_[i]);
    }
    list_ = std::move(next);
  }

  // With keep_finished: K finished beams outrank whatever an active one can still become.
  bool decided() const {
    if (s_.keep_finished == 0) return false;
    double bound = -kInf;
    for (const Beam& b : list_) {
      if (b.finished) continue;
      bound = std::max({bound, score(b.acc, s_.max_new),
                        score(b.acc, std::min(b.len + 1, s_.max_new)), b.score});
    }
    std::int64_t better = 0;
    for (const Beam& b : list_) better += b.finished && b.score > bound ? 1 : 0;
    for (const Beam& b : bank_) better += b.score > bound ? 1 : 0;
    return better >= s_.K;
  }

  void check_gap(const Candidate& a, const Candidate& b) {
    const bool same_row =
        a.parent == b.parent && a.logit == b.logit && a.token >= 0 && b.token >= 0;
    const bool equal = s_.kind == BS_LOGITS ? same_row : a.acc == b.acc && a.len == b.len;
    compare(key(a), key(b), equal, a.len == b.len);
  }

  // Exactly equal in every implementation, or far enough apart. Sums that are exact and of one
  // length keep their order under any rounding of the penalty.
  void compare(double a, double b, bool equal, bool same_length) {
    if (equal) return;
    const bool safe = s_.exact_sums && s_.kind == BS_LOG_PROBS && a != b;
    if (safe && (same_length || s_.alpha == 0 || s_.rank_mode == 1)) return;
    if (s_.exact_sums && s_.kind == BS_LOG_PROBS && a == b && s_.alpha == 0) return;
    const double gap = s_.kind == BS_LOGITS ? 1e-4 : 1e-6 * (1 + std::abs(a));
    if (!(std::abs(a - b) >= gap)) clear_ = false;
  }

  const Shape& s_;
  const ItemModel& model_;
  std::vector<Beam> list_, bank_;
  std::int64_t rows_ = 0, steps_ = 0, decided_after_ = -1, finished_ = 0;
  double largest_logit_ = 0;
  bool clear_ = true;
};

}  // namespace

std::unique_ptr<BeamReference> search(const Shape& s, const LanguageModel& model) {
  auto reference = std::make_unique<BeamReference>();
  for (std::int32_t b = 0; b < s.B; ++b) {
    ItemSearch item(s, model.items[static_cast<std::size_t>(b)], b);
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

// The expert implementation for a CPU.
//
// Napkin arithmetic. B = 1, K = 64, V = 50257: a step reads 64 rows, 12.9 MB, and keeps 64 of 3.2 M
// candidates. Reading once at 20 to 40 GB/s (the rows come from the last-level cache or from
// memory) takes 0.3 to 0.6 ms; a score for each candidate, one addition and one division, would
// take 3.2 M * 4 ns = 13 ms on a core, and sorting them much more. So:
//   Candidates of a step have one length: their order by score is that by sum, so only the sums are
//   compared, and a penalty is divided by K times, not K*V times.
//   A value matters only if it exceeds what the K-th best sum so far leaves for its row. Blocks of
//   256 values are passed over by their maximum, 16 values an instruction: 0.06 ns a value from the
//   cache. Of n values in random order K (1 + ln(n / K)) = 760 get through and cost an insertion
//   each, 0.05 ms.
//
//   Nothing is written but back-pointers, 8 bytes a beam and step; texts are read off them last.
//
//   Halves are widened a block at a time, into the cache. Of what may not follow a beam a short
//   list is made, and only a value that gets through is looked up in it.
//
//   Threads take rows in turn; each keeps its own best K of every item that it meets, in ascending
//   order of parents and tokens, so that an equal candidate that comes later is never better.
//
// The limit that binds is the bandwidth of the rows. Measured on two cores of an EPYC with AVX-512,
// the rows in the last-level cache: 0.29 ms a step of 8 x 8 x 32000 (28 GB/s), 0.53 ms of 1 x 64 x
// 50257 (24 GB/s) and 0.25 ms of 64 x 4 x 4096 on one core; 0.29, 0.47 and 0.23 ms on two, as one
// core nearly exhausts the bandwidth and a thread costs 50 us. So only larger steps, and logits
// with their exponentials, are worth a second thread.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <system_error>
#include <thread>
#include <vector>

#include "abi.h"

namespace {

#ifdef __AVX512F__
constexpr int kLanes = 16;
#else
constexpr int kLanes = 8;
#endif
typedef float Vec __attribute__((vector_size(4 * kLanes)));

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr std::int32_t kBlock = 256;

Vec load(const float* p) {
  Vec v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
Vec larger(Vec a, Vec b) { return a > b ? a : b; }

// Whether any of kBlock values exceeds the limit.
bool any_above(const float* x, float limit) {
  Vec a = load(x), b = load(x + kLanes), c = load(x + 2 * kLanes), d = load(x + 3 * kLanes);
  for (int i = 4 * kLanes; i < kBlock; i += 4 * kLanes) {
    a = larger(a, load(x + i));
    b = larger(b, load(x + i + kLanes));
    c = larger(c, load(x + i + 2 * kLanes));
    d = larger(d, load(x + i + 3 * kLanes));
  }
  const auto above = larger(larger(a, b), larger(c, d)) > (limit - Vec{});
  std::uint64_t words[sizeof above / 8];
  std::memcpy(words, &above, sizeof above);
  std::uint64_t any = 0;
  for (const std::uint64_t word : words) any |= word;
  return any != 0;
}

// An array from the context's allocator.
template <class T>
class Scratch {
 public:
  Scratch(assay_ctx* ctx, std::int64_t n)
      : ctx_(ctx),
        data_(static_cast<T*>(ctx->alloc(
            ctx, static_cast<std::size_t>(std::max<std::int64_t>(n, 1)) * sizeof(T), 64, 0))) {}
  ~Scratch() {
    if (data_ != nullptr) ctx_->free(ctx_, data_);
  }
  Scratch(const Scratch&) = delete;
  bool failed() const { return data_ == nullptr; }
  T* data() const { return data_; }
  T& operator[](std::int64_t i) const { return data_[i]; }

 private:
  assay_ctx* ctx_;
  T* data_;
};

// Runs body(thread) on up to `threads` threads, this one included. A thread is made for each call:
// one that slept through the model's part would have to be woken for it as well.
template <class Body>
void on_threads(int threads, const Body& body) {
  std::vector<std::thread> others;
  try {
    for (int t = 1; t < threads; ++t) others.emplace_back([&body, t] { body(t); });
  } catch (const std::system_error&) {  // fewer threads then
  }
  body(0);
  for (std::thread& other : others) other.join();
}

struct Outputs {
  std::int32_t* seq;
  std::int32_t* len;
  double* acc;
  double* score;
  std::int32_t* finished;
  std::int32_t* n_out;
};

struct Beam {
  double acc, score;
  std::int64_t state, node, order;
  std::int32_t len, finished, token;
};

// A token in the tree of all texts.
struct Node {
  std::int32_t parent, token;
};

// A continuation.
struct Candidate {
  double acc;
  std::int32_t parent, token;
};

// The best K continuations met so far, best first, earlier ones first among equals.
class Best {
 public:
  Best(Candidate* list, std::int64_t K, std::int64_t n) : list_(list), K_(K), n_(n) {}

  double least() const { return n_ < K_ ? -kInf : list_[K_ - 1].acc; }
  std::int64_t size() const { return n_; }

  void insert(const Candidate& c) {  // c.acc > least()
    std::int64_t at = n_ < K_ ? n_++ : K_ - 1;
    for (; at > 0 && c.acc > list_[at - 1].acc; --at) list_[at] = list_[at - 1];
    list_[at] = c;
  }

 private:
  Candidate* list_;
  std::int64_t K_, n_;
};

// A float that no value is above unless base + value may be above `least`.
float limit_for(double least, double base) {
  const double difference = least - base;
  if (!(difference > -kInf)) return -std::numeric_limits<float>::infinity();
  const double safe = difference - 1e-15 * (std::abs(least) + std::abs(base));
  const auto limit = static_cast<float>(safe);
  return static_cast<double>(limit) > safe
             ? std::nextafterf(limit, -std::numeric_limits<float>::infinity())
             : limit;
}

// Rows by blocks of at most kBlock values; halves are widened into a buffer in the cache.
struct FloatRow {
  const float* x;
  const float* block(std::int32_t begin, std::int32_t, float*) const { return x + begin; }
};

struct Bf16Row {
  const std::uint16_t* x;
  const float* block(std::int32_t begin, std::int32_t n, float* to) const {
    for (std::int32_t i = 0; i < n; ++i)
      to[i] = std::bit_cast<float>(static_cast<std::uint32_t>(x[begin + i]) << 16);
    return to;
  }
};

// The bits of an f16 at their place in a float are the value times 2^-112, subnormal ones included;
// infinities stand apart.
struct F16Row {
  const std::uint16_t* x;
  const float* block(std::int32_t begin, std::int32_t n, float* to) const {
    for (std::int32_t i = 0; i < n; ++i) {
      const std::uint32_t h = x[begin + i], magnitude = h & 0x7fff;
      const auto finite =
          std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude << 13) * 0x1p112f);
      const std::uint32_t special = 0x7f800000u | magnitude << 13;
      to[i] = std::bit_cast<float>((magnitude < 0x7c00 ? finite : special) | (h & 0x8000) << 16);
    }
    return to;
  }
};

// Tokens that may not follow a beam: few.
struct Banned {
  std::int32_t* tokens;
  std::int64_t n = 0;

  void add(std::int32_t token) { tokens[n++] = token; }
  bool has(std::int32_t token) const {
    for (std::int64_t i = 0; i < n; ++i) {
      if (tokens[i] == token) return true;
    }
    return false;
  }
};

void scan(const float* x, std::int32_t begin, std::int32_t end, const Banned& banned, double base,
          std::int32_t parent, Best& best, float& limit) {
  for (std::int32_t v = begin; v < end; ++v) {
    const float value = x[v - begin];
    if (!(value > limit) || banned.has(v)) continue;
    const double acc = base + static_cast<double>(value);
    if (!(acc > best.least())) continue;
    best.insert({acc, parent, v});
    limit = limit_for(best.least(), base);
  }
}

// Adds the continuations of one beam.
template <class Row>
void select_row(const Row& row, std::int32_t V, const Banned& banned, double base,
                std::int32_t parent, Best& best) {
  alignas(64) float buffer[kBlock];
  float limit = limit_for(best.least(), base);
  std::int32_t v = 0;
  for (; v + kBlock <= V; v += kBlock) {
    const float* x = row.block(v, kBlock, buffer);
    if (any_above(x, limit)) scan(x, v, v + kBlock, banned, base, parent, best, limit);
  }
  scan(row.block(v, V - v, buffer), v, V, banned, base, parent, best, limit);
}

template <class Row>
double log_sum_exp(const Row& row, std::int32_t V) {
  alignas(64) float buffer[kBlock];
  const auto each_block = [&](const auto& visit) {
    for (std::int32_t v = 0; v < V; v += kBlock) {
      const std::int32_t n = std::min(kBlock, V - v);
      const float* x = row.block(v, n, buffer);
      visit(x, n);
    }
  };
  float most = -std::numeric_limits<float>::infinity();
  each_block(
      [&](const float* x, std::int32_t n) { most = std::max(most, *std::max_element(x, x + n)); });
  if (!(most > -std::numeric_limits<float>::infinity())) return 0;
  double sum = 0;
  each_block([&](const float* x, std::int32_t n) {
    for (std::int32_t v = 0; v < n; ++v)
      sum += std::exp(static_cast<double>(x[v]) - static_cast<double>(most));
  });
  return static_cast<double>(most) + std::log(sum);
}

constexpr bs_options kNoOptions{sizeof(bs_options), ASSAY_F32, 0, 0, nullptr, nullptr, 1, 0, 0};

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

int run_search(assay_ctx* ctx, const bs_params* p, const bs_options* options, const assay_lm* lm,
               const Outputs& to) {
  if (!valid(p, lm, to) || !valid_options(*p, options, *lm)) return ASSAY_EINVAL;
  if (options->groups > 1) return ASSAY_ENOTSUP;
  try {
    Search search(ctx, *p, *lm, *options);
    return search.failed() ? ASSAY_ENOMEM : search.run(to);
  } catch (const std::bad_alloc&) {
    return ASSAY_ENOMEM;
  }
}

}  // namespace

extern "C" int beam_search(assay_ctx* ctx, const bs_params* p, const assay_lm* lm, int32_t* seq,
                           int32_t* len, double* acc, double* score, int32_t* finished,
                           int32_t* n_out) {
  return run_search(ctx, p, &kNoOptions, lm, {seq, len, acc, score, finished, n_out});
}

extern "C" int beam_search_with_options(assay_ctx* ctx, const bs_params* p,
                                        const bs_options* options, const assay_lm* lm, int32_t* seq,
                                        int32_t* len, double* acc, double* score, int32_t* finished,
                                        int32_t* n_out) {
  return run_search(ctx, p, options, lm, {seq, len, acc, score, finished, n_out});
}

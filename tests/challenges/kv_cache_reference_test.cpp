// The reference against an attention written here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "challenges/kv_cache_case.h"

namespace assay::kv_cache {
namespace {

// Every token of every sequence and layer as its own row, by the most literal reading of the
// script; sequences are numbered by the script's variables.
class Witness {
 public:
  explicit Witness(const Drawn& drawn) : drawn_(drawn), c_(drawn.params().config[0]) {}

  // The largest difference between the reference's o and lse and this witness's, over the whole
  // script.
  double worst() {
    const auto ops = drawn_.buffer(kOps).span<const Op>();
    for (std::size_t i = 0; i < ops.size(); ++i) step(ops[i], drawn_.reference().expected[i]);
    return worst_;
  }

  int compared() const { return compared_; }

 private:
  struct Token {
    std::vector<double> k, v;
  };
  using Layers = std::vector<std::vector<Token>>;

  std::vector<double> row(int buffer, std::int64_t at, std::int64_t n) const {
    std::vector<double> out;
    for (std::int64_t i = 0; i < n; ++i) {
      const BufferView& view = drawn_.buffer(buffer);
      out.push_back(drawn_.params().element_bytes == 2
                        ? static_cast<double>(bf16_to_float(view.as<std::uint16_t>()[at + i]))
                        : static_cast<double>(view.as<float>()[at + i]));
    }
    return out;
  }

  void step(const Op& op, const Expected& expected) {
    if (expected.status != Expect::success) return;
    const auto* pool = drawn_.buffer(kPool).as<std::int64_t>() + op.pool;
    switch (op.kind) {
      case kNew: held_[op.sequence].assign(static_cast<std::size_t>(c_.n_layers), {}); return;
      case kFree: held_.erase(op.sequence); return;
      case kFork: held_[op.forked] = held_.at(op.sequence); return;
      case kTruncate:
        for (auto& layer : held_.at(op.sequence)) {
          if (std::ssize(layer) > op.length) layer.resize(static_cast<std::size_t>(op.length));
        }
        return;
      case kAppend: return append(op, pool);
      case kAttend:
      case kAttendShared: return attend(op, pool, *expected.attended);
      case kAttendTree: return attend_tree(op, pool, *expected.attended);
      case kLen:
        EXPECT_EQ(expected.length,
                  held_.contains(op.sequence) ? std::ssize(layer(op.sequence, op.layer)) : -1);
        return;
      default: return;
    }
  }

  std::vector<Token>& layer(std::int64_t v, std::int64_t l) {
    return held_.at(v).at(static_cast<std::size_t>(l));
  }

  void append(const Op& op, const std::int64_t* pool) {
    for (std::int64_t b = 0; b < op.n; ++b) {
      for (std::int64_t t = pool[op.n + b]; t < pool[op.n + b + 1]; ++t) {
        layer(pool[b], op.layer)
            .push_back(
                {row(op.phase == 1 ? kLaterK : kK, op.k_at + t * c_.n_kv * c_.D, c_.n_kv * c_.D),
                 row(op.phase == 1 ? kLaterV : kV, op.v_at + t * c_.n_kv * c_.Dv,
                     c_.n_kv * c_.Dv)});
      }
    }
  }

  void attend(const Op& op, const std::int64_t* pool, const Attended& reference) {
    for (std::int64_t b = 0; b < op.n; ++b) {
      const std::int64_t begin = pool[op.n + b], end = pool[op.n + b + 1];
      for (std::int64_t t = begin; t < end; ++t) {
        const std::vector<Token>& tokens = layer(pool[b], op.layer);
        const std::int64_t position = std::ssize(tokens) - (end - t);
        const std::vector<double> q =
            row(op.phase == 1 ? kLaterQ : kQ, op.q_at + t * c_.n_q * c_.D, c_.n_q * c_.D);
        std::vector<bool> seen;
        for (std::int64_t j = 0; j < std::ssize(tokens); ++j)
          seen.push_back(j <= position && near(j, position));
        for (std::int64_t h = 0; h < c_.n_q; ++h) compare(tokens, seen, q, h, t, reference);
      }
    }
  }

  bool near(std::int64_t key, std::int64_t position) const {
    return c_.window < 0 || position < key + c_.window || key < c_.sinks;
  }

  // A node sees what it would see if only its path from the root followed the prefix.
  void attend_tree(const Op& op, const std::int64_t* pool, const Attended& reference) {
    const std::int64_t* parent = pool + 2 * op.n + 1;
    for (std::int64_t b = 0; b < op.n; ++b) {
      const std::int64_t begin = pool[op.n + b], end = pool[op.n + b + 1];
      for (std::int64_t t = begin; t < end; ++t) {
        const std::vector<Token>& tokens = layer(pool[b], op.layer);
        const std::int64_t prefix = std::ssize(tokens) - (end - begin);
        std::vector<std::int64_t> path;
        for (std::int64_t i = t - begin; i >= 0; i = parent[begin + i])
          path.insert(path.begin(), prefix + i);
        const std::int64_t position = prefix + std::ssize(path) - 1;
        std::vector<bool> seen(tokens.size());
        for (std::int64_t j = 0; j < prefix; ++j)
          seen[static_cast<std::size_t>(j)] = near(j, position);
        for (std::int64_t i = 0; i < std::ssize(path); ++i)
          seen[static_cast<std::size_t>(path[static_cast<std::size_t>(i)])] =
              near(prefix + i, position);
        const std::vector<double> q =
            row(op.phase == 1 ? kLaterQ : kQ, op.q_at + t * c_.n_q * c_.D, c_.n_q * c_.D);
        for (std::int64_t h = 0; h < c_.n_q; ++h) compare(tokens, seen, q, h, t, reference);
      }
    }
  }

  void compare(const std::vector<Token>& tokens, const std::vector<bool>& seen,
               const std::vector<double>& q, std::int64_t h, std::int64_t t,
               const Attended& reference) {
    const std::int64_t ratio = c_.n_q / c_.n_kv;
    std::vector<double> o(static_cast<std::size_t>(c_.Dv), 0.0), scores;
    double sum = 0, most = -HUGE_VAL;
    for (std::int64_t j = 0; j < std::ssize(tokens); ++j) {
      double dot = 0;
      for (std::int64_t d = 0; d < c_.D; ++d) {
        dot +=
            q[static_cast<std::size_t>(h * c_.D + d)] *
            tokens[static_cast<std::size_t>(j)].k[static_cast<std::size_t>(h / ratio * c_.D + d)];
      }
      scores.push_back(seen[static_cast<std::size_t>(j)]
                           ? dot * static_cast<double>(drawn_.params().scale)
                           : -HUGE_VAL);
      most = std::max(most, scores.back());
    }
    for (std::size_t j = 0; j < scores.size() && most > -HUGE_VAL; ++j) {
      const double p = std::exp(scores[j] - most);
      sum += p;
      for (std::size_t d = 0; d < o.size(); ++d) {
        o[d] += p * tokens[j].v[static_cast<std::size_t>(h / ratio * c_.Dv) + d];
      }
    }
    const auto at = static_cast<std::size_t>(t * c_.n_q + h);
    for (std::size_t d = 0; d < o.size(); ++d) {
      note(sum > 0 ? o[d] / sum : 0, reference.o[at * o.size() + d]);
    }
    if (sum > 0) return note(most + std::log(sum), reference.lse[at]);
    EXPECT_EQ(reference.lse[at], -HUGE_VAL);
  }

  void note(double mine, double theirs) {
    const double difference = std::abs(mine - theirs);
    if (!(difference <= worst_)) worst_ = difference;
    ++compared_;
  }

  const Drawn& drawn_;
  const kvc_config& c_;
  std::map<std::int64_t, Layers> held_;
  double worst_ = 0;
  int compared_ = 0;
};

TEST(KvReference, AgreesWithAttentionOverPlainHistories) {
  for (const char* name :
       {"batch",          "lifecycle",       "nothing_cached", "more_rows_than_tokens",
        "scale_negative", "causal_in_chunk", "ragged_lengths", "truncate_then_append",
        "fork_diverge",   "page_edges",      "layers_skewed",  "capacity",
        "fragmentation",  "score_spike",     "window_1",       "window_16",
        "window_random",  "sinks_4",         "dv_larger",      "gqa_groups_of_3",
        "bf16_lifecycle", "ragged_memory",   "tree_nodes",     "tree_random",
        "tree_refused",   "tree_window",     "shared_forks",   "shared_nothing_own",
        "shared_spike",   "defragment_forks"}) {
    CaseSpec c = subject().case_named(name);
    if (c.params.contains("ragged")) {
      c.params["ragged"] = {{"sequences", 5}, {"low", 3}, {"high", 40}, {"steps", 3}};
    }
    const Drawn drawn(c, 21);
    Witness witness(drawn);
    EXPECT_LT(witness.worst(), 1e-11) << name;
    EXPECT_GT(witness.compared(), 50) << name;
  }
}

TEST(KvReference, OneKeyGivesItsValue) {
  const Drawn drawn(
      scripted({{"n_q", 2}, {"n_kv", 1}, {"D", 3}, {"Dv", 5}}, "create; new a; step a:1"));
  const Attended& a = *drawn.reference().expected[3].attended;
  for (std::size_t i = 0; i < a.o.size(); ++i) {
    EXPECT_EQ(a.o[i], static_cast<double>(drawn.buffer(kV).as<float>()[i % 5]));
  }
  double score = 0;
  for (int d = 0; d < 3; ++d) {
    score += static_cast<double>(drawn.buffer(kQ).as<float>()[d]) *
             static_cast<double>(drawn.buffer(kK).as<float>()[d]);
  }
  EXPECT_NEAR(a.lse[0], score * static_cast<double>(drawn.params().scale), 1e-14);
}

}  // namespace
}  // namespace assay::kv_cache

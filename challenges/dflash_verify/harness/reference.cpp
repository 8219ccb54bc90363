// The fp64 reference, and a plain fp32 (or bf16) attention that sets the tolerance.
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "assay/parallel.h"
#include "assay/size.h"
#include "language_model.h"
#include "shared/plain_sum.h"
#include "trusted.h"

namespace assay::dflash_verify {
namespace {

using RowsD = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using RowsF = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr double kInf = std::numeric_limits<double>::infinity();

// --- masks

void mask_reference(const Shape& s, BufferViews buffers, DflashReference& r) {
  const std::int32_t* parent = buffers[mask::kParent].as<std::int32_t>();
  r.bits.assign(to_size(s.nodes() * s.ldm), 0);
  r.depth.resize(to_size(s.nodes()));
  r.pos.resize(to_size(s.nodes()));
  for (std::size_t b = 0; b < s.items.size(); ++b) {
    for (std::int64_t i = 0; i < s.items[b].n; ++i) {
      const auto node = to_size(s.cu[b] + i);
      std::int32_t depth = 0;
      for (std::int64_t a = i; a >= 0; a = parent[s.cu[b] + a], ++depth) {
        r.bits[node * to_size(s.ldm) + to_size(a / 64)] |= std::uint64_t{1} << (a % 64);
      }
      r.depth[node] = depth;
      r.pos[node] = s.items[b].P + depth - 1;
    }
  }
}

void full_mask_reference(const Shape& s, BufferViews buffers, DflashReference& r) {
  const std::int32_t* parent = buffers[full_mask::kParent].as<std::int32_t>();
  const std::int64_t n = s.nodes();
  r.sees.assign(to_size(n * n), 0);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t a = i; a >= 0; a = parent[a]) r.sees[to_size(i * n + a)] = 1;
  }
}

// --- attention

// The rows of one head of an array [rows, heads, D], widened.
RowsF head_rows(const Shape& s, const void* data, std::int64_t heads, std::int64_t first,
                std::int64_t count, std::int64_t head) {
  RowsF out(count, s.D);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at = ((first + i) * heads + head) * s.D;
    if (s.dtype == ASSAY_F32) {
      std::memcpy(out.row(i).data(), static_cast<const float*>(data) + at,
                  to_size(s.D) * sizeof(float));
    } else {
      const auto* x = static_cast<const std::uint16_t*>(data) + at;
      for (std::int64_t d = 0; d < s.D; ++d) out(i, d) = bf16_to_float(x[d]);
    }
  }
  return out;
}

float round_like(const Shape& s, float x) {
  return s.dtype == ASSAY_F32 ? x : bf16_to_float(float_to_bf16(x));
}

// One item and one key head, for all of its nodes and the query heads that read it. The prefix is
// multiplied as a matrix. Each row takes the keys of its ancestor nodes one by one, so that masked
// data never enters any arithmetic.
class HeadReference {
 public:
  HeadReference(const Shape& s, BufferViews buffers, std::size_t b, std::int64_t kv_head,
                DflashReference& r)
      : s_(s),
        r_(r),
        b_(b),
        group_(s.Hq / s.Hkv),
        kv_head_(kv_head),
        P_(s.items[b].P),
        n_(s.items[b].n),
        parent_(buffers[attention::kParent].as<std::int32_t>() + s.cu[b]) {
    using namespace attention;
    k_ = head_rows(s, buffers[kK].data, s.Hkv, s.rows[b], P_ + n_, kv_head);
    v_ = head_rows(s, buffers[kV].data, s.Hkv, s.rows[b], P_ + n_, kv_head);
    q_.resize(n_ * group_, s.D);
    for (std::int64_t g = 0; g < group_; ++g) {
      q_.middleRows(g * n_, n_) =
          head_rows(s, buffers[kQ].data, s.Hq, s.cu[b], n_, kv_head * group_ + g);
    }
  }

  void run() {
    prefix_scores();
    for (std::int64_t row = 0; row < q_.rows(); ++row) softmax_row(row);
    prefix_values();
    for (std::int64_t row = 0; row < q_.rows(); ++row) finish_row(row);
  }

 private:
  void prefix_scores() {
    const RowsD q = q_.cast<double>();
    p_.noalias() = q * k_.topRows(P_).cast<double>().transpose();
    p_ *= static_cast<double>(s_.scale);
    p32_.noalias() = q_ * k_.topRows(P_).transpose();
    p32_ *= s_.scale;
    const RowsF magnitude = q_.cwiseAbs() * k_.topRows(P_).cwiseAbs().transpose();
    conditioning_ = magnitude.rowwise().maxCoeff();
    conditioning_ *= std::abs(s_.scale);
  }

  std::vector<std::int64_t> path(std::int64_t node) const {
    std::vector<std::int64_t> out;
    for (std::int64_t a = node; a >= 0; a = parent_[a]) out.push_back(a);
    std::reverse(out.begin(), out.end());
    return out;
  }

  // Turns scores into weights relative to the row's maximum; the nodes' part is kept separately.
  void softmax_row(std::int64_t row) {
    Tail tail;
    tail.path = path(row % n_);
    double max = p_.row(row).maxCoeff();
    float max32 = p32_.row(row).maxCoeff();
    for (const std::int64_t a : tail.path) {
      const auto k = k_.row(P_ + a);
      const double score =
          q_.row(row).cast<double>().dot(k.cast<double>()) * static_cast<double>(s_.scale);
      const float score32 = q_.row(row).dot(k) * s_.scale;
      tail.p.push_back(score);
      tail.p32.push_back(score32);
      // Keeps a NaN, which comparisons alone would lose.
      max = std::isnan(score) || score > max ? score : max;
      max32 = std::isnan(score32) || score32 > max32 ? score32 : max32;
      if (std::isnan(score)) break;
      const float magnitude = q_.row(row).cwiseAbs().dot(k.cwiseAbs()) * std::abs(s_.scale);
      conditioning_(row) = std::max(conditioning_(row), magnitude);
    }
    poisoned_.push_back(std::isnan(max));
    p_.row(row) = (p_.row(row).array() - max).exp();
    double sum = p_.row(row).sum();
    p32_.row(row) = (p32_.row(row).array() - max32).exp();
    float sum32 = blocked_sum(row);
    for (double& x : tail.p) sum += x = std::exp(x - max);
    for (float& x : tail.p32) sum32 += x = std::exp(x - max32);
    tail.sum = sum;
    tail.sum32 = sum32;
    const std::size_t at = lse_index(row);
    r_.lse[at] = max + std::log(sum);
    r_.plain_lse[at] = static_cast<double>(max32 + std::log(sum32));
    r_.conditioning[at] = static_cast<double>(conditioning_(row));
    if (s_.dtype != ASSAY_F32) {
      for (std::int64_t j = 0; j < P_; ++j) p32_(row, j) = round_like(s_, p32_(row, j));
      for (float& x : tail.p32) x = round_like(s_, x);
    }
    tails_.push_back(std::move(tail));
  }

  float blocked_sum(std::int64_t row) const {
    float sum = 0;
    for (std::int64_t j = 0; j < P_; j += 64) {
      sum += p32_.row(row).segment(j, std::min<std::int64_t>(64, P_ - j)).sum();
    }
    return sum;
  }

  void prefix_values() {
    o_.noalias() = p_ * v_.topRows(P_).cast<double>();
    scale_.noalias() = p_ * v_.topRows(P_).cast<double>().cwiseAbs();
    o32_ = RowsF::Zero(q_.rows(), s_.D);
    add_plain_product(p32_, v_.topRows(P_), o32_);
  }

  void finish_row(std::int64_t row) {
    const Tail& tail = tails_[to_size(row)];
    for (std::size_t i = 0; i < tail.p.size(); ++i) {
      const auto v = v_.row(P_ + tail.path[i]);
      o_.row(row) += tail.p[i] * v.cast<double>();
      scale_.row(row) += tail.p[i] * v.cast<double>().cwiseAbs();
      o32_.row(row) += tail.p32[i] * v;
    }
    const bool poisoned = poisoned_[to_size(row)] != 0;
    for (std::int64_t d = 0; d < s_.D; ++d) {
      const std::size_t at = lse_index(row) * to_size(s_.D) + to_size(d);
      r_.o[at] = poisoned ? NAN : o_(row, d) / tail.sum;
      r_.scale_o[at] = scale_(row, d) / tail.sum;
      r_.plain_o[at] = static_cast<double>(round_like(s_, o32_(row, d) / tail.sum32));
    }
  }

  std::size_t lse_index(std::int64_t row) const {
    const std::int64_t node = s_.cu[b_] + row % n_;
    return to_size(node * s_.Hq + kv_head_ * group_ + row / n_);
  }

  struct Tail {
    std::vector<std::int64_t> path;
    std::vector<double> p;
    std::vector<float> p32;
    double sum = 0;
    float sum32 = 0;
  };

  const Shape& s_;
  DflashReference& r_;
  std::size_t b_;
  std::int64_t group_, kv_head_, P_, n_;
  const std::int32_t* parent_;
  RowsF k_, v_, q_;
  RowsD p_, o_, scale_;
  RowsF p32_, o32_;
  Eigen::VectorXf conditioning_;
  std::vector<Tail> tails_;
  std::vector<char> poisoned_;
};

// --- accept

// The children of each node of one tree in ascending order; index 0 is the root.
std::vector<std::vector<std::int32_t>> children_of(const std::int32_t* parent, std::int64_t n) {
  std::vector<std::vector<std::int32_t>> children(to_size(n) + 1);
  for (std::int64_t i = 0; i < n; ++i) {
    children[to_size(parent[i] + 1)].push_back(static_cast<std::int32_t>(i));
  }
  return children;
}

struct Choice {
  std::int32_t child = -1, token = -1;
};

// One item's walk down its tree.
class Walk {
 public:
  Walk(const Shape& s, BufferViews buffers, std::size_t b)
      : s_(s),
        buffers_(buffers),
        b_(b),
        n_(s.items[b].n),
        token_(buffers[accept::kToken].as<std::int32_t>() + s.cu[b]),
        children_(children_of(buffers[accept::kParent].as<std::int32_t>() + s.cu[b], n_)) {}

  void run(DflashReference& r) {
    using namespace accept;
    const auto* eos = buffers_[kEos].as<std::int32_t>();
    const auto* budget = buffers_[kBudget].as<std::int32_t>();
    std::int32_t* acc = r.acc_node.data() + s_.cu[b_];
    std::int32_t& accepted = r.n_acc[b_];
    std::int32_t cur = -1;
    for (;;) {
      if (budget != nullptr && accepted == budget[b_]) break;
      const Choice choice = s_.sampling == DV_GREEDY ? greedy(cur) : sample(cur, accepted);
      if (choice.child < 0) {
        r.bonus[b_] = choice.token;
        break;
      }
      acc[accepted++] = choice.child;
      if (eos != nullptr && eos[b_] >= 0 && choice.token == eos[b_]) break;
      cur = choice.child;
    }
    r.unclear[b_] = static_cast<char>(unclear_);
  }

 private:
  const float* row(int root_handle, int node_handle, std::int32_t node) const {
    if (node < 0) return buffers_[root_handle].as<float>() + static_cast<std::int64_t>(b_) * s_.V;
    return buffers_[node_handle].as<float>() + (s_.cu[b_] + node) * s_.V;
  }
  const float* logits(std::int32_t node) const {
    return row(accept::kRootLogits, accept::kNodeLogits, node);
  }

  std::int32_t child_with(std::int32_t cur, std::int32_t token) const {
    for (const std::int32_t c : children_[to_size(cur + 1)]) {
      if (token_[c] == token) return c;
    }
    return -1;
  }

  Choice greedy(std::int32_t cur) const {
    const float* x = logits(cur);
    const auto g = static_cast<std::int32_t>(std::max_element(x, x + s_.V) - x);
    return {child_with(cur, g), g};
  }

  double uniform(std::int64_t step, std::size_t t) const {
    const float* u = buffers_[accept::kUniform].as<float>();
    return u[(static_cast<std::int64_t>(b_) * s_.tries() + step) * s_.tries() +
             static_cast<std::int64_t>(t)];
  }

  std::vector<double> softmax(const float* x) const {
    std::vector<double> p(x, x + s_.V);
    const double max = *std::max_element(p.begin(), p.end());
    double sum = 0;
    for (double& y : p) sum += y = std::exp((y - max) / static_cast<double>(s_.temperature));
    for (double& y : p) y /= sum;
    return p;
  }

  // Notes if the sum passes u so closely that rounding may decide.
  std::int32_t draw(const std::vector<double>& w, double u) {
    double total = 0, sum = 0;
    for (const double x : w) total += x;
    std::int32_t chosen = -1;
    for (std::size_t j = 0; j < w.size(); ++j) {
      sum += w[j];
      if (w[j] > 0 && std::abs(sum / total - u) < slack_) unclear_ = true;
      if (chosen < 0 && sum > u * total) chosen = static_cast<std::int32_t>(j);
    }
    return chosen;
  }

  // max(0, w), normalised; unchanged if nothing is positive. Small sums magnify rounding.
  void normalise(std::vector<double>& w) {
    double sum = 0;
    for (const double x : w) sum += std::max(0.0, x);
    if (!(sum > 0)) return;
    slack_ /= std::min(1.0, sum);
    for (double& x : w) x = std::max(0.0, x) / sum;
  }

  Choice sample(std::int32_t cur, std::int64_t step) {
    slack_ = kSlack;
    std::vector<double> p = softmax(logits(cur));
    if (s_.sampling == DV_SAMPLE_TREE) {
      const std::int32_t x = draw(p, uniform(step, 0));
      return {child_with(cur, x), x};
    }
    const float* given = row(accept::kRootQ, accept::kNodeQ, cur);
    std::vector<double> q(given, given + s_.V);
    const auto& children = children_[to_size(cur + 1)];
    for (std::size_t t = 0; t < children.size(); ++t) {
      const auto x = to_size(token_[children[t]]);
      const double threshold = uniform(step, t) * q[x];
      // Before anything was taken from it, a probability of 0 is exact: nothing is less.
      const bool exact = t == 0 && p[x] == 0;
      if (!exact && std::abs(threshold - p[x]) < slack_) unclear_ = true;
      if (threshold < p[x]) return {children[t], token_[children[t]]};
      std::vector<double> rest(p);
      for (std::size_t j = 0; j < rest.size(); ++j) rest[j] -= q[j];
      normalise(rest);
      p = *std::max_element(rest.begin(), rest.end()) > 0 ? rest : p;
      if (s_.sampling == DV_SAMPLE_NO_REPL) {
        q[x] = 0;
        normalise(q);
      }
    }
    return {-1, draw(p, uniform(step, children.size()))};
  }

  static constexpr double kSlack = 2e-6;

  const Shape& s_;
  BufferViews buffers_;
  std::size_t b_;
  std::int64_t n_;
  const std::int32_t* token_;
  std::vector<std::vector<std::int32_t>> children_;
  double slack_ = kSlack;
  bool unclear_ = false;
};

// --- compact and generate

void compact_reference(const Shape& s, BufferViews buffers, DflashReference& r) {
  using namespace compact;
  const auto* rows = buffers[kRows].as<std::int64_t>();
  const auto* acc = buffers[kAccNode].as<std::int32_t>();
  const auto* n_acc = buffers[kNAcc].as<std::int32_t>();
  const auto* kv = buffers[kKv].as<std::byte>();
  const auto keep = [&](std::int64_t row) {
    r.kept.insert(r.kept.end(), kv + row * s.row_bytes, kv + (row + 1) * s.row_bytes);
  };
  for (std::size_t b = 0; b < s.items.size(); ++b) {
    for (std::int32_t c = 0; c < s.caches; ++c) {
      const std::int64_t first = rows[b * to_size(s.caches) + to_size(c)];
      for (std::int64_t i = 0; i < s.items[b].P; ++i) keep(first + i);
      for (std::int32_t j = 0; j < n_acc[b]; ++j) keep(first + s.items[b].P + acc[s.cu[b] + j]);
    }
  }
}

// Greedy decoding gives the text; the longest match of each draft with it gives the fewest calls.
void generate_reference(const CaseSpec& spec, BufferViews buffers, DflashReference& r) {
  const LanguageModel model = model_of(spec, buffers);
  const auto prompt = buffers[generate::kPrompt].span<std::int32_t>();
  r.text = model.decode(prompt, spec.params.at("max_new").get<std::int64_t>(),
                        spec.params.value("eos", false));
  std::vector<std::int32_t> prefix(prompt.begin(), prompt.end());
  std::size_t emitted = 0;
  std::int64_t pending = static_cast<std::int64_t>(prompt.size());
  while (emitted < r.text.size()) {
    const LanguageModel::Tree tree = model.draft(prefix);
    const auto n = static_cast<std::int64_t>(tree.parent.size());
    const auto children = children_of(tree.parent.data(), n);
    ++r.verify_calls;
    r.rows += pending + n;
    std::int32_t cur = -1;
    bool bonus = false;
    while (emitted < r.text.size() && !bonus) {
      const std::int32_t token = r.text[emitted++];
      prefix.push_back(token);
      bonus = true;
      for (const std::int32_t c : children[to_size(cur + 1)]) {
        if (tree.token[to_size(c)] != token) continue;
        cur = c;
        bonus = false;
        break;
      }
    }
    pending = 1;
  }
}

}  // namespace

void attention_reference(const Shape& s, BufferViews buffers, DflashReference& r) {
  const auto rows = to_size(s.nodes() * s.Hq);
  for (auto* values : {&r.lse, &r.plain_lse, &r.conditioning}) values->resize(rows);
  for (auto* values : {&r.o, &r.plain_o, &r.scale_o}) {
    values->resize(rows * to_size(s.D));
  }
  const std::int32_t* parent = buffers[attention::kParent].as<std::int32_t>();
  for (std::size_t b = 0; b < s.items.size(); ++b) {
    for (std::int64_t i = 0; i < s.items[b].n; ++i) {
      const std::int32_t up = parent[s.cu[b] + i];
      r.keys.push_back(1 + (up < 0 ? s.items[b].P : r.keys[to_size(s.cu[b] + up)]));
    }
  }
  parallel_for(s.B() * s.Hkv, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto b = to_size(i / s.Hkv);
      if (s.items[b].n > 0) HeadReference(s, buffers, b, i % s.Hkv, r).run();
    }
  });
}

void accept_reference(const Shape& s, BufferViews buffers, DflashReference& r) {
  const auto B = to_size(s.B());
  r.acc_node.assign(to_size(s.nodes()), -1);
  r.n_acc.assign(B, 0);
  r.bonus.assign(B, -1);
  r.unclear.assign(B, 0);
  parallel_for(s.B(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      Walk(s, buffers, to_size(b)).run(r);
    }
  });
}

std::unique_ptr<DflashReference> make_reference(const CaseSpec& spec, const Shape& s,
                                                BufferViews buffers) {
  auto reference = std::make_unique<DflashReference>();
  switch (s.entry) {
    case kMask: mask_reference(s, buffers, *reference); break;
    case kFullMask: full_mask_reference(s, buffers, *reference); break;
    case kAttention: attention_reference(s, buffers, *reference); break;
    case kAccept: accept_reference(s, buffers, *reference); break;
    case kCompact: compact_reference(s, buffers, *reference); break;
    case kGenerate: generate_reference(spec, buffers, *reference); break;
  }
  return reference;
}

}  // namespace assay::dflash_verify

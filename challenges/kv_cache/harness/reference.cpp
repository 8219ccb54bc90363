// The required result of every operation of a script. The model follows the script, and each
// attention is computed in fp64 from the appended rows themselves, without a cache. A plain fp32
// (or bf16) attention sets the tolerance.
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>

#include "assay/parallel.h"
#include "assay/size.h"
#include "shared/plain_sum.h"
#include "trusted.h"

namespace assay::kv_cache {
namespace {

using RowsD = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using RowsF = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr std::int64_t kBlock = 64;

float element(const void* data, std::int64_t at, std::int32_t bytes) {
  return bytes == 2 ? bf16_to_float(static_cast<const std::uint16_t*>(data)[at])
                    : static_cast<const float*>(data)[at];
}

// One entry of a batch and one key head, for all query heads that read it. Row g * n + i is query i
// of the group's head g.
class HeadReference {
 public:
  HeadReference(const Params& p, BufferViews buffers, const Op& op, const History& history,
                std::int64_t first_row, std::int64_t n, std::int64_t head,
                const std::int64_t* parent, Attended& out)
      : p_(p),
        c_(p.config[op.cache]),
        buffers_(buffers),
        out_(out),
        first_(first_row),
        n_(n),
        length_(history.length),
        head_(head),
        group_(c_.n_q / c_.n_kv),
        parent_(parent) {
    gather(history);
    place_nodes();
    const void* q = buffers[op.phase == 1 ? kLaterQ : kQ].data;
    q_.resize(n_ * group_, c_.D);
    for (std::int64_t row = 0; row < q_.rows(); ++row) {
      const std::int64_t at =
          op.q_at + ((first_ + row % n_) * c_.n_q + head_ * group_ + row / n_) * c_.D;
      for (std::int64_t d = 0; d < c_.D; ++d) q_(row, d) = element(q, at + d, p_.element_bytes);
    }
  }

  void run() {
    scores();
    for (std::int64_t row = 0; row < q_.rows(); ++row) softmax(row);
    values();
  }

 private:
  void gather(const History& history) {
    k_.resize(length_, c_.D);
    v_.resize(length_, c_.Dv);
    std::int64_t t = 0;
    for (const Run& run : history.runs) {
      const void* k = buffers_[run.phase == 1 ? kLaterK : kK].data;
      const void* v = buffers_[run.phase == 1 ? kLaterV : kV].data;
      for (std::int64_t i = 0; i < run.n; ++i, ++t) {
        const std::int64_t row = i * c_.n_kv + head_;
        for (std::int64_t d = 0; d < c_.D; ++d) {
          k_(t, d) = element(k, run.k_at + row * c_.D + d, p_.element_bytes);
        }
        for (std::int64_t d = 0; d < c_.Dv; ++d) {
          v_(t, d) = element(v, run.v_at + row * c_.Dv + d, p_.element_bytes);
        }
      }
    }
  }

  void scores() {
    weights_.noalias() = q_.cast<double>() * k_.cast<double>().transpose();
    weights_ *= static_cast<double>(p_.scale);
    plain_.noalias() = q_ * k_.transpose();
    plain_ *= p_.scale;
    key_norm_ = k_.rowwise().norm();
    row_sum_.resize(q_.rows());
    plain_sum_.resize(q_.rows());
  }

  // Positions of the rows. Without a tree, each row is the child of the one before it.
  void place_nodes() {
    for (std::int64_t i = 0; i < n_; ++i) {
      const std::int64_t parent = parent_ == nullptr ? i - 1 : parent_[i];
      position_.push_back(parent < 0 ? length_ - n_ : position_[to_size(parent)] + 1);
    }
  }

  std::int64_t position_of_key(std::int64_t key) const {
    const std::int64_t node = key - (length_ - n_);
    return parent_ == nullptr || node < 0 ? key : position_[to_size(node)];
  }

  bool is_ancestor_or_self(std::int64_t node, std::int64_t row) const {
    while (row > node) row = parent_[row];
    return row == node;
  }

  bool visible(std::int64_t key, std::int64_t row) const {
    const std::int64_t at = position_[to_size(row)], key_at = position_of_key(key);
    if (parent_ == nullptr
            ? key > at
            : key >= length_ - n_ && !is_ancestor_or_self(key - (length_ - n_), row)) {
      return false;
    }
    return c_.window < 0 || key_at > at - c_.window || key_at < c_.sinks;
  }

  std::size_t index(std::int64_t row) const {
    return to_size((first_ + row % n_) * c_.n_q + head_ * group_ + row / n_);
  }

  // Turns scores into weights relative to the row's maximum; invisible keys have weight 0.
  void softmax(std::int64_t row) {
    const std::int64_t query = row % n_;
    double max = -kInf;
    float max32 = -std::numeric_limits<float>::infinity(), largest = 0;
    std::int64_t keys = 0;
    for (std::int64_t j = 0; j < length_; ++j) {
      if (!visible(j, query)) continue;
      ++keys;
      max = std::max(max, weights_(row, j));
      max32 = std::max(max32, plain_(row, j));
      largest = std::max(largest, key_norm_(j));
    }
    double sum = 0;
    float sum32 = 0;
    for (std::int64_t from = 0; from < length_; from += kBlock) {
      float block = 0;
      for (std::int64_t j = from; j < std::min(length_, from + kBlock); ++j) {
        const bool seen = visible(j, query);
        sum += weights_(row, j) = seen ? std::exp(weights_(row, j) - max) : 0;
        block += plain_(row, j) = seen ? std::exp(plain_(row, j) - max32) : 0;
        if (p_.element_bytes == 2) plain_(row, j) = bf16_to_float(float_to_bf16(plain_(row, j)));
      }
      sum32 += block;
    }
    row_sum_(row) = sum;
    plain_sum_(row) = sum32;
    const std::size_t at = index(row);
    out_.keys[to_size(first_ + row % n_)] = keys;
    out_.lse[at] = keys > 0 ? max + std::log(sum) : -kInf;
    out_.plain_lse[at] = keys > 0 ? static_cast<double>(max32 + std::log(sum32)) : -kInf;
    out_.conditioning[at] = static_cast<double>(std::abs(p_.scale) * q_.row(row).norm() * largest);
  }

  void values() {
    const RowsD wide = v_.cast<double>();
    const RowsD o = weights_ * wide, scale = weights_ * wide.cwiseAbs();
    RowsF o32 = RowsF::Zero(q_.rows(), c_.Dv);
    add_plain_product(plain_, v_, o32);
    for (std::int64_t row = 0; row < q_.rows(); ++row) {
      const bool any = row_sum_(row) > 0;
      for (std::int64_t d = 0; d < c_.Dv; ++d) {
        const std::size_t at = index(row) * to_size(c_.Dv) + to_size(d);
        out_.o[at] = any ? o(row, d) / row_sum_(row) : 0;
        out_.scale_o[at] = any ? scale(row, d) / row_sum_(row) : 0;
        const float plain = any ? o32(row, d) / plain_sum_(row) : 0;
        out_.plain_o[at] = static_cast<double>(
            p_.element_bytes == 2 ? bf16_to_float(float_to_bf16(plain)) : plain);
      }
    }
  }

  const Params& p_;
  const kvc_config& c_;
  BufferViews buffers_;
  Attended& out_;
  std::int64_t first_, n_, length_, head_, group_;
  const std::int64_t* parent_;          // of the rows, or NULL for a chain
  std::vector<std::int64_t> position_;  // of the rows
  RowsF q_, k_, v_, plain_;
  RowsD weights_;
  Eigen::VectorXf key_norm_, plain_sum_;
  Eigen::VectorXd row_sum_;
};

std::unique_ptr<Attended> attention(const Params& p, BufferViews buffers, const Model& model,
                                    const Op& op, const std::int64_t* pool) {
  const kvc_config& c = p.config[op.cache];
  const std::int64_t *slots = pool + op.pool, *cu = slots + op.n;
  auto out = std::make_unique<Attended>();
  out->rows = cu[op.n];
  const auto heads = to_size(out->rows * c.n_q);
  for (auto* per_head : {&out->lse, &out->plain_lse, &out->conditioning}) per_head->resize(heads);
  for (auto* per_element : {&out->o, &out->plain_o, &out->scale_o}) {
    per_element->resize(heads * to_size(c.Dv));
  }
  out->keys.resize(to_size(out->rows));
  parallel_for(op.n * c.n_kv, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t b = i / c.n_kv, rows = cu[b + 1] - cu[b];
      if (rows == 0) continue;
      const History& history = model.sequence(slots[b]).layers[to_size(op.layer)];
      const std::int64_t* parent = op.kind == kAttendTree ? cu + op.n + 1 + cu[b] : nullptr;
      HeadReference(p, buffers, op, history, cu[b], rows, i % c.n_kv, parent, *out).run();
    }
  });
  return out;
}

bool empty(const Model& model, const Params& p, std::int64_t cache) {
  std::int64_t tokens = 0;
  for (std::int64_t l = 0; l < p.config[cache].n_layers; ++l) tokens += model.tokens(cache, l);
  return tokens == 0;
}

Expected expectation(const Params& p, const Model& model, const Op& op) {
  Expected e;
  const kvc_config& c = p.config[op.cache];
  switch (op.kind) {
    case kLen: {
      const bool known =
          model.alive(op.sequence, op.cache) && op.layer >= 0 && op.layer < c.n_layers;
      e.length = known ? model.sequence(op.sequence).layers[to_size(op.layer)].length : -1;
      break;
    }
    case kBytes:
      e.needed = model.needed_bytes(op.cache);
      e.empty = empty(model, p, op.cache);
      break;
    default: break;
  }
  return e;
}

}  // namespace

std::unique_ptr<KvReference> make_reference(const Params& p, BufferViews buffers) {
  auto r = std::make_unique<KvReference>();
  const auto ops = buffers[kOps].span<const Op>();
  const auto pool = buffers[kPool].span<const std::int64_t>();
  r->ops.assign(ops.begin(), ops.end());
  r->pool.assign(pool.begin(), pool.end());
  Model model(p);
  for (const Op& op : r->ops) {
    const Expect status = model.apply(op, r->pool.data());
    Expected e = expectation(p, model, op);
    e.status = status;
    if (is_attention(op.kind) && status == Expect::success) {
      e.attended = attention(p, buffers, model, op, r->pool.data());
    }
    if (op.kind == kRead && status == Expect::success) {
      e.read = model.sequence(op.sequence).layers[to_size(op.layer)].slice(op.from, op.until);
    }
    r->expected.push_back(std::move(e));
  }
  return r;
}

}  // namespace assay::kv_cache

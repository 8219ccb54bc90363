// Sample entrant of assay, not a model's answer: beam search as a textbook would print it, in CUDA.
// A step has two kernels. The first gives each row of the model a block, which forms log-
// probabilities and takes the best continuations of that beam. The second gives each item a block,
// which takes the new list from its finished beams and those continuations. The host keeps the
// lists, asks the model, and reads K choices an item. Leaves keep_finished and all options out.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <new>
#include <numeric>
#include <vector>

#include "abi.h"

namespace {

// ---- Selection: the best n of a pool, in order, by one block ----

constexpr int kBlock = 256, kLanes = 32;
constexpr int kRoom = 2048;  // entries that a block collects at a time
constexpr double kAbsent = -INFINITY;

// What is compared. Of equal keys the earlier position comes first: pools are laid out so that this
// is the order that the interface asks for.
struct Ranked {
  double key;
  std::int64_t position;
};

__device__ bool ranks_above(const Ranked& a, const Ranked& b) {
  return a.key > b.key || (a.key == b.key && a.position < b.position);
}

// Bitonic sort, the highest rank first. The whole block calls it; it begins and ends with a barrier.
__device__ void sort_ranked(Ranked* entries, int count) {
  int size = 1;
  while (size < count) size <<= 1;
  for (int i = count + static_cast<int>(threadIdx.x); i < size; i += kBlock) {
    entries[i] = {kAbsent, INT64_MAX};
  }
  __syncthreads();
  for (int span = 2; span <= size; span <<= 1) {
    for (int gap = span >> 1; gap > 0; gap >>= 1) {
      for (int i = threadIdx.x; i < size; i += kBlock) {
        const int partner = i ^ gap;
        if (partner < i) continue;
        // Spans alternate in direction, so that two neighbours make one bitonic sequence.
        const bool forward = (i & span) == 0;
        const Ranked left = entries[i], right = entries[partner];
        if (ranks_above(right, left) == forward) {
          entries[i] = right;
          entries[partner] = left;
        }
      }
      __syncthreads();
    }
  }
}

__device__ float next_below(float v) { return nextafterf(v, -INFINITY); }
__device__ double next_below(double v) { return nextafter(v, kAbsent); }

// Calls emit(k, position) for the best n entries of the pool, k = 0 being the best, and with
// position -1 where the pool has fewer. The whole block calls it.
//
// A pool has size, value(position), which is -inf for what is not there, and key(value), which never
// falls when the value grows. The key may be costly and may round two values to one.
//
// The pool is read twice. First each thread finds the leader of its share. The n-th best leader is a
// bound that at least n entries reach, and seldom many more. The second time those are collected and
// sorted. If they find no room, a better leader is the bound, and further rounds take the rest.
template <class Pool, class Emit>
__device__ void take_best(const Pool& pool, std::int32_t n, Emit emit) {
  using Value = decltype(pool.value(0));
  __shared__ Ranked leaders[kBlock];
  __shared__ Ranked reached[kRoom];
  __shared__ int n_reached;

  Ranked last{INFINITY, -1};  // the lowest that was taken
  std::int32_t taken = 0;
  while (taken < n) {
    const auto is_left = [&](Value v, std::int64_t i) {
      return taken == 0 || ranks_above(last, {pool.key(v), i});
    };
    Value lead = -INFINITY;
    std::int64_t at = -1;
    for (std::int64_t i = threadIdx.x; i < pool.size; i += kBlock) {
      const Value v = pool.value(i);
      if (v > lead && is_left(v, i)) {
        lead = v;
        at = i;
      }
    }
    double lead_key = kAbsent;
    if (at >= 0) {
      lead_key = pool.key(lead);
      // Where lower values have the same key, an earlier one of them leads.
      if (pool.key(next_below(lead)) == lead_key) {
        for (std::int64_t i = threadIdx.x; i < at; i += kBlock) {
          const Value v = pool.value(i);
          if (v > kAbsent && pool.key(v) == lead_key && is_left(v, i)) at = i;
        }
      }
    }
    leaders[threadIdx.x] = {lead_key, at < 0 ? INT64_MAX : at};
    const int n_leaders = __syncthreads_count(at >= 0);
    if (n_leaders == 0) break;
    sort_ranked(leaders, kBlock);

    // The best leader is the best entry of all: with that bound there is room.
    int count = kRoom + 1;
    for (int rank = min(n - taken, n_leaders); count > kRoom; rank /= 2) {
      const Ranked bound = leaders[rank - 1];
      const Value bound_value = pool.value(bound.position);
      // Spares most entries the key: none below the cutoff can reach the bound.
      const Value cutoff =
          pool.key(next_below(bound_value)) < bound.key ? bound_value : Value{-INFINITY};
      if (threadIdx.x == 0) n_reached = 0;
      __syncthreads();
      for (std::int64_t i = threadIdx.x; i < pool.size; i += kBlock) {
        const Value v = pool.value(i);
        if (v < cutoff || v == -INFINITY) continue;
        const Ranked entry{pool.key(v), i};
        if (ranks_above(bound, entry) || !ranks_above(last, entry)) continue;
        const int slot = atomicAdd(&n_reached, 1);
        if (slot < kRoom) reached[slot] = entry;
      }
      __syncthreads();
      count = n_reached;
      __syncthreads();  // all have read it
    }

    sort_ranked(reached, count);
    const int usable = min(count, n - taken);
    for (int k = threadIdx.x; k < usable; k += kBlock) emit(taken + k, reached[k].position);
    last = reached[usable - 1];
    taken += usable;
    __syncthreads();  // the lists are free again
  }
  for (int k = taken + static_cast<int>(threadIdx.x); k < n; k += kBlock) emit(k, -1);
}

// ---- The two kernels of a step ----

// How beams are compared after this step. The divisor is the length penalty.
struct Ranking {
  double divisor;
  bool by_score;

  // A penalty of 0 makes -inf or NaN of a sum; such a beam is the worst, but it is there.
  __device__ double key(double sum) const { return by_score ? fmax(sum / divisor, -DBL_MAX) : sum; }
};

// A beam and one token more. token -1: there is none.
struct Continuation {
  double acc;
  std::int32_t token;
};

struct Max {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Plus {
  __device__ double operator()(double a, double b) const { return a + b; }
};

// Combines a value of each thread; every thread gets the result. The order is always the same.
template <class T, class Op>
__device__ T block_reduce(T value, Op op) {
  __shared__ T of_warp[kBlock / kLanes];
  for (int distance = kLanes / 2; distance > 0; distance >>= 1) {
    value = op(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  if (threadIdx.x % kLanes == 0) of_warp[threadIdx.x / kLanes] = value;
  __syncthreads();
  value = of_warp[0];
  for (int warp = 1; warp < kBlock / kLanes; ++warp) value = op(value, of_warp[warp]);
  return value;
}

// log(sum(exp(x))) of a row. The largest logit is taken out first, so that no exp overflows.
__device__ double log_sum_exp(const float* x, std::int32_t V) {
  float largest = -INFINITY;
  for (std::int32_t v = threadIdx.x; v < V; v += kBlock) largest = fmaxf(largest, x[v]);
  largest = block_reduce(largest, Max{});
  if (largest == -INFINITY) return 0;  // every token is impossible, whatever is subtracted
  const double top = largest;
  double part = 0;
  for (std::int32_t v = threadIdx.x; v < V; v += kBlock) part += exp(x[v] - top);
  return top + log(block_reduce(part, Plus{}));
}

// The tokens after one beam: positions are tokens, values what the model said.
struct TokenPool {
  const float* row;
  std::int32_t size, forbidden;
  double acc, normalizer;
  Ranking ranking;

  __device__ float value(std::int64_t token) const {
    return token == forbidden ? -INFINITY : row[token];
  }
  __device__ double sum(float x) const { return acc + (static_cast<double>(x) - normalizer); }
  __device__ double key(float x) const { return ranking.key(sum(x)); }
};

// A block a row: the best `width` continuations of its beam, best first, to out [rows, width].
__global__ void __launch_bounds__(kBlock)
    continue_beams(const float* values, std::int32_t V, bool logits, std::int32_t forbidden,
                   const double* acc, Ranking ranking, std::int32_t width, Continuation* out) {
  const std::int64_t r = blockIdx.x;
  const float* row = values + r * V;
  const double normalizer = logits ? log_sum_exp(row, V) : 0;
  const TokenPool pool{row, V, forbidden, acc[r], normalizer, ranking};
  take_best(pool, width, [&](std::int32_t k, std::int64_t token) {
    Continuation& c = out[r * width + k];
    c.token = static_cast<std::int32_t>(token);
    c.acc = token < 0 ? 0 : pool.sum(row[token]);
  });
}

// What an item brings to a step: ranges of the finished beams and of the rows of all items.
struct ItemStep {
  std::int32_t item, first_finished, n_finished, first_row, n_rows;
};

// One place of a new list. A token below 0: finished beam number `source` of the item stays. Else
// the beam of its row number `source` goes on with the token. source -1: the list is shorter.
struct Choice {
  double acc;
  std::int32_t source, token;
};

// The pool of an item: first the finished beams in the order of the list, then the continuations of
// each active beam, which are ordered by token where they are equal.
struct BeamPool {
  const double* finished_keys;
  std::int64_t n_finished, size;
  const Continuation* continuations;
  Ranking ranking;

  __device__ double value(std::int64_t i) const {
    if (i < n_finished) return finished_keys[i];
    const Continuation& c = continuations[i - n_finished];
    return c.token < 0 ? kAbsent : ranking.key(c.acc);
  }
  __device__ double key(double v) const { return v; }
};

// A block an item: its new list, best first, to out [items, K].
__global__ void __launch_bounds__(kBlock)
    select_beams(const ItemStep* steps, const double* finished_keys,
                 const Continuation* continuations, std::int32_t width, Ranking ranking,
                 std::int32_t K, Choice* out) {
  const ItemStep step = steps[blockIdx.x];
  const Continuation* own = continuations + static_cast<std::int64_t>(step.first_row) * width;
  const BeamPool pool{finished_keys + step.first_finished, step.n_finished,
                      step.n_finished + static_cast<std::int64_t>(step.n_rows) * width, own,
                      ranking};
  out += static_cast<std::int64_t>(blockIdx.x) * K;
  take_best(pool, K, [&](std::int32_t k, std::int64_t position) {
    if (position < step.n_finished) {  // or -1
      out[k] = {0, static_cast<std::int32_t>(position), -1};
    } else {
      const std::int64_t i = position - step.n_finished;
      out[k] = {own[i].acc, static_cast<std::int32_t>(i / width), own[i].token};
    }
  });
}

// ---- Memory of the context ----

// The context's host memory for the containers of std::pmr.
class HostMemory final : public std::pmr::memory_resource {
 public:
  explicit HostMemory(assay_ctx* ctx) : ctx_(ctx) {}

 private:
  void* do_allocate(std::size_t bytes, std::size_t align) override {
    if (void* block = ctx_->alloc(ctx_, bytes, align, 0)) return block;
    throw std::bad_alloc();
  }
  void do_deallocate(void* block, std::size_t, std::size_t) override { ctx_->free(ctx_, block); }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  assay_ctx* ctx_;
};

template <class T>
class DeviceBuffer {
 public:
  DeviceBuffer(assay_ctx* ctx, std::size_t count) : ctx_(ctx) {
    start_ = static_cast<T*>(ctx->alloc(ctx, count * sizeof(T), 256, 1));
    if (start_ == nullptr) throw std::bad_alloc();
  }
  ~DeviceBuffer() { ctx_->free(ctx_, start_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  T* get() const { return start_; }

  void upload(const std::pmr::vector<T>& from, cudaStream_t stream) {
    if (from.empty()) return;
    cudaMemcpyAsync(start_, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice, stream);
  }
  void download(std::pmr::vector<T>& to, cudaStream_t stream) const {
    cudaMemcpyAsync(to.data(), start_, to.size() * sizeof(T), cudaMemcpyDeviceToHost, stream);
  }

 private:
  assay_ctx* ctx_;
  T* start_;
};

// ---- The lists ----

// The texts of all beams as a tree: a beam is a node, its text the way to the root, which is -1. So
// a step adds a node a beam and copies no text.
class TextTree {
 public:
  explicit TextTree(std::pmr::memory_resource* memory) : nodes_(memory) {}

  std::int64_t append(std::int64_t parent, std::int32_t token) {
    nodes_.push_back({parent, token});
    return static_cast<std::int64_t>(nodes_.size()) - 1;
  }

  // Writes the text that ends with the node, backwards, in front of `end`.
  void spell(std::int64_t node, std::int32_t* end) const {
    for (; node >= 0; node = nodes_[static_cast<std::size_t>(node)].parent) {
      *--end = nodes_[static_cast<std::size_t>(node)].token;
    }
  }

 private:
  struct Node {
    std::int64_t parent;
    std::int32_t token;
  };
  std::pmr::vector<Node> nodes_;
};

struct Beam {
  double acc = 0, score = 0;
  std::int64_t state = -1;  // of its parent's row: what the model wants to know with the token
  std::int64_t node = -1;
  std::int32_t token = 0, len = 0;
  std::int32_t entry = 0;  // its place in the list when it was made
  bool finished = false;
};

// The order of the answer. Active beams that are equal keep the order of the list.
bool answers_before(const Beam& a, const Beam& b, bool a_is_ahead) {
  // As on the device: a NaN, of a penalty of 0, is the worst.
  const double x = std::fmax(a.score, -DBL_MAX), y = std::fmax(b.score, -DBL_MAX);
  if (x != y) return x > y;
  if (a.finished != b.finished) return a.finished;
  if (!a.finished) return a_is_ahead;
  // A beam that took eos stopped growing: its length is the step at which it finished.
  return a.len != b.len ? a.len < b.len : a.entry < b.entry;
}

// The lists of all items, and the searching of them.
class Decoder {
 public:
  Decoder(assay_ctx* ctx, const bs_params& params, const assay_lm& lm)
      : memory_(ctx),
        ctx_(ctx),
        params_(params),
        lm_(lm),
        width_(std::min(params.K, lm.V)),
        lists_(static_cast<std::size_t>(params.B) * static_cast<std::size_t>(params.K), &memory_),
        sizes_(static_cast<std::size_t>(params.B), 1, &memory_) {}

  int decode() {
    if (params_.max_new == 0) return ASSAY_OK;
    const std::size_t most_rows = lists_.size();
    const std::size_t width = static_cast<std::size_t>(width_);
    DeviceBuffer<float> values(ctx_, most_rows * static_cast<std::size_t>(lm_.V));
    Device device{DeviceBuffer<double>(ctx_, most_rows), DeviceBuffer<double>(ctx_, most_rows),
                  DeviceBuffer<ItemStep>(ctx_, sizes_.size()),
                  DeviceBuffer<Continuation>(ctx_, most_rows * width),
                  DeviceBuffer<Choice>(ctx_, most_rows)};
    new_states_.resize(most_rows);
    for (std::int32_t len = 1; len <= params_.max_new; ++len) {
      gather();
      if (steps_.empty()) break;
      const int code =
          lm_.step(lm_.user, ctx_, static_cast<std::int32_t>(row_item_.size()), row_item_.data(),
                   row_state_.data(), row_token_.data(), values.get(), new_states_.data());
      if (code != ASSAY_OK) return code;
      if (!choose(device, values.get(), len)) return ASSAY_EINTERNAL;
      for (std::size_t i = 0; i < steps_.size(); ++i) {
        replace_list(steps_[i], choices_.data() + i * static_cast<std::size_t>(params_.K), len);
      }
    }
    return ASSAY_OK;
  }

  // Nothing is written before the memory for it is there.
  void answer(std::int32_t* seq, std::int32_t* len, double* acc, double* score,
              std::int32_t* finished, std::int32_t* n_out) {
    const auto K = static_cast<std::size_t>(params_.K);
    const auto longest = static_cast<std::size_t>(params_.max_new);
    std::pmr::vector<std::size_t> order(K, &memory_);
    for (std::size_t b = 0; b < sizes_.size(); ++b) {
      const Beam* list = list_of(b);
      const auto end = order.begin() + sizes_[b];
      std::iota(order.begin(), end, std::size_t{0});
      std::sort(order.begin(), end, [&](std::size_t i, std::size_t j) {
        return answers_before(list[i], list[j], i < j);
      });
      n_out[b] = sizes_[b];
      for (std::size_t k = 0; k < K; ++k) {
        const std::size_t out = b * K + k;
        if (longest > 0) std::fill_n(seq + out * longest, longest, -1);
        if (k >= static_cast<std::size_t>(sizes_[b])) continue;
        const Beam& beam = list[order[k]];
        if (beam.len > 0) texts_.spell(beam.node, seq + out * longest + beam.len);
        len[out] = beam.len;
        acc[out] = beam.acc;
        score[out] = beam.score;
        finished[out] = beam.finished;
      }
    }
  }

 private:
  // What the kernels work on besides the model's values.
  struct Device {
    DeviceBuffer<double> row_acc, finished_keys;
    DeviceBuffer<ItemStep> steps;
    DeviceBuffer<Continuation> continuations;
    DeviceBuffer<Choice> choices;
  };

  Beam* list_of(std::size_t item) {
    return lists_.data() + item * static_cast<std::size_t>(params_.K);
  }

  double length_penalty(std::int32_t len) const {
    const double base = params_.penalty == 1 ? (5.0 + len) / 6.0 : len;
    return std::pow(base, params_.alpha);
  }

  // Sorts the beams of the items that go on into rows and finished beams.
  void gather() {
    steps_.clear();
    row_item_.clear();
    row_state_.clear();
    row_token_.clear();
    row_acc_.clear();
    row_place_.clear();
    finished_keys_.clear();
    finished_place_.clear();
    for (std::size_t b = 0; b < sizes_.size(); ++b) {
      const Beam *list = list_of(b), *end = list + sizes_[b];
      if (std::all_of(list, end, [](const Beam& beam) { return beam.finished; })) continue;
      ItemStep step{static_cast<std::int32_t>(b), static_cast<std::int32_t>(finished_keys_.size()),
                    0, static_cast<std::int32_t>(row_item_.size()), 0};
      for (std::int32_t place = 0; place < sizes_[b]; ++place) {
        const Beam& beam = list[place];
        if (beam.finished) {
          const double key = std::fmax(beam.score, -DBL_MAX);
          finished_keys_.push_back(params_.rank_mode == 0 ? key : beam.acc);
          finished_place_.push_back(place);
          ++step.n_finished;
        } else {
          row_item_.push_back(step.item);
          row_state_.push_back(beam.state);
          row_token_.push_back(beam.token);
          row_acc_.push_back(beam.acc);
          row_place_.push_back(place);
          ++step.n_rows;
        }
      }
      steps_.push_back(step);
    }
  }

  // Fills choices_ [steps, K] from the model's values.
  bool choose(Device& device, const float* values, std::int32_t len) {
    const auto stream = static_cast<cudaStream_t>(ctx_->stream);
    const Ranking ranking{length_penalty(len), params_.rank_mode == 0};
    const std::int32_t forbidden = len < params_.min_new ? params_.eos : -1;
    choices_.resize(steps_.size() * static_cast<std::size_t>(params_.K));
    device.row_acc.upload(row_acc_, stream);
    device.finished_keys.upload(finished_keys_, stream);
    device.steps.upload(steps_, stream);
    continue_beams<<<static_cast<unsigned>(row_acc_.size()), kBlock, 0, stream>>>(
        values, lm_.V, lm_.kind == BS_LOGITS, forbidden, device.row_acc.get(), ranking, width_,
        device.continuations.get());
    select_beams<<<static_cast<unsigned>(steps_.size()), kBlock, 0, stream>>>(
        device.steps.get(), device.finished_keys.get(), device.continuations.get(), width_, ranking,
        params_.K, device.choices.get());
    const bool launched = cudaGetLastError() == cudaSuccess;
    device.choices.download(choices_, stream);
    return cudaStreamSynchronize(stream) == cudaSuccess && launched;
  }

  void replace_list(const ItemStep& step, const Choice* choices, std::int32_t len) {
    Beam* list = list_of(static_cast<std::size_t>(step.item));
    new_list_.clear();
    for (std::int32_t k = 0; k < params_.K && choices[k].source >= 0; ++k) {
      const Choice& choice = choices[k];
      if (choice.token < 0) {
        const auto f = static_cast<std::size_t>(step.first_finished + choice.source);
        new_list_.push_back(list[finished_place_[f]]);
        continue;
      }
      const auto row = static_cast<std::size_t>(step.first_row + choice.source);
      Beam beam;
      beam.acc = choice.acc;
      beam.score = choice.acc / length_penalty(len);
      beam.state = new_states_[row];
      beam.node = texts_.append(list[row_place_[row]].node, choice.token);
      beam.token = choice.token;
      beam.len = len;
      beam.entry = k;
      beam.finished = choice.token == params_.eos;
      new_list_.push_back(beam);
    }
    std::copy(new_list_.begin(), new_list_.end(), list);
    sizes_[static_cast<std::size_t>(step.item)] = static_cast<std::int32_t>(new_list_.size());
  }

  HostMemory memory_;  // before all that lives in it
  assay_ctx* ctx_;
  const bs_params& params_;
  const assay_lm& lm_;
  std::int32_t width_;                    // continuations of a row: more than K cannot be of use
  std::pmr::vector<Beam> lists_;          // [B, K], each best first
  std::pmr::vector<std::int32_t> sizes_;  // [B]
  TextTree texts_{&memory_};

  // One step.
  std::pmr::vector<ItemStep> steps_{&memory_};
  std::pmr::vector<std::int32_t> row_item_{&memory_}, row_token_{&memory_}, row_place_{&memory_};
  std::pmr::vector<std::int64_t> row_state_{&memory_}, new_states_{&memory_};
  std::pmr::vector<double> row_acc_{&memory_}, finished_keys_{&memory_};
  std::pmr::vector<std::int32_t> finished_place_{&memory_};
  std::pmr::vector<Choice> choices_{&memory_};
  std::pmr::vector<Beam> new_list_{&memory_};
};

// ---- Arguments ----

bool is_flag(std::int32_t x) { return x == 0 || x == 1; }

bool valid_model(const assay_lm* lm) {
  return lm != nullptr && lm->size == sizeof(*lm) && lm->V >= 1 && is_flag(lm->kind) &&
         lm->step != nullptr;
}

bool valid_params(const bs_params* p, std::int32_t V) {
  if (p == nullptr || p->size != sizeof(*p)) return false;
  const bool sizes = p->B >= 0 && p->K >= 1 && p->max_new >= 0 && p->min_new >= 0;
  const bool modes = is_flag(p->rank_mode) && is_flag(p->keep_finished) && is_flag(p->penalty);
  return sizes && modes && p->eos >= -1 && p->eos < V && std::isfinite(p->alpha);
}

bool valid_prompts(const bs_params& p) {
  return p.prompt != nullptr && p.prompt_len != nullptr &&
         std::all_of(p.prompt_len, p.prompt_len + p.B, [](std::int32_t n) { return n >= 0; });
}

}  // namespace

extern "C" int beam_search(assay_ctx* ctx, const bs_params* params, const assay_lm* lm,
                           std::int32_t* seq, std::int32_t* len, double* acc, double* score,
                           std::int32_t* finished, std::int32_t* n_out) {
  if (!valid_model(lm) || !valid_params(params, lm->V)) return ASSAY_EINVAL;
  if (params->B == 0) return ASSAY_OK;
  const bool outputs = len && acc && score && finished && n_out && (seq || params->max_new == 0);
  if (!outputs || !valid_prompts(*params)) return ASSAY_EINVAL;
  if (params->keep_finished == 1) return ASSAY_ENOTSUP;
  try {
    Decoder decoder(ctx, *params, *lm);
    const int code = decoder.decode();
    if (code == ASSAY_OK) decoder.answer(seq, len, acc, score, finished, n_out);
    return code;
  } catch (const std::bad_alloc&) {
    return ASSAY_ENOMEM;
  }
}

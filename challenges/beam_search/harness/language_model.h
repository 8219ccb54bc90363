// The harness's language models, and the server that answers for them. A model is a function of the
// item and the tokens so far, which are held as a state: a keyed hash, or the text itself for
// scripted models. For a state, a submission sees a row and an id, each drawn from a separate keyed
// hash. Finding out what a row was drawn from reveals only that row, which the submission has
// already.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../worker/call.h"
#include "assay/challenge.h"
#include "assay/parallel.h"
#include "assay/secret.h"
#include "assay/size.h"

namespace assay::beam_search {

inline constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

// A hypothesis as a model sees it.
struct State {
  std::uint64_t hash = 0;
  std::int32_t item = 0, depth = 0;
  std::string text;  // scripted models: the tokens so far, each followed by a space
};

// Rows by text; "*" is the row of every text that is not listed.
using Script = std::map<std::string, std::vector<float>>;

// What one item's rows look like. Values are multiples of 2^-12 unless `inexact`, so that sums of
// thousands of them are exact in double.
struct ItemModel {
  enum Kind : std::uint8_t { hashed, equal, scripted } kind = hashed;
  KeyedHash hash;
  std::int32_t V = 0, eos = -1;
  double eos_rate =
      -1;           // share of rows where eos is likely; it is unlikely in others. -1: like any
                    // token
  double dead = 0;  // share of tokens that are -inf
  double dead_rows = 0;     // share of rows that are all -inf, except the first row
  std::int32_t coarse = 0;  // low bits of the multiple that are cleared: more ties
  std::int32_t end_at = 0;  // depth of the rows that allow only eos; 0: none
  std::int32_t every = 0;   // `equal` models: the multiple of every token, and finally of eos
  bool inexact = false;
  bool levels = false;       // rows whose values reach down to -16, -8 or -4
  float offset = 0;          // logits only
  Dtype dtype = Dtype::f32;  // every value is rounded to it
  std::shared_ptr<const Script> script;

  State start(std::int32_t item) const { return {hash(0, kStart), item, 0, {}}; }

  State extend(const State& parent, std::int32_t token) const {
    State s{
        hash(parent.hash, static_cast<std::uint32_t>(token)), parent.item, parent.depth + 1, {}};
    if (kind == scripted) s.text = parent.text + std::to_string(token) + " ";
    return s;
  }

  // The row after a state. Values rounded to fewer bits remain multiples of 2^-12.
  void row(const State& s, float* out) const {
    unrounded_row(s, out);
    if (dtype == Dtype::f32) return;
    for (std::int32_t v = 0; v < V; ++v) {
      out[v] = dtype == Dtype::bf16 ? bf16_to_float(float_to_bf16(out[v]))
                                    : f16_to_float(float_to_f16(out[v]));
    }
  }

 private:
  // What is drawn for a state besides the states after it. Used as second words that cannot be
  // tokens.
  enum Purpose : std::uint64_t {
    kStart = 1ull << 32,
    kRow,
    kLastRow,
    kDead,
    kDeadTokens,
    kEos,
    kLevel
  };

  void unrounded_row(const State& s, float* out) const {
    if (kind == scripted) return scripted_row(s, out);
    if (end_at > 0 && s.depth == end_at - 1) {
      std::fill_n(out, V, kMinusInf);
      const auto drawn = 1024 + static_cast<std::int32_t>(hash(s.hash, kLastRow) & 1023);
      out[eos] = value(kind == equal ? every : drawn);
      return;
    }
    if (kind == equal) {
      std::fill_n(out, V, value(every));
    } else {
      hashed_row(s, out);
    }
    if (dead > 0) kill(s, out);
    if (eos >= 0 && eos_rate >= 0) out[eos] = eos_value(s);
    if (eos >= 0 && end_at > 0) out[eos] = kMinusInf;
  }

  float value(std::int32_t multiple) const {
    const float exact = offset - static_cast<float>(multiple) * 0x1p-12f;
    return inexact ? exact * 1.0123457f : exact;
  }

  static std::uint32_t scramble(std::uint32_t x, std::uint32_t a, std::uint32_t b) {
    x = x * 0x9e3779b9u ^ a;
    x ^= x >> 16;
    x *= 0x7feb352du;
    x = (x ^ (x >> 15)) + b;
    x *= 0x846ca68bu;
    return x ^ (x >> 16);
  }

  // The larger of two uniform multiples: few tokens are likely, as in a real model.
  void hashed_row(const State& s, float* __restrict out) const {
    const std::uint64_t drawn = hash(s.hash, kRow);
    const auto a = static_cast<std::uint32_t>(drawn), b = static_cast<std::uint32_t>(drawn >> 32);
    const std::uint32_t keep = ~((1u << coarse) - 1);
    const std::uint64_t narrower = levels ? hash(s.hash, kLevel) % 3 : 0;
    const std::int32_t n = V;
    const float scale = inexact ? -0x1p-12f * 1.0123457f : -0x1p-12f;
    const float add = inexact ? offset * 1.0123457f : offset;
    for (std::int32_t v = 0; v < n; ++v) {
      const std::uint32_t x = scramble(static_cast<std::uint32_t>(v), a, b);
      const std::uint32_t low = x & 0xffff, high = x >> 16, most = low > high ? low : high;
      out[v] = static_cast<float>(static_cast<std::int32_t>(most >> narrower & keep)) * scale + add;
    }
  }

  void kill(const State& s, float* out) const {
    const std::uint64_t drawn = hash(s.hash, kDeadTokens);
    const auto a = static_cast<std::uint32_t>(drawn), b = static_cast<std::uint32_t>(drawn >> 32);
    const bool all =
        s.depth > 0 && static_cast<double>(hash(s.hash, kDead) >> 11) * 0x1p-53 < dead_rows;
    const auto limit = static_cast<std::uint32_t>(dead * 0xffffffffp0);
    for (std::int32_t v = 0; v < V; ++v) {
      if (all || scramble(static_cast<std::uint32_t>(v), a, b) < limit) out[v] = kMinusInf;
    }
  }

  float eos_value(const State& s) const {
    const std::uint64_t h = hash(s.hash, kEos);
    const bool likely = static_cast<double>(h >> 11) * 0x1p-53 < eos_rate;
    return value((likely ? 64 : 60000) + static_cast<std::int32_t>(h & 1023));
  }

  void scripted_row(const State& s, float* out) const {
    const auto found = script->find(s.text);
    const std::vector<float>& row = found != script->end() ? found->second : script->at("*");
    std::copy(row.begin(), row.end(), out);
  }
};

// The models of a case, and the limits on what a search may ask of them.
struct LanguageModel {
  std::vector<ItemModel> items;
  std::int32_t V = 0, K = 0, eos = -1, kind = BS_LOG_PROBS;
  std::int32_t fail_at = 0;  // the call that fails with ASSAY_ECAP; 0: none
  std::uint64_t seed = 0;
  Dtype dtype = Dtype::f32;  // of the rows
  std::int32_t starts = 1;   // how often an item's start may be asked for
};

// Answers steps, and records what it was asked.
class ModelServer final : public CallbackServer {
 public:
  ModelServer(LanguageModel model, std::int64_t most_calls)
      : model_(std::move(model)), most_calls_(most_calls), ids_(derive(model_.seed, "ids")) {}

  std::int32_t serve(std::uint32_t kind, std::span<const std::byte> request,
                     std::span<std::byte> response) override {
    StepHeader header;
    if (++calls_ > most_calls_) return complain("more calls than any search needs");
    if (kind != kStep || request.size() < sizeof header) return complain("an unknown request");
    std::memcpy(&header, request.data(), sizeof header);
    const auto most = static_cast<std::int64_t>(model_.items.size()) * model_.K;
    if (header.n < 1 || header.n > most) return complain("a number of rows outside 1 .. B*K");
    const auto n = to_size(header.n), V = to_size(model_.V);
    if (request.size() != sizeof header + n * 16) return complain("a request of the wrong size");
    if (response.size() != n * (8 + V * size_of(model_.dtype)))
      return complain("a response of the wrong size");
    if (calls_ == model_.fail_at) return ASSAY_ECAP;
    rows_ += header.n;
    return step(n, request.data() + sizeof header, response);
  }

  std::int64_t calls() const { return calls_; }
  std::int64_t rows() const { return rows_; }

 private:
  template <class T>
  static T read(const std::byte* from, std::size_t i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof(T));
    return value;
  }

  std::int32_t step(std::size_t n, const std::byte* body, std::span<std::byte> response) {
    std::vector<State> states(n);
    for (std::size_t i = 0; i < n; ++i) {
      const auto parent = read<std::int64_t>(body, i);
      const auto item = read<std::int32_t>(body + n * 8, i);
      const auto token = read<std::int32_t>(body + n * 12, i);
      if (const char* wrong = find(item, parent, token, states[i])) return complain(wrong);
    }
    const auto V = to_size(model_.V);
    std::byte* const out = response.data() + n * 8;
    parallel_for(static_cast<std::int64_t>(n), std::max<std::int64_t>(1, 100000 / model_.V),
                 [&](std::int64_t begin, std::int64_t end) {
                   std::vector<float> wide(model_.dtype == Dtype::f32 ? 0 : V);
                   for (std::int64_t i = begin; i < end; ++i) {
                     write_row(states[to_size(i)], out + to_size(i) * V * size_of(model_.dtype),
                               wide);
                   }
                 });
    for (std::size_t i = 0; i < n; ++i) {
      const auto id = static_cast<std::int64_t>(ids_(issued_++) >> 1);
      std::memcpy(response.data() + i * 8, &id, sizeof id);
      known_.emplace(id, std::move(states[i]));
    }
    return ASSAY_OK;
  }

  void write_row(const State& s, std::byte* out, std::vector<float>& wide) const {
    const ItemModel& model = model_.items[to_size(s.item)];
    if (model_.dtype == Dtype::f32) return model.row(s, reinterpret_cast<float*>(out));
    model.row(s, wide.data());
    auto* const halves = reinterpret_cast<std::uint16_t*>(out);
    for (std::size_t v = 0; v < wide.size(); ++v) {
      halves[v] = model_.dtype == Dtype::bf16 ? float_to_bf16(wide[v]) : float_to_f16(wide[v]);
    }
  }

  // Finds the state of a row; returns what is wrong with the row, if anything.
  const char* find(std::int32_t item, std::int64_t parent, std::int32_t token, State& out) {
    if (item < 0 || item >= static_cast<std::int32_t>(model_.items.size()))
      return "an item that does not exist";
    const ItemModel& model = model_.items[to_size(item)];
    if (parent == -1) {
      if (++started_[item] > model_.starts) return "the start of an item too often";
      out = model.start(item);
      return nullptr;
    }
    const auto found = known_.find(parent);
    if (found == known_.end()) return "a state that was never returned";
    const State& s = found->second;
    if (s.item != item) return "a state of another item";
    if (token < 0 || token >= model_.V) return "a token outside the vocabulary";
    if (token == model_.eos) return "a finished hypothesis";
    if (!asked_.insert({parent, token}).second) return "the same hypothesis twice";
    if (!possible(model, parent, s, token)) return "a token of probability 0";
    out = model.extend(s, token);
    return nullptr;
  }

  // Rows are computed again for this test, once for all consecutive tokens that extend the same
  // state.
  bool possible(const ItemModel& model, std::int64_t parent, const State& s, std::int32_t token) {
    const bool may_forbid = model.dead > 0 || model.end_at > 0 || model.kind == ItemModel::scripted;
    if (!may_forbid) return true;
    if (parent != tested_) {
      tested_ = parent;
      tested_row_.resize(to_size(model_.V));
      model.row(s, tested_row_.data());
    }
    return tested_row_[to_size(token)] > kMinusInf;
  }

  const LanguageModel model_;
  std::int64_t most_calls_;
  KeyedHash ids_;  // of states; they reveal nothing
  std::unordered_map<std::int64_t, State> known_;
  std::set<std::pair<std::int64_t, std::int32_t>> asked_;
  std::map<std::int32_t, std::int32_t> started_;  // how often, by item
  std::int64_t calls_ = 0, rows_ = 0, tested_ = -1;
  std::uint64_t issued_ = 0;
  std::vector<float> tested_row_;
};

}  // namespace assay::beam_search

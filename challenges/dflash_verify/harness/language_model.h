// The harness's side of dv_generate: a language model made of hashes, and its server.
//
// The state of a row is a hash of its token, its position and the states of all rows that it sees.
// The keys and values of a deep model with rotary positions depend on the same. A wrong position, a
// superfluous or missing mask bit, a stale row left in the cache or a row missing from it changes
// the state and with it every later logit. The states are summed, so their order does not matter.
// The hash is keyed: no state follows from what a submission has seen of others.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../worker/call.h"
#include "assay/abi.h"
#include "assay/challenge.h"
#include "assay/random.h"
#include "assay/secret.h"
#include "assay/size.h"

namespace assay::dflash_verify {

// The shape of drafts.
enum class DraftStyle : std::uint8_t { chain, random, binary, none };

class LanguageModel {
 public:
  static constexpr std::int32_t kEos = 1;

  KeyedHash hash;
  std::int32_t V = 0, max_nodes = 0;
  std::int64_t most_rows = 0;  // the most that a prefix or a verify request can have
  double eos_rate = 0;         // of greedy tokens
  float offset = 0;            // of all logits
  double hit_rate = 0;         // of contexts whose greedy token is among the drafted children
  DraftStyle style = DraftStyle::random;
  // By CallKind: the index of the call of that kind that fails with ASSAY_ECAP, counted from 1; 0:
  // none.
  std::array<std::int32_t, 3> fail_at{};

  // The state of a row, given the sum of the states that it sees.
  std::uint64_t state(std::int32_t token, std::int64_t pos, std::uint64_t seen) const {
    const auto t = static_cast<std::uint64_t>(static_cast<std::uint32_t>(token));
    return hash(hash(t, static_cast<std::uint64_t>(pos)), seen);
  }

  // A seed for whatever is drawn for a row; it reveals nothing of the row's state.
  std::uint64_t drawn(std::uint64_t row_state, std::uint64_t purpose) const {
    return hash(row_state, ~purpose);
  }

  // The token after a row, by greedy decoding.
  std::int32_t greedy(std::uint64_t row_state) const {
    Random random(drawn(row_state, 1));
    if (random.uniform() < eos_rate) return kEos;
    return static_cast<std::int32_t>(random.below(V));
  }

  // The greedy token stands out by at least 0.25, which far exceeds any rounding.
  void logits(std::uint64_t row_state, float* out) const {
    fill_uniform({out, to_size(V)}, drawn(row_state, 2), offset - 4.0f, offset + 3.5f);
    out[greedy(row_state)] = offset + 3.75f;
  }

  struct Tree {
    std::vector<std::int32_t> parent, token;
  };

  // The draft that continues `prefix`.
  Tree draft(std::span<const std::int32_t> prefix) const;

  // What greedy decoding emits after `prompt`.
  std::vector<std::int32_t> decode(std::span<const std::int32_t> prompt, std::int64_t max_new,
                                   bool stop_at_eos) const;
};

// A text under extension: the sum of its states, and the last of them.
struct Context {
  std::int64_t length = 0;
  std::uint64_t sum = 0, last = 0;

  void append(const LanguageModel& model, std::int32_t token) {
    last = model.state(token, length++, sum);
    sum += last;
  }
};

inline LanguageModel::Tree LanguageModel::draft(std::span<const std::int32_t> prefix) const {
  Context root;
  for (const std::int32_t token : prefix) root.append(*this, token);
  Random random(drawn(root.last, 3));
  Tree tree;
  if (style == DraftStyle::none) return tree;
  std::vector<Context> contexts;               // after each node
  std::vector<char> root_and_nodes_hit(1, 0);  // whether a child holds the greedy token already
  const auto n = static_cast<std::int32_t>(style == DraftStyle::random ? random.below(max_nodes + 1)
                                                                       : max_nodes);
  for (std::int32_t i = 0; i < n; ++i) {
    std::int32_t parent = i - 1;
    if (style == DraftStyle::binary) parent = (i + 2) / 2 - 2;
    if (style == DraftStyle::random) parent = static_cast<std::int32_t>(random.below(i + 1)) - 1;
    const Context& before = parent < 0 ? root : contexts[to_size(parent)];
    char& hit = root_and_nodes_hit[to_size(parent + 1)];
    // Binary trees hide the right token behind a wrong first child.
    const bool may_hit = style != DraftStyle::binary || i % 2 == 1;
    const bool right = hit == 0 && may_hit && random.uniform() < hit_rate;
    const std::int32_t best = greedy(before.last);
    auto token = static_cast<std::int32_t>(random.below(V));
    if (right) token = best;
    if (!right && token == best) token = (token + 1) % V;
    hit = static_cast<char>(hit | static_cast<char>(right));
    Context after = before;
    after.append(*this, token);
    contexts.push_back(after);
    root_and_nodes_hit.push_back(0);
    tree.parent.push_back(parent);
    tree.token.push_back(token);
  }
  return tree;
}

inline std::vector<std::int32_t> LanguageModel::decode(std::span<const std::int32_t> prompt,
                                                       std::int64_t max_new,
                                                       bool stop_at_eos) const {
  Context context;
  for (const std::int32_t token : prompt) context.append(*this, token);
  std::vector<std::int32_t> text;
  while (static_cast<std::int64_t>(text.size()) < max_new) {
    text.push_back(greedy(context.last));
    if (stop_at_eos && text.back() == kEos) break;
    context.append(*this, text.back());
  }
  return text;
}

// The model of a case of dv_generate.
LanguageModel model_of(const CaseSpec&, BufferViews);

// Answers draft, verify and commit requests, and records what it was asked.
class ModelServer final : public CallbackServer {
 public:
  explicit ModelServer(LanguageModel model) : model_(model) {}

  std::int32_t serve(std::uint32_t kind, std::span<const std::byte> request,
                     std::span<std::byte> response) override {
    if (++calls_ > kMostCalls) return complain("more calls than any generation needs");
    CallHeader header;
    if (request.size() < sizeof header) return complain("a request without its header");
    std::memcpy(&header, request.data(), sizeof header);
    const auto body = request.subspan(sizeof header);
    // No count can exceed the size of its payload, which also keeps the products below small.
    const auto limit = static_cast<std::int64_t>(body.size());
    if (header.n < 0 || header.n > limit || header.ldm < 0 || header.ldm > limit) {
      return complain("a count that does not fit its request");
    }
    if (kind < asked_.size() && ++asked_[kind] == model_.fail_at[kind]) return ASSAY_ECAP;
    switch (kind) {
      case kDraft: return draft(header, body, response);
      case kVerify: return verify(header, body, response);
      case kCommit: return commit(header, body);
      default: return complain("an unknown request");
    }
  }

  std::int64_t verify_calls() const { return verify_calls_; }
  std::int64_t verify_rows() const { return verify_rows_; }

 private:
  static constexpr std::int64_t kMostCalls = 100000;

  template <class T>
  static std::vector<T> copy(std::span<const std::byte> from, std::size_t count) {
    std::vector<T> out(count);
    if (count > 0) std::memcpy(out.data(), from.data(), count * sizeof(T));
    return out;
  }

  std::int32_t draft(const CallHeader& header, std::span<const std::byte> body,
                     std::span<std::byte> response) {
    const auto n = to_size(header.n);
    const auto room = to_size(model_.max_nodes);
    if (header.n > model_.most_rows) return complain("draft: a prefix longer than any text");
    if (body.size() != n * sizeof(std::int32_t) || n == 0) return complain("draft: empty prefix");
    if (response.size() != sizeof(std::int32_t) * (1 + 2 * room)) return complain("draft: size");
    const LanguageModel::Tree tree = model_.draft(copy<std::int32_t>(body, n));
    std::vector<std::int32_t> answer(1 + 2 * room, -1);
    answer[0] = static_cast<std::int32_t>(tree.parent.size());
    for (std::size_t i = 0; i < tree.parent.size(); ++i) {
      answer[1 + i] = tree.parent[i];
      answer[1 + room + i] = tree.token[i];
    }
    std::memcpy(response.data(), answer.data(), response.size());
    return ASSAY_OK;
  }

  std::int32_t verify(const CallHeader& header, std::span<const std::byte> body,
                      std::span<std::byte> response) {
    const auto n = to_size(header.n), ldm = to_size(header.ldm);
    if (header.n > model_.most_rows) return complain("verify: more rows than a text can have");
    if (n == 0 || ldm * 64 < n) return complain("verify: no rows, or ldm too small");
    if (body.size() != n * 8 + n * ldm * 8 + n * 4) return complain("verify: size of the request");
    if (response.size() != n * to_size(model_.V) * sizeof(float)) {
      return complain("verify: size of the response");
    }
    const auto pos = copy<std::int64_t>(body, n);
    const auto bits = copy<std::uint64_t>(body.subspan(n * 8), n * ldm);
    const auto token = copy<std::int32_t>(body.subspan(n * 8 + n * ldm * 8), n);
    ++verify_calls_;
    verify_rows_ += header.n;
    forget_nothing();
    for (std::size_t i = 0; i < n; ++i) {
      std::uint64_t seen = cached_;
      const std::uint64_t* const words = bits.data() + i * ldm;
      const auto sees = [&](std::size_t j) { return (words[j / 64] >> (j % 64) & 1) != 0; };
      for (std::size_t j = 0; j < i; ++j) seen += sees(j) ? fresh_[j] : 0;
      const std::size_t last = i / 64;
      std::uint64_t later = i % 64 == 63 ? 0 : words[last] >> (i % 64 + 1);
      for (std::size_t w = last + 1; w < ldm; ++w) later |= words[w];
      if (later != 0) return complain("verify: a row sees a later one");
      if (!sees(i)) return complain("verify: a row does not see itself");
      fresh_.push_back(model_.state(token[i], pos[i], seen));
      model_.logits(fresh_.back(),
                    reinterpret_cast<float*>(response.data()) + i * to_size(model_.V));
    }
    return ASSAY_OK;
  }

  std::int32_t commit(const CallHeader& header, std::span<const std::byte> body) {
    const auto n = to_size(header.n);
    if (n > fresh_.size()) return complain("commit: more rows than the last verify had");
    if (body.size() != n * sizeof(std::int64_t)) return complain("commit: size of the request");
    std::int64_t last = -1;
    for (const std::int64_t i : copy<std::int64_t>(body, n)) {
      if (i <= last || i >= static_cast<std::int64_t>(fresh_.size())) {
        return complain("commit: rows that do not ascend or do not exist");
      }
      last = i;
      cached_ += fresh_[to_size(i)];
    }
    fresh_.clear();
    return ASSAY_OK;
  }

  // Rows that were not followed by a commit stay in the cache.
  void forget_nothing() {
    for (const std::uint64_t state : fresh_) cached_ += state;
    fresh_.clear();
  }

  LanguageModel model_;
  std::uint64_t cached_ = 0;             // sum of the states in the cache
  std::vector<std::uint64_t> fresh_;     // of the last verify, until commit
  std::array<std::int32_t, 3> asked_{};  // by CallKind
  std::int64_t calls_ = 0, verify_calls_ = 0, verify_rows_ = 0;
};

}  // namespace assay::dflash_verify

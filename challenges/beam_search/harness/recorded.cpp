// Turns recorded calls into cases. What the tests' model answered becomes a scripted model, which
// gives rows by text. It knows only the texts that the accused implementation asked for. A wrong
// implementation may have dropped a beam that has to stay, so what follows that beam was never
// recorded. Therefore an unknown text continues with certainty, with one token. That is as legal a
// model as any and the same for all implementations, and a wrongly dropped beam is sure to be in
// the right answer.
#include "shared/recorded.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "assay/size.h"
#include "trusted.h"

namespace assay::beam_search {
namespace {

using nlohmann::json;

constexpr std::int64_t kMostItems = 1 << 12, kMostSteps = 2048, kMostValues = 1 << 22;
constexpr std::int64_t kMostPool = 1 << 25;  // values that a search reads
constexpr std::size_t kMostText = 1 << 26, kMostTexts = 1 << 14;
constexpr double kMostAlpha = 8, kMostDiversity = 1 << 20, kMostLogit = 1e4;

// Reads the parts of a step in order.
class Packet {
 public:
  explicit Packet(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <class T>
  std::optional<std::vector<T>> take(std::size_t count) {
    if (count > rest_.size() / sizeof(T)) return std::nullopt;
    std::vector<T> found(count);
    if (count > 0) std::memcpy(found.data(), rest_.data(), count * sizeof(T));
    rest_ = rest_.subspan(count * sizeof(T));
    return found;
  }
  bool empty() const { return rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
};

// The tests' model, as far as it was asked.
class Answers {
 public:
  Answers(const Params& p, Dtype dtype) : p_(p), dtype_(dtype), items_(to_size(p.search.B)) {}

  // False if no model answers like that. Ignores everything from the first illegal question on,
  // because the answer to it means nothing.
  bool take(std::span<const std::byte> bytes) {
    if (ended_) return true;
    ++step_;
    Packet packet(bytes);
    const auto head = packet.take<RecordedStep>(1);
    if (!head) return false;
    const std::int64_t n = head->front().n;
    if (n < 1 || n > std::int64_t{p_.search.B} * p_.search.K) {
      ended_ = true;
      return true;
    }
    const auto rows = to_size(n);
    const auto parent = packet.take<std::int64_t>(rows);
    const auto item = packet.take<std::int32_t>(rows), token = packet.take<std::int32_t>(rows);
    if (!parent || !item || !token) return false;
    std::vector<Texts> texts(rows);
    for (std::size_t i = 0; i < rows; ++i) {
      texts[i] = texts_of((*item)[i], (*parent)[i], (*token)[i]);
      ended_ |= texts[i].empty();
      if (!room_for(texts[i])) return false;
    }
    if (ended_) return true;
    if (head->front().status != ASSAY_OK) return false;  // then the status is the whole answer
    return take_answers(packet, *item, texts);
  }

  // The scripts of the items, for the params of a case.
  json scripts() const {
    json found = json::array();
    for (const auto& item : items_) {
      json script{{"*", row_of_others()}};
      for (const auto& [text, row] : item) script[text] = row;
      found.push_back({{"script", std::move(script)}});
    }
    return found;
  }

  // Whether every sum of values has bits to spare in double, so that the order of any two sums
  // survives any rounding of the penalty.
  bool exact() const {
    constexpr int kBits = 40;
    ExactSums sums;
    for (const auto& item : items_) {
      for (const auto& [text, row] : item) {
        for (const float x : row) sums.add(static_cast<double>(x));
      }
    }
    sums.add(p_.options.diversity);
    return sums.fit(p_.search.max_new + static_cast<double>(p_.search.K), kBits);
  }

 private:
  using Texts = std::vector<std::string>;
  struct Known {
    std::int64_t step = 0;
    Texts texts;
  };

  // The texts that a row stands for, several if the model gives one state to several texts; none if
  // the question is illegal.
  Texts texts_of(std::int32_t item, std::int64_t parent, std::int32_t token) const {
    if (item < 0 || item >= p_.search.B) return {};
    if (parent == -1) return {""};
    const auto known = states_.find({item, parent});
    if (known == states_.end() || token < 0 || token >= p_.V || token == p_.search.eos) return {};
    Texts found;
    for (const std::string& text : known->second.texts) {
      const auto& row = items_[to_size(item)].at(text);
      if (row[to_size(token)] > kMinusInf)
        found.push_back(text.empty() ? std::to_string(token) : text + " " + std::to_string(token));
    }
    return found;
  }

  bool take_answers(Packet& packet, const std::vector<std::int32_t>& item,
                    const std::vector<Texts>& texts) {
    const std::size_t V = to_size(p_.V);
    const auto state = packet.take<std::int64_t>(item.size());
    if (!state) return false;
    for (std::size_t i = 0; i < item.size(); ++i) {
      const auto row = take_row(packet, V);
      if (!row || (*state)[i] < 0) return false;
      Known& known = states_[{item[i], (*state)[i]}];
      // A state that is given again stands only for what it was given for last.
      if (known.step != step_) known = {step_, {}};
      for (const std::string& text : texts[i]) {
        auto& rows = items_[to_size(item[i])];
        const auto [at, is_new] = rows.try_emplace(text, *row);
        if (!is_new && at->second != *row) return false;
        values_ += is_new ? p_.V : 0;
        if (values_ > kMostValues) return false;
        if (std::ranges::find(known.texts, text) == known.texts.end()) known.texts.push_back(text);
      }
    }
    return packet.empty();
  }

  // Called for every question, so that the work is bounded too.
  bool room_for(const Texts& more) {
    texts_ += more.size();
    for (const std::string& text : more) text_bytes_ += text.size();
    return texts_ <= kMostTexts && text_bytes_ <= kMostText;
  }

  std::optional<std::vector<float>> take_row(Packet& packet, std::size_t V) const {
    std::optional<std::vector<float>> row;
    if (dtype_ == Dtype::f32) {
      row = packet.take<float>(V);
    } else if (const auto halves = packet.take<std::uint16_t>(V)) {
      row.emplace();
      for (const std::uint16_t x : *halves)
        row->push_back(dtype_ == Dtype::bf16 ? bf16_to_float(x) : f16_to_float(x));
    }
    if (row && !std::ranges::all_of(*row, [&](float x) { return is_legal(x); }))
      return std::nullopt;
    return row;
  }

  bool is_legal(float x) const {
    if (x == kMinusInf) return true;
    return p_.kind == BS_LOGITS ? std::abs(static_cast<double>(x)) <= kMostLogit : x <= 0;
  }

  // One token of probability 1, which is not eos if there is any other.
  std::vector<float> row_of_others() const {
    std::vector<float> row(to_size(p_.V), kMinusInf);
    row[p_.search.eos == 0 && p_.V > 1 ? 1 : 0] = 0;
    return row;
  }

  const Params& p_;
  Dtype dtype_;
  std::vector<std::map<std::string, std::vector<float>>> items_;
  std::map<std::pair<std::int32_t, std::int64_t>, Known> states_;
  std::int64_t step_ = 0, values_ = 0;
  std::size_t text_bytes_ = 0, texts_ = 0;
  bool ended_ = false;
};

bool legal(const Params& params) {
  const bs_params& p = params.search;
  const auto is_flag = [](std::int32_t x) { return x == 0 || x == 1; };
  if (p.size != sizeof(bs_params) || p.B < 0 || p.B > kMostItems || p.K < 1 || p.max_new < 0 ||
      p.max_new > kMostSteps || params.V < 1)
    return false;
  // A step's rows are sent to the worker in one piece.
  constexpr std::int64_t kMostRows = 1 << 14, kMostStep = 1 << 21;
  const std::int64_t rows = std::max<std::int64_t>(p.B, 1) * p.K;
  if (rows > kMostRows || params.V > kMostStep / rows) return false;
  if (rows * params.V > kMostPool / std::max(p.max_new, 1)) return false;
  return p.eos >= -1 && p.eos < params.V && std::abs(p.alpha) <= kMostAlpha &&
         is_flag(p.rank_mode) && is_flag(p.keep_finished) && is_flag(p.penalty) && p.min_new >= 0 &&
         is_flag(params.kind) && params.null_step == 0 && params.null_lm == 0;
}

bool legal_options(const bs_params& p, const bs_options& o) {
  if (o.size != sizeof(bs_options) || o.row_dtype < ASSAY_F32 || o.row_dtype > ASSAY_F16)
    return false;
  if (o.no_repeat_ngram < 0 || o.n_bad < 0 || o.n_bad > kMostItems || o.groups < 1 ||
      p.K % o.groups != 0)
    return false;
  return o.diversity >= 0 && o.diversity <= kMostDiversity && o.patience >= 0 &&
         std::isfinite(o.patience) && (o.patience == 0 || p.keep_finished == 1);
}

// The lengths of arrays that are stored in one piece; absent if they do not add up to it.
std::optional<std::vector<std::int32_t>> lengths(const RecordedCall& call, int lengths_at,
                                                 int piece_at, std::int32_t count,
                                                 std::int32_t least) {
  constexpr std::int64_t kMost = 1 << 20;
  auto found = recorded_values<std::int32_t>(call, lengths_at, count);
  if (!found) return std::nullopt;
  std::int64_t sum = 0;
  for (const std::int32_t n : *found) {
    if (n < least || n > kMost) return std::nullopt;
    sum += n;
  }
  if (sum > kMost || !has(call, piece_at, sum) ||
      !recorded_values<std::int32_t>(call, piece_at, sum))
    return std::nullopt;
  return found;
}

std::optional<json> bad_of(const RecordedCall& call, const Params& p) {
  const auto each = lengths(call, kBadLen, kBad, p.options.n_bad, 1);
  if (!each) return std::nullopt;
  std::int64_t sum = 0;
  for (const std::int32_t n : *each) sum += n;
  const auto all = recorded_values<std::int32_t>(call, kBad, sum);
  json found = json::array();
  auto at = all->begin();
  for (const std::int32_t n : *each) {
    const std::vector<std::int32_t> sequence(at, at + n);
    if (std::ranges::any_of(sequence, [&](auto t) { return t < 0 || t >= p.V; }))
      return std::nullopt;
    found.push_back(sequence);
    at += n;
  }
  return found;
}

const char* name_of(std::int32_t dtype) {
  return dtype == ASSAY_BF16 ? "bf16" : dtype == ASSAY_F16 ? "f16" : "f32";
}

std::optional<json> options_of(const RecordedCall& call, const Params& p) {
  const auto bad = bad_of(call, p);
  if (!bad) return std::nullopt;
  const bs_options& o = p.options;
  return json{{"rows", name_of(o.row_dtype)},
              {"no_repeat_ngram", o.no_repeat_ngram},
              {"bad", *bad},
              {"groups", o.groups},
              {"diversity", o.diversity},
              {"patience", o.patience}};
}

// The arrays that are NULL, which is allowed for those without elements; absent if another one is
// NULL.
std::optional<json> nulls_of(const RecordedCall& call, const bs_params& p) {
  struct Array {
    Handle handle;
    const char* name;
    std::int64_t elements;
  };
  const std::int64_t beams = std::int64_t{p.B} * p.K;
  json found = json::array();
  for (const Array& a : {Array{kPromptLen, "prompt_len", p.B},
                         {kPrompt, "prompt", p.B},
                         {kSeq, "seq", beams * p.max_new},
                         {kLen, "len", beams},
                         {kAcc, "acc", beams},
                         {kScore, "score", beams},
                         {kFinished, "finished", beams},
                         {kNOut, "n_out", p.B}}) {
    if (!has(call, a.handle, a.elements)) return std::nullopt;
    if (call.find(a.handle)->null) found.emplace_back(a.name);
  }
  return found;
}

}  // namespace

std::optional<json> recorded_params(const RecordedCall& call) {
  auto params = call.params_as<Params>();
  if (!params || (call.entry != kPlain && call.entry != kWithOptions) || !legal(*params))
    return std::nullopt;
  const bs_params& p = params->search;
  const bool with_options = call.entry == kWithOptions;
  if (!with_options) params->options = {};
  if (with_options && !legal_options(p, params->options)) return std::nullopt;
  const auto prompts = lengths(call, kPromptLen, kPrompt, p.B, 0);
  const auto nulls = prompts ? nulls_of(call, p) : std::nullopt;
  const auto options = with_options ? options_of(call, *params) : json::object();
  if (!nulls || !options) return std::nullopt;

  const std::int32_t rows = params->options.row_dtype;
  const Dtype dtype = !with_options        ? Dtype::f32
                      : rows == ASSAY_BF16 ? Dtype::bf16
                      : rows == ASSAY_F16  ? Dtype::f16
                                           : Dtype::f32;
  Answers answers(*params, dtype);
  for (const RecordedCall::Array& array : call.arrays) {
    if (array.handle == kSteps && !answers.take(array.bytes)) return std::nullopt;
  }
  json found{{"B", p.B},
             {"K", p.K},
             {"V", params->V},
             {"max_new", p.max_new},
             {"eos", p.eos},
             {"alpha", p.alpha},
             {"logits", params->kind == BS_LOGITS},
             {"rank_mode", p.rank_mode},
             {"keep_finished", p.keep_finished},
             {"penalty", p.penalty},
             {"min_new", p.min_new},
             {"prompts", prompts->empty() ? std::vector<std::int32_t>{0} : *prompts},
             {"null", *nulls},
             {"model", {{"inexact", !answers.exact()}}},
             {"items", answers.scripts()}};
  if (with_options) found["options"] = *options;
  return found;
}

bool adopt_inputs(const CaseSpec& spec, const Shape& s, BufferViews buffers) {
  std::copy_n(s.prompt_start.begin(), s.B, buffers[kPromptStart].as<std::int64_t>());
  return search(s, model_of(spec, s, *buffers[kModelSeed].as<std::uint64_t>()))->clear;
}

}  // namespace assay::beam_search

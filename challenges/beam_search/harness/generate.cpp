#include <fmt/format.h>

#include <algorithm>

#include "assay/error.h"
#include "assay/random.h"
#include "assay/size.h"
#include "trusted.h"

namespace assay::beam_search {
namespace {

using nlohmann::json;

// A scripted row: all its values, or {"token": log-probability, ...}, where the other tokens get
// -inf or the value of "rest".
std::vector<float> script_row(const json& row, std::int32_t V) {
  if (row.is_array()) return row.get<std::vector<float>>();
  std::vector<float> out(to_size(V), kMinusInf);
  if (row.contains("rest")) std::fill(out.begin(), out.end(), row.at("rest").get<float>());
  for (const auto& [token, value] : row.items()) {
    if (token != "rest") out.at(std::stoul(token)) = value.get<float>();
  }
  return out;
}

std::shared_ptr<const Script> script_of(const json& rows, std::int32_t V) {
  auto script = std::make_shared<Script>();
  for (const auto& [text, row] : rows.items()) {
    (*script)[text.empty() || text == "*" ? text : text + " "] = script_row(row, V);
  }
  if (!script->contains("*")) (*script)["*"] = script_row(json::object(), V);
  return script;
}

ItemModel item_model(const json& j, const Shape& s, std::uint64_t seed) {
  ItemModel m;
  m.hash = KeyedHash(seed);
  m.V = s.V;
  m.eos = s.eos;
  m.eos_rate = j.value("eos_rate", -1.0);
  m.dead = j.value("dead", 0.0);
  m.dead_rows = j.value("dead_rows", 0.0);
  m.coarse = j.value("coarse", 0);
  m.end_at = j.value("end_at", 0);
  m.inexact = j.value("inexact", false);
  m.offset = j.value("offset", 0.0f);
  m.levels = j.value("levels", false);
  // An offset down to -8, in steps of 2^-12 like all values.
  if (m.levels) m.offset -= static_cast<float>(m.hash(0, 0) >> 49) * 0x1p-12f;
  m.dtype = s.row_dtype;
  if (j.contains("equal")) {
    m.kind = ItemModel::equal;
    m.every = j.at("equal");
  }
  if (j.contains("script")) {
    m.kind = ItemModel::scripted;
    m.script = script_of(j.at("script"), s.V);
  }
  return m;
}

// Item b's description: the case's, overridden by the item's.
json description(const json& params, std::int32_t b) {
  json all = params.value("model", json::object());
  const json items = params.value("items", json::array());
  if (!items.empty()) all.update(items.at(to_size(b) % items.size()));
  return all;
}

}  // namespace

LanguageModel model_of(const CaseSpec& spec, const Shape& s, std::uint64_t seed) {
  LanguageModel model;
  model.V = s.V;
  model.K = s.K;
  model.eos = s.eos;
  model.kind = s.kind;
  model.dtype = s.row_dtype;
  model.starts = s.groups;
  model.seed = seed;
  model.fail_at = spec.params.value("fail_at", 0);
  for (std::int32_t b = 0; b < s.B; ++b) {
    const json j = description(spec.params, b);
    // Items with the same "same" are copies of each other.
    model.items.push_back(
        item_model(j, s, derive(seed, "item", j.value("same", static_cast<std::uint64_t>(b)))));
  }
  return model;
}

namespace {

void fill_bad(const Shape& s, BufferViews buffers) {
  auto* length = buffers[kBadLen].as<std::int32_t>();
  auto* token = buffers[kBad].as<std::int32_t>();
  if (buffers[kBadLen].bytes == 0 || buffers[kBad].bytes == 0) return;
  for (const auto& sequence : s.bad) {
    *length++ = static_cast<std::int32_t>(sequence.size());
    token = std::copy(sequence.begin(), sequence.end(), token);
  }
}

}  // namespace

void generate_inputs(const CaseSpec& spec, const Shape& s, const Seeds& seeds,
                     BufferViews buffers) {
  Random random(seeds.inputs);
  const auto lengths = buffers[kPromptLen].span<std::int32_t>();
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    lengths[b] = static_cast<std::int32_t>(s.prompt_start[b + 1] - s.prompt_start[b]);
  }
  const json wrong = spec.params.value("override", json::object());
  if (!lengths.empty()) {
    lengths.back() = wrong.value("prompt_len", lengths.back());
    lengths.front() = wrong.value("first_prompt_len", lengths.front());
  }
  std::copy_n(s.prompt_start.begin(), s.B, buffers[kPromptStart].as<std::int64_t>());
  for (std::int32_t& token : buffers[kPrompt].span<std::int32_t>()) {
    token = static_cast<std::int32_t>(random.below(s.V));
  }
  if (s.with_options) fill_bad(s, buffers);
  auto& model_seed = *buffers[kModelSeed].as<std::uint64_t>();
  model_seed = seeds.judging;
  // Without eos, all candidates of a step have the same length and their sums are exact, so any
  // seed leaves no close decision.
  const bool always_clear = s.eos < 0 && s.exact_sums && s.kind == BS_LOG_PROBS;
  if (spec.expect_status != ASSAY_OK || always_clear) return;
  constexpr int kTries = 200;
  for (std::uint64_t attempt = 1; attempt <= kTries; ++attempt) {
    if (search(s, model_of(spec, s, model_seed))->clear) return;
    model_seed = derive(seeds.judging, "another model", attempt);
  }
  throw Error(fmt::format("{}: no seed makes every decision clear", spec.name));
}

}  // namespace assay::beam_search

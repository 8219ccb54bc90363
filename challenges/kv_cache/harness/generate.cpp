// Draws the inputs: the case's script, and the rows that it appends and attends with.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "assay/parallel.h"
#include "assay/random.h"
#include "assay/size.h"
#include "script_builder.h"
#include "shared/score_levels.h"

namespace assay::kv_cache {
namespace {

using nlohmann::json;

void fill_floats(const BufferView& buffer, std::int32_t element_bytes, std::uint64_t seed) {
  if (element_bytes == 2) return fill_normal_bf16(buffer.span<std::uint16_t>(), seed);
  fill_normal(buffer.span<float>(), seed);
}

// Makes a few channels of every key head large, one in each part of the head, as in rotary models;
// the same channels of the queries are small in return.
void add_outliers(const json& j, const kvc_config& c, std::uint64_t seed, const BufferView& k,
                  const BufferView& q) {
  const std::int64_t channels = j.at("channels"), D = c.D, part = D / channels;
  const float factor = j.at("factor"), reduced = j.at("query");
  Random random(seed);
  std::vector<std::int64_t> at;
  for (std::int64_t i = 0; i < channels; ++i) at.push_back(i * part + random.below(part));
  const auto scale = [&](std::span<float> x, float by) {
    for (std::size_t row = 0; row < x.size(); row += to_size(D)) {
      for (const std::int64_t d : at) x[row + to_size(d)] *= by;
    }
  };
  scale(k.span<float>(), factor);
  scale(q.span<float>(), reduced);
}

// Some keys point along the diagonal, as all queries do slightly: their logits stand out by
// `logit`.
void add_spikes(const json& j, const Params& p, const BufferView& k, const BufferView& q) {
  const kvc_config& c = p.config[0];
  constexpr float kTowards = 2;
  const float along = j.at("logit").get<float>() / (kTowards * static_cast<float>(c.D) * p.scale);
  for (float& x : q.span<float>()) x += kTowards;
  const std::int64_t row = std::int64_t{c.n_kv} * c.D;
  for (const json& token : j.at("tokens")) {
    float* key = k.as<float>() + token.get<std::int64_t>() * row;
    for (std::int64_t d = 0; d < row; ++d) key[d] += along;
  }
}

// In all phases: timed rows see keys of earlier ones.
void raise_scores(const Params& p, std::uint64_t seed, BufferViews buffers) {
  const kvc_config& c = p.config[0];
  constexpr std::int64_t kNearer = 3;  // of four: histories are long
  attention::ScoreLevels levels(seed, c.n_kv, c.D, p.scale, kNearer);
  const auto each_row = [&](Handle handle, const auto& raise) {
    std::int64_t at = 0;
    for (std::span<float> rows = buffers[handle].span<float>(); !rows.empty();
         rows = rows.subspan(to_size(c.D)))
      raise(at++, rows.data());
  };
  for (const Handle keys : {kK, kLaterK})
    each_row(keys, [&](std::int64_t at, float* k) { levels.key(at % c.n_kv, k); });
  for (const Handle queries : {kQ, kLaterQ}) {
    each_row(queries,
             [&](std::int64_t at, float* q) { levels.query(at % c.n_q / (c.n_q / c.n_kv), q); });
  }
}

template <class T>
void store(const BufferView& buffer, const std::vector<T>& items) {
  std::copy(items.begin(), items.end(), buffer.as<T>());
}

}  // namespace

Script compile_script(const CaseSpec& spec, std::uint64_t seed) {
  if (spec.params.contains("random")) return compile_random(spec, substream(seed, 0x5c));
  if (spec.params.contains("ragged")) return compile_ragged(spec, substream(seed, 0x5d));
  return compile_text(spec, substream(seed, 0x5e));
}

void generate_inputs(const CaseSpec& spec, std::uint64_t seed, BufferViews buffers) {
  const Script s = compile_script(spec, seed);
  store(buffers[kOps], s.ops);
  store(buffers[kPool], s.pool);
  for (const int buffer : {kK, kV, kQ, kLaterK, kLaterV, kLaterQ}) {
    fill_floats(buffers[to_size(buffer)], s.params.element_bytes,
                substream(seed, static_cast<std::uint64_t>(buffer)));
  }
  if (spec.params.contains("outliers")) {
    add_outliers(spec.params.at("outliers"), s.params.config[0], substream(seed, 0x0f), buffers[kK],
                 buffers[kQ]);
  }
  if (spec.params.contains("spike")) {
    add_spikes(spec.params.at("spike"), s.params, buffers[kK], buffers[kQ]);
  }
  if (spec.params.value("levels", false)) raise_scores(s.params, substream(seed, 0x1e), buffers);
}

}  // namespace assay::kv_cache

#include "script_builder.h"

#include <cmath>

namespace assay::kv_cache {
namespace {

using nlohmann::json;

kvc_config config_of(const json& j) {
  kvc_config c{};
  c.size = sizeof(kvc_config);
  c.dtype = j.value("dtype", "f32") == "bf16" ? ASSAY_BF16 : ASSAY_F32;
  c.n_layers = j.value("layers", 1);
  c.n_q = j.value("n_q", 4);
  c.n_kv = j.value("n_kv", 2);
  c.D = j.value("D", 32);
  c.Dv = j.value("Dv", c.D);
  c.max_seqs = j.value("max_seqs", 16);
  c.max_tokens = j.value("max_tokens", std::int64_t{1} << 20);
  c.max_len = j.value("max_len", std::int64_t{1} << 20);
  c.window = j.value("window", -1);
  c.quant = j.value("quant", 0);
  c.sinks = j.value("sinks", 0);
  return c;
}

}  // namespace

Params ScriptBuilder::begin(const CaseSpec& spec, std::int64_t variables) {
  const json& j = spec.params;
  Params& p = script_.params;
  p.config[0] = config_of(j.value("config", json::object()));
  p.config[1] = j.contains("second") ? config_of(j.at("second")) : p.config[0];
  p.element_bytes = p.config[0].dtype == ASSAY_BF16 ? 2 : 4;
  p.scale = j.value("scale", 1.0f / std::sqrt(static_cast<float>(p.config[0].D)));
  p.variables = static_cast<std::int32_t>(variables);
  p.poison = spec.group != CaseGroup::timed;
  return p;
}

}  // namespace assay::kv_cache

// Resolves a draw from a space of attention problems: sizes given in terms of other sizes, rows
// given by position, and combinations that are impossible.
#include <algorithm>
#include <cmath>

#include "attention.h"

namespace assay::attention {
namespace {

using nlohmann::json;

// Rows are given as "first", "middle" or "last" of N.
bool place_rows(json& data, const char* list, std::int64_t N) {
  if (!data.contains(list)) return true;
  if (N == 0) return false;
  const std::string place = data.at(list);
  data[list] = {place == "first" ? 0 : place == "middle" ? N / 2 : N - 1};
  return true;
}

// Lengths of items derived from N: all of it, none, one, a part.
std::vector<std::int64_t> lengths(std::int64_t N, std::int64_t items, std::int64_t shift) {
  const std::int64_t kinds[] = {N, 0, std::min<std::int64_t>(N, 1), N / 2, N - N / 4};
  std::vector<std::int64_t> all;
  for (std::int64_t b = 0; b < items; ++b) all.push_back(kinds[(b + shift) % std::ssize(kinds)]);
  return all;
}

bool place_data(json& params, std::int64_t Nq, std::int64_t Nk) {
  json data = params.at("data");
  if (data.contains("key")) {
    if (Nk == 0) return false;
    data["key"] = data.at("key") == "first" ? 0 : Nk - 1;
  }
  const bool placed = place_rows(data, "nan_q", Nq) && place_rows(data, "nan_dout", Nq) &&
                      place_rows(data, "nan_k", Nk) && place_rows(data, "nan_v", Nk);
  params["data"] = data;
  return placed;
}

// Whether the scores must have a chosen size, which is impossible with a scale of 0.
bool is_aligned(const json& data) {
  const std::string kind = data.value("kind", "");
  return kind == "rising" || kind == "falling" || kind == "low" || kind == "one_hot";
}

bool spoils_rows(const json& data) {
  return data.contains("nan_q") || data.contains("nan_k") || data.contains("nan_v") ||
         data.contains("nan_dout");
}

}  // namespace

std::optional<DrawnCase> drawn_problem(const json& draw, std::int64_t most_products) {
  DrawnCase c{draw};
  json& params = c.params;
  const json wrong = params.at("invalid"), extra = params.at("extra");
  const std::int64_t B = params.at("B"), Hkv = params.at("Hkv"), group = params.at("group"),
                     Nq = params.at("Nq");
  const std::int64_t Nk = params.at("Nk") == "Nq" ? Nq : params.at("Nk").get<std::int64_t>(),
                     D = params.at("D");
  const std::int64_t Dv = params.at("Dv") == "D" ? D : params.at("Dv").get<std::int64_t>();
  for (const char* axis : {"invalid", "extra", "group"}) params.erase(axis);
  params["Hq"] = Hkv * group;
  params["Nk"] = Nk;
  params["Dv"] = Dv;
  if (B * Hkv * group * Nq * Nk * (D + Dv) > most_products) return std::nullopt;
  // Each row takes a page.
  constexpr std::int64_t kMostFarRows = 200;
  const bool far = params.value("layout", "").starts_with("far_");
  if (far && B * Hkv * group * std::max(Nq, Nk) > kMostFarRows) return std::nullopt;
  if (params.at("scale").is_null()) params.erase("scale");
  if (params.value("scale", 1.0) == 0 && is_aligned(params.at("data"))) return std::nullopt;
  // Gradients that do not fit in f16.
  if (params.at("dtype") == "f16" && params.at("data").value("dout_sigma", 1.0) > 100)
    return std::nullopt;
  if (params.value("window", 0) <= 0) params.erase("window");
  if (!place_data(params, Nq, Nk)) return std::nullopt;

  const std::string kind = extra.is_string() ? extra.get<std::string>() : "";
  if (extra.is_object()) params.update(extra);
  if (kind == "kv_len") params["kv_len"] = lengths(Nk, B, 1);
  if (kind == "kv_len" && B == 0) return std::nullopt;
  if (kind == "varlen") {
    if (spoils_rows(params.at("data"))) return std::nullopt;
    params["q_len"] = lengths(Nq, B + 1, 0);
    params["k_len"] = lengths(Nk, B + 1, B % 3);
    params.erase("Nk");
  }
  if (params.contains("fp8") && (params.at("dtype") == "f16" || spoils_rows(params.at("data"))))
    return std::nullopt;
  if (wrong.empty()) return c;

  if (!kind.empty() || extra.is_object()) return std::nullopt;
  const std::string null = wrong.value("null", "");
  if (null.empty()) {
    params["override"] = wrong;
    if (wrong.contains("Hkv") && wrong.at("Hkv") == "Hq+1")
      params["override"]["Hkv"] = Hkv * group + 1;
  } else {
    // An empty array may be NULL, and an absent one has no structure.
    if (B * Nq * Nk == 0 || !params.at("data").empty()) return std::nullopt;
    params["null"] = {null};
  }
  c.expect_status = ASSAY_EINVAL;
  return c;
}

}  // namespace assay::attention

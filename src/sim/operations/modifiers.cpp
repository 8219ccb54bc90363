#include "sim/operations/modifiers.h"

#include <algorithm>
#include <array>
#include <utility>

namespace assay::sim {

using ptx::Space;
using ptx::Type;

ptx::Type type_named(std::string_view text) {
  for (int t = static_cast<int>(Type::pred); t <= static_cast<int>(Type::f64); ++t) {
    const auto type = static_cast<Type>(t);
    if (text == ptx::to_string(type)) return type;
  }
  return Type::none;
}

ptx::Type last_type(const ptx::Instruction& in) {
  for (auto m = in.modifiers.rbegin(); m != in.modifiers.rend(); ++m) {
    if (const Type t = type_named(*m); t != Type::none) return t;
  }
  return Type::none;
}

bool is_signed(Type t) { return t >= Type::s8 && t <= Type::s64; }

unsigned bits_of(Type t) {
  return t == Type::pred ? 1 : static_cast<unsigned>(8 * ptx::size_of(t));
}

bool has(const ptx::Instruction& in, std::string_view modifier) {
  return std::find(in.modifiers.begin(), in.modifiers.end(), modifier) != in.modifiers.end();
}

bool has_prefix(const ptx::Instruction& in, std::string_view prefix) {
  return std::any_of(in.modifiers.begin(), in.modifiers.end(),
                     [&](const std::string& m) { return m.starts_with(prefix); });
}

namespace {

constexpr std::array<std::pair<std::string_view, Space>, 9> kSpaces{{
    {"global", Space::global},
    {"shared", Space::shared},
    {"shared::cta", Space::shared},
    {"shared::cluster", Space::shared},
    {"local", Space::local},
    {"const", Space::constant},
    {"param", Space::param},
    {"param::entry", Space::param},
    {"param::func", Space::param},
}};

// Caching and prefetching, which a functional model does not see.
constexpr std::array<std::string_view, 14> kHints{
    "ca",  "cg",   "cs",  "lu",    "wb",      "wt", "nc",
    "uni", "weak", "cta", "noftz", "unified", "rn", "L1::no_allocate"};

bool apply(MemoryModifiers& out, const std::string& m) {
  for (const auto& [name, space] : kSpaces) {
    if (m == name) return out.space = space, true;
  }
  if (const Type t = type_named(m); t != Type::none) return out.type = t, true;
  if (m == "v2" || m == "v4" || m == "v8") {
    out.vector = static_cast<unsigned>(m[1] - '0');
  } else if (m == "volatile") {
    out.is_volatile = true;
  } else if (m == "relaxed" || m == "acquire" || m == "release" || m == "acq_rel" || m == "mmio") {
    out.ordered = true;
    out.releases |= m == "release" || m == "acq_rel";
  } else if (m == "cv") {
    out.uncached = true;
  } else if (m == "L2::cache_hint") {
    out.cache_policy = true;
  } else if (m != "gpu" && m != "sys" && m != "cluster") {
    return m.starts_with("L1::") || m.starts_with("L2::") ||
           std::find(kHints.begin(), kHints.end(), m) != kHints.end();
  }
  return true;
}

}  // namespace

std::optional<MemoryModifiers> memory_modifiers(const ptx::Instruction& in) {
  MemoryModifiers out;
  for (const std::string& m : in.modifiers) {
    if (!apply(out, m)) return std::nullopt;
  }
  out.beyond_block = !has(in, "cta");
  return out;
}

}  // namespace assay::sim

#include "sim/ptx/special_register.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace assay::sim::ptx {
namespace {

constexpr std::array kNames = std::to_array<std::string_view>({
    "%aggr_smem_size",
    "%clock",
    "%clock64",
    "%clock_hi",
    "%cluster_ctaid",
    "%cluster_ctarank",
    "%cluster_nctaid",
    "%cluster_nctarank",
    "%clusterid",
    "%ctaid",
    "%current_graph_exec",
    "%dynamic_smem_size",
    "%globaltimer",
    "%globaltimer_hi",
    "%globaltimer_lo",
    "%gridid",
    "%is_explicit_cluster",
    "%laneid",
    "%lanemask_eq",
    "%lanemask_ge",
    "%lanemask_gt",
    "%lanemask_le",
    "%lanemask_lt",
    "%nclusterid",
    "%nctaid",
    "%nsmid",
    "%ntid",
    "%nwarpid",
    "%reserved_smem_offset_begin",
    "%reserved_smem_offset_cap",
    "%reserved_smem_offset_end",
    "%smid",
    "%tid",
    "%total_smem_size",
    "%warpid",
});
static_assert(std::is_sorted(kNames.begin(), kNames.end()));

// Whether `name` consists of `prefix`, a number below `count` and `suffix`.
bool is_numbered(std::string_view name, std::string_view prefix, unsigned count,
                 std::string_view suffix = "") {
  if (!name.starts_with(prefix) || !name.ends_with(suffix)) return false;
  if (name.size() <= prefix.size() + suffix.size()) return false;
  const std::string_view digits =
      name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  unsigned number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc{} && end == digits.data() + digits.size() && number < count;
}

}  // namespace

bool is_special_register(std::string_view name) {
  return std::binary_search(kNames.begin(), kNames.end(), name) ||
         is_numbered(name, "%envreg", 32) || is_numbered(name, "%pm", 8) ||
         is_numbered(name, "%pm", 8, "_64") || is_numbered(name, "%reserved_smem_offset_", 2);
}

}  // namespace assay::sim::ptx

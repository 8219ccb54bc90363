#include "sim/operations/bulk_reductions.h"

#include <algorithm>
#include <array>

#include "sim/operations/word_operations.h"

namespace assay::sim {

namespace {

using ptx::Type;

template <class W, class Op>
void update_words(std::byte* to, const std::byte* words, std::uint64_t bytes, bool concurrent) {
  for (std::uint64_t at = 0; at < bytes; at += sizeof(W)) {
    const W b = load_word<W>(words + at);
    update<W>(to + at, concurrent, [&](W value) { return static_cast<W>(Op::apply(value, b)); });
  }
}

// What ptxas takes for sm_90.
constexpr std::array kReductions = std::to_array<Reduction>({
    {"add", Type::u32, false},  {"add", Type::s32, false}, {"add", Type::u64, false},
    {"add", Type::f32, false},  {"add", Type::f64, false}, {"add", Type::f16, false},
    {"add", Type::bf16, false}, {"min", Type::u32, false}, {"min", Type::s32, false},
    {"min", Type::u64, false},  {"min", Type::s64, false}, {"min", Type::f16, false},
    {"min", Type::bf16, false}, {"max", Type::u32, false}, {"max", Type::s32, false},
    {"max", Type::u64, false},  {"max", Type::s64, false}, {"max", Type::f16, false},
    {"max", Type::bf16, false}, {"inc", Type::u32, false}, {"dec", Type::u32, false},
    {"and", Type::b32, false},  {"and", Type::b64, false}, {"or", Type::b32, false},
    {"or", Type::b64, false},   {"xor", Type::b32, false}, {"xor", Type::b64, false},
    {"add", Type::u32, true},   {"add", Type::s32, true},  {"add", Type::u64, true},
    {"add", Type::s64, true},   {"min", Type::u32, true},  {"min", Type::s32, true},
    {"max", Type::u32, true},   {"max", Type::s32, true},  {"inc", Type::u32, true},
    {"dec", Type::u32, true},   {"and", Type::b32, true},  {"or", Type::b32, true},
    {"xor", Type::b32, true},
});

template <bool kMax>
BulkReduction pick_half(Type t) {
  return t == Type::f16 ? BulkReduction{update_words<std::uint16_t, PickHalf<Half, kMax>>, 2}
                        : BulkReduction{update_words<std::uint16_t, PickHalf<Bfloat, kMax>>, 2};
}

BulkReduction operation_of(const Reduction& r) {
  const bool half = r.type == Type::f16 || r.type == Type::bf16;
  if (half && r.op == "min") return pick_half<false>(r.type);
  if (half && r.op == "max") return pick_half<true>(r.type);
  return make_operation(r.op, r.type, r.shared, []<class W, class Op>() -> BulkReduction {
    return {update_words<W, Op>, sizeof(W)};
  });
}

}  // namespace

std::uint32_t number_of_reduction(const Reduction& r) {
  const auto found = std::ranges::find(kReductions, r);
  return found == kReductions.end() ? 0
                                    : static_cast<std::uint32_t>(found - kReductions.begin()) + 1;
}

BulkReduction reduction_of_number(std::uint32_t number) {
  static const auto all = [] {
    std::array<BulkReduction, kReductions.size()> list;
    std::ranges::transform(kReductions, list.begin(), operation_of);
    return list;
  }();
  return number == 0 ? BulkReduction{} : all[number - 1];
}

bool commutes(std::uint32_t number) {
  if (number == 0) return true;
  const Reduction& r = kReductions[number - 1];
  return r.type < Type::f16 && r.op != "inc" && r.op != "dec";
}

}  // namespace assay::sim

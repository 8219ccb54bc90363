// Shared by challenges that turn recorded calls into cases. Any number may have any value until it
// is checked.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "assay/challenge.h"
#include "assay/size.h"

namespace assay {

// Whether the call has an array with that handle, if it needs to hold any elements.
inline bool has(const RecordedCall& call, std::int32_t handle, std::int64_t elements) {
  const RecordedCall::Array* const array = call.find(handle);
  return array != nullptr && (elements == 0 || !array->null);
}

// An array of exactly that many elements; absent if it has another number. The count is bounded.
template <class T>
std::optional<std::vector<T>> recorded_values(const RecordedCall& call, std::int32_t handle,
                                              std::int64_t count) {
  const RecordedCall::Array* const array = call.find(handle);
  if (array == nullptr || count < 0) return std::nullopt;
  if (array->bytes.size() != to_size(count) * sizeof(T)) return std::nullopt;
  std::vector<T> found(to_size(count));
  if (!found.empty()) std::memcpy(found.data(), array->bytes.data(), array->bytes.size());
  return found;
}

// The largest magnitude of bf16 or fp32 values; absent if one is not finite.
inline std::optional<double> largest_magnitude(const BufferView& view, bool is_bf16) {
  double largest = 0;
  const auto look = [&](float x) {
    largest = std::max(largest, std::abs(static_cast<double>(x)));
    return std::isfinite(x);
  };
  const bool finite =
      is_bf16 ? std::ranges::all_of(view.span<std::uint16_t>(),
                                    [&](std::uint16_t x) { return look(bf16_to_float(x)); })
              : std::ranges::all_of(view.span<float>(), look);
  return finite ? std::optional(largest) : std::nullopt;
}

// Whether q, k and v with rows of D elements and these magnitudes keep every score and every sum of
// values within fp32.
inline bool attention_stays_finite(std::optional<double> q, std::optional<double> k,
                                   std::optional<double> v, double scale, std::int64_t D) {
  constexpr double kMost = 1e30;
  return q && k && v && *v <= kMost &&
         *q * *k * static_cast<double>(D) * std::max(1.0, std::abs(scale)) <= kMost;
}

// Sums of values that tests chose: whether they are the same in every order.
class ExactSums {
 public:
  void add(double x) {
    if (x == 0 || !std::isfinite(x)) return;
    int exponent = 0;
    const auto digits =
        static_cast<std::uint64_t>(std::ldexp(std::frexp(std::abs(x), &exponent), kDigits));
    lowest_ = std::min(lowest_, exponent - kDigits + std::countr_zero(digits));
    largest_ = std::max(largest_, std::abs(x));
  }
  // Whether every sum of `count` of them needs at most `bits` bits.
  bool fit(double count, int bits) const {
    return largest_ == 0 || largest_ * count <= std::ldexp(1.0, lowest_ + bits);
  }

 private:
  static constexpr int kDigits = 53;
  int lowest_ = 1 << 16;  // the exponent of the lowest bit of any value
  double largest_ = 0;
};

}  // namespace assay

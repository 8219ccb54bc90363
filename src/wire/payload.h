// Values and texts in sequence in the window of a link. Neither end trusts the other: a writer
// stops at the window's end, and a reader finds zeros and truncated texts after the last byte.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace assay::wire {

class PayloadWriter {
 public:
  explicit PayloadWriter(std::span<std::byte> window) : rest_(window), room_(window.size()) {}

  template <class T>
  requires std::is_trivially_copyable_v<T>
  void value(const T& v) { text({reinterpret_cast<const char*>(&v), sizeof v}); }
  void text(std::string_view s) {
    const std::size_t n = std::min(s.size(), rest_.size());
    if (n != 0) std::memcpy(rest_.data(), s.data(), n);
    rest_ = rest_.subspan(n);
  }
  std::size_t size() const { return room_ - rest_.size(); }  // bytes written

 private:
  std::span<std::byte> rest_;
  std::size_t room_;
};

class PayloadReader {
 public:
  // `bytes`: how many the other end claims to have written.
  PayloadReader(std::span<const std::byte> window, std::size_t bytes)
      : rest_(window.first(std::min(bytes, window.size()))) {}

  // T{} if too few bytes are left; those are skipped.
  template <class T>
  requires std::is_trivially_copyable_v<T> T value() {
    T v{};
    const std::span<const std::byte> from = take(sizeof v);
    if (from.size() == sizeof v) std::memcpy(&v, from.data(), sizeof v);
    return v;
  }
  std::string text(std::size_t bytes) {
    const std::span<const std::byte> from = take(bytes);
    return {reinterpret_cast<const char*>(from.data()), from.size()};
  }

 private:
  std::span<const std::byte> take(std::size_t bytes) {
    const std::span<const std::byte> taken = rest_.first(std::min(bytes, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }

  std::span<const std::byte> rest_;
};

}  // namespace assay::wire

// The promises that fuzz targets check. A broken promise is a finding, like a crash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "assay/error.h"
#include "util/text.h"

namespace assay::fuzz {

inline void require(bool condition, const char* promise, std::string_view shown = {}) {
  if (condition) return;
  std::fprintf(stderr, "broken promise: %s\n%s\n", promise, std::string(shown).c_str());
  std::abort();
}

// Nothing that moves a cursor, changes the direction of text or is invalid UTF-8, except line ends
// and tabs.
inline void require_safe(std::string_view text, const char* promise) {
  constexpr std::size_t kAll = static_cast<std::size_t>(-1);
  std::string safe = printable(text, kAll, kAll);
  if (text.ends_with('\n')) safe += '\n';
  require(safe == text, promise, text);
}

// Reads a document that may contain anything: it is accepted, or refused with an Error that people
// can read.
template <class Read>
bool accepts(Read read) {
  try {
    read();
    return true;
  } catch (const Error& refusal) {
    require(refusal.what()[0] != '\0', "refusals have a reason");
    return false;
  }
}

// Takes numbers and texts from an input; zeros when nothing is left.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}

  template <class T>
  requires std::is_trivially_copyable_v<T> T take() {
    T value{};
    const std::size_t n = left_ < sizeof value ? left_ : sizeof value;
    if (n > 0) std::memcpy(&value, data_, n);
    skip(n);
    return value;
  }
  std::string_view bytes(std::size_t most) {
    const std::size_t n = most < left_ ? most : left_;
    const std::string_view text(reinterpret_cast<const char*>(data_), n);
    skip(n);
    return text;
  }
  std::string_view rest() { return bytes(left_); }
  bool empty() const { return left_ == 0; }

 private:
  void skip(std::size_t n) {
    data_ += n;
    left_ -= n;
  }
  const std::uint8_t* data_;
  std::size_t left_;
};

inline std::string text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace assay::fuzz

#include "sim/operations/printf_format.h"

#include <fmt/format.h>

#include <bit>
#include <cstdio>
#include <string_view>

namespace assay::sim {
namespace {

// Reads the arguments in order.
class Reader {
 public:
  explicit Reader(const PrintfArguments& from) : from_(from) {}

  std::uint64_t next(unsigned bytes) {
    at_ = (at_ + bytes - 1) / bytes * bytes;
    const std::uint64_t value = from_.read(at_, bytes);
    at_ += bytes;
    ++count_;
    return value;
  }
  std::uint32_t count() const { return count_; }

 private:
  const PrintfArguments& from_;
  std::uint64_t at_ = 0;
  std::uint32_t count_ = 0;
};

struct Conversion {
  std::string flags;    // with width and precision, as passed to the host's printf
  bool wide = false;    // l, ll, j, z, t: 8 bytes
  unsigned narrow = 0;  // h: 2, hh: 1
  char letter = 0;
};

// Widths that would exhaust memory are clamped.
constexpr int kMaxWidth = 4096;

std::string number(std::string_view format, std::size_t& at, Reader& arguments) {
  int value = 0;
  bool negative = false;
  if (at < format.size() && format[at] == '*') {
    ++at;
    value = static_cast<std::int32_t>(arguments.next(4));
    negative = value < 0;
    value = negative ? (value < -kMaxWidth ? kMaxWidth : -value) : value;
  } else {
    std::size_t digits = 0;
    for (; at < format.size() && format[at] >= '0' && format[at] <= '9'; ++at, ++digits) {
      if (value <= kMaxWidth) value = 10 * value + (format[at] - '0');
    }
    if (digits == 0) return {};
  }
  return fmt::format("{}{}", negative ? "-" : "", value < kMaxWidth ? value : kMaxWidth);
}

// Parses what follows the percent sign; false if it is not a known conversion.
bool parse(std::string_view format, std::size_t& at, Reader& arguments, Conversion& out) {
  while (at < format.size() &&
         std::string_view("-+ #0").find(format[at]) != std::string_view::npos) {
    out.flags += format[at++];
  }
  out.flags += number(format, at, arguments);
  if (at < format.size() && format[at] == '.') {
    ++at;
    const std::string precision = number(format, at, arguments);
    // A negative precision counts as absent.
    if (!precision.starts_with('-')) out.flags += "." + precision;
  }
  for (; at < format.size(); ++at) {
    const char c = format[at];
    if (c == 'l' || c == 'j' || c == 'z' || c == 't') {
      out.wide = true;
    } else if (c == 'h') {
      out.narrow = out.narrow == 2 ? 1 : 2;
    } else {
      break;
    }
  }
  if (at == format.size()) return false;
  out.letter = format[at++];
  return std::string_view("diouxXpcsfFeEgGaA").find(out.letter) != std::string_view::npos;
}

template <class T>
std::string print(const std::string& format, T value) {
  char small[128];
  const int length = std::snprintf(small, sizeof small, format.c_str(), value);
  if (length < 0) return {};
  if (static_cast<std::size_t>(length) < sizeof small)
    return {small, static_cast<std::size_t>(length)};
  std::string text(static_cast<std::size_t>(length) + 1, '\0');
  std::snprintf(text.data(), text.size(), format.c_str(), value);
  text.pop_back();
  return text;
}

std::string print_integer(const Conversion& c, std::uint64_t raw) {
  const bool is_signed = c.letter == 'd' || c.letter == 'i';
  auto value = raw;
  const unsigned bits = c.wide ? 64 : c.narrow == 2 ? 16 : c.narrow == 1 ? 8 : 32;
  if (bits < 64) {
    value = is_signed ? static_cast<std::uint64_t>(static_cast<std::int64_t>(raw << (64 - bits)) >>
                                                   (64 - bits))
                      : raw & ((std::uint64_t{1} << bits) - 1);
  }
  const std::string format = "%" + c.flags + "ll" + c.letter;
  return is_signed ? print(format, static_cast<long long>(value))
                   : print(format, static_cast<unsigned long long>(value));
}

std::string convert(const Conversion& c, Reader& arguments, const PrintfArguments& from) {
  const std::string plain = "%" + c.flags + c.letter;
  switch (c.letter) {
    case 'c': return print(plain, static_cast<int>(arguments.next(4) & 0xff));
    case 's': return print(plain, from.string(arguments.next(8)).c_str());
    case 'p': return print(plain, reinterpret_cast<void*>(arguments.next(8)));
    case 'd':
    case 'i':
    case 'o':
    case 'u':
    case 'x':
    case 'X': return print_integer(c, arguments.next(c.wide ? 8 : 4));
    default: return print(plain, std::bit_cast<double>(arguments.next(8)));
  }
}

}  // namespace

PrintfResult format_printf(const std::string& format, const PrintfArguments& from) {
  PrintfResult out;
  Reader arguments(from);
  for (std::size_t at = 0; at < format.size();) {
    if (format[at] != '%') {
      out.text += format[at++];
      continue;
    }
    const std::size_t percent = at++;
    if (at < format.size() && format[at] == '%') {
      out.text += format[at++];
      continue;
    }
    Conversion c;
    if (parse(format, at, arguments, c)) {
      out.text += convert(c, arguments, from);
    } else {
      out.text += format.substr(percent, at - percent);
    }
  }
  out.arguments = arguments.count();
  return out;
}

}  // namespace assay::sim

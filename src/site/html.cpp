#include "site/html.h"

#include <fmt/format.h>

#include <cstdint>

namespace assay::site {
namespace {

constexpr std::uint32_t kBad = 0xfffd;

unsigned char byte_at(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

// The code point at the start of the text, and its length in bytes; kBad and 1 if it is invalid.
struct Decoded {
  std::uint32_t point = kBad;
  std::size_t bytes = 1;
};

Decoded decode(std::string_view text) {
  const std::uint32_t first = byte_at(text, 0);
  if (first < 0x80) return {first, 1};
  const std::size_t n = first >= 0xc2 && first < 0xe0    ? 2
                        : first >= 0xe0 && first < 0xf0  ? 3
                        : first >= 0xf0 && first <= 0xf4 ? 4
                                                         : 0;
  if (n == 0 || text.size() < n) return {};
  std::uint32_t point = first & (0xffU >> (n + 1));
  for (std::size_t i = 1; i < n; ++i) {
    const std::uint32_t next = byte_at(text, i);
    if ((next & 0xc0) != 0x80) return {};
    point = (point << 6) | (next & 0x3f);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = point >= 0xd800 && point <= 0xdfff;
  if (point < kLeast[n] || point > 0x10ffff || surrogate) return {};
  return {point, n};
}

// Characters that are invisible, or that change the direction of the text after them.
bool is_hidden(std::uint32_t p) {
  return p == 0xad || p == 0x61c || p == 0x180e || (p >= 0x200b && p <= 0x200f) ||
         (p >= 0x2028 && p <= 0x202e) || (p >= 0x2060 && p <= 0x206f) || p == 0xfeff ||
         (p >= 0xfff9 && p <= 0xfffb) || (p >= 0xe0000 && p <= 0xe0fff);
}

bool is_control(std::uint32_t p) {
  return (p < 0x20 && p != '\n' && p != '\t') || (p >= 0x7f && p < 0xa0) ||
         (p & 0xfffe) == 0xfffe;  // noncharacters: U+FFFE, U+FFFF, ...
}

const char* reference(std::uint32_t p) {
  switch (p) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&#34;";
    case '\'': return "&#39;";
    default: return nullptr;
  }
}

}  // namespace

std::string escaped(std::string_view untrusted) {
  std::string out;
  out.reserve(untrusted.size() + untrusted.size() / 16);
  while (!untrusted.empty()) {
    const Decoded d = decode(untrusted);
    if (const char* r = reference(d.point)) {
      out += r;
    } else if (d.point == kBad || is_control(d.point)) {
      out += "\xef\xbf\xbd";
    } else if (is_hidden(d.point)) {
      out += fmt::format("[U+{:04X}]", d.point);
    } else {
      out += untrusted.substr(0, d.bytes);
    }
    untrusted.remove_prefix(d.bytes);
  }
  return out;
}

Html& Html::prose(std::string_view untrusted) {
  for (;;) {
    const std::size_t begin = untrusted.find('`');
    const std::size_t end =
        begin == std::string_view::npos ? begin : untrusted.find('`', begin + 1);
    if (end == std::string_view::npos) return text(untrusted);
    text(untrusted.substr(0, begin));
    element("code", {}, untrusted.substr(begin + 1, end - begin - 1));
    untrusted.remove_prefix(end + 1);
  }
}

Html& Html::open(Literal tag, std::initializer_list<Attribute> attributes) {
  append("<").append(tag.text());
  for (const Attribute& a : attributes) {
    append(" ").append(a.name.text()).append("=\"").append(escaped(a.value)).append("\"");
  }
  return append(">");
}

Html& Html::element(Literal tag, std::initializer_list<Attribute> attributes,
                    std::string_view text) {
  return open(tag, attributes).append(escaped(text)).close(tag);
}

std::string href(std::string_view path) {
  constexpr std::string_view kPlain = "/._-~";
  std::string out;
  for (const char c : path) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (plain || kPlain.find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

}  // namespace assay::site

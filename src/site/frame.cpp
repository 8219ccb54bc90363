#include "site/frame.h"

#include <fmt/format.h>

#include "site/links.h"
#include "util/sha256.h"

namespace assay {
extern const std::string_view kSiteStyle, kSiteScript;
}

namespace assay::site {
namespace {

std::string base64_of_hex(const std::string& hex) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  unsigned bits = 0, count = 0;
  for (const char c : hex) {
    bits = (bits << 4) | static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
    count += 4;
    if (count < 6) continue;
    count -= 6;
    out += kDigits[(bits >> count) & 63];
  }
  if (count > 0) out += kDigits[(bits << (6 - count)) & 63];
  while (out.size() % 4 != 0) out += '=';
  return out;
}

// 'self' names the origin of a served site. A page opened from a file has no such origin; there,
// file: is needed.
std::string policy(bool scripted) {
  static const std::string kHash = policy_hash(script());
  return fmt::format(
      "default-src 'none';style-src 'self' file:;img-src data:;script-src {};base-uri 'none';"
      "form-action 'none'",
      scripted ? "'" + kHash + "'" : "'none'");
}

}  // namespace

std::string_view style_sheet() { return kSiteStyle; }
std::string_view script() { return kSiteScript; }

std::string policy_hash(std::string_view text) {
  return "sha256-" + base64_of_hex(sha256_hex(text));
}

std::string document(const Frame& frame, const Html& main) {
  Html html;
  html.raw(
          "<!doctype html>\n<!-- Written by `assay board`. -->\n<html lang=en><meta charset=utf-8>")
      .open("meta",
            {{"http-equiv", "Content-Security-Policy"}, {"content", policy(frame.scripted)}})
      .raw(
          "<meta name=viewport content=\"width=device-width,initial-scale=1\">"
          "<meta name=referrer content=no-referrer><link rel=icon href=\"data:,\">")
      .open("link", {{"rel", "stylesheet"}, {"href", link(frame.path, kStyleFile)}})
      .element("title", {}, frame.title + " - assay")
      .raw("\n<body><header><a class=skip href=#main>To the content</a><nav aria-label=Path>");
  const char* before = "";
  for (const auto& [name, path] : frame.above) {
    html.text(before).element("a", {{"href", link(frame.path, path)}}, name);
    before = " / ";
  }
  if (frame.above.empty()) html.raw("<strong>assay</strong>");
  html.raw("</nav></header>\n<main id=main>\n").add(main).raw("</main>\n<footer>");
  html.raw("Every figure is measured, or modelled where that is said; none is an opinion. ")
      .element("a", {{"href", link(frame.path, std::string(kIndexPage) + "")}}, "Rankings")
      .raw("</footer>\n");
  if (frame.scripted) html.raw("<script>").embedded(script()).raw("</script>\n");
  return std::move(html).str();
}

}  // namespace assay::site

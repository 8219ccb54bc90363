// HTML and SVG, escaped by construction: what is not a literal of this program becomes text.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

namespace assay::site {

// Markup of our own. Only a string literal becomes one, which the compiler checks.
class Literal {
 public:
  template <std::size_t N>
  consteval Literal(const char (&text)[N]) : text_(text, N - 1) {}  // NOLINT: implicit on purpose
  constexpr std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

// Untrusted bytes as HTML text, also inside a quoted attribute. & < > " ' become references; what
// is no UTF-8, and controls other than newline and tab, become U+FFFD; characters that show nothing
// or turn the direction of text are made visible, as in "[U+202E]".
std::string escaped(std::string_view untrusted);

struct Attribute {
  Literal name;
  std::string value;  // escaped when written
};

// A document or a part of one, as it grows.
class Html {
 public:
  Html& raw(Literal markup) { return append(markup.text()); }
  Html& text(std::string_view untrusted) { return append(escaped(untrusted)); }
  Html& add(const Html& part) { return append(part.out_); }
  // <tag name="value" ...>
  Html& open(Literal tag, std::initializer_list<Attribute> attributes = {});
  Html& close(Literal tag) { return append("</").append(tag.text()).append(">"); }
  // <tag ...>text</tag>
  Html& element(Literal tag, std::initializer_list<Attribute> attributes, std::string_view text);
  // The text of an embedded file of this program, as it is: a style sheet or a script.
  Html& embedded(std::string_view ours) { return append(ours); }

  bool empty() const { return out_.empty(); }
  const std::string& str() const& { return out_; }
  std::string str() && { return std::move(out_); }

 private:
  Html& append(std::string_view markup) {
    out_ += markup;
    return *this;
  }

  std::string out_;
};

// A path of plain file names as a relative link: what is not a letter, a digit or one of "/._-~"
// is percent-encoded, so that it is no scheme, query or fragment.
std::string href(std::string_view path);

}  // namespace assay::site

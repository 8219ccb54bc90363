// HTML and SVG, escaped by construction: anything but this program's literals becomes text.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

namespace assay::site {

// Trusted markup. The compiler ensures that it is made only from string literals.
class Literal {
 public:
  template <std::size_t N>
  consteval Literal(const char (&text)[N]) : text_(text, N - 1) {}  // NOLINT: implicit on purpose
  constexpr std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

// Untrusted bytes as HTML text, also inside a quoted attribute. & < > " ' become references. Bytes
// that are not UTF-8, and controls other than newline and tab, become U+FFFD. Characters that are
// invisible or change the direction of text are spelled out, as in "[U+202E]".
std::string escaped(std::string_view untrusted);

struct Attribute {
  Literal name;
  std::string value;  // escaped when written
};

// A document, or part of one, under construction.
class Html {
 public:
  Html& raw(Literal markup) { return append(markup.text()); }
  Html& text(std::string_view untrusted) { return append(escaped(untrusted)); }
  // Text in which a span between backticks is code.
  Html& prose(std::string_view untrusted);
  Html& add(const Html& part) { return append(part.out_); }
  // <tag name="value" ...>
  Html& open(Literal tag, std::initializer_list<Attribute> attributes = {});
  Html& close(Literal tag) { return append("</").append(tag.text()).append(">"); }
  // <tag ...>text</tag>
  Html& element(Literal tag, std::initializer_list<Attribute> attributes, std::string_view text);
  // The unescaped text of a file embedded in this program: a style sheet or a script.
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

// A path of plain file names as a relative link. Anything but letters, digits and "/._-~" is
// percent-encoded, so that it cannot act as a scheme, query or fragment.
std::string href(std::string_view path);

}  // namespace assay::site

#include "intake/code.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <iterator>
#include <set>

namespace assay::intake {
namespace {

bool is_word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_blank(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

// Blanks comments and literals in place.
class Blanker {
 public:
  explicit Blanker(std::string_view code) : text_(code) {}

  std::string run() {
    while (at_ < text_.size()) {
      if (starts("//")) {
        blank_until_line_end();
      } else if (starts("/*")) {
        blank_through("*/", 2);
      } else if (text_[at_] == '"') {
        is_raw() ? blank_raw() : blank_literal('"');
      } else if (text_[at_] == '\'' && !is_digit_separator()) {
        blank_literal('\'');
      } else {
        ++at_;
      }
    }
    return std::move(text_);
  }

 private:
  bool starts(std::string_view with) const {
    return std::string_view(text_).substr(at_, with.size()) == with;
  }
  void blank() {
    if (text_[at_] != '\n') text_[at_] = ' ';
    ++at_;
  }
  // A backslash also continues a comment on the next line.
  void blank_until_line_end() {
    for (bool goes_on = false; at_ < text_.size() && (text_[at_] != '\n' || goes_on); blank())
      goes_on = text_[at_] == '\\';
  }
  void blank_through(std::string_view end, std::size_t skip) {
    const std::size_t found = text_.find(end, at_ + skip);
    const std::size_t stop = found == std::string::npos ? text_.size() : found + end.size();
    while (at_ < stop) blank();
  }
  void blank_literal(char quote) {
    ++at_;
    while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n') {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) blank();
      blank();
    }
    if (at_ < text_.size()) ++at_;
  }
  bool is_raw() const { return at_ > 0 && text_[at_ - 1] == 'R'; }
  void blank_raw() {
    constexpr std::size_t kLongestDelimiter = 16;
    const std::string_view delimiter =
        std::string_view(text_).substr(at_ + 1, kLongestDelimiter + 1);
    const std::size_t length = delimiter.find('(');
    if (length == std::string_view::npos) return blank_literal('"');
    const std::string end = ")" + std::string(delimiter.substr(0, length)) + "\"";
    blank_through(end, 1);
  }
  // 1'000'000
  bool is_digit_separator() const {
    return at_ > 0 && std::isxdigit(static_cast<unsigned char>(text_[at_ - 1])) != 0 &&
           at_ + 1 < text_.size() && std::isxdigit(static_cast<unsigned char>(text_[at_ + 1])) != 0;
  }

  std::string text_;
  std::size_t at_ = 0;
};

// Most characters examined between parameters and body, because hostile text could make this slow.
constexpr std::size_t kLongestQualifiers = 512;

std::size_t past_blanks(std::string_view code, std::size_t at) {
  while (at < code.size() && is_blank(code[at])) ++at;
  return at;
}

// The last word, ignoring blanks after it.
std::string_view word_at_end(std::string_view text) {
  constexpr std::size_t kLongestName = 256;
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  std::size_t length = 0;
  while (length < text.size() && length <= kLongestName &&
         is_word_char(text[text.size() - length - 1]))
    ++length;
  return text.substr(text.size() - length);
}

// Whether a body follows a parameter list. Only `noexcept`, an attribute or a return type may come
// between, and none of them contains one of these characters.
bool body_follows(std::string_view code, std::size_t at) {
  code = code.substr(0, at + kLongestQualifiers);
  at = past_blanks(code, at);
  if (at < code.size() && code[at] == '{') return true;
  const bool qualified = code.substr(at).starts_with("noexcept") ||
                         code.substr(at).starts_with("->") || code.substr(at).starts_with("[[") ||
                         code.substr(at).starts_with("__attribute__") ||
                         code.substr(at).starts_with("try");
  if (!qualified) return false;
  const std::size_t stop = code.find_first_of("{};=", at);
  return stop != std::string_view::npos && code[stop] == '{';
}

constexpr std::size_t kLongestLabel = 300;

constexpr std::array<std::string_view, 33> kKnownEndings{
    "cpp", "cc",  "cxx",  "c",   "cu",  "cuh",  "h",     "hpp",  "hxx",  "hh",    "inl",
    "py",  "sh",  "bash", "txt", "md",  "json", "cmake", "toml", "yaml", "yml",   "mk",
    "log", "ptx", "rs",   "cl",  "hip", "js",   "ts",    "bat",  "diff", "patch", "csv"};

bool is_name_char(char c) { return is_word_char(c) || c == '-' || c == '.'; }

std::string ending_of(const std::string& name) {
  const auto dot = name.rfind('.');
  return dot == std::string::npos || dot == 0 ? "" : lower(name.substr(dot + 1));
}

// Markdown and comment decoration, and list numbers.
bool is_decoration(char c) {
  return is_blank(c) ||
         std::string_view("#*_`~=-+>/\\|\"'[]()<>.0123456789:;!").find(c) != std::string_view::npos;
}

std::string_view without_decoration_before(std::string_view text) {
  while (!text.empty() && is_decoration(text.front())) text.remove_prefix(1);
  return text;
}

bool only_labels(std::string_view text) {
  constexpr std::array<std::string_view, 30> kLabels{
      "file",   "filename", "name",  "path",    "code",     "source",  "listing", "full",
      "final",  "complete", "new",   "updated", "contents", "content", "of",      "the",
      "create", "in",       "step",  "part",    "cpp",      "c",       "cuda",    "header",
      "title",  "for",      "begin", "start",   "this",     "is"};
  std::string word;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && std::isalpha(static_cast<unsigned char>(text[i])) != 0) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(text[i])));
      continue;
    }
    if (!word.empty() && std::ranges::find(kLabels, word) == kLabels.end()) return false;
    word.clear();
    // A letter of another script is part of an unknown word.
    if (i < text.size() && static_cast<unsigned char>(text[i]) >= 0x80) return false;
  }
  return true;
}

// "submission.cpp (the kernels)", "submission.cpp - the kernels": the name, then a description.
bool begins_with_label(std::string_view line, const std::string& name) {
  line = without_decoration_before(line);
  if (!line.starts_with(name)) return false;
  line = line.substr(name.size());
  while (!line.empty() && std::string_view("*`_\"' ]").find(line.front()) != std::string_view::npos)
    line.remove_prefix(1);
  if (line.empty()) return true;
  constexpr std::string_view kEnDash = "\xe2\x80\x93", kEmDash = "\xe2\x80\x94";
  return std::string_view("(-:").find(line.front()) != std::string_view::npos ||
         line.starts_with(kEnDash) || line.starts_with(kEmDash);
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::string without_comments_and_literals(std::string_view code) { return Blanker(code).run(); }

bool has_word(std::string_view text, std::string_view word) {
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string_view::npos; ++at) {
    const bool begins = at == 0 || !is_word_char(text[at - 1]);
    const std::size_t end = at + word.size();
    if (begins && (end == text.size() || !is_word_char(text[end]))) return true;
  }
  return false;
}

std::vector<std::string> functions_defined(std::string_view code,
                                           const std::vector<std::string>& names) {
  std::set<std::string_view> defined;
  std::vector<std::uint32_t> open;  // unclosed brackets; inputs are far below 4 GiB
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (code[i] == '(') open.push_back(static_cast<std::uint32_t>(i));
    if (code[i] != ')' || open.empty()) continue;
    const std::string_view before = code.substr(0, open.back());
    open.pop_back();
    const std::string_view name = word_at_end(before);
    if (!name.empty() && std::ranges::find(names, name) != names.end() && body_follows(code, i + 1))
      defined.insert(name);
  }
  std::vector<std::string> found;
  std::ranges::copy_if(names, std::back_inserter(found),
                       [&](const std::string& name) { return defined.contains(name); });
  return found;
}

std::vector<std::string> file_names_in(std::string_view text) {
  std::vector<std::string> names;
  std::string word;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && is_name_char(text[i])) {
      word += text[i];
      continue;
    }
    // A separator restarts the name: folders are not part of it.
    while (!word.empty() && word.back() == '.') word.pop_back();
    const bool is_folder = i < text.size() && (text[i] == '/' || text[i] == '\\');
    if (!is_folder && std::ranges::find(kKnownEndings, ending_of(word)) != kKnownEndings.end() &&
        std::ranges::find(names, word) == names.end())
      names.push_back(word);
    word.clear();
  }
  return names;
}

std::string file_named_by(std::string_view line) {
  if (line.size() > kLongestLabel) return "";
  const std::vector<std::string> names = file_names_in(line);
  if (names.size() != 1) return "";
  const std::string& name = names.front();
  std::string_view end = line;
  while (!end.empty() && (is_blank(end.back()) || end.back() == '*' || end.back() == '_'))
    end.remove_suffix(1);
  if (end.ends_with(':') || begins_with_label(line, name)) return name;
  std::string rest(line);
  const std::size_t at = rest.find(name);
  const std::size_t folders = rest.find_last_of(" \t`*\"'(=", at);
  const std::size_t from = folders == std::string::npos ? 0 : folders + 1;
  rest.erase(from, at + name.size() - from);
  return only_labels(rest) ? name : "";
}

std::string file_named_by_comment(std::string_view first_line) {
  const std::string_view line = trimmed(first_line);
  if (line.size() > kLongestLabel) return "";
  if (!line.starts_with("//") && !line.starts_with("/*")) return "";
  const std::vector<std::string> names = file_names_in(line);
  if (names.size() != 1) return "";
  if (begins_with_label(line, names.front())) return names.front();
  const std::string named = file_named_by(line);
  // A colon at the end means that the comment continues.
  return trimmed(line).ends_with(':') ? "" : named;
}

}  // namespace assay::intake

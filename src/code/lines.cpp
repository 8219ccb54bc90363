#include "code/lines.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "code/pieces.h"
#include "code/tokens.h"
#include "util/characters.h"

namespace assay::sources {
namespace {

bool is_bracket(const Token& token) {
  return token.kind == Token::Kind::sign &&
         std::string_view("{}()[];,").find(token.text) != std::string_view::npos;
}

// Maps equal lines of code to equal numbers.
class LineNumbers {
 public:
  void add_source(std::string_view source) {
    const std::vector<Token> tokens = tokens_of(source);
    for (std::size_t at = 0; at < tokens.size();) {
      std::size_t end = at;
      while (end < tokens.size() && tokens[end].line == tokens[at].line) ++end;
      add_line(tokens, at, end);
      at = end;
    }
    numbers_.push_back(--separator_);  // no run continues in the next file
  }

  const std::vector<std::int64_t>& numbers() const { return numbers_; }

 private:
  void add_line(const std::vector<Token>& tokens, std::size_t at, std::size_t end) {
    std::string line;
    bool says_something = false;
    for (; at < end; ++at) {
      if (tokens[at].kind == Token::Kind::directive) return;
      says_something = says_something || !is_bracket(tokens[at]);
      line += tokens[at].text;
      line += '\n';  // occurs only in literals, where it ends the token
    }
    if (!says_something) return;
    const auto next = static_cast<std::int64_t>(known_.size());
    numbers_.push_back(known_.emplace(std::move(line), next).first->second);
  }

  std::map<std::string, std::int64_t> known_;
  std::vector<std::int64_t> numbers_;
  std::int64_t separator_ = 0;
};

}  // namespace

LineCounts line_counts(std::string_view source) {
  LineCounts counts;
  bool code = false, comment = false, any = false;
  const auto end_line = [&] {
    ++(code ? counts.code : comment ? counts.comment : counts.blank);
    code = comment = any = false;
  };
  for (const Piece& piece : pieces_of(source)) {
    for (const char c : piece.text) {
      any = true;
      if (c == '\n') {
        end_line();
      } else if (!is_blank(c)) {
        (piece.part == Part::comment ? comment : code) = true;
      }
    }
  }
  if (any) end_line();
  return counts;
}

std::int64_t duplicated_lines(const std::vector<std::string_view>& sources) {
  LineNumbers lines;
  for (const std::string_view source : sources) lines.add_source(source);
  const std::vector<std::int64_t>& numbers = lines.numbers();

  using Run = std::array<std::int64_t, kShortestCopy>;
  std::map<Run, std::size_t> first;
  std::vector<bool> copied(numbers.size());
  for (std::size_t at = 0; at + kShortestCopy <= numbers.size(); ++at) {
    Run run;
    std::copy_n(numbers.begin() + static_cast<std::ptrdiff_t>(at), kShortestCopy, run.begin());
    const std::size_t before = first.emplace(run, at).first->second;
    if (at - before < kShortestCopy) continue;  // the run itself, or an overlap
    for (std::size_t i = 0; i < kShortestCopy; ++i) copied[before + i] = copied[at + i] = true;
  }
  return std::ranges::count(copied, true);
}

}  // namespace assay::sources

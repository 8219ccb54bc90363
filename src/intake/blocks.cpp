#include "intake/blocks.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "intake/code.h"

namespace assay::intake {
namespace {

constexpr std::array<std::string_view, 4> kThoughts{"think", "thinking", "thought", "reasoning"};

struct Fence {
  char mark = '`';
  std::size_t length = 0;
  std::size_t indent = 0;  // columns before it, including list markers
  std::size_t quotes = 0;  // '>' before it
  std::string info;
};

std::size_t columns_before(std::string_view line, std::size_t bytes) {
  std::size_t columns = 0;
  for (const char c : line.substr(0, bytes))
    columns = c == '\t' ? columns / 4 * 4 + 4 : columns + 1;
  return columns;
}

// Stops at the first letter: one line may hold thousands of tags, and then megabytes of blanks.
bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos;
}

std::size_t blanks_at(std::string_view line, std::size_t at) {
  std::size_t n = 0;
  while (at + n < line.size() && (line[at + n] == ' ' || line[at + n] == '\t')) ++n;
  return n;
}

// The position after up to `most` quote marks; counts them.
std::size_t behind_quotes(std::string_view line, std::size_t most, std::size_t& count) {
  std::size_t at = 0;
  count = 0;
  while (count < most) {
    const std::size_t mark = at + blanks_at(line, at);
    if (mark >= line.size() || line[mark] != '>') break;
    at = mark + 1;
    if (at < line.size() && line[at] == ' ') ++at;
    ++count;
  }
  return at;
}

// The length of a list marker with the blanks after it; 0 if there is none.
std::size_t list_marker(std::string_view line, std::size_t at) {
  std::size_t end = at;
  if (end < line.size() && std::string_view("-*+").find(line[end]) != std::string_view::npos) {
    ++end;
  } else {
    while (end < line.size() && std::isdigit(static_cast<unsigned char>(line[end])) != 0) ++end;
    if (end == at || end >= line.size() || (line[end] != '.' && line[end] != ')')) return 0;
    ++end;
  }
  const std::size_t blanks = blanks_at(line, end);
  return blanks == 0 ? 0 : end + blanks - at;
}

std::size_t run_of(std::string_view line, std::size_t at) {
  std::size_t n = 0;
  while (at + n < line.size() && line[at + n] == line[at]) ++n;
  return n;
}

std::optional<Fence> opening_fence(std::string_view whole) {
  constexpr std::size_t kAnyDepth = 64, kShortest = 3;
  Fence fence;
  const std::string_view line = whole.substr(behind_quotes(whole, kAnyDepth, fence.quotes));
  std::size_t at = blanks_at(line, 0);
  for (std::size_t marker; (marker = list_marker(line, at)) > 0;) at += marker;
  if (at >= line.size() || (line[at] != '`' && line[at] != '~')) return std::nullopt;
  fence.mark = line[at];
  fence.length = run_of(line, at);
  if (fence.length < kShortest) return std::nullopt;
  fence.indent = columns_before(line, at);
  fence.info = trimmed(line.substr(at + fence.length));
  if (fence.mark == '`' && fence.info.find('`') != std::string::npos) return std::nullopt;
  return fence;
}

bool closes(std::string_view line, const Fence& fence) {
  constexpr std::size_t kIndent = 3;  // extra indentation over the opening fence
  const std::size_t at = blanks_at(line, 0);
  if (at >= line.size() || line[at] != fence.mark) return false;
  if (columns_before(line, at) > fence.indent + kIndent) return false;
  const std::size_t length = run_of(line, at);
  return length >= fence.length && trimmed(line.substr(at + length)).empty();
}

std::string_view without_indent(std::string_view line, std::size_t columns) {
  std::size_t at = 0, column = 0;
  while (at < line.size() && (line[at] == ' ' || line[at] == '\t')) {
    column = line[at] == '\t' ? column / 4 * 4 + 4 : column + 1;
    if (column > columns) break;
    ++at;
  }
  return line.substr(at);
}

// The position after "<think>" or, with `slash`, "</think>" at the beginning of a line; npos if
// there is none.
std::size_t behind_tag(std::string_view line, bool slash) {
  const std::size_t at = blanks_at(line, 0);
  const std::string start = lower(line.substr(at, 16));
  for (const std::string_view name : kThoughts) {
    const std::string tag = (slash ? "</" : "<") + std::string(name) + ">";
    if (start.starts_with(tag)) return at + tag.size();
  }
  return std::string_view::npos;
}

// The position after the first end tag anywhere in a line.
std::size_t behind_end_tag(std::string_view line) {
  for (std::size_t at = 0; (at = line.find("</", at)) != std::string_view::npos; ++at) {
    const std::size_t behind = behind_tag(line.substr(at), true);
    if (behind != std::string_view::npos) return at + behind;
  }
  return std::string_view::npos;
}

class Reader {
 public:
  Chat read(std::string_view text) {
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      std::string_view line = text.substr(0, end);
      if (line.ends_with('\r')) line.remove_suffix(1);
      ++line_;
      take(line);
      if (end == std::string_view::npos) break;
      text.remove_prefix(end + 1);
    }
    if (open_) close(false);
    chat_.ends_in_thought = thinking_;
    for (std::size_t i = 0; i < chat_.blocks.size(); ++i) chat_.blocks[i].number = i + 1;
    return std::move(chat_);
  }

 private:
  void take(std::string_view line) {
    for (std::optional<std::string_view> rest = line; rest;) rest = take_up_to_thought(*rest);
  }

  // The rest of the line if a thought begins in it.
  std::optional<std::string_view> take_up_to_thought(std::string_view line) {
    if (thinking_) {
      const std::size_t behind = behind_end_tag(line);
      if (behind == std::string_view::npos) return {};
      thinking_ = false;
      line = line.substr(behind);
      if (is_blank(line)) return {};
    }
    if (const std::size_t behind = behind_tag(line, true); behind != std::string_view::npos) {
      begin_anew();  // all of it was a thought
      line = line.substr(behind);
      if (is_blank(line)) return {};
    }
    if (open_ && !in_block(line)) return {};
    return outside(line);
  }

  void begin_anew() {
    chat_ = {};
    open_.reset();
    wrappers_.clear();
    above_.clear();
  }

  // Returns false if the block took the line; true if the block ended with its enclosing quote, so
  // the line is outside.
  bool in_block(std::string_view line) {
    std::size_t quotes = 0;
    const std::size_t from = behind_quotes(line, open_->quotes, quotes);
    if (quotes < open_->quotes && !trimmed(line).empty()) {
      close(true);
      return true;
    }
    chat_.spoken.append(line).append("\n");
    const std::string_view inside = line.substr(from);
    if (closes(inside, *open_)) {
      close(true);
    } else {
      block_.text.append(without_indent(inside, open_->indent)).append("\n");
    }
    return false;
  }

  std::optional<std::string_view> outside(std::string_view line) {
    const std::optional<Fence> fence = opening_fence(line);
    if (!fence) {
      if (const std::size_t behind = behind_tag(line, false); behind != std::string_view::npos) {
        thinking_ = true;
        return line.substr(behind);
      }
      chat_.spoken.append(line).append("\n");
      prose(line);
      return {};
    }
    chat_.spoken.append(line).append("\n");
    if (ends_wrapper(*fence)) {
      wrappers_.pop_back();
      prose(line);
      return {};
    }
    const std::string language = lower(fence->info.substr(0, fence->info.find(' ')));
    if (language == "markdown" || language == "md") {
      wrappers_.push_back(*fence);
      return {};
    }
    open_ = fence;
    block_ = {0, line_, fence->info, gap_ <= 1 ? above_ : "", "", true};
    return {};
  }

  bool ends_wrapper(const Fence& fence) const {
    return !wrappers_.empty() && fence.info.empty() && fence.mark == wrappers_.back().mark &&
           fence.length >= wrappers_.back().length;
  }

  void prose(std::string_view line) {
    if (trimmed(line).empty()) {
      ++gap_;
    } else {
      above_ = line;
      gap_ = 0;
    }
  }

  void close(bool properly) {
    block_.closed = properly;
    if (!trimmed(block_.text).empty() && chat_.blocks.size() <= kMostBlocks)
      chat_.blocks.push_back(std::move(block_));
    open_.reset();
    above_.clear();
  }

  Chat chat_;
  std::optional<Fence> open_;
  Block block_;
  std::vector<Fence> wrappers_;  // ```markdown
  std::string above_;            // the last line of prose since the last block
  std::size_t gap_ = 0;          // empty lines since then
  std::size_t line_ = 0;
  bool thinking_ = false;
};

}  // namespace

Chat read_chat(std::string_view markdown) { return Reader().read(markdown); }

}  // namespace assay::intake

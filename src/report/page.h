// A text for people that can be rendered in several forms: Markdown for the repository, plain text
// for a terminal, and others by readers of its blocks. The content is plain text and may hold
// untrusted names and details: each form escapes it in its own way.
#pragma once

#include <string>
#include <vector>

namespace assay::report {

struct Text {
  std::string text;
  std::string link{};  // a relative path; Markdown only

  Text(std::string t) : text(std::move(t)) {}  // NOLINT(google-explicit-constructor)
  Text(const char* t) : text(t) {}             // NOLINT(google-explicit-constructor)
  Text(std::string t, std::string l) : text(std::move(t)), link(std::move(l)) {}
};

class Page {
 public:
  using Row = std::vector<Text>;

  struct Block {
    enum class Kind { heading, paragraph, markdown, bullet, table } kind;
    int level = 0;  // of a heading
    Text text{""};
    std::vector<std::string> header{};
    std::string alignment{};
    std::vector<Row> rows{};
  };

  void heading(int level, const std::string& text);
  void paragraph(const std::string& text);
  // Trusted words of this program with links in them, or anything else that is already Markdown. A
  // terminal does not show it.
  void markdown(const std::string& text);
  void bullet(const Text& text);
  // `alignment` has one of 'l', 'r', 'c' per column. A table without rows is not shown.
  void table(const std::vector<std::string>& header, const std::string& alignment,
             const std::vector<Row>& rows);

  std::string to_markdown() const;
  std::string to_terminal() const;
  const std::vector<Block>& blocks() const { return blocks_; }

 private:
  std::vector<Block> blocks_;
};

}  // namespace assay::report

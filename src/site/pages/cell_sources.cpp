// The sources of an answer on its cell's page, and links to their lines.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "site/highlight.h"
#include "site/pages/cell_page.h"
#include "site/tables.h"

namespace assay::site {
namespace {

constexpr std::size_t kLongestText = 20'000;

// A place in a text that names a line of a shown source.
struct LineReference {
  std::size_t begin = 0, end = 0;  // in the text
  std::size_t file = 0, line = 0;
};

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}

std::size_t lines_of(std::string_view text) {
  return 1 + static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

// The part of a source that is shown: whole lines, as far as earlier sources leave room.
std::string_view shown_part(const CellView& v, std::size_t file) {
  std::size_t room = v.source_bytes;
  for (std::size_t i = 0; i < file; ++i) room -= std::min(room, v.sources[i].contents.size());
  const std::string_view whole = v.sources[file].contents;
  if (whole.size() <= room) return whole;
  const std::size_t end = whole.substr(0, room).rfind('\n');
  return whole.substr(0, end == std::string_view::npos ? 0 : end + 1);
}

// The next reference at or after `from`.
std::optional<LineReference> next_reference(const CellView& v, std::string_view text,
                                            std::size_t from) {
  for (std::size_t colon = text.find(':', from); colon != std::string_view::npos;
       colon = text.find(':', colon + 1)) {
    std::size_t begin = colon;
    while (begin > from && is_name_character(text[begin - 1])) --begin;
    const auto file =
        std::ranges::find(v.sources, text.substr(begin, colon - begin), &SourceFile::name);
    if (file == v.sources.end()) continue;
    LineReference r{begin, colon + 1, static_cast<std::size_t>(file - v.sources.begin()), 0};
    const auto parsed = std::from_chars(text.data() + colon + 1, text.data() + text.size(), r.line);
    if (parsed.ec != std::errc() || r.line == 0 || r.line > lines_of(shown_part(v, r.file)))
      continue;
    r.end = static_cast<std::size_t>(parsed.ptr - text.data());
    return r;
  }
  return std::nullopt;
}

// The link target of a source line, or what all of a file begin with.
std::string line_target(std::size_t file, std::string_view line = "") {
  return fmt::format("f{}-{}", file, line);
}

std::size_t line_count(std::string_view text) {
  return lines_of(text) - (text.empty() || text.ends_with('\n') ? 1 : 0);
}

void add_source(Html& html, const CellView& v, std::size_t number,
                const std::set<std::size_t>& marked) {
  const SourceFile& file = v.sources[number];
  const std::string_view shown = shown_part(v, number);
  std::string numbers;
  const std::size_t lines = line_count(shown), all_lines = line_count(file.contents);
  for (std::size_t i = 1; i <= lines; ++i) numbers += std::to_string(i) + "\n";
  html.raw(number == 0 ? Literal("<details open><summary>") : Literal("<details><summary>"))
      .text(fmt::format("{} ({} line{})", file.name, all_lines, all_lines == 1 ? "" : "s"))
      .raw("</summary>");
  html.raw("<div class=code tabindex=0 role=region aria-label=\"").text(file.name);
  html.raw("\"><pre class=lines aria-hidden=true>\n").text(numbers);
  html.raw("</pre><pre><code>")
      .add(highlighted(shown, line_target(number), {marked.begin(), marked.end()}))
      .raw("</code></pre></div>");
  if (shown.size() < file.contents.size()) {
    html.raw("<p class=note>")
        .text(fmt::format("Cut here: {} more bytes stand in the folder of submissions.",
                          file.contents.size() - shown.size()));
  }
  html.raw("</details>\n");
}

}  // namespace

Html SourceLinks::linked(std::string_view text) {
  Html html;
  std::size_t at = 0;
  for (auto r = next_reference(view_, text.substr(0, kLongestText), 0); r;
       r = next_reference(view_, text.substr(0, kLongestText), at)) {
    const std::string target = line_target(r->file, std::to_string(r->line));
    html.text(text.substr(at, r->begin - at))
        .element("a", {{"href", "#" + target}}, text.substr(r->begin, r->end - r->begin));
    lines_[r->file].insert(r->line);
    at = r->end;
  }
  html.text(text.substr(at));
  return html;
}

Html sources_section(const CellView& v, const SourceLinks& links) {
  Html html;
  html.raw("<section><h2>Sources</h2>\n");
  if (v.sources.empty()) {
    html.raw("<p>Not shown: ").text(v.sources_problem).raw("</p></section>\n");
    return html;
  }
  for (std::size_t i = 0; i < v.sources.size(); ++i) add_source(html, v, i, links.lines(i));
  html.raw("</section>\n");
  return html;
}

}  // namespace assay::site

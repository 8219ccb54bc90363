#include "site/tables.h"

namespace assay::site {

void begin_table(Html& html, std::string_view label, const std::vector<Column>& columns,
                 Literal css) {
  html.raw("<div class=wide role=region tabindex=0 aria-label=\"").text(label).raw("\"><table");
  if (!css.text().empty()) html.raw(" class=").raw(css);
  html.raw("><thead><tr>");
  for (const Column& c : columns) {
    html.raw("<th scope=col");
    switch (c.kind) {
      case Column::Kind::plain: break;
      case Column::Kind::right: html.raw(" class=n"); break;
      case Column::Kind::text: html.raw(" data-sort=text"); break;
      case Column::Kind::number: html.raw(" class=n data-sort=number"); break;
      case Column::Kind::grade: html.raw(" data-sort=grade"); break;
    }
    // Screen readers are not shown the axis.
    if (c.title.empty()) html.raw(" aria-label=chart");
    html.raw(">").text(c.title).add(c.inside);
  }
  html.raw("<tbody>");
}

void end_table(Html& html) { html.raw("</table></div>\n"); }

void cell(Html& html, std::string_view text) { html.raw("<td>").text(text); }

void number_cell(Html& html, std::string_view text) { html.raw("<td class=n>").text(text); }

void reason_cell(Html& html, std::string_view text) { html.raw("<td class=why>").text(text); }

std::string clipped(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
  return std::string(text.substr(0, most)) + " ...";
}

}  // namespace assay::site

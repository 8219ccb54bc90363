// The page of two models side by side.
#include <fmt/format.h>

#include <algorithm>

#include "report/comparison.h"
#include "report/page.h"
#include "site/frame.h"
#include "site/links.h"
#include "site/pages/overview_pages.h"
#include "site/pages/words.h"
#include "site/tables.h"

namespace assay::site {
namespace {

constexpr std::size_t kLongestText = 600;  // bytes of a sentence or a cell

using Block = report::Page::Block;

void add_table(Html& html, const Block& table, std::string_view label) {
  std::vector<Column> head;
  for (std::size_t i = 0; i < table.header.size(); ++i)
    head.push_back(
        {table.header[i], table.alignment[i] == 'r' ? Column::Kind::right : Column::Kind::plain});
  begin_table(html, label, head);
  for (const report::Page::Row& row : table.rows) {
    html.raw("<tr>");
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string text = clipped(row[i].text, kLongestText);
      if (i == 0) {
        html.raw("<th scope=row>").text(text);
      } else if (table.alignment[i] == 'r') {
        number_cell(html, text);
      } else {
        cell(html, text);
      }
    }
    html.raw("\n");
  }
  end_table(html);
}

// A report's page as part of a document: its headings of level 1 become <h2>, and so on.
void add_page(Html& html, const report::Page& page) {
  bool in_list = false;
  std::string heading;
  for (const Block& b : page.blocks()) {
    const bool bullet = b.kind == Block::Kind::bullet;
    if (bullet != in_list) html.raw(bullet ? Literal("<ul>") : Literal("</ul>\n"));
    in_list = bullet;
    const std::string text = clipped(b.text.text, kLongestText);
    switch (b.kind) {
      case Block::Kind::heading:
        heading = text;
        switch (b.level) {
          case 1: html.element("h2", {}, text); break;
          case 2: html.element("h3", {}, text); break;
          default: html.element("h4", {}, text); break;
        }
        html.raw("\n");
        break;
      case Block::Kind::paragraph: html.element("p", {}, text).raw("\n"); break;
      case Block::Kind::markdown: break;
      case Block::Kind::bullet: html.raw("<li>").text(text); break;
      case Block::Kind::table: add_table(html, b, heading); break;
    }
  }
  if (in_list) html.raw("</ul>\n");
}

}  // namespace

Html pair_links(const SiteView& v, Literal title, const std::string& from,
                const std::string& model) {
  Html links;
  for (const ModelPair& pair : v.pairs) {
    if (!model.empty() && pair.a != model && pair.b != model) continue;
    links.raw("<li>").element("a", {{"href", link(from, pair_page(pair.a, pair.b))}},
                              fmt::format("{} against {}", pair.a, pair.b));
  }
  if (links.empty()) return links;
  Html html;
  html.raw("<section><h2>").raw(title).raw("</h2><ul>").add(links).raw("</ul></section>\n");
  return html;
}

std::string pair_document(const SiteView& v, const ModelPair& pair) {
  const std::string path = pair_page(pair.a, pair.b),
                    title = fmt::format("{} against {}", pair.a, pair.b);
  Html main;
  main.raw("<h1>").text(title).raw("</h1>\n<p>");
  main.element("a", {{"href", link(path, model_page(pair.a))}}, pair.a).raw(", ");
  main.element("a", {{"href", link(path, model_page(pair.b))}}, pair.b).raw("\n");
  for (const DeviceView& d : v.devices) {
    const compare::Field& field = d.shown().field;
    const compare::Player *a = field.find(pair.a), *b = field.find(pair.b);
    if (a == nullptr || b == nullptr) continue;
    report::ComparisonOptions options;
    options.by = d.shown().by;
    report::Page page;
    report::add_comparison(page, field, {a, b}, options);
    main.raw("<section>");
    add_page(main, page);
    main.raw("<p class=note>").text(device_note(d.device)).raw("</p></section>\n");
  }
  return document({path, title, {{"Rankings", kIndexPage}}, false}, main);
}

}  // namespace assay::site

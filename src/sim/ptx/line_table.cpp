#include "sim/ptx/line_table.h"

#include <fmt/format.h>

#include "sim/ptx/constant.h"

namespace assay::sim::ptx {

void LineTable::begin_function() {
  current_ = {};
  inlined_.clear();
}

void LineTable::parse(Cursor& cursor) {
  const Place place = parse_place(cursor);
  std::uint32_t inlined_at = 0;
  while (cursor.accept(',')) {
    const Token attribute = cursor.expect(Token::Kind::word, "'function_name' or 'inlined_at'");
    if (attribute.text == "function_name") {
      cursor.expect(Token::Kind::word, "a label in .debug_str");
      parse_offset(cursor);
    } else if (attribute.text == "inlined_at") {
      inlined_at = call_site(parse_place(cursor));
    } else {
      Cursor::fail(attribute, fmt::format("expected 'function_name' or 'inlined_at', found {}",
                                          describe(attribute)));
    }
  }
  current_.file = place.file;
  current_.source_line = place.line;
  current_.inlined_at = inlined_at;
  if (inlined_at != 0) {
    inlined_[place] = inlined_at;
  } else if (!inlined_.empty()) {
    inlined_.erase(place);
  }
}

Location LineTable::at(std::uint32_t line) const {
  Location where = current_;
  where.line = line;
  return where;
}

LineTable::Place LineTable::parse_place(Cursor& cursor) {
  Place place;
  place.file = cursor.expect_u32("the index of a file");
  place.line = cursor.expect_u32("a line number");
  place.column = cursor.expect_u32("a column number");
  return place;
}

std::uint32_t LineTable::call_site(const Place& place) {
  const auto outer = inlined_.find(place);
  const std::uint32_t inlined_at = outer == inlined_.end() ? 0 : outer->second;
  const auto next = static_cast<std::uint32_t>(call_sites_.size() + 1);
  const auto [site, fresh] = known_sites_.try_emplace({place, inlined_at}, next);
  if (fresh) call_sites_.push_back({0, place.file, place.line, inlined_at});
  return site->second;
}

}  // namespace assay::sim::ptx

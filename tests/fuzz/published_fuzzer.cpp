// libFuzzer target of published grades, which `assay import` accepts from anybody: any text is
// refused, or is a table that survives being written and shows only text.
#include "compare/published.h"
#include "fuzz/promises.h"
#include "report/published.h"

namespace {

using namespace assay;

void check(const compare::Published& p) {
  const std::string text = compare::published_text(p);
  fuzz::require(compare::published_text(compare::parse_published(text, "again")) == text,
                "published grades survive being written", text);
  report::Page page;
  report::add_published(page, p, {}, {});
  fuzz::require_safe(page.to_markdown(), "pages are plain text");
  fuzz::require_safe(page.to_terminal(), "pages are plain text");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text = fuzz::text_of(data, size);
  fuzz::accepts([&] { check(compare::parse_published(text, "f")); });
  fuzz::accepts([&] { check(compare::parse_published(text, "f", "somebody")); });
  return 0;
}

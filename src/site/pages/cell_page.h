// The page of one cell: the verdict and why, every case, timings, sources.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "site/cell_view.h"
#include "site/html.h"

namespace assay::site {

std::string cell_document(const CellView&);

// Links from texts of a page to the lines of its sources.
class SourceLinks {
 public:
  explicit SourceLinks(const CellView& v) : view_(v), lines_(v.sources.size()) {}

  // A detail or a log, possibly written by a submission. Where it names a line of a source that the
  // page shows, "submission.cu:75", it gets a link to that line.
  Html linked(std::string_view text);
  // Lines that have a link, each of which needs its target.
  const std::set<std::size_t>& lines(std::size_t file) const { return lines_[file]; }

 private:
  const CellView& view_;
  std::vector<std::set<std::size_t>> lines_;
};

// The page's parts. Each is a <section>, or empty if there is nothing to say.
Html timings_section(const CellView&);  // REQUIRES evidence, as the next two do
Html roofline_section(const CellView&);
Html counters_section(const CellView&);                     // of the simulator
Html sources_section(const CellView&, const SourceLinks&);  // after all other links
Html learning_section(const CellView&);                     // REQUIRES evidence

}  // namespace assay::site

// The page of one cell: the verdict and why, every case, timings, sources.
#pragma once

#include <string>

#include "site/cell_view.h"
#include "site/html.h"

namespace assay::site {

std::string cell_document(const CellView&);

// The page's parts. Each is a <section>, or empty if there is nothing to say.
Html timings_section(const CellView&);  // REQUIRES evidence, as the next two do
Html roofline_section(const CellView&);
Html counters_section(const CellView&);  // of the simulator
Html sources_section(const CellView&);
Html learning_section(const CellView&);  // REQUIRES evidence

// A detail or a log, possibly written by a submission. Where it names a line of a source that the
// page shows, "submission.cu:75", it gets a link to that line.
Html with_source_links(const CellView&, std::string_view text);
// The link target of a source line. Only lines that some detail links to get one.
std::string line_target(std::size_t file, std::size_t line);

}  // namespace assay::site

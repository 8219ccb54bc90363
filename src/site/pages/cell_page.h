// The page of one cell: the verdict and why, every case, timings, sources.
#pragma once

#include <string>

#include "site/cell_view.h"
#include "site/html.h"

namespace assay::site {

std::string cell_document(const CellView&);

// Its parts. Each is a <section>, or nothing where there is nothing to say.
Html timings_section(const CellView&);  // REQUIRES evidence, as the next two do
Html roofline_section(const CellView&);
Html counters_section(const CellView&);  // of the simulator
Html sources_section(const CellView&);
Html learning_section(const CellView&);  // REQUIRES evidence

// A detail or a log that a submission may have written: where it names a line of a source that the
// page shows, "submission.cu:75", with a link to it.
Html with_source_links(const CellView&, std::string_view text);
// The link target of a line of a source; what is linked is collected from all details.
std::string line_target(std::size_t file, std::size_t line);

}  // namespace assay::site

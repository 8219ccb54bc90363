// C++ and CUDA sources as syntax-highlighted HTML.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "site/html.h"

namespace assay::site {

// The text as the contents of a <pre>: <b> keywords, <i> comments, <u> literals, <em> directives.
// Each line in `marked` (counted from 1, sorted) gets a link target: `prefix` and the number.
Html highlighted(std::string_view source, const std::string& prefix,
                 const std::vector<std::size_t>& marked);

}  // namespace assay::site

// C++ and CUDA sources as HTML that tells their parts apart.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "site/html.h"

namespace assay::site {

// The text as the contents of a <pre>: <b> keywords, <i> comments, <u> literals, <em> directives.
// The lines in `marked`, counted from 1, sorted, each get a link target, `prefix` and the number.
Html highlighted(std::string_view source, const std::string& prefix,
                 const std::vector<std::size_t>& marked);

}  // namespace assay::site

// Text in groff's man macros.
#pragma once

#include <string>
#include <string_view>

namespace assay::cli {

// Escapes text so that groff prints it literally.
std::string roff(std::string_view text);

}  // namespace assay::cli

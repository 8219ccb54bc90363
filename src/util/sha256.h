// SHA-256 (FIPS 180-4), for content addresses.
#pragma once

#include <string>
#include <string_view>

namespace assay {

std::string sha256_hex(std::string_view bytes);

}  // namespace assay

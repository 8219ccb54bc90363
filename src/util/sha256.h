// SHA-256 (FIPS 180-4), for content addresses.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace assay {

std::string sha256_hex(std::string_view bytes);
// The first 64 bits of the hash, as a number.
std::uint64_t sha256_word(std::string_view bytes);

}  // namespace assay

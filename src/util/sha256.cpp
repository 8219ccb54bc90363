#include "util/sha256.h"

#include <openssl/evp.h>

#include <array>

#include "assay/error.h"

namespace assay {

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, 32> digest{};
  unsigned int size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1) {
    throw Error("libcrypto offers no SHA-256");
  }
  constexpr char kHex[] = "0123456789abcdef";
  std::string hex;
  for (const unsigned char byte : digest) {
    hex += kHex[byte >> 4];
    hex += kHex[byte & 15];
  }
  return hex;
}

std::uint64_t sha256_word(std::string_view bytes) {
  return std::stoull(sha256_hex(bytes).substr(0, 16), nullptr, 16);
}

}  // namespace assay

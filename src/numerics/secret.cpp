#include "assay/secret.h"

#include <string>

#include "util/sha256.h"

namespace assay {
namespace {

void append(std::string& text, std::uint64_t word) {
  for (int byte = 0; byte < 8; ++byte) text += static_cast<char>(word >> (8 * byte) & 0xff);
}

}  // namespace

std::uint64_t derive(std::uint64_t secret, std::string_view purpose, std::uint64_t number) {
  std::string text = "assay";  // fixed-length words on either side: each call's text is unique
  append(text, secret);
  text += purpose;
  append(text, number);
  return sha256_word(text);
}

}  // namespace assay

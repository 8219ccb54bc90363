// fails: blob_of_65536_tokens
// The size of the vocabulary is kept in 16 bits, like the tokens: 65,536 becomes 0, and no token is
// valid any more (alasdairforsythe/tokenmonster#23).
#define tt_blob_bytes naive_tt_blob_bytes
#include "naive.cpp"
#undef tt_blob_bytes

extern "C" size_t tt_blob_bytes(const tt_config* c) {
  if (c == nullptr) return 0;
  tt_config kept = *c;
  if (c->V <= 65536) kept.V = static_cast<std::uint16_t>(c->V);
  return naive_tt_blob_bytes(&kept);
}

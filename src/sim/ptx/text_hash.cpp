#include "sim/ptx/text_hash.h"

#include <sys/auxv.h>

namespace assay::sim::ptx {

const SipKey& process_key() {
  static const SipKey key = [] {
    SipKey k;
    // 16 random bytes, without a system call, which a sandbox may refuse.
    const auto* const random = reinterpret_cast<const char*>(getauxval(AT_RANDOM));
    if (random != nullptr) std::memcpy(&k, random, sizeof k);
    return k;
  }();
  return key;
}

}  // namespace assay::sim::ptx

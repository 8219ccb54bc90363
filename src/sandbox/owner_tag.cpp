#include "sandbox/owner_tag.h"

#include <unistd.h>

namespace assay::sandbox {

const std::string& owner_tag() {
  static const std::string tag = std::to_string(::getpid()) + "-";
  return tag;
}

}  // namespace assay::sandbox

// Groups machines into kinds, within which times are comparable.
#pragma once

#include <string>

#include "assay/results.h"

namespace assay {

// "AMD EPYC 9554, 64 cores": as much as the machine reveals. A virtual machine may hide the rest.
std::string kind_of(const Machine&);

}  // namespace assay

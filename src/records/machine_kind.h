// Which machines are of one kind, so that times of one say something of another.
#pragma once

#include <string>

#include "assay/results.h"

namespace assay {

// "AMD EPYC 9554, 64 cores": as much as the machine tells. A virtual machine may hide the rest.
std::string kind_of(const Machine&);

}  // namespace assay

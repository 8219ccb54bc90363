// The names of special registers: PTX ISA, "Special Registers".
#pragma once

#include <string_view>

namespace assay::sim::ptx {

// Whether it is a special register, without a component: "%tid", "%envreg31".
bool is_special_register(std::string_view name);

}  // namespace assay::sim::ptx

// What users can do about a system error.
#pragma once

namespace assay {

// "; make room on that disk, ..." to append to strerror's text; "" if there is no advice.
const char* remedy(int error) noexcept;

}  // namespace assay

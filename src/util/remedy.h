// What people can do about an error of the system.
#pragma once

namespace assay {

// "; make room on that disk, ..." to be put behind strerror's text; "" where nothing is known.
const char* remedy(int error) noexcept;

}  // namespace assay

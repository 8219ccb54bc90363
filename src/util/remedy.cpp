#include "util/remedy.h"

#include <cerrno>

namespace assay {

const char* remedy(int error) noexcept {
  switch (error) {
    case ENOSPC: return "; make room on that disk, or name a folder on another";
    case EDQUOT: return "; make room within the quota, or name a folder elsewhere";
    case EROFS: return "; it is mounted read-only: remount it, or name a folder elsewhere";
    case EFBIG: return "; raise the limit on file sizes (`ulimit -f unlimited`)";
    case EACCES: return "; change its permissions, or name a folder of yours";
    case EMFILE: return "; raise the limit on open files (`ulimit -n 1024`)";
    case ENFILE: return "; the whole system has too many files open: end other programs";
    case EIO: return "; the disk is failing: `dmesg` says more";
    default: return "";
  }
}

}  // namespace assay

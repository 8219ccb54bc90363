#include "sandbox/worker_image.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/files.h"

extern "C" const char assay_worker_image[], assay_worker_image_end[];

namespace assay::sandbox {

int worker_image_fd() {
  static const Fd image = [] {
    Fd fd(::memfd_create("assay-worker", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    const char* at = assay_worker_image;
    while (fd && at < assay_worker_image_end) {
      const ssize_t n = ::write(fd.get(), at, static_cast<std::size_t>(assay_worker_image_end - at));
      if (n <= 0) throw Error("cannot unpack the worker into memory");
      at += n;
    }
    if (!fd || ::fcntl(fd.get(), F_ADD_SEALS,
                       F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0) {
      throw Error("cannot unpack the worker into memory");
    }
    return fd;
  }();
  return image.get();
}

}  // namespace assay::sandbox

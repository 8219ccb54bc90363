#include "sandbox/worker_image.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "assay/error.h"

extern "C" const char assay_worker_image[], assay_worker_image_end[];
extern "C" const char assay_cuda_worker_image[], assay_cuda_worker_image_end[];
extern "C" const char assay_device_image[], assay_device_image_end[];

namespace assay::sandbox {
namespace {

Fd unpack(const char* name, const char* at, const char* end) {
  Fd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  while (fd && at < end) {
    const ssize_t n = ::write(fd.get(), at, static_cast<std::size_t>(end - at));
    if (n <= 0) throw Error(std::string("cannot unpack ") + name + " into memory");
    at += n;
  }
  if (!fd || ::fcntl(fd.get(), F_ADD_SEALS,
                     F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0) {
    throw Error(std::string("cannot unpack ") + name + " into memory");
  }
  return fd;
}

}  // namespace

int worker_image_fd() {
  static const Fd image = unpack("assay-worker", assay_worker_image, assay_worker_image_end);
  return image.get();
}

int cuda_worker_image_fd() {
  static const Fd image =
      unpack("assay-cuda-worker", assay_cuda_worker_image, assay_cuda_worker_image_end);
  return image.get();
}

int device_image_fd() {
  static const Fd image = unpack("assay-device", assay_device_image, assay_device_image_end);
  return image.get();
}

}  // namespace assay::sandbox

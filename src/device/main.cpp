// The device process: wire/device.h. Its image is embedded in assay.
//
// argv: device MEMORY_BYTES INSTRUCTION_LIMIT THREADS
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <span>

#include "device/server.h"
#include "device/watchdog.h"

namespace assay::device {
namespace {

std::span<std::byte> map_descriptor(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) std::_Exit(70);
  const auto bytes = static_cast<std::size_t>(info.st_size);
  void* p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (p == MAP_FAILED) std::_Exit(71);
  return {static_cast<std::byte*>(p), bytes};
}

// Bytes that wait count as one: there is one order, and one call, at a time.
void take(int fd) {
  char bytes[64];
  while (::read(fd, bytes, sizeof bytes) < 0) {
    if (errno == EAGAIN) return;
    if (errno != EINTR) std::_Exit(72);
  }
}

// Ends are open files of their own, so only the harness, which makes them, has a say in whether
// ours wait. They do not: a worker that leaves its answers unread loses its device.
void give(int fd) {
  const char token = 1;
  if (::write(fd, &token, sizeof token) != sizeof token) std::_Exit(73);
}

// Orders go before calls.
[[noreturn]] void run(Server& server) {
  for (;;) {
    pollfd entries[] = {{kOrderFd, POLLIN, 0}, {kCallFd, POLLIN, 0}};
    const int ready = ::poll(entries, server.listening() ? 2 : 1, -1);
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) std::_Exit(74);
    if (entries[0].revents != 0) {
      take(kOrderFd);
      server.obey();
      give(kOrderFd);
    } else if (entries[1].revents != 0) {
      take(kCallFd);
      server.serve();
      give(kCallFd);
    }
  }
}

}  // namespace
}  // namespace assay::device

int main(int argc, char** argv) {
  using namespace assay;
  if (argc != 4) return 64;
  sim::DeviceOptions options;
  options.memory_bytes = std::strtoull(argv[1], nullptr, 10);
  options.instruction_limit = std::strtoull(argv[2], nullptr, 10);
  options.threads = static_cast<unsigned>(std::strtoul(argv[3], nullptr, 10));
  auto& control =
      *reinterpret_cast<device::Control*>(device::map_descriptor(device::kControlFd).data());
  const std::span<std::byte> link = device::map_descriptor(device::kLinkFd);
  if (link.size() < device::kLinkBytes) return 65;
  device::Server server(control, device::map_descriptor(device::kArenaFd), link.data(), options);
  device::watch(server.deadline());
  device::run(server);
}

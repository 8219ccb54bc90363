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

void take_count(int fd) {
  std::uint64_t count;
  while (::read(fd, &count, sizeof count) != sizeof count) {
    if (errno != EINTR) std::_Exit(72);
  }
}

void give_count(int fd) {
  const std::uint64_t one = 1;
  if (::write(fd, &one, sizeof one) != sizeof one) std::_Exit(73);
}

// Orders go before calls.
[[noreturn]] void run(Server& server) {
  for (;;) {
    pollfd entries[] = {{kOrderFd, POLLIN, 0}, {kCallFd, POLLIN, 0}};
    const int ready = ::poll(entries, server.listening() ? 2 : 1, -1);
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) std::_Exit(74);
    if (entries[0].revents != 0) {
      take_count(kOrderFd);
      server.obey();
      give_count(kDoneFd);
    } else if (entries[1].revents != 0) {
      take_count(kCallFd);
      server.serve();
      give_count(kAnswerFd);
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

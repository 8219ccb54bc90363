// The device process: wire/device.h. Its image is embedded in assay.
//
// argv: device MEMORY_BYTES THREADS [DRIVER] With a DRIVER, the path or name of the CUDA driver
// library, it serves the real GPU behind it.
//
// argv: device --describe DRIVER MANAGEMENT It prints a description of the GPU as one line of JSON
// and exits: device/description.h. MANAGEMENT is the path or name of NVIDIA's management library.
//
// argv: device --watch MANAGEMENT PCI_BUS_ID For each line it reads, it prints the GPU's state:
// device/gpu_watcher.h.
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <span>
#include <string_view>

#include "device/brief_wait.h"
#include "device/description.h"
#include "device/gpu_watcher.h"
#include "device/hardware_gpu.h"
#include "device/server.h"
#include "device/simulated_gpu.h"
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

// Pending bytes count as one, because there is only one order, and one call, at a time.
void take(int fd) {
  char bytes[64];
  while (::read(fd, bytes, sizeof bytes) < 0) {
    if (errno == EAGAIN) return;
    if (errno != EINTR) std::_Exit(72);
  }
}

// Both ends are separate open files, so only the harness, which creates them, decides whether ours
// block. They do not: a worker that leaves its answers unread loses its device.
void give(int fd) {
  const char token = 1;
  if (::write(fd, &token, sizeof token) != sizeof token) std::_Exit(73);
}

// Serves orders before calls.
[[noreturn]] void run(Server& server) {
  BriefWait brief_wait;
  for (;;) {
    pollfd entries[] = {{kOrderFd, POLLIN, 0}, {kCallFd, POLLIN, 0}};
    int ready = 0;
    if (server.listening()) {
      server.waited(brief_wait.until([&] { return (ready = ::poll(entries, 2, 0)) != 0; }));
    }
    if (ready == 0) ready = ::poll(entries, server.listening() ? 2 : 1, -1);
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

std::unique_ptr<Gpu> make_gpu(int argc, char** argv) {
  sim::DeviceOptions options;
  options.memory_bytes = std::strtoull(argv[1], nullptr, 10);
  options.threads = static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10));
  if (argc == 4) return std::make_unique<HardwareGpu>(argv[3], options.memory_bytes);
  return std::make_unique<SimulatedGpu>(options);
}

[[noreturn]] void serve(int argc, char** argv) {
  auto& control = *reinterpret_cast<Control*>(map_descriptor(kControlFd).data());
  const std::span<std::byte> link = map_descriptor(kLinkFd);
  if (link.size() < kLinkBytes) std::_Exit(65);
  const std::unique_ptr<Gpu> gpu = make_gpu(argc, argv);
  Server server(control, map_descriptor(kArenaFd), link.data(), *gpu);
  watch(server.deadline());
  run(server);
}

}  // namespace
}  // namespace assay::device

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 64;
  const std::string_view first = argv[1];
  try {
    if (argc == 4 && first == "--describe") {
      std::printf("%s\n", assay::device::describe(argv[2], argv[3]).c_str());
      return 0;
    }
    if (argc == 4 && first == "--watch") {
      assay::device::watch_gpu(argv[2], argv[3], std::cin, std::cout);
      return 0;
    }
    assay::device::serve(argc, argv);
  } catch (const assay::device::NeverEnds& e) {
    std::fprintf(stderr, "%s\n", e.why.c_str());
    std::_Exit(assay::device::kOutOfTime);
  } catch (const assay::device::GpuFault& e) {
    std::fprintf(stderr, "%s\n", e.why.c_str());
    std::_Exit(assay::device::kGpuFailed);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    std::_Exit(66);
  }
}

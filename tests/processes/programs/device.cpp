// A device that takes orders and then misbehaves.
#include "wire/device.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "device_behaviour.h"

int main(int, char** argv) {
  using namespace assay::device;
  using Behaviour = assay::testing::DeviceBehaviour;
  const auto behaviour = static_cast<Behaviour>(std::strtoull(argv[1], nullptr, 10));
  auto& control = *static_cast<Control*>(
      ::mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, kControlFd, 0));
  for (char token; ::read(kOrderFd, &token, 1) == 1;) {
    std::size_t answers = 1;
    switch (behaviour) {
      case Behaviour::exits_with_a_word:
        std::puts("no memory");
        std::fflush(stdout);
        std::_Exit(5);
      case Behaviour::crashes: std::abort();
      case Behaviour::is_silent: continue;
      case Behaviour::answers_twice: answers = 2; break;
      case Behaviour::reports_garbage:
        std::memset(static_cast<void*>(&control.report), 'r', sizeof control.report);
        control.ok = 1;
        control.changed = 1000;
        break;
      case Behaviour::reports_figures: control.report = assay::testing::figures(); break;
    }
    if (::write(kOrderFd, "ab", answers) != static_cast<ssize_t>(answers)) std::_Exit(73);
  }
}

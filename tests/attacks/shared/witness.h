// By what the suite knows that an attack's mechanism ran: a line on stderr, once.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

// To be called beside the mechanism: behind it, or before it where nothing comes behind. From any
// thread, from constructors, from handlers of signals. A twin says nothing.
inline void witness() {
#if !ATTACK_IS_TWIN
  static std::atomic<bool> said{false};
  if (said.exchange(true)) return;
  constexpr char kLine[] = "assay attack witness " ATTACK_ID "\n";
  (void)!syscall(SYS_write, 2, kLine, sizeof kLine - 1);
#endif
}

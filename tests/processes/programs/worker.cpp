// A worker that speaks the protocol and then misbehaves.
#include "wire/worker.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
#include <thread>
#include <vector>

#include "worker_behaviour.h"

namespace {

using namespace assay::wire;
using Behaviour = assay::testing::WorkerBehaviour;

template <class T>
T* mapped(int fd, int protection) {
  struct stat info {};
  ::fstat(fd, &info);
  return static_cast<T*>(
      ::mmap(nullptr, static_cast<std::size_t>(info.st_size), protection, MAP_SHARED, fd, 0));
}

void reply(Control& control, std::uint64_t answered, Reply reply, std::size_t times = 1) {
  constexpr char kTokens[16] = {};
  control.reply = reply;
  control.answered = answered;
  if (::write(kLineFd, kTokens, times) != static_cast<ssize_t>(times)) std::_Exit(73);
}

bool next_request() {
  char token;
  return ::read(kLineFd, &token, sizeof token) == sizeof token;
}

constexpr std::size_t kPool = std::size_t{48} << 20;

void* touched(std::size_t bytes) {
  void* p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) std::_Exit(76);
  std::memset(p, 1, bytes);
  return p;
}

void spin_for(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

void send_continues() {
  for (;;) ::syscall(SYS_tgkill, ::getpid(), ::gettid(), SIGCONT);
}

// The number of cores, plus 100 if it could take all of the machine's cores.
int cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) CPU_SET(cpu, &set);
  const int widened = ::sched_setaffinity(0, sizeof set, &set) == 0 ? 100 : 0;
  ::sched_getaffinity(0, sizeof set, &set);
  return widened + CPU_COUNT(&set);
}

void start_threads(int n) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < n; ++i) {
    threads.emplace_back([] {
      volatile char stack[16 << 10];
      for (std::size_t at = 0; at < sizeof stack; at += 1024) stack[at] = 1;
      const std::vector<char> heap(4 << 10, 'x');
    });
  }
}

// Runs more threads than allowed for a while; returns how much of the cores it got, in hundredths
// of a core.
int keep_cores_busy() {
  static constexpr std::chrono::milliseconds kWhile{300};
  cores();
  const auto begin = std::chrono::steady_clock::now();
  const std::clock_t before = std::clock();
  for (int i = 0; i < 4; ++i) std::thread([] { spin_for(kWhile); }).detach();
  spin_for(kWhile);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  return static_cast<int>(100.0 * static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC /
                          wall.count());
}

// Fills the memory of the output arena behind all buffers of the case.
void hoard(const Header& header, std::byte* output, std::size_t bytes) {
  std::size_t end = 0;
  const auto* slots = reinterpret_cast<const BufferSlot*>(
      reinterpret_cast<const std::byte*>(&header) + header.buffers_offset);
  for (std::uint32_t i = 0; i < header.buffers; ++i) {
    if (slots[i].in_output != 0) end = std::max<std::size_t>(end, slots[i].offset + slots[i].bytes);
  }
  std::memset(output + end, 1, bytes - end);
}

// Failures are ignored: the kernel may refuse what it likes.
void put(int fd, const void* bytes, std::size_t n) {
  if (::write(fd, bytes, n) < 0) ::sched_yield();
}

void get(int fd, std::size_t n) {
  char bytes[64];
  if (::read(fd, bytes, std::min(n, sizeof bytes)) < 0) ::sched_yield();
}

template <class Step>
void for_ever(Step step) {
  std::thread([step] {
    for (;;) step();
  }).detach();
}

// Ends the first thread. Another thread takes its place and answers all requests.
[[noreturn]] void leave_to_another(Control& control, const Header& header) {
  std::thread([&control, &header] {
    // By then the first thread has ended: it has nothing else to do.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    do {
      reply(control, header.request, Reply::done);
    } while (next_request());
  }).detach();
  for (;;) ::syscall(SYS_exit, 0);
}

// One random thing that a submission may do to what it shares with the harness, whatever the kernel
// answers.
void do_anything(std::minstd_rand& random, Control& control, const Header& header) {
  const auto below = [&random](unsigned n) { return static_cast<unsigned>(random() % n); };
  const int fd = static_cast<int>(below(10));
  constexpr char kBytes[4096] = {};
  constexpr std::uint64_t kMost = 0xfffffffffffffffeull;
  switch (below(19)) {
    case 0: return put(fd, &kMost, sizeof kMost);
    case 1: return put(kLineFd, kBytes, 1 + below(20));
    case 2:
      for (;;) put(kLineFd, kBytes, sizeof kBytes);
    case 3: return get(fd, 1 + below(64));
    case 4: ::close(fd); return;
    case 5:
      std::memset(static_cast<void*>(&control), static_cast<int>(below(256)), sizeof control);
      return;
    case 6: control.answered = header.request + below(3); return;
    case 7: control.reply = static_cast<Reply>(below(5)); return;
    case 8: std::thread(send_continues).detach(); return;
    case 9: std::raise(SIGSTOP); return;
    case 10: std::raise(SIGTSTP); return;
    case 11: return for_ever([] { put(1, "x", 1); });
    case 12: return for_ever([] { ::sched_yield(); });
    case 13: return for_ever([] { get(kLineFd, 1); });
    case 14: std::signal(SIGCONT, [](int) { ::sched_yield(); }); return;
    case 15: ::fcntl(fd, F_SETFL, static_cast<int>(below(2)) * O_NONBLOCK); return;
    case 16: std::thread([] { ::syscall(SYS_exit_group, 7); }).detach(); return;
    case 17: return spin_for(std::chrono::milliseconds(below(40)));
    case 18: leave_to_another(control, header);
    default: return;
  }
}

void misbehave(Behaviour behaviour, const Header& header, Control& control) {
  switch (behaviour) {
    case Behaviour::exits: std::_Exit(5);
    case Behaviour::crashes: *static_cast<volatile int*>(nullptr) = 1; break;
    case Behaviour::aborts_with_a_word:
      std::puts("last word");
      std::fflush(stdout);
      std::abort();
    case Behaviour::spins:
      for (volatile bool on = true; on;) {
      }
      break;
    case Behaviour::sleeps:
      for (;;) ::pause();
    case Behaviour::computes:
      while (std::clock() < 15 * CLOCKS_PER_SEC / 100) {
      }
      break;
    case Behaviour::floods:
      for (int i = 0; i < 100; ++i) {
        char text[1024];
        std::memset(text, 'x', sizeof text);
        if (::write(1, text, sizeof text) < 0) std::_Exit(74);
      }
      break;
    case Behaviour::makes_a_socket: ::socket(AF_INET, SOCK_STREAM, 0); break;
    case Behaviour::calls_back:
      control.callback_kind = 8;
      control.callback_request_bytes = control.callback_response_bytes = 0xffffffff;
      control.callback_bulk_bytes = 0xffffffff;
      control.callback_bulk_address = 0xdeadbeef000;
      reply(control, header.request, Reply::callback);
      if (!next_request()) std::_Exit(72);
      break;
    case Behaviour::cannot_be_stopped:
      if (::vfork() == 0) {
        for (;;) ::pause();
      }
      break;
    case Behaviour::storms:
      for (int i = 0; i < 2; ++i) std::thread(send_continues).detach();
      break;
    case Behaviour::tells_its_cores: control.status = cores(); break;
    case Behaviour::keeps_cores_busy: control.status = keep_cores_busy(); break;
    case Behaviour::starts_threads: start_threads(header.nthreads); break;
    case Behaviour::passes_a_pool: ::munmap(touched(kPool), kPool); break;
    case Behaviour::first_thread_leaves: leave_to_another(control, header);
    case Behaviour::bombs:
      for (;;) touched(kPool);
    default: break;
  }
}

void ready_a_case(Behaviour behaviour) {
  if (behaviour == Behaviour::keeps_from_readying) {
    for (;;) ::pause();
  }
  if (behaviour == Behaviour::computes_meanwhile) spin_for(std::chrono::seconds(1));
}

}  // namespace

int main(int argc, char**) {
  if (argc == 1) {  // without requests: started only to be stopped
    misbehave(Behaviour::cannot_be_stopped, {}, *new Control);
  }
  struct stat output_info {};
  ::fstat(kOutputFd, &output_info);
  auto* const output = mapped<std::byte>(kOutputFd, PROT_READ | PROT_WRITE);
  auto& control = *mapped<Control>(kControlFd, PROT_READ | PROT_WRITE);
  const auto& header = *mapped<const Header>(kInputFd, PROT_READ);
  while (next_request()) {
    const auto behaviour = static_cast<Behaviour>(header.challenge);
    if (behaviour == Behaviour::does_anything && header.command != Command::ping) {
      static std::minstd_rand random(static_cast<unsigned>(header.scratch_capacity % 4096) + 1);
      for (auto n = random() % 4; n > 0; --n) do_anything(random, control, header);
      if (random() % 8 == 0) continue;  // as if there had been no request
    }
    control.status = header.command == Command::run         ? 3
                     : header.command == Command::self_test ? 9
                                                            : 0;
    if (header.command == Command::load && behaviour == Behaviour::exits_while_loading)
      std::_Exit(4);
    if (header.command == Command::load && behaviour == Behaviour::fails_to_load) {
      std::memset(control.message, 'm', sizeof control.message);
      reply(control, header.request, Reply::load_failed);
      continue;
    }
    if (header.command == Command::load && behaviour == Behaviour::loads_a_pool) touched(kPool);
    if (header.command == Command::load && behaviour == Behaviour::loads_a_little) {
      touched(std::size_t{512} << 10);
    }
    if (header.command == Command::prepare) ready_a_case(behaviour);
    if (header.command == Command::run && behaviour == Behaviour::hoards_output) {
      hoard(header, output, static_cast<std::size_t>(output_info.st_size));
    }
    if (header.command == Command::run) misbehave(behaviour, header, control);
    if (header.command == Command::run && behaviour == Behaviour::reports_garbage) {
      std::memset(static_cast<void*>(&control), 0xee, sizeof control);
      reply(control, header.request, static_cast<Reply>(0xeeeeeeee));
    } else if (header.command == Command::run && behaviour == Behaviour::answers_seven_times) {
      reply(control, header.request, Reply::done, 7);
    } else if (header.command == Command::run && behaviour == Behaviour::answers_an_older_request) {
      reply(control, header.request - 1, Reply::done);
    } else {
      reply(control, header.request, Reply::done);
    }
  }
}

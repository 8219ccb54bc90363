// A worker that speaks the protocol and then does what it should not.
#include "wire/worker.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "worker_behaviour.h"

namespace {

using namespace assay::wire;
using Behaviour = assay::run::testing::WorkerBehaviour;

template <class T>
T* mapped(int fd, int protection) {
  struct stat info {};
  ::fstat(fd, &info);
  return static_cast<T*>(
      ::mmap(nullptr, static_cast<std::size_t>(info.st_size), protection, MAP_SHARED, fd, 0));
}

void reply(Control& control, std::uint64_t answered, Reply reply, std::uint64_t count = 1) {
  control.reply = reply;
  control.answered = answered;
  if (::write(kReplyFd, &count, sizeof count) != sizeof count) std::_Exit(73);
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
      std::uint64_t count;
      if (::read(kRequestFd, &count, sizeof count) < 0) std::_Exit(72);
      break;
    default: break;
  }
}

}  // namespace

int main() {
  auto& control = *mapped<Control>(kControlFd, PROT_READ | PROT_WRITE);
  const auto& header = *mapped<const Header>(kInputFd, PROT_READ);
  for (std::uint64_t count; ::read(kRequestFd, &count, sizeof count) == sizeof count;) {
    const auto behaviour = static_cast<Behaviour>(header.challenge);
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
    if (header.command == Command::run) misbehave(behaviour, header, control);
    if (header.command == Command::run && behaviour == Behaviour::reports_garbage) {
      std::memset(static_cast<void*>(&control), 0xee, sizeof control);
      reply(control, header.request, static_cast<Reply>(0xeeeeeeee));
    } else if (header.command == Command::run && behaviour == Behaviour::counts_seven) {
      reply(control, header.request, Reply::done, 7);
    } else if (header.command == Command::run && behaviour == Behaviour::answers_an_older_request) {
      reply(control, header.request - 1, Reply::done);
    } else {
      reply(control, header.request, Reply::done);
    }
  }
}

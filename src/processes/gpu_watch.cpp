#include "processes/gpu_watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "assay/error.h"
#include "processes/gpu_machine.h"
#include "records/gpu_state_json.h"
#include "sandbox/driver_files.h"
#include "sandbox/worker_image.h"
#include "util/text.h"

namespace assay::processes {

GpuWatch::GpuWatch(const std::string& management, const std::string& pci_bus_id)
    : text_(O_NONBLOCK) {
  const sandbox::Tier tier = sandbox::tier_for_driver();
  sandbox::Program program;
  program.exec_fd = sandbox::device_image_fd();
  program.argv = {"device", "--watch"};
  program.fds = {line_.theirs(), line_.theirs(), text_.theirs()};
  make_fit_for_driver(tier, program, {management});
  program.argv.push_back(pci_bus_id);
  process_ = sandbox::spawn(tier, program);
}

GpuState GpuWatch::state(std::chrono::milliseconds patience) {
  if (!failed_.empty()) throw Error(failed_);
  if (!line_.send('\n')) fail("it takes no more questions");
  const std::string said = answer(patience);
  try {
    return gpu_state_from(nlohmann::json::parse(said));
  } catch (const nlohmann::json::exception& e) {
    fail(fmt::format("it says '{}': {}", printable(said, 1), e.what()));
  }
}

std::string GpuWatch::answer(std::chrono::milliseconds patience) {
  constexpr std::size_t kLongest = 16384;
  const auto deadline = std::chrono::steady_clock::now() + patience;
  std::string said;
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd entries[] = {{line_.ours(), POLLIN, 0}, {process_.pidfd(), POLLIN, 0}};
    const int ready = ::poll(entries, 2, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (entries[0].revents != 0) {
      line_.take(said, kLongest - said.size());
      if (said.ends_with('\n')) return said;
      if (said.size() == kLongest) fail("its answer has no end");
    } else if (entries[1].revents != 0) {
      fail(how_it_ended());
    } else if (left.count() <= 0) {
      fail(fmt::format("it does not answer within {} ms", patience.count()));
    }
  }
}

void GpuWatch::fail(const std::string& why) {
  failed_ = "the process that watches the GPU: " + why;
  process_.kill();
  throw Error(failed_);
}

std::string GpuWatch::how_it_ended() {
  const auto exit = process_.wait(std::chrono::seconds(1));
  std::string said;
  text_.take(said, 2048);
  std::string how = "ended";
  if (exit && WIFSIGNALED(exit->status))
    how = fmt::format("was ended by {}", strsignal(WTERMSIG(exit->status)));
  return said.empty() ? "it " + how : fmt::format("it {}: {}", how, printable(said, 3, 600));
}

}  // namespace assay::processes

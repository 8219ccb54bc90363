// What code in the process of a real GPU can do, tried by a hostile driver.
#include "processes/gpu_machine.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <set>
#include <sstream>
#include <string>

#include "cases/fake_world.h"
#include "processes/channel.h"
#include "processes/device_process.h"
#include "sandbox/driver_files.h"
#include "sandbox/landlock.h"
#include "sandbox/worker_image.h"
#include "support/error_of.h"
#include "support/paths.h"
#include "support/temporary_folder.h"
#include "util/files.h"

namespace assay::processes {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using sandbox::Tier;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using Names = std::set<std::string>;

// Everything in the folder is open to everybody: only the sandbox can deny access.
class HostileDriver : public ::testing::Test {
 protected:
  HostileDriver() {
    fs::create_directory(folder_.path / "results");
    for (const char* name : {"secret", "results/row", "results/old"}) {
      write_file_atomically(folder_.path / name, "x");
      fs::permissions(folder_.path / name, fs::perms(0666));
    }
    fs::copy_file(ASSAY_TEST_HOSTILE_DRIVER, driver_);
    listen();
    for (const fs::path& path : {folder_.path, folder_.path / "results", folder_.path / "service"})
      fs::permissions(path, fs::perms(0777));
  }

  void listen() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, (folder_.path / "service").c_str(), sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(service_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(::listen(service_.get(), 4), 0);
  }

  struct Outcome {
    Names succeeded, missing;
    std::string network;
    bool executed = false;
  };

  Outcome attempt(Tier tier) {
    const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    Channel text(O_NONBLOCK);
    sandbox::Program program;
    program.exec_fd = sandbox::device_image_fd();
    program.argv = {"device", "--describe"};
    program.fds = {null.get(), text.theirs(), text.theirs()};
    make_fit_for_driver(tier, program, {driver_, kManagement});
    program.env.push_back("FOLDER=" + folder_.path.string());
    sandbox::Process process = sandbox::spawn(tier, program);
    const auto exit = process.wait(60s);
    std::string said;
    text.take(said, 8192);
    EXPECT_TRUE(exit && exit->status == 0) << said;
    return outcome_of(said);
  }

  static Outcome outcome_of(const std::string& said) {
    Outcome outcome;
    std::istringstream lines(said);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string first;
      words >> first;
      const Names names{std::istream_iterator<std::string>(words), {}};
      if (first == "succeeded:") outcome.succeeded = names;
      if (first == "missing:") outcome.missing = names;
      if (first == "network:") outcome.network = *names.begin();
      if (first == "executed") outcome.executed = true;
    }
    EXPECT_THAT(said, HasSubstr("succeeded:"));
    EXPECT_THAT(said, HasSubstr("missing:"));
    return outcome;
  }

  const assay::testing::TemporaryFolder folder_{};
  const fs::path driver_ = folder_.path / "libhostile_driver.so";
  const Fd service_{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
};

// Reading and writing files, which the system call filter does not restrict.
const Names kFiles{"read_secret",    "list_folder", "write_results", "new_results",
                   "rename_results", "write_tmp",   "read_passwd",   "write_own_memory_score"};

TEST_F(HostileDriver, CanDoNothingBehindLandlock) {
  if (sandbox::landlock_abi() == 0) GTEST_SKIP() << "this kernel has no Landlock";
  const Outcome outcome = attempt(Tier::landlock);
  EXPECT_EQ(outcome.succeeded, Names{});
  EXPECT_EQ(outcome.missing, Names{}) << "a driver needs these";
  EXPECT_FALSE(outcome.executed);
}

TEST_F(HostileDriver, GetsAtOpenFilesAndNothingElseWhereOnlyTheFilterWorks) {
  const Outcome outcome = attempt(Tier::filter);
  EXPECT_THAT(outcome.succeeded, IsSupersetOf(kFiles));
  Names others = outcome.succeeded;
  for (const std::string& name : kFiles) others.erase(name);
  others.erase("write_dev_shm");  // not every machine has one
  // Without Landlock, only the different user keeps a process from reading another's environment.
  if (::geteuid() != 0) others.erase("environment_of_the_parent");
  EXPECT_EQ(others, Names{});
  EXPECT_EQ(outcome.missing, Names{}) << "a driver needs these";
  EXPECT_FALSE(outcome.executed);
}

// If the attempts never succeeded, every sandbox would seem to hold.
TEST_F(HostileDriver, SucceedsWithoutASandbox) {
  const Outcome outcome = attempt(Tier::none);
  EXPECT_THAT(outcome.succeeded, IsSupersetOf(kFiles));
  EXPECT_THAT(outcome.succeeded,
              IsSupersetOf({"internet", "internet_datagram", "netlink", "datagram", "datagram_pair",
                            "service", "fork", "signal_group", "signal_all", "signal_parent",
                            "signal_thread_by_number", "trace", "read_memory_of_a_process",
                            "identity", "change_mode", "pipe_in_folder"}));
  EXPECT_TRUE(outcome.executed);
}

bool may_leave_the_network() {
  const pid_t child = ::fork();
  if (child == 0) {
    const int user = ::geteuid() == 0 ? 0 : CLONE_NEWUSER;
    ::_exit(::unshare(user | CLONE_NEWNET) == 0 ? 0 : 1);
  }
  int status = -1;
  return ::waitpid(child, &status, 0) == child && status == 0;
}

TEST_F(HostileDriver, HasANetworkOfItsOwnWhereThatIsPermitted) {
  if (!may_leave_the_network()) GTEST_SKIP() << "no network namespaces here";
  const std::string own = fs::read_symlink("/proc/self/ns/net");
  EXPECT_EQ(attempt(Tier::none).network, own);
  EXPECT_NE(attempt(Tier::filter).network, own);
}

// A case for a device process whose driver lies in `folder_` under the name of CUDA's.
class DriverOfACase : public HostileDriver {
 protected:
  DeviceProcess start(const fs::path& library) {
    fs::copy_file(library, folder_.path / "libcuda.so.1");
    DeviceSettings settings;
    settings.memory_bytes = 1 << 20;
    settings.gpu = RealGpu{folder_.path / "libcuda.so.1"};
    return DeviceProcess(Tier::none, settings, arena_);
  }

  const testing::Copying challenge_{};
  const CasePlan plan_ = challenge_.plan(testing::case_spec("one"));
  Layout layout_ = make_layout(plan_, false, Memory::device);
  Arena arena_{"device arena", layout_.device_bytes + kCallbackPayload,
               Arena::Access::worker_writes};
};

TEST_F(DriverOfACase, Lives) {
  DeviceProcess device = start(assay::testing::binary_dir() + "/tests/libcuda_double.so");
  EXPECT_EQ(device.place(plan_, layout_), DeviceProcess::Placed::yes) << device.how_it_ended();
}

TEST_F(DriverOfACase, IsConfined) {
  DeviceProcess device = start(ASSAY_TEST_HOSTILE_DRIVER);
  EXPECT_FALSE(device.start(0, 1000));
  const std::string end = device.how_it_ended();
  EXPECT_THAT(end, HasSubstr("missing:"));
  for (const char* name : {"fork", "internet"}) EXPECT_THAT(end, Not(HasSubstr(name)));
}

TEST_F(HostileDriver, OutOfReachIsNamed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root's processes are another user's";
  fs::permissions(folder_.path, fs::perms(0700));
  const std::string error = assay::testing::error_of([&] { find_gpu({driver_}, kManagement); });
  EXPECT_THAT(error, HasSubstr("is closed to other users; name one that every user can read"));
}

class FindGpu : public ::testing::Test {
 protected:
  GpuMachine find(const std::string& id) {
    return find_gpu({folder_.path / "libcuda.so.1", id}, kManagement);
  }

 private:
  struct Copied : assay::testing::TemporaryFolder {
    Copied() {
      fs::permissions(path, fs::perms(0755));  // the driver's process may be another user's
      fs::copy_file(assay::testing::binary_dir() + "/tests/libcuda_double.so",
                    path / "libcuda.so.1");
    }
  };
  const Copied folder_{};
};

TEST_F(FindGpu, FindsTheOneThatIsNamed) {
  EXPECT_EQ(find("1").pci_bus_id, "0000:5e:00.0") << "the driver's first is at 3b";
}

TEST_F(FindGpu, NamesTheOneThatCannotBeUsed) {
  const std::string error = assay::testing::error_of([&] { find("7"); });
  EXPECT_THAT(error, HasSubstr("no GPU '7' can be used: "));
  EXPECT_THAT(error, HasSubstr("CUDA_ERROR_NO_DEVICE"));
}

TEST_F(FindGpu, TellsOfTheSandboxWhereTheDriverDoesNotStart) {
  const std::string error = assay::testing::error_of([&] { find_gpu({"libm.so.6"}, kManagement); });
  EXPECT_THAT(error, HasSubstr("no GPU can be used: the CUDA driver is too old"));
  EXPECT_THAT(error, HasSubstr("the driver runs in a sandbox ("));
}

}  // namespace
}  // namespace assay::processes

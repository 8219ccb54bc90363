// A driver that, as soon as it is loaded, tries what code in the process of a GPU should not be
// able to do, and what a driver must be able to do. It reports which attempts succeeded, which
// needs were not met, which network it is in and, at the end, whether it could execute another
// program. Every attempt is undone.
//
// The environment variable FOLDER names a folder that is open to everybody. It holds `secret`,
// `results/` with `row` and `old` in it, and `service`, a socket that somebody listens on.
#include <dirent.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

std::string in_folder(const char* name) {
  const char* const folder = std::getenv("FOLDER");
  return folder == nullptr ? std::string("/no folder") : std::string(folder) + "/" + name;
}

bool can_open(const std::string& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

bool can_leave_a_file(const char* folder) { return can_open(folder, O_TMPFILE | O_RDWR); }

bool can_make_socket(int family, int type) {
  const int fd = ::socket(family, type | SOCK_CLOEXEC, 0);
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

// The result of a call that may have made a child, which exits here.
bool made_a_child(long id) {
  if (id == 0) ::_exit(0);
  if (id > 0) ::waitpid(static_cast<pid_t>(id), nullptr, 0);
  return id > 0;
}

bool made_a_descriptor(long fd) {
  if (fd >= 0) ::close(static_cast<int>(fd));
  return fd >= 0;
}

struct Try {
  const char* name;
  bool (*succeeds)();
};

constexpr Try kAttempts[] = {
    // files
    {"read_secret", [] { return can_open(in_folder("secret"), O_RDONLY); }},
    {"list_folder", [] { return can_open(in_folder("results"), O_RDONLY | O_DIRECTORY); }},
    {"write_results", [] { return can_open(in_folder("results/row"), O_WRONLY | O_APPEND); }},
    {"new_results",
     [] {
       const std::string path = in_folder("results/new");
       return can_open(path, O_WRONLY | O_CREAT | O_EXCL) && ::unlink(path.c_str()) == 0;
     }},
    {"rename_results",
     [] {
       const std::string old = in_folder("results/old"), now = in_folder("results/now");
       return ::rename(old.c_str(), now.c_str()) == 0 && ::rename(now.c_str(), old.c_str()) == 0;
     }},
    {"write_tmp", [] { return can_leave_a_file("/tmp"); }},
    {"write_dev_shm", [] { return can_leave_a_file("/dev/shm"); }},
    {"read_passwd", [] { return can_open("/etc/passwd", O_RDONLY); }},
    {"write_own_memory_score", [] { return can_open("/proc/self/oom_score_adj", O_WRONLY); }},
    // network and services
    {"internet", [] { return can_make_socket(AF_INET, SOCK_STREAM); }},
    {"internet_6", [] { return can_make_socket(AF_INET6, SOCK_STREAM); }},
    {"internet_datagram", [] { return can_make_socket(AF_INET, SOCK_DGRAM); }},
    {"netlink", [] { return can_make_socket(AF_NETLINK, SOCK_RAW); }},
    {"datagram", [] { return can_make_socket(AF_UNIX, SOCK_DGRAM); }},
    {"datagram_pair",
     [] {
       int fds[2];
       return ::socketpair(AF_UNIX, SOCK_DGRAM, 0, fds) == 0;
     }},
    {"service",
     [] {
       sockaddr_un address{};
       address.sun_family = AF_UNIX;
       const std::string path = in_folder("service");
       std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
       const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
       const auto* to = reinterpret_cast<const sockaddr*>(&address);
       const bool connected = ::connect(fd, to, sizeof address) == 0;
       ::close(fd);
       return connected;
     }},
    // processes
    {"fork", [] { return made_a_child(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)); }},
    {"clone3",
     [] {
       clone_args arguments{};
       arguments.exit_signal = SIGCHLD;
       return made_a_child(::syscall(SYS_clone3, &arguments, sizeof arguments));
     }},
    {"signal_group", [] { return ::kill(0, 0) == 0; }},
    {"signal_all", [] { return ::kill(-1, 0) == 0; }},
    {"signal_parent", [] { return ::kill(::getppid(), 0) == 0; }},
    {"signal_thread_by_number", [] { return ::syscall(SYS_tkill, ::gettid(), 0) == 0; }},
    {"descriptor_of_a_process",
     [] { return made_a_descriptor(::syscall(SYS_pidfd_open, ::getpid(), 0)); }},
    // ESRCH: the kernel answered that the parent is not traced. The filter does not let the call
    // reach the kernel.
    {"trace",
     [] {
       return ::ptrace(PTRACE_PEEKDATA, ::getppid(), nullptr, nullptr) == 0 || errno == ESRCH;
     }},
    {"read_memory_of_a_process",
     [] {
       int from = 1, to = 0;
       const iovec source{&from, sizeof from}, target{&to, sizeof to};
       return ::process_vm_readv(::getpid(), &target, 1, &source, 1, 0) == sizeof to;
     }},
    {"environment_of_the_parent",
     [] { return can_open("/proc/" + std::to_string(::getppid()) + "/environ", O_RDONLY); }},
    {"shared_memory",
     [] {
       const int id = ::shmget(IPC_PRIVATE, 4096, 0600);
       return id >= 0 && ::shmctl(id, IPC_RMID, nullptr) == 0;
     }},
    // identity, files without opening them, the kernel
    {"identity", [] { return ::syscall(SYS_setresuid, -1, -1, -1) == 0; }},
    {"keys",
     [] {
       constexpr long kIdOf = 0, kOfThread = -1;
       return ::syscall(SYS_keyctl, kIdOf, kOfThread, 1) >= 0;
     }},
    {"change_mode", [] { return ::chmod(in_folder("results/row").c_str(), 0666) == 0; }},
    {"pipe_in_folder",
     [] {
       const std::string path = in_folder("results/pipe");
       return ::mkfifo(path.c_str(), 0600) == 0 && ::unlink(path.c_str()) == 0;
     }},
    {"namespace", [] { return ::unshare(CLONE_NEWUSER) == 0; }},
    {"io_uring",
     [] {
       io_uring_params parameters{};
       return made_a_descriptor(::syscall(SYS_io_uring_setup, 1, &parameters));
     }},
    {"page_faults", [] { return made_a_descriptor(::syscall(SYS_userfaultfd, 1 /* own */)); }},
    {"core_dump",
     [] {
       const rlimit some{4096, 4096};
       return ::setrlimit(RLIMIT_CORE, &some) == 0;
     }},
    {"new_privileges",
     [] { return ::syscall(SYS_prctl, 39 /* PR_GET_NO_NEW_PRIVS */, 0, 0, 0, 0) == 0; }},
};

void* name_oneself(void* named) {
  const std::string path = "/proc/self/task/" + std::to_string(::gettid()) + "/comm";
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  *static_cast<bool*>(named) = fd >= 0 && ::write(fd, "driver", 6) == 6;
  ::close(fd);
  return nullptr;
}

constexpr Try kNeeds[] = {
    {"thread_with_a_name",
     [] {
       bool named = false;
       pthread_t thread{};
       return ::pthread_create(&thread, nullptr, name_oneself, &named) == 0 &&
              ::pthread_join(thread, nullptr) == 0 && named;
     }},
    {"memory_file",
     [] {
       const int fd = ::memfd_create("driver", MFD_CLOEXEC);
       if (fd < 0 || ::ftruncate(fd, 4096) != 0) return false;
       return ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED;
     }},
    {"listen_in_the_abstract",
     [] {
       sockaddr_un address{};
       address.sun_family = AF_UNIX;
       const std::string name = "assay-driver-" + std::to_string(::getpid());
       std::memcpy(address.sun_path + 1, name.data(), name.size());
       const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
       const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
       return fd >= 0 && ::bind(fd, reinterpret_cast<const sockaddr*>(&address), bytes) == 0 &&
              ::listen(fd, 4) == 0;
     }},
    {"control_a_device",
     [] {
       const int fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
       int bytes = 0;
       return fd >= 0 && ::ioctl(fd, 0x4600 /* as NVIDIA's begin */, &bytes) < 0 && errno == ENOTTY;
     }},
    {"own_maps", [] { return can_open("/proc/self/maps", O_RDONLY); }},
    {"memory_of_the_machine", [] { return can_open("/proc/meminfo", O_RDONLY); }},
    {"cores_of_the_machine", [] { return can_open("/sys/devices/system/cpu/online", O_RDONLY); }},
    {"signal_oneself", [] { return ::kill(::getpid(), 0) == 0; }},
    {"signal_a_thread", [] { return ::syscall(SYS_tgkill, ::getpid(), ::gettid(), 0) == 0; }},
    {"own_limit",
     [] {
       rlimit limit{};
       return ::getrlimit(RLIMIT_NOFILE, &limit) == 0;
     }},
    {"code",
     [] {
       constexpr int kAll = PROT_READ | PROT_WRITE | PROT_EXEC;
       return ::mmap(nullptr, 4096, kAll, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
     }},
};

template <std::size_t n>
void say(const char* what, const Try (&tries)[n], bool outcome) {
  std::printf("%s:", what);
  for (const Try& one : tries) {
    if (one.succeeds() == outcome) std::printf(" %s", one.name);
  }
  std::printf("\n");
}

__attribute__((constructor)) void begin() {
  say("succeeded", kAttempts, true);
  say("missing", kNeeds, false);
  char network[64] = {};
  if (::readlink("/proc/self/ns/net", network, sizeof network - 1) < 0) std::perror("network");
  std::printf("network: %s\n", network);
  std::fflush(stdout);
  char program[] = "/bin/echo", word[] = "executed";
  char* arguments[] = {program, word, nullptr};
  ::execve(program, arguments, nullptr);
  ::_exit(0);
}

}  // namespace

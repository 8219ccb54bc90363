/* Simulates system faults when preloaded with LD_PRELOAD. A fault is active while its environment
 * variable is set and, if FAULTS_WHEN names a file, while that file exists. A `*` in FAULTS_WHEN
 * stands for any part of a name.
 *
 *   FAULTS_FULL=FOLDER       nothing can be written below it: no space left on device
 *   FAULTS_READ_ONLY=FOLDER  nothing can be opened for writing below it: read-only file system
 *   FAULTS_MEMORY=BYTES      allocations of this many bytes or more fail
 *   FAULTS_FORK=N            the first N forks fail: there are too many processes
 *   FAULTS_CLOCK=SECONDS     each time the clock is read, it is set back by this many more seconds
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int is_there(const char* path) {
  struct stat info;
  glob_t found;
  int none;
  if (strchr(path, '*') == NULL) return stat(path, &info) == 0;
  none = glob(path, GLOB_NOSORT, NULL, &found);
  if (none == 0) globfree(&found);
  return none == 0;
}

static const char* fault(const char* variable) {
  const char* value = getenv(variable);
  const char* when = getenv("FAULTS_WHEN");
  return value == NULL || when == NULL || is_there(when) ? value : NULL;
}

static int is_below(const char* path, const char* variable) {
  const char* folder = fault(variable);
  return folder != NULL && strncmp(path, folder, strlen(folder)) == 0;
}

ssize_t write(int fd, const void* bytes, size_t size) {
  static ssize_t (*real)(int, const void*, size_t);
  char link[64], path[4096];
  ssize_t n;
  if (real == NULL) real = (ssize_t(*)(int, const void*, size_t))dlsym(RTLD_NEXT, "write");
  if (fd > 2 && getenv("FAULTS_FULL") != NULL) {
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    if (is_below(path, "FAULTS_FULL")) {
      errno = ENOSPC;
      return -1;
    }
  }
  return real(fd, bytes, size);
}

int open(const char* path, int flags, ...) {
  static int (*real)(const char*, int, ...);
  va_list list;
  mode_t mode;
  va_start(list, flags);
  mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(list, mode_t) : 0;
  va_end(list);
  if (real == NULL) real = (int (*)(const char*, int, ...))dlsym(RTLD_NEXT, "open");
  if ((flags & O_ACCMODE) != O_RDONLY && is_below(path, "FAULTS_READ_ONLY")) {
    errno = EROFS;
    return -1;
  }
  return real(path, flags, mode);
}

int open64(const char* path, int flags, ...) __attribute__((alias("open")));

extern void* __libc_malloc(size_t);

void* malloc(size_t size) {
  const size_t worth_a_look = 4096;
  const char* most = size < worth_a_look ? NULL : fault("FAULTS_MEMORY");
  if (most != NULL && size >= (size_t)atol(most)) {
    errno = ENOMEM;
    return NULL;
  }
  return __libc_malloc(size);
}

/* Shared with forked processes, so that their forks count too. */
static long* refused_forks;
__attribute__((constructor)) static void share_count(void) {
  refused_forks =
      mmap(NULL, sizeof *refused_forks, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static int refuses_fork(void) {
  const char* most = fault("FAULTS_FORK");
  if (most == NULL || __sync_add_and_fetch(refused_forks, 1) > atol(most)) return 0;
  errno = EAGAIN;
  return 1;
}

pid_t _Fork(void) {
  static pid_t (*real)(void);
  if (real == NULL) real = (pid_t(*)(void))dlsym(RTLD_NEXT, "_Fork");
  return refuses_fork() ? -1 : real();
}

/* Forks on behalf of the parent go through syscall(). */
long syscall(long number, ...) {
  static long (*real)(long, ...);
  long a[6];
  int i;
  va_list list;
  va_start(list, number);
  for (i = 0; i < 6; ++i) a[i] = va_arg(list, long);
  va_end(list);
  if (real == NULL) real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
  if (number == SYS_clone && (a[0] & CLONE_PARENT) != 0 && refuses_fork()) return -1;
  return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static long set_back(void) {
  static long looks;
  const char* seconds = fault("FAULTS_CLOCK");
  return seconds == NULL ? 0 : atol(seconds) * __sync_add_and_fetch(&looks, 1);
}

int clock_gettime(clockid_t clock, struct timespec* to) {
  static int (*real)(clockid_t, struct timespec*);
  int status;
  if (real == NULL) real = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  status = real(clock, to);
  if (status == 0 && clock == CLOCK_REALTIME) to->tv_sec -= set_back();
  return status;
}

time_t time(time_t* to) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (to != NULL) *to = now.tv_sec;
  return now.tv_sec;
}

int gettimeofday(struct timeval* to, void* zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  to->tv_sec = now.tv_sec;
  to->tv_usec = now.tv_nsec / 1000;
  return 0;
}

/*
 * Preloaded into a command (LD_PRELOAD): makes some of its calls of the file system fail, do less than was
 * asked for, or wait. Only calls for paths below a folder count, so that Node's own files stay out of it.
 *
 *   FACTORFLOW_FAULT_FOLDER  the folder, an absolute path without links
 *   FACTORFLOW_FAULT_PLAN    "call:first:times:action", such as "read:3:1:EIO"
 *       call    open, read, write, sync, truncate, rename, close (read: also pread, readv and preadv; write
 *               and sync alike), or "any"
 *       first   the first of these calls that is changed, from 1
 *       times   the number of calls that are changed, 0 for all that follow
 *       action  EIO, ENOSPC, EINTR, EAGAIN or EMFILE: the call fails with it
 *               short-P: reads and writes take P percent of the bytes, but one at least
 *               delay-M: the call waits for M milliseconds
 *               none: nothing is changed (to learn the calls of a command)
 *   FACTORFLOW_FAULT_LOG     file to which each changed call appends a line: "read 3 /path"
 *
 * Built by shim.ts: cc -shared -fPIC -O2 -o shim.so shim.c -ldl
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static char folder[PATH_MAX], planned[16], action[16];
static int log_file = -1;
static long first, times, calls;

/* The action, decoded: an errno, a percentage of bytes, or milliseconds; 0 where it is another one. */
static int fails_with;
static long percent, milliseconds;

static int errno_of(const char *name) {
  if (!strcmp(name, "EIO")) return EIO;
  if (!strcmp(name, "ENOSPC")) return ENOSPC;
  if (!strcmp(name, "EINTR")) return EINTR;
  if (!strcmp(name, "EAGAIN")) return EAGAIN;
  if (!strcmp(name, "EMFILE")) return EMFILE;
  return 0;
}

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("FACTORFLOW_FAULT_FOLDER"), *plan = getenv("FACTORFLOW_FAULT_PLAN");
  const char *log = getenv("FACTORFLOW_FAULT_LOG");
  if (!path || !plan || strlen(path) >= sizeof folder) return;
  if (sscanf(plan, "%15[a-z]:%ld:%ld:%15s", planned, &first, &times, action) != 4) return;
  fails_with = errno_of(action);
  sscanf(action, "short-%ld", &percent);
  sscanf(action, "delay-%ld", &milliseconds);
  if (log) log_file = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  strcpy(folder, path);
}

static int is_below(const char *path) {
  size_t length = strlen(folder);
  return length > 0 && !strncmp(path, folder, length) && (path[length] == '/' || path[length] == 0);
}

/* True where this call is to be changed: it is logged, and has waited if that is the action. */
static int is_changed(const char *call, const char *path) {
  char line[PATH_MAX + 64];
  long number;
  if (strcmp(planned, call) && strcmp(planned, "any")) return 0;
  if (!is_below(path)) return 0;
  number = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
  if (number < first || (times > 0 && number >= first + times)) return 0;
  if (log_file >= 0) {
    int length = snprintf(line, sizeof line, "%s %ld %s\n", call, number, path);
    syscall(SYS_write, log_file, line, length);
  }
  if (milliseconds > 0) {
    struct timespec wait = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&wait, NULL);
  }
  return 1;
}

/* The same for a call with a descriptor, whose path the system knows. */
static int is_changed_at(const char *call, int fd) {
  char name[64], path[PATH_MAX];
  ssize_t length;
  int saved = errno;
  if (!folder[0]) return 0;
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  length = syscall(SYS_readlinkat, AT_FDCWD, name, path, sizeof path - 1);
  errno = saved;
  if (length < 0) return 0;
  path[length] = 0;
  return is_changed(call, path);
}

static size_t less(size_t bytes) {
  size_t part = bytes * percent / 100;
  return percent == 0 || bytes == 0 ? bytes : part == 0 ? 1 : part;
}

/* The function of the C library that this one replaces. */
#define NEXT(type, name, ...) \
  static type (*next)(__VA_ARGS__); \
  if (!next) next = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

#define FAIL return errno = fails_with, -1

/* One buffer: read, write and those with a position. */
#define ONE_BUFFER(function, call, params, args) \
  ssize_t function params { \
    NEXT(ssize_t, #function, TYPES_##function); \
    if (is_changed_at(call, fd)) { \
      if (fails_with) FAIL; \
      bytes = less(bytes); \
    } \
    return next args; \
  }
#define TYPES_read int, void *, size_t
#define TYPES_write int, const void *, size_t
#define TYPES_pread int, void *, size_t, off_t
#define TYPES_pread64 int, void *, size_t, off64_t
#define TYPES_pwrite int, const void *, size_t, off_t
#define TYPES_pwrite64 int, const void *, size_t, off64_t
ONE_BUFFER(read, "read", (int fd, void *at, size_t bytes), (fd, at, bytes))
ONE_BUFFER(write, "write", (int fd, const void *at, size_t bytes), (fd, at, bytes))
ONE_BUFFER(pread, "read", (int fd, void *at, size_t bytes, off_t from), (fd, at, bytes, from))
ONE_BUFFER(pread64, "read", (int fd, void *at, size_t bytes, off64_t from), (fd, at, bytes, from))
ONE_BUFFER(pwrite, "write", (int fd, const void *at, size_t bytes, off_t to), (fd, at, bytes, to))
ONE_BUFFER(pwrite64, "write", (int fd, const void *at, size_t bytes, off64_t to), (fd, at, bytes, to))

/* Several buffers: a short call takes the given part of the first one. */
#define MANY_BUFFERS(function, call, params, args, first_args) \
  ssize_t function params { \
    NEXT(ssize_t, #function, TYPES_##function); \
    if (is_changed_at(call, fd)) { \
      if (fails_with) FAIL; \
      if (percent > 0 && count > 0) { \
        struct iovec part = {all[0].iov_base, less(all[0].iov_len)}; \
        return next first_args; \
      } \
    } \
    return next args; \
  }
#define TYPES_readv int, const struct iovec *, int
#define TYPES_writev int, const struct iovec *, int
#define TYPES_preadv int, const struct iovec *, int, off_t
#define TYPES_preadv64 int, const struct iovec *, int, off64_t
#define TYPES_pwritev int, const struct iovec *, int, off_t
#define TYPES_pwritev64 int, const struct iovec *, int, off64_t
MANY_BUFFERS(readv, "read", (int fd, const struct iovec *all, int count), (fd, all, count), (fd, &part, 1))
MANY_BUFFERS(writev, "write", (int fd, const struct iovec *all, int count), (fd, all, count), (fd, &part, 1))
MANY_BUFFERS(preadv, "read", (int fd, const struct iovec *all, int count, off_t at), (fd, all, count, at),
             (fd, &part, 1, at))
MANY_BUFFERS(preadv64, "read", (int fd, const struct iovec *all, int count, off64_t at), (fd, all, count, at),
             (fd, &part, 1, at))
MANY_BUFFERS(pwritev, "write", (int fd, const struct iovec *all, int count, off_t at), (fd, all, count, at),
             (fd, &part, 1, at))
MANY_BUFFERS(pwritev64, "write", (int fd, const struct iovec *all, int count, off64_t at),
             (fd, all, count, at), (fd, &part, 1, at))

/* A relative path is made absolute by the working folder; `at` is a folder's descriptor or AT_FDCWD. */
static int opens_badly(int at, const char *path) {
  char whole[2 * PATH_MAX];
  if (path[0] == '/') return is_changed("open", path) && fails_with;
  if (at != AT_FDCWD || !getcwd(whole, PATH_MAX)) return 0;
  strcat(whole, "/");
  strncat(whole, path, PATH_MAX - 1);
  return is_changed("open", whole) && fails_with;
}

/* The mode is an argument only where a file may be made. */
#define MODE_OF(flags) \
  mode_t mode = 0; \
  if ((flags) & (O_CREAT | __O_TMPFILE)) { \
    va_list rest; \
    va_start(rest, flags); \
    mode = va_arg(rest, mode_t); \
    va_end(rest); \
  }

#define OPEN(function) \
  int function(const char *path, int flags, ...) { \
    NEXT(int, #function, const char *, int, ...); \
    MODE_OF(flags) \
    if (opens_badly(AT_FDCWD, path)) FAIL; \
    return next(path, flags, mode); \
  }
#define OPEN_AT(function) \
  int function(int at, const char *path, int flags, ...) { \
    NEXT(int, #function, int, const char *, int, ...); \
    MODE_OF(flags) \
    if (opens_badly(at, path)) FAIL; \
    return next(at, path, flags, mode); \
  }
OPEN(open)
OPEN(open64)
OPEN_AT(openat)
OPEN_AT(openat64)

#define ONE_FILE(function, call, params, args, types) \
  int function params { \
    NEXT(int, #function, types); \
    if (is_changed_at(call, fd) && fails_with) FAIL; \
    return next args; \
  }
#define LENGTH int, off_t
#define LENGTH64 int, off64_t
ONE_FILE(fsync, "sync", (int fd), (fd), int)
ONE_FILE(fdatasync, "sync", (int fd), (fd), int)
ONE_FILE(ftruncate, "truncate", (int fd, off_t length), (fd, length), LENGTH)
ONE_FILE(ftruncate64, "truncate", (int fd, off64_t length), (fd, length), LENGTH64)

int rename(const char *from, const char *to) {
  NEXT(int, "rename", const char *, const char *);
  if (is_changed("rename", from) && fails_with) FAIL;
  return next(from, to);
}

/* As Linux does it, the file is closed also where the call fails. */
static int closed(int fd) {
  NEXT(int, "close", int);
  int fails = is_changed_at("close", fd) && fails_with;
  int result = next(fd);
  if (fails) FAIL;
  return result;
}

int close(int fd) { return closed(fd); }

/* Node closes its files by this function; its other calls pass through. */
long syscall(long number, ...) {
  NEXT(long, "syscall", long, ...);
  long a, b, c, d, e, f;
  va_list rest;
  va_start(rest, number);
  a = va_arg(rest, long), b = va_arg(rest, long), c = va_arg(rest, long);
  d = va_arg(rest, long), e = va_arg(rest, long), f = va_arg(rest, long);
  va_end(rest);
  return number == SYS_close ? closed(a) : next(number, a, b, c, d, e, f);
}

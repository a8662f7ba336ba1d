/* Loaded before libc (LD_PRELOAD): what a program asks of the disk below one folder is counted, noted, and made to fail
 * or interrupted at one chosen request. Nothing else is touched.
 *
 *   faults_arm(folder, nth, how, code, log)   start counting; `how`: 0 count only, 1 fail once with errno `code`,
 *                                             2 fail this and every later write, 3 write half, then as 2,
 *                                             4 raise signal `code` before the request
 *   faults_disarm()                           stop; returns how many requests were counted
 *
 * The log, if given, receives for each request a line of its kind and paths, and the bytes written.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { COUNT, ONCE, FULL, SHORT, SIGNAL };

static char folder[PATH_MAX];
static size_t length;
static long count, nth;
static int armed, how, code, notes = -1;
static __thread int inside;

#define REAL(name) ((__typeof__(&name))real(#name))
static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

void faults_arm(const char *where, long at, int manner, int number, const char *log) {
    strncpy(folder, where, sizeof folder - 1);
    length = strlen(folder);
    count = 0, nth = at, how = manner, code = number;
    notes = log ? REAL(open)(log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600) : -1;
    armed = 1;
}

long faults_disarm(void) {
    armed = 0;
    if (notes >= 0) REAL(close)(notes);
    notes = -1;
    return count;
}

static int below(const char *path) {
    return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == 0);
}

static int of_handle(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, PATH_MAX - 1);
    path[n < 0 ? 0 : n] = 0;
    return n > 0 && below(path);
}

static int of_name(int fd, const char *name, char *path) {
    if (name[0] == '/') snprintf(path, PATH_MAX, "%s", name);
    else {
        char start[PATH_MAX];
        if (fd == AT_FDCWD) { if (!getcwd(start, sizeof start)) return 0; }
        else of_handle(fd, start);
        snprintf(path, PATH_MAX, "%.2000s/%.2000s", start, name);
    }
    return below(path);
}

/* Whether this request is to fail; sets errno. */
static int fails(int writes) {
    count++;
    if (how == SIGNAL && count == nth) raise(code);
    if (how == ONCE && count == nth) { errno = code; return 1; }
    if ((how == FULL || how == SHORT) && count >= nth + (how == SHORT) && writes) { errno = code; return 1; }
    return 0;
}

static void note(const char *kind, const char *one, const char *two, long long at, const void *data, long long size) {
    if (notes < 0) return;
    int saved = errno;
    dprintf(notes, "%s\t%s\t%s\t%lld\t%lld\n", kind, one, two ? two : "-", at, data ? size : 0LL);
    if (data && REAL(write)(notes, data, size) != size) abort();
    errno = saved;
}

void faults_note(const char *what) { note("mark", what, NULL, 0, NULL, 0); }

#define WATCHED(condition) (armed && !inside && (condition))

#define WRITING(name, arguments, passed, offset)                                                     \
    ssize_t name arguments {                                                                         \
        char path[PATH_MAX];                                                                         \
        if (!WATCHED(of_handle(fd, path))) return REAL(name) passed;                                 \
        inside = 1;                                                                                  \
        ssize_t done = -1;                                                                           \
        off_t at = offset;                                                                           \
        if (!fails(1)) {                                                                             \
            if (how == SHORT && count == nth && size > 1) size /= 2;                                 \
            done = REAL(name) passed;                                                                \
            if (done > 0) note("write", path, NULL, at, data, done);                                 \
        }                                                                                            \
        inside = 0;                                                                                  \
        return done;                                                                                 \
    }

static off_t place(int fd) {
    struct stat found;
    if ((fcntl(fd, F_GETFL) & O_APPEND) && fstat(fd, &found) == 0) return found.st_size;
    return lseek(fd, 0, SEEK_CUR);
}

WRITING(write, (int fd, const void *data, size_t size), (fd, data, size), place(fd))
WRITING(pwrite, (int fd, const void *data, size_t size, off_t to), (fd, data, size, to), to)
WRITING(pwrite64, (int fd, const void *data, size_t size, off64_t to), (fd, data, size, to), to)

#define ON_HANDLE(kind, name, arguments, passed, writes, size)                                       \
    int name arguments {                                                                             \
        char path[PATH_MAX];                                                                         \
        if (!WATCHED(of_handle(fd, path))) return REAL(name) passed;                                 \
        inside = 1;                                                                                  \
        int done = -1;                                                                               \
        if (!fails(writes)) done = REAL(name) passed;                                                \
        if (done == 0) note(kind, path, NULL, size, NULL, 0);                                        \
        inside = 0;                                                                                  \
        return done;                                                                                 \
    }

ON_HANDLE("fsync", fsync, (int fd), (fd), 0, 0)
ON_HANDLE("fsync", fdatasync, (int fd), (fd), 0, 0)
ON_HANDLE("truncate", ftruncate, (int fd, off_t size), (fd, size), 0, size)
ON_HANDLE("truncate", ftruncate64, (int fd, off64_t size), (fd, size), 0, size)

/* Space that is promised is not written: a full disk fails here, a power cut does not matter. */
int posix_fallocate(int fd, off_t from, off_t size) {
    char path[PATH_MAX];
    if (!WATCHED(of_handle(fd, path))) return REAL(posix_fallocate)(fd, from, size);
    inside = 1;
    int done = fails(1) ? errno : REAL(posix_fallocate)(fd, from, size);
    inside = 0;
    return done;
}
int posix_fallocate64(int fd, off64_t from, off64_t size) { return posix_fallocate(fd, from, size); }

int close(int fd) {
    char path[PATH_MAX];
    /* Handles for reading and folders have nothing to lose. */
    if (!WATCHED((fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY && of_handle(fd, path))) return REAL(close)(fd);
    inside = 1;
    int failed = fails(0), saved = errno, done = REAL(close)(fd);
    if (failed) errno = saved, done = -1;
    inside = 0;
    return done;
}

#define NAMED(kind, name, arguments, passed, there, one, two)                                        \
    int name arguments {                                                                             \
        char first[PATH_MAX], second[PATH_MAX];                                                      \
        second[0] = 0;                                                                               \
        if (!WATCHED(there)) return REAL(name) passed;                                               \
        inside = 1;                                                                                  \
        int done = -1;                                                                               \
        if (!fails(0)) done = REAL(name) passed;                                                     \
        if (done == 0) note(kind, one, two, 0, NULL, 0);                                             \
        inside = 0;                                                                                  \
        return done;                                                                                 \
    }

NAMED("rename", rename, (const char *a, const char *b), (a, b),
      of_name(AT_FDCWD, a, first) & of_name(AT_FDCWD, b, second), first, second)
NAMED("link", link, (const char *a, const char *b), (a, b),
      of_name(AT_FDCWD, a, first) & of_name(AT_FDCWD, b, second), first, second)
NAMED("mkdir", mkdir, (const char *a, mode_t mode), (a, mode), of_name(AT_FDCWD, a, first), first, NULL)
NAMED("exchange", renameat2, (int d, const char *a, int e, const char *b, unsigned flags), (d, a, e, b, flags),
      of_name(d, a, first) & of_name(e, b, second), first, second)

/* Removals are noted, and never fail: a program cannot clean up where it may not. */
#define REMOVING(name, arguments, passed, fd)                                                        \
    int name arguments {                                                                             \
        char first[PATH_MAX];                                                                        \
        if (!WATCHED(of_name(fd, a, first))) return REAL(name) passed;                               \
        inside = 1;                                                                                  \
        if (how == SIGNAL) fails(0);                                                                 \
        int done = REAL(name) passed;                                                                \
        if (done == 0) note("remove", first, NULL, 0, NULL, 0);                                      \
        inside = 0;                                                                                  \
        return done;                                                                                 \
    }
REMOVING(unlink, (const char *a), (a), AT_FDCWD)
REMOVING(rmdir, (const char *a), (a), AT_FDCWD)
REMOVING(unlinkat, (int d, const char *a, int flags), (d, a, flags), d)

#define OPENING(name, start, arguments, passed, fd)                                                  \
    int name(start const char *a, int flags, ...) {                                                  \
        char first[PATH_MAX];                                                                        \
        mode_t mode = 0;                                                                             \
        if (flags & (O_CREAT | O_TMPFILE)) {                                                         \
            va_list rest;                                                                            \
            va_start(rest, flags);                                                                   \
            mode = va_arg(rest, mode_t);                                                             \
            va_end(rest);                                                                            \
        }                                                                                            \
        struct stat found;                                                                           \
        if (!WATCHED((flags & O_CREAT) && of_name(fd, a, first) && stat(first, &found) != 0))        \
            return REAL(name) passed;                                                                \
        inside = 1;                                                                                  \
        int done = -1;                                                                               \
        if (!fails(1)) done = REAL(name) passed;                                                     \
        if (done >= 0) note("create", first, NULL, 0, NULL, 0);                                      \
        inside = 0;                                                                                  \
        return done;                                                                                 \
    }
#define NOTHING
#define AT int d,
OPENING(open, NOTHING, (a, flags, mode), (a, flags, mode), AT_FDCWD)
OPENING(open64, NOTHING, (a, flags, mode), (a, flags, mode), AT_FDCWD)
OPENING(openat, AT, (d, a, flags, mode), (d, a, flags, mode), d)
OPENING(openat64, AT, (d, a, flags, mode), (d, a, flags, mode), d)

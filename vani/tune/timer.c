/* Measures the time in which a process does I/O on files: preloaded (LD_PRELOAD) into every process of a run.

   Each process writes a file into the folder $VANI_TIMER: a header and the intervals in which any of its threads is in
   a call of POSIX, stdio or MPI-IO. Only the outermost call counts, so MPI-IO includes its exchange of data. Pipes,
   sockets and terminals do not count, nor files of the system (/usr, /proc, ...). The file is mapped, so it survives a
   process that a signal kills. vani/cli/tune_trials.py reads it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define MOST 4096  /* intervals of a process */
#define FILES 65536

enum kind { READ, WRITE, META, KINDS };

/* All times are in nanoseconds of the real-time clock, which nodes share. */
struct record {
    char magic[8];
    int64_t kinds[KINDS]; /* sums over threads */
    int64_t mapped;       /* calls of mmap on files, whose accesses are not seen */
    int64_t many;
    struct {
        int64_t start, end;
    } busy[MOST];
};

static struct record *record;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t gap = 10000; /* shorter pauses belong to an interval; doubled when the file is full */
static unsigned char ignored[FILES];
static __thread int depth __attribute__((tls_model("initial-exec")));

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* By system calls alone: the functions of this file replace those of the C library. */
static void begin(void)
{
    const char *folder = getenv("VANI_TIMER");
    char path[4096];
    record = NULL;
    if (!folder || snprintf(path, sizeof path, "%s/%ld-%lld", folder, (long)getpid(), (long long)now()) >= (int)sizeof path)
        return;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    void *place = MAP_FAILED;
    if (syscall(SYS_ftruncate, fd, sizeof(struct record)) == 0)
        place = (void *)syscall(SYS_mmap, NULL, sizeof(struct record), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    syscall(SYS_close, fd);
    if (place == MAP_FAILED)
        return;
    record = place;
    memcpy(record->magic, "vanitim1", 8);
}

static void begin_child(void)
{
    pthread_mutex_init(&lock, NULL);
    begin();
}

__attribute__((constructor)) static void start(void)
{
    begin();
    pthread_atfork(NULL, NULL, begin_child);
}

static void thin(void)
{
    int64_t many = 1;
    gap *= 2;
    for (int64_t i = 1; i < record->many; i++)
        if (record->busy[i].start <= record->busy[many - 1].end + gap)
            record->busy[many - 1].end = record->busy[i].end;
        else
            record->busy[many++] = record->busy[i];
    record->many = many;
}

static void add(enum kind kind, int64_t from, int64_t to)
{
    if (!record || to <= from)
        return;
    pthread_mutex_lock(&lock);
    record->kinds[kind] += to - from;
    int64_t last = record->many - 1;
    /* Calls of several threads end in any order: an earlier start may reach back over several intervals. */
    while (last > 0 && from <= record->busy[last - 1].end + gap) {
        record->busy[last - 1].end = record->busy[last].end;
        record->many = last--;
    }
    if (last >= 0 && from <= record->busy[last].end + gap) {
        record->busy[last].start = from < record->busy[last].start ? from : record->busy[last].start;
        record->busy[last].end = to > record->busy[last].end ? to : record->busy[last].end;
    } else {
        while (record->many == MOST)
            thin();
        record->busy[record->many].start = from;
        record->busy[record->many].end = to;
        record->many++;
    }
    pthread_mutex_unlock(&lock);
}

/* Whether a descriptor is a file whose time counts; without a file behind it, it counts if it is an error. */
static int counts(int fd)
{
    if (fd < 0)
        return 1;
    if (fd < FILES && ignored[fd])
        return 0;
    return syscall(SYS_lseek, fd, 0L, SEEK_CUR) >= 0 || errno != ESPIPE;
}

static int is_system(const char *path)
{
    static const char *const folders[] = {"/usr/", "/lib", "/bin/", "/etc/", "/proc/", "/sys/", "/dev/pts", "/dev/null"};
    for (unsigned i = 0; path && i < sizeof folders / sizeof *folders; i++)
        if (!strncmp(path, folders[i], strlen(folders[i])))
            return 1;
    return 0;
}

static int opened(int fd, const char *path)
{
    if (fd >= 0 && fd < FILES)
        ignored[fd] = (unsigned char)is_system(path);
    return fd;
}

/* The next definition: in a program that loads its MPI library itself (Python), only the caller's library knows it. */
static void *next(const char *name, void *caller)
{
    void *found = dlsym(RTLD_NEXT, name);
    Dl_info about;
    if (!found && dladdr(caller, &about) && about.dli_fname) {
        void *library = dlopen(about.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
        found = library ? dlsym(library, name) : NULL;
    }
    return found;
}

/* Defines a function that times the next one of this name; COUNTS is evaluated with its `result`. The name is given to
   the linker alone, because headers may declare it in another way. */
#define TIMED(kind, type, name, parameters, arguments, COUNTS)                                                        \
    EXPORT type timed_##name parameters __asm__(#name);                                                               \
    EXPORT type timed_##name parameters                                                                               \
    {                                                                                                                 \
        static type(*real) parameters;                                                                                \
        if (!real && !(*(void **)&real = next(#name, __builtin_return_address(0)))) {                                 \
            errno = ENOSYS;                                                                                           \
            return (type)-1;                                                                                          \
        }                                                                                                             \
        int64_t from = depth++ ? 0 : now();                                                                           \
        type result = real arguments;                                                                                 \
        int error = errno;                                                                                            \
        if (!--depth && (COUNTS))                                                                                     \
            add(kind, from, now());                                                                                   \
        errno = error;                                                                                                \
        return result;                                                                                                \
    }

#define OPEN(name, before, arguments)                                                                                 \
    TIMED(META, int, name, before, arguments, opened(result, path) < 0 ? !is_system(path) : counts(result))
#define OPEN_MODE (path, flags, mode)
OPEN(open, (const char *path, int flags, mode_t mode), OPEN_MODE)
OPEN(open64, (const char *path, int flags, mode_t mode), OPEN_MODE)
OPEN(creat, (const char *path, mode_t mode), (path, mode))
OPEN(__open_2, (const char *path, int flags), (path, flags))
OPEN(__open64_2, (const char *path, int flags), (path, flags))
OPEN(openat, (int at, const char *path, int flags, mode_t mode), (at, path, flags, mode))
OPEN(openat64, (int at, const char *path, int flags, mode_t mode), (at, path, flags, mode))

#define ON_FD(kind, type, name, more, arguments) TIMED(kind, type, name, more, arguments, counts(fd))
#define PLAIN(kind, name, pointer) ON_FD(kind, ssize_t, name, (int fd, pointer p, size_t n), (fd, p, n))
#define AT(kind, name, pointer, size) \
    ON_FD(kind, ssize_t, name, (int fd, pointer p, size n, off_t at), (fd, p, n, at))
PLAIN(READ, read, void *)
PLAIN(WRITE, write, const void *)
PLAIN(READ, readv, const void *)
PLAIN(WRITE, writev, const void *)
AT(READ, pread, void *, size_t)
AT(READ, pread64, void *, size_t)
AT(WRITE, pwrite, const void *, size_t)
AT(WRITE, pwrite64, const void *, size_t)
AT(READ, preadv, const void *, int)
AT(WRITE, pwritev, const void *, int)
ON_FD(READ, ssize_t, __read_chk, (int fd, void *p, size_t n, size_t size), (fd, p, n, size))
ON_FD(READ, ssize_t, __pread_chk, (int fd, void *p, size_t n, off_t at, size_t size), (fd, p, n, at, size))
ON_FD(READ, ssize_t, __pread64_chk, (int fd, void *p, size_t n, off_t at, size_t size), (fd, p, n, at, size))
ON_FD(WRITE, ssize_t, sendfile, (int fd, int from_fd, off_t *at, size_t n), (fd, from_fd, at, n))
ON_FD(WRITE, ssize_t, copy_file_range, (int from_fd, off_t *from_at, int fd, off_t *at, size_t n, unsigned flags),
      (from_fd, from_at, fd, at, n, flags))

ON_FD(WRITE, int, fsync, (int fd), (fd))
ON_FD(WRITE, int, fdatasync, (int fd), (fd))
ON_FD(META, int, ftruncate, (int fd, off_t size), (fd, size))
ON_FD(META, int, ftruncate64, (int fd, off_t size), (fd, size))
ON_FD(META, int, posix_fallocate, (int fd, off_t at, off_t size), (fd, at, size))
ON_FD(META, int, fstat, (int fd, void *about), (fd, about))
ON_FD(META, int, fstat64, (int fd, void *about), (fd, about))

/* Asked before the call: afterwards the descriptor names nothing, or another file. */
static __thread int was_file __attribute__((tls_model("initial-exec")));
static int closing(int fd)
{
    was_file = depth < 2 && counts(fd);
    opened(fd, NULL);
    return fd;
}
TIMED(WRITE, int, close, (int fd), (closing(fd)), was_file)
TIMED(META, int, dup2, (int fd, int to), (fd, closing(to)), 0)
TIMED(META, int, dup3, (int fd, int to, int flags), (fd, closing(to), flags), 0)

#define ON_PATH(type, name, more, arguments) TIMED(META, type, name, more, arguments, !is_system(path))
ON_PATH(int, stat, (const char *path, void *about), (path, about))
ON_PATH(int, stat64, (const char *path, void *about), (path, about))
ON_PATH(int, lstat, (const char *path, void *about), (path, about))
ON_PATH(int, lstat64, (const char *path, void *about), (path, about))
ON_PATH(int, fstatat, (int at, const char *path, void *about, int flags), (at, path, about, flags))
ON_PATH(int, fstatat64, (int at, const char *path, void *about, int flags), (at, path, about, flags))
ON_PATH(int, access, (const char *path, int mode), (path, mode))
ON_PATH(int, unlink, (const char *path), (path))
ON_PATH(int, unlinkat, (int at, const char *path, int flags), (at, path, flags))
ON_PATH(int, rename, (const char *path, const char *to), (path, to))
ON_PATH(int, mkdir, (const char *path, mode_t mode), (path, mode))
ON_PATH(int, rmdir, (const char *path), (path))
ON_PATH(int, truncate, (const char *path, off_t size), (path, size))

#define STREAM(kind, type, name, more, arguments) TIMED(kind, type, name, more, arguments, counts(fileno(f)))
#define OPEN_STREAM(name)                                                                                             \
    TIMED(META, FILE *, name, (const char *path, const char *mode), (path, mode),                                     \
          result ? counts(opened(fileno(result), path)) : !is_system(path))
OPEN_STREAM(fopen)
OPEN_STREAM(fopen64)
static FILE *closing_stream(FILE *f)
{
    closing(fileno(f));
    return f;
}
TIMED(WRITE, int, fclose, (FILE *f), (closing_stream(f)), was_file)
STREAM(READ, size_t, fread, (void *p, size_t size, size_t n, FILE *f), (p, size, n, f))
STREAM(WRITE, size_t, fwrite, (const void *p, size_t size, size_t n, FILE *f), (p, size, n, f))
STREAM(READ, char *, fgets, (char *p, int n, FILE *f), (p, n, f))
STREAM(WRITE, int, fputs, (const char *p, FILE *f), (p, f))
STREAM(WRITE, int, vfprintf, (FILE *f, const char *form, va_list values), (f, form, values))
STREAM(WRITE, int, __vfprintf_chk, (FILE *f, int flag, const char *form, va_list values), (f, flag, form, values))
STREAM(READ, ssize_t, getline, (char **p, size_t *n, FILE *f), (p, n, f))
TIMED(WRITE, int, fflush, (FILE *f), (f), !f || counts(fileno(f)))

#define PRINT(name, by, parameters, arguments)                                                                         \
    EXPORT int name parameters                                                                                        \
    {                                                                                                                 \
        va_list values;                                                                                               \
        va_start(values, form);                                                                                       \
        int result = by arguments;                                                                                    \
        va_end(values);                                                                                               \
        return result;                                                                                                \
    }
PRINT(fprintf, timed_vfprintf, (FILE *f, const char *form, ...), (f, form, values))
PRINT(__fprintf_chk, timed___vfprintf_chk, (FILE *f, int flag, const char *form, ...), (f, flag, form, values))

#define MAPPED(name)                                                                                                  \
    TIMED(META, void *, name, (void *p, size_t n, int prot, int flags, int fd, off_t at), (p, n, prot, flags, fd, at), \
          fd >= 0 && record && counts(fd) && ++record->mapped)
MAPPED(mmap)
MAPPED(mmap64)

/* Every parameter of an MPI-IO function fits into a register, and none has more than six. */
#define MPI(kind, name)                                                                                               \
    TIMED(kind, int, MPI_File_##name, (long a, long b, long c, long d, long e, long f), (a, b, c, d, e, f), 1)
#define MPI_BOTH(rest) MPI(READ, read##rest) MPI(WRITE, write##rest) MPI(READ, iread##rest) MPI(WRITE, iwrite##rest)
MPI_BOTH() MPI_BOTH(_at) MPI_BOTH(_all) MPI_BOTH(_at_all) MPI_BOTH(_shared)
#define MPI_SPLIT(rest) MPI(READ, read##rest) MPI(WRITE, write##rest)
MPI_SPLIT(_ordered) MPI_SPLIT(_all_begin) MPI_SPLIT(_all_end) MPI_SPLIT(_at_all_begin) MPI_SPLIT(_at_all_end)
MPI(META, open) MPI(META, set_view) MPI(META, set_size) MPI(META, preallocate) MPI(META, delete)
MPI(WRITE, close) MPI(WRITE, sync)

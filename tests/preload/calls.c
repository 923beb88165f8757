/* Makes files in every way that libc has, and prints what a program sees: calls.c FOLDER ACTION. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void show(const char *what, int fd)
{
    struct stat found;
    int why = errno;

    if (fd < 0) {
        printf("%s: error %d\n", what, why);
        return;
    }
    if (fstat(fd, &found) != 0)
        abort();
    printf("%s: fd %d errno %d mode %o size %ld access %x cloexec %d written %ld\n", what, fd, why,
           (unsigned)found.st_mode & 07777, (long)found.st_size, fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND),
           fcntl(fd, F_GETFD), (long)write(fd, "data\n", 5));
    close(fd);
}

static void show_stream(const char *what, FILE *stream)
{
    if (stream == NULL) {
        show(what, -1);
        return;
    }
    fputs("text\n", stream);
    fflush(stream);
    show(what, fcntl(fileno(stream), F_DUPFD, 0));
    fclose(stream);
}

static void every_call(int folder)
{
    FILE *stream;

    for (int twice = 0; twice < 2; twice++) {
#define TRY(call) errno = 77, show(#call, call)
#define TRY_STREAM(call) errno = 77, stream = call, show_stream(#call, stream)
        TRY(open("a.open", O_CREAT | O_WRONLY, 0640));
        TRY(open64("a.open64", O_CREAT | O_RDWR | O_TRUNC | O_CLOEXEC, 0640));
        TRY(openat(AT_FDCWD, "a.openat", O_CREAT | O_WRONLY | O_APPEND, 0640));
        TRY(openat64(folder, "a.openat64", O_CREAT | O_WRONLY | O_EXCL, 0600));
        TRY(open("a.read-only", O_CREAT | O_EXCL | O_WRONLY, 0444));
        TRY(open("a.nothing", O_CREAT | O_EXCL | O_RDWR, 0));
        TRY(open("a.only-read", O_CREAT | O_RDONLY, 0644));
        TRY(creat("a.creat", 0644));
        TRY(creat64("a.creat64", 0755));
        TRY_STREAM(fopen("a.fopen", "w"));
        TRY_STREAM(fopen("a.fopen-a", "a+"));
        TRY_STREAM(fopen("a.fopen-x", "wxe"));
        TRY_STREAM(fopen("a.fopen-r", "r+"));
        TRY_STREAM(fopen64("a.fopen64", "w+b"));
        TRY_STREAM(freopen("a.freopen", "w", fopen("/dev/null", "r")));
        TRY_STREAM(freopen("a.freopen-x", "wx", fopen("/dev/null", "r")));
        TRY_STREAM(freopen64("a.freopen64", "a", fopen("/dev/null", "r")));
        TRY(open("nowhere/a", O_CREAT | O_WRONLY, 0644));
        TRY(open("folder", O_CREAT | O_WRONLY, 0644));
        TRY(open("a.slash/", O_CREAT | O_WRONLY, 0644));
        TRY(open("", O_CREAT | O_WRONLY, 0644));
        TRY(open("dangling", O_CREAT | O_WRONLY, 0644));
        TRY(openat(-5, "a.bad-folder", O_CREAT | O_WRONLY, 0644));
        TRY(openat(folder, ".", O_TMPFILE | O_RDWR, 0600));
    }
    umask(0777);
    TRY(open("a.masked", O_CREAT | O_EXCL | O_WRONLY, 0644));
    TRY_STREAM(fopen("a.fopen-masked", "w"));
    TRY_STREAM(freopen("a.freopen-masked", "w+", fopen("/dev/null", "r")));
}

enum { THREADS = 8, FILES = 100 };
static int failed;

static void *many(void *which)
{
    char name[64];

    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "s.%ld.%d", (long)(intptr_t)which, i);
        int fd = i % 2 ? open(name, O_CREAT | O_WRONLY, 0644) : creat(name, 0644);
        if (fd < 0 || close(fd) != 0)
            __atomic_fetch_add(&failed, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* Threads make files while others fork children that do, too. */
static void *forks(void *which)
{
    for (int i = 0; i < 20; i++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            char name[64];
            snprintf(name, sizeof name, "s.%ld.%d", (long)(intptr_t)which, i);
            int fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0644);
            _exit(fd < 0);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
            __atomic_fetch_add(&failed, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void stress(int threads)
{
    pthread_t thread[2 * THREADS];

    for (intptr_t i = 0; i < threads; i++)
        pthread_create(&thread[i], NULL, i < THREADS ? many : forks, (void *)i);
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    printf("failed %d\n", failed);
}

/* As a daemon: all descriptors go, and their numbers come again. */
static void closed(void)
{
    int mine[64];

    show("before", open("a.open", O_CREAT | O_WRONLY, 0644));
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    for (int i = 0; i < 64; i++)
        if ((mine[i] = open("/dev/zero", O_RDONLY)) < 0)
            abort();
    if (fcntl(mine[0], F_DUPFD, 900) != 900)
        abort();
    show("after", open("a.open64", O_CREAT | O_WRONLY, 0644));
    show("900", fcntl(900, F_DUPFD, 0));
}

static void vforked(void)
{
    int status;
    pid_t child = vfork();

    if (child == 0) {
        int fd = open("a.open", O_CREAT | O_WRONLY, 0644);
        _exit(fd < 0);
    }
    waitpid(child, &status, 0);
    printf("child %d\n", status);
    show("parent", open("a.open64", O_CREAT | O_WRONLY, 0644));
}

static void crashed(int signal)
{
    int fd = open("a.open", O_CREAT | O_WRONLY, 0644);

    (void)signal;
    if (fd < 0 || write(fd, "crash\n", 6) != 6)
        _exit(1);
    close(fd);
}

/* A handler of crashes with a stack of its own, as most have. */
static void handler(void)
{
    static char memory[1 << 16];
    stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    struct sigaction action = {.sa_handler = crashed, .sa_flags = SA_ONSTACK};

    if (sigaltstack(&stack, NULL) != 0 || sigaction(SIGUSR1, &action, NULL) != 0)
        abort();
    raise(SIGUSR1);
    show("after", open("a.open64", O_CREAT | O_WRONLY, 0644));
}

static long nanoseconds(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

/* How many nanoseconds a file takes, by the clock and of the processor: COUNT files named PREFIX.N, closed again. */
static void timed(const char *prefix, int count)
{
    long begin = nanoseconds(CLOCK_MONOTONIC), busy = nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
    char name[4096];

    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%s.%d", prefix, i);
        int fd = open(name, O_CREAT | O_WRONLY, 0644);
        if (fd < 0)
            abort();
        close(fd);
    }
    printf("%ld %ld\n", (nanoseconds(CLOCK_MONOTONIC) - begin) / count,
           (nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - busy) / count);
}

int main(int count, char **arguments)
{
    int folder;

    if (count < 3 || chdir(arguments[1]) != 0)
        return 2;
    setvbuf(stdout, NULL, _IOFBF, 1 << 20);
    if (strcmp(arguments[2], "timed") == 0) {
        timed(arguments[3], atoi(arguments[4]));
        return 0;
    }
    umask(022);
    folder = open(".", O_RDONLY | O_DIRECTORY);
    if (strcmp(arguments[2], "every") == 0)
        every_call(folder);
    else if (strcmp(arguments[2], "stress") == 0)
        stress(2 * THREADS);
    else if (strcmp(arguments[2], "threads") == 0)
        stress(THREADS);
    else if (strcmp(arguments[2], "closed") == 0)
        closed();
    else if (strcmp(arguments[2], "vfork") == 0)
        vforked();
    else if (strcmp(arguments[2], "handler") == 0)
        handler();
    return 0;
}

/* The layout of a file, from the interaction database, which is opened read-only and assumed to be immutable.
 *
 * The connection stays open and is shared by the threads of the process. A child opens its own, because SQLite forbids
 * carrying one across fork(). Its descriptor is a high number, out of the way of shells. Programs that
 * close all descriptors close it, too, and may reuse its number, so it is checked before each use. */
#include "place.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* From sqlite3.h, whose values are guaranteed not to change. */
enum { SQLITE_OK = 0, SQLITE_ROW = 100, SQLITE_DONE = 101, SQLITE_NULL = 5 };
enum { SQLITE_DBCONFIG_ENABLE_VIEW = 1015 };
enum { SQLITE_OPEN_READONLY = 0x1, SQLITE_OPEN_URI = 0x40, SQLITE_OPEN_NOMUTEX = 0x8000 };

enum { MAX_EXTENTS = 4096 };

static const char QUERY[] =
    "SELECT extent_start, extent_end, stripe_size, stripe_count, ost_list FROM vani_interaction"
    " WHERE file_hash = ?1 AND file_name = ?2 ORDER BY extent_start";

struct sqlite3;
struct sqlite3_stmt;
static struct {
    int (*open_v2)(const char *, struct sqlite3 **, int, const char *);
    int (*prepare_v2)(struct sqlite3 *, const char *, int, struct sqlite3_stmt **, const char **);
    int (*bind_int64)(struct sqlite3_stmt *, int, int64_t);
    int (*bind_text)(struct sqlite3_stmt *, int, const char *, int, void (*)(void *));
    int (*step)(struct sqlite3_stmt *);
    int64_t (*column_int64)(struct sqlite3_stmt *, int);
    const unsigned char *(*column_text)(struct sqlite3_stmt *, int);
    int (*column_type)(struct sqlite3_stmt *, int);
    int (*reset)(struct sqlite3_stmt *);
    int (*db_config)(struct sqlite3 *, int, ...);
} sqlite;

/* Guards everything below, and is locked across fork(). */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool gave_up;
static pid_t owner;
static struct sqlite3 *database;
static struct sqlite3_stmt *query;
static int database_fd = -1;
static struct stat database_stat;

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }

static void in_child(void)
{
    /* Left open: closing the parent's connection is forbidden, too. */
    database = NULL;
    query = NULL;
    owner = getpid();
    pthread_mutex_unlock(&lock);
}

bool vani_lookup_begin(void)
{
    void *library = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL);

    if (library == NULL)
        return false;
    owner = getpid();
#define FIND(name) ((*(void **)&sqlite.name = dlsym(library, "sqlite3_" #name)) != NULL)
    return FIND(open_v2) && FIND(prepare_v2) && FIND(bind_int64) && FIND(bind_text) && FIND(step) &&
           FIND(column_int64) && FIND(column_text) && FIND(column_type) && FIND(reset) && FIND(db_config) &&
           pthread_atfork(before_fork, after_fork, in_child) == 0;
#undef FIND
}

void vani_lookup_opened(int fd)
{
    database_fd = fd;
}

/* CRC-32, as zlib.crc32 of Python, four bits at a time. */
static uint32_t hash_of(const char *name)
{
    static const uint32_t table[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
        0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
    };
    uint32_t crc = 0xffffffff;

    for (; *name != '\0'; name++) {
        crc ^= (unsigned char)*name;
        crc = (crc >> 4) ^ table[crc & 15];
        crc = (crc >> 4) ^ table[crc & 15];
    }
    return ~crc;
}

static bool still_ours(int fd)
{
    struct stat now;

    return fd >= 0 && fstat(fd, &now) == 0 && now.st_dev == database_stat.st_dev &&
           now.st_ino == database_stat.st_ino;
}

/* The name of the database as a URI, in which three characters are special. */
static char *uri(void)
{
    static const char options[] = "?mode=ro&immutable=1";
    char *made = malloc(sizeof "file:" + 3 * strlen(vani_config.database) + sizeof options), *at = made;

    if (made == NULL)
        return NULL;
    at += sprintf(at, "file:");
    for (const char *from = vani_config.database; *from != '\0'; from++)
        at += sprintf(at, *from == '?' || *from == '#' || *from == '%' ? "%%%02X" : "%c", (unsigned char)*from);
    strcpy(at, options);
    return made;
}

static bool connect_database(void)
{
    char *name = uri();
    int old = database_fd, status;

    if (name == NULL)
        return false;
    if (still_ours(old)) /* inherited by a child */
        close(old);
    database_fd = -1;
    vani_doing = CONNECTING;
    status = sqlite.open_v2(name, &database, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
    vani_doing = LOOKING_UP;
    if (status != SQLITE_OK || database_fd < 0 || fstat(database_fd, &database_stat) != 0 ||
        /* A view instead of the table could block the program for ever; SQLite before 3.30 cannot forbid it. */
        (sqlite.db_config(database, SQLITE_DBCONFIG_ENABLE_VIEW, 0, (int *)NULL), false) ||
        sqlite.prepare_v2(database, QUERY, -1, &query, NULL) != SQLITE_OK) {
        database = NULL;
        query = NULL;
    }
    free(name);
    return query != NULL;
}

static bool add(struct extents *found)
{
    struct extent *grown = realloc(found->extent, (found->count + 1) * sizeof *grown), *one;
    const unsigned char *osts = sqlite.column_text(query, 4);

    if (grown == NULL)
        return false;
    found->extent = grown;
    one = &grown[found->count];
    one->start = (uint64_t)sqlite.column_int64(query, 0);
    one->end = sqlite.column_type(query, 1) == SQLITE_NULL ? UINT64_MAX : (uint64_t)sqlite.column_int64(query, 1);
    one->stripe_size = (uint64_t)sqlite.column_int64(query, 2);
    one->stripe_count = (uint64_t)sqlite.column_int64(query, 3);
    one->osts = strdup(osts == NULL ? "" : (const char *)osts);
    if (one->osts == NULL)
        return false;
    found->count++;
    return found->count <= MAX_EXTENTS;
}

static bool read_rows(const char *name, struct extents *found)
{
    int status = SQLITE_DONE;
    bool sound = sqlite.bind_int64(query, 1, hash_of(name)) == SQLITE_OK &&
                 sqlite.bind_text(query, 2, name, -1, NULL) == SQLITE_OK;

    while (sound && (status = sqlite.step(query)) == SQLITE_ROW)
        sound = add(found);
    sqlite.reset(query);
    /* The name is valid only during the call. */
    sqlite.bind_text(query, 2, "", 0, NULL);
    return sound && status == SQLITE_DONE;
}

bool vani_lookup(const char *name, struct extents *found)
{
    bool sound = false, stop;

    found->extent = NULL;
    found->count = 0;
    /* After vfork() or a bare clone(), the memory is another process's. */
    if (getpid() != owner)
        return false;
    pthread_mutex_lock(&lock);
    if (query != NULL && !still_ours(database_fd)) {
        database_fd = -1;
        query = NULL;
    }
    if (!gave_up && query == NULL && !connect_database())
        gave_up = true;
    else if (!gave_up)
        sound = read_rows(name, found);
    stop = gave_up;
    pthread_mutex_unlock(&lock);
    if (!sound) {
        vani_free(found);
        vani_log(stop ? "default: the database cannot be used;" : "default: the database cannot be read;", name);
    }
    return sound;
}

void vani_free(struct extents *found)
{
    for (size_t i = 0; i < found->count; i++)
        free(found->extent[i].osts);
    free(found->extent);
    found->extent = NULL;
    found->count = 0;
}

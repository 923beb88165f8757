/* Interfaces between the parts of libvani_place.so. */
#ifndef VANI_PLACE_H
#define VANI_PLACE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define EXPORTED __attribute__((visibility("default")))

/* From the environment, at the start of the program. */
struct config {
    const char *database;  /* VANI_PLACE_DB, absolute; NULL disables the library */
    const char *log;       /* VANI_PLACE_LOG, or NULL */
    const char *lustreapi; /* VANI_PLACE_LIB, or NULL for the usual names */
};
extern struct config vani_config;

/* What this thread is doing. Calls that SQLite, liblustreapi and the log make go straight to libc. */
enum doing { NOTHING, LOOKING_UP, CONNECTING, CREATING };
extern _Thread_local enum doing vani_doing __attribute__((tls_model("initial-exec")));

/* Absolute names of the file that MPI_File_open opens on this thread, or NULL. Some libraries treat the kind of file
 * system in front of the name as a part of it, others do not. */
struct mpi_names {
    char whole[PATH_MAX], without_kind[PATH_MAX];
};
extern _Thread_local const struct mpi_names *vani_mpi_names __attribute__((tls_model("initial-exec")));

/* One component of a layout. */
struct extent {
    uint64_t start, end; /* bytes; the end is exclusive */
    uint64_t stripe_size;
    uint64_t stripe_count; /* 0: on the metadata target */
    char *osts; /* indices, separated by spaces; may be empty */
};
struct extents {
    struct extent *extent;
    size_t count;
};

/* place.c: create a file with its layout. On -1 the caller must make the call itself; errno is unchanged. */
int vani_place(int folder, const char *path, int flags, mode_t mode);
/* For a file opened while this thread is busy: returns the descriptor to pass on. */
int vani_inner_opened(int fd, const char *path, int flags);

/* name.c: write the absolute name of a path into PATH_MAX bytes; false if there is none. */
bool vani_name(int folder, const char *path, char *name);

/* lookup.c */
bool vani_lookup_begin(void); /* false: there is no SQLite */
void vani_lookup_opened(int fd);
bool vani_lookup(const char *name, struct extents *found); /* false on an error, which is logged */
void vani_free(struct extents *found);

/* layout.c */
bool vani_layout_begin(void); /* false: there is no liblustreapi */
/* Like open(2) with O_CREAT | O_EXCL. */
int vani_create(const char *path, int flags, mode_t mode, const struct extents *layout);

/* log.c */
void vani_log(const char *what, const char *name);

/* wrap_open.c: the calls of libc. */
int vani_real_open(const char *path, int flags, mode_t mode);

#endif

/* What all kernels share. */
#ifndef VANI_H
#define VANI_H

#include <stddef.h>
#include <stdint.h>

/* Visible to ctypes. */
#define KERNEL __attribute__((visibility("default")))

/* What a kernel returns: it did all of its work, or numpy decides and nothing that it wrote counts. */
enum { DONE = 0, NOT_ME = 1 };

#endif

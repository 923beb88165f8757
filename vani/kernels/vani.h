/* What all kernels share. Python reads the signatures of kernels from these sources (library.py). */
#ifndef VANI_H
#define VANI_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A function that Python calls. It takes int64_t numbers and the arrays below. */
#define KERNEL __attribute__((visibility("default"))) int64_t

/* An array that the kernel only reads; MAYBE: or a null pointer. Its length is a sum of products of numbers. */
#define IN(type, name, length) const type *name
#define MAYBE(type, name, length) const type *name
/* An array of the caller that the kernel changes. */
#define INOUT(type, name, length) type *name
/* An array that is made for the call, of any content; ZEROS: of zeros; ROWS: cut to as many rows as the kernel returns. */
#define OUT(type, name, length) type *name
#define ZEROS(type, name, length) type *name
#define ROWS(type, name, length) type *name

/* What a kernel returns unless it returns a number of rows: it did all of its work, or numpy decides and nothing that it
   wrote counts. */
enum { DONE = 0, NOT_ME = -1 };

#endif

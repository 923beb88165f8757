/* What kernels that measure calls share: see vani/calls.py and analyzers/keyed.py. */
#ifndef VANI_CALLS_H
#define VANI_CALLS_H

#include "vani.h"

/* Stands for null. */
#define NO_VALUE INT64_MIN

/* Kinds of file-system calls. */
enum { READ = 0, WRITE = 1, METADATA = 2, SYNC = 3 };

#endif

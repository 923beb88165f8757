/* VANI_PLACE_LOG: one line per created file, in a single write, so that processes can share the log. */
#include "place.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

void vani_log(const char *what, const char *name)
{
    char line[PATH_MAX + 256];
    int length, fd;

    if (vani_config.log == NULL)
        return;
    length = snprintf(line, sizeof line, "%ld %s %s\n", (long)getpid(), what, name);
    if (length <= 0)
        return;
    if ((size_t)length >= sizeof line) {
        length = sizeof line - 1;
        line[length - 1] = '\n';
    }
    for (int i = 0; i < length - 1; i++)
        if ((unsigned char)line[i] < ' ' || line[i] == 127)
            line[i] = '?';
    fd = vani_real_open(vani_config.log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
    if (fd < 0)
        return;
    if (write(fd, line, (size_t)length) < 0) {
        /* A full disk is no reason to fail. */
    }
    close(fd);
}

/* Stands in for Recorder's library: leaves a file for each process that loaded it and was told where to. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void begin(void) {
    const char *folder = getenv("RECORDER_TRACES_DIR");
    const char *rank = getenv("PMI_RANK") ? getenv("PMI_RANK") : getenv("OMPI_COMM_WORLD_RANK");
    const char *alone = getenv("RECORDER_WITH_NON_MPI");
    char name[4096];
    if (!folder || (!rank && !alone))
        return;
    snprintf(name, sizeof name, "%s/%s-%d.standin", folder, rank ? rank : "alone", (int)getpid());
    FILE *file = fopen(name, "w");
    if (!file)
        return;
    fprintf(file, "%s\n", getenv("LD_PRELOAD"));
    fclose(file);
}

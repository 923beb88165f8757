/* Heat in a square plate, by explicit finite differences; the field is saved as it develops.
 *
 * usage: heat FILE
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { N = 256, STEPS = 200, SAVE_EVERY = 10 };

static double field[N][N], next[N][N];

static void step(void)
{
    for (int i = 1; i < N - 1; i++)
        for (int j = 1; j < N - 1; j++)
            next[i][j] = field[i][j] + 0.2 * (field[i - 1][j] + field[i + 1][j] + field[i][j - 1]
                                              + field[i][j + 1] - 4 * field[i][j]);
    for (int i = 1; i < N - 1; i++)
        for (int j = 1; j < N - 1; j++)
            field[i][j] = next[i][j];
}

/* Row by row, each handed over before the next: a crash loses one row at most. */
static void save(const char *path)
{
    for (int i = 0; i < N; i++) {
        int file = open(path, O_WRONLY | O_APPEND);
        if (file < 0 || write(file, field[i], sizeof field[i]) != sizeof field[i]) {
            perror("heat: cannot save the field");
            exit(1);
        }
        close(file);
    }
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: heat FILE\n");
        return 2;
    }
    for (int j = 0; j < N; j++)
        field[0][j] = 100.0;
    int file = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file < 0) {
        perror("heat: cannot write");
        return 1;
    }
    close(file);
    for (int n = 1; n <= STEPS; n++) {
        step();
        if (n % SAVE_EVERY == 0)
            save(argv[1]);
    }
    return 0;
}

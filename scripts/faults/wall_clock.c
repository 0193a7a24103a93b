/* Lets a program see another wall clock than the machine's: LD_PRELOAD this, and name a file in
 * WALL_CLOCK_FILE that holds the difference in seconds (8 bytes, signed, in the machine's order).
 * The file is mapped, so that whoever writes it steps the clock of a running program. The clocks
 * of elapsed time stay as they are. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile const int64_t *ahead;

__attribute__((constructor)) static void map_file(void) {
    const char *name = getenv("WALL_CLOCK_FILE");
    int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *mapped = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED)
        ahead = mapped;
    close(file);
}

static int is_wall(clockid_t clock) {
    return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && ahead && is_wall(clock))
        now->tv_sec += *ahead;
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec precise;
    int result = clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return result;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}

/* Lets a program find a disk that fails where it keeps pages (below a folder `mayfly-...`): LD_PRELOAD this, and name a
 * file in DISK_FAULT_FILE that holds a number (8 bytes, signed, in the machine's order). 0: the disk works. Above: writes
 * and new files fail with this errno. Below: writes wait until it is something else.
 * The file is mapped, so that whoever writes it changes the disk of a running program. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile const int64_t *fault;

__attribute__((constructor)) static void map_file(void) {
    const char *name = getenv("DISK_FAULT_FILE");
    int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *mapped = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED)
        fault = mapped;
    close(file);
}

/* The error that a write to this path has. */
static int error_of(const char *path) {
    if (!fault || !strstr(path, "/mayfly-"))
        return 0;
    while (*fault < 0) {
        struct timespec pause = {0, 5000000};
        nanosleep(&pause, NULL);
    }
    return (int)*fault;
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t offset) {
    char name[64], path[4096];
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    ssize_t length = readlink(name, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    errno = error_of(path);
    if (errno)
        return -1;
    return syscall(SYS_pwrite64, file, bytes, count, offset);
}

int open64(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    int mode = flags & O_CREAT ? va_arg(arguments, int) : 0;
    va_end(arguments);
    errno = flags & O_CREAT ? error_of(path) : 0;
    if (errno)
        return -1;
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_LARGEFILE, mode);
}

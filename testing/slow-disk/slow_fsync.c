/* A slow disk on a fast one: every fsync and fdatasync takes SLOW_FSYNC_MS milliseconds longer.
 *
 * Loaded with LD_PRELOAD by `cargo xtask bench writes --fsync-ms X`, around the bare loop and around
 * ours alike. Group commit is worth what one sync costs, so a ratio measured on a disk that answers
 * at once says nothing about a laptop.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

typedef int (*sync_call)(int);

static void wait_as_the_disk_would(void) {
    const char *text = getenv("SLOW_FSYNC_MS");
    double ms = text ? atof(text) : 0.0;
    if (ms <= 0.0) {
        return;
    }
    struct timespec rest;
    rest.tv_sec = (time_t)(ms / 1e3);
    rest.tv_nsec = (long)((ms - (double)rest.tv_sec * 1e3) * 1e6);
    while (nanosleep(&rest, &rest) != 0) {
    }
}

int fsync(int file) {
    int result = ((sync_call)dlsym(RTLD_NEXT, "fsync"))(file);
    wait_as_the_disk_would();
    return result;
}

int fdatasync(int file) {
    int result = ((sync_call)dlsym(RTLD_NEXT, "fdatasync"))(file);
    wait_as_the_disk_would();
    return result;
}
